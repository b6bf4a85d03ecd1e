"""Arguments by name: each of PyTorch's own names, and NumPy's for those that have one."""

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import torch

import pywebgpu
from tests.opdb import operators
from tests.opdb.translate import Translator

NUMPYS = {"dim": "axis", "keepdim": "keepdims", "other": "x2"}
FIRST = ("input", "x", "a", "x1")
Call = tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]


def calls(name: str, most: int) -> Iterator[tuple[str, Call]]:
    """Calls of an operator that PyTorch takes, by the names of their arguments: as a method, and as a function."""
    op = operators.entries()[name]
    dtype = torch.float32 if op.supports_dtype(torch.float32, "cpu") else torch.int64
    if not op.supports_dtype(dtype, "cpu"):
        return
    seen = set()
    for sample in operators.samples(op, dtype, most, requires_grad=False):
        for names in _schemas(op):
            if len(names) <= len(sample.args):
                continue
            given = dict(zip(names[1:], sample.args, strict=False)) | sample.kwargs
            for options in (given, {NUMPYS.get(key, key): value for key, value in given.items()}):
                for first in FIRST:
                    text = f"{op.name}({', '.join((first, *options))})"
                    if text not in seen and _is_taken(op.op, (), {first: sample.input, **options}):
                        seen.add(text)
                        yield text, (op.op, (), {first: sample.input, **options})
                for method in (op.method_variant, op.inplace_variant):
                    text = f"input.{getattr(method, '__name__', '')}({', '.join(options)})"
                    own = getattr(torch.Tensor, getattr(method, "__name__", ""), None)
                    if own is not None and text not in seen and _is_taken(own, (_fresh(sample.input),), options):
                        seen.add(text)
                        yield text, (own, (sample.input,), options)


def _fresh(value: Any) -> Any:
    return value.clone() if torch.is_tensor(value) else value


def _schemas(op: Any) -> list[list[str]]:
    """The names of the arguments that may stand by position."""
    found = torch._C._jit_get_schemas_for_operator(f"aten::{op.aten_name or op.name}")
    return [[argument.name for argument in schema.arguments if not argument.kwarg_only] for schema in found]


def _is_taken(function: Callable[..., Any], args: Any, options: Any) -> bool:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            function(*args, **options)
        except Exception:
            return False
    return True


def trouble(call: Call, device: str) -> str:
    """What this library says of a call; "" where it takes it."""
    function, args, options = call
    translator = Translator(device)
    args, options = translator.value((args, dict(options)))
    is_method = function is getattr(torch.Tensor, function.__name__, None)
    own = getattr(pywebgpu.Tensor, function.__name__) if is_method else translator.value(function)
    try:
        own(*args, **options)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return ""
