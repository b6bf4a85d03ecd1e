"""PyTorch's samples with one argument changed: what PyTorch refuses is refused, by an error of its type.

error_inputs of op_db are what somebody thought of; these are made: another axis, a tensor with more axes, a text.
"""

import warnings
from collections.abc import Iterator
from typing import Any

import torch

from tests.opdb import operators, verdict
from tests.opdb.translate import Translator

# An error of PyTorch's that says what it was not written for, and nothing of the call; or that says a dtype, where
# this library computes with what it is given.
OTHER_REASONS = (
    "not implemented for",
    "expected scalar type",
    "mixed dtype",
    "same dtype",
    "type promotion",
    "Overloaded torch operator",
    "Expected a value of type",
    "must be bool, not",
    "not bool",
    "descriptor",  # a method that was taken from the class
    "without overflow",
)
INTERNAL = AttributeError, AssertionError, KeyError, RecursionError, ZeroDivisionError  # that no call should end in
SAMPLES = 2
# PyTorch ends the process at some of these: it reads beyond memory.
CRASHING = {
    "_batch_norm_with_update",
    "_native_batch_norm_legit",
    "native_batch_norm",
    "_segment_reduce|offsets",
    "lu_unpack",
}
# Taken here, as elsewhere, where the shapes have one meaning alone.
LENIENT = {
    "cumulative_trapezoid",  # points and values broadcast
    "index_put",  # a value may begin with axes of one element, as in a subscript
    "nn.functional.instance_norm",  # statistics may, too
    "_unsafe_masked_index",  # these are private: nobody's promise
    "_unsafe_masked_index_put_accumulate",
    "linspace|tensor_overload",  # a tensor of one element is a number
    "logspace|tensor_overload",
    "tril_indices",  # fewer than no rows are none
    "triu_indices",
    "allclose",  # nothing is close to within NaN
    "nn.functional.linear",  # a weight that is a vector is taken by both, of one row or of several
    "inner",  # a tensor of one element in all goes with any
    "meshgrid|variadic_tensors",  # a text is asked for its axes
    "sparse.mm|reduce",
    "sparse.sampled_addmm",  # a batch of one goes with any
    # A sample that does not train gives back what it was given.
    "nn.functional.alpha_dropout",
    "nn.functional.dropout",
    "nn.functional.feature_alpha_dropout|with_train",
    "nn.functional.feature_alpha_dropout|without_train",
}


def changes(value: Any) -> Iterator[tuple[str, Any]]:
    """What it was changed to, in words, and so changed."""
    match value:
        case torch.Tensor():
            if value.layout is torch.strided:
                yield "with an axis more", value.detach()[None]
                yield "with no element", torch.empty(0, dtype=value.dtype)
                yield "a text", "abc"
                if value.ndim and value.shape[0]:
                    yield "with an axis less", value.detach()[0]
        case bool() | None:
            return
        case int():
            yield from ((str(number), number) for number in (100, -100))
        case float():
            yield "NaN", float("nan")
        case list() | tuple() if value and not isinstance(value[0], torch.Tensor):
            yield "one longer", type(value)((*value, value[-1]))
            yield "one shorter", type(value)(value[:-1])
        case str():
            yield "another text", f"{value}_"


def calls(sample: Any) -> Iterator[tuple[str, tuple[Any, ...], dict[str, Any]]]:
    args = (sample.input, *sample.args)
    for place, value in enumerate(args):
        for what, changed in changes(value):
            yield f"argument {place} {what}", (*args[:place], changed, *args[place + 1 :]), sample.kwargs
    for name, value in sample.kwargs.items():
        for what, changed in changes(value):
            yield f"{name} {what}", args, {**sample.kwargs, name: changed}


def judge(op: Any, device: str) -> Iterator[str]:
    """Of each call that PyTorch refuses and that is not refused here, or by a mistake of the library's own: what."""
    dtype = torch.float32 if op.supports_dtype(torch.float32, "cpu") else torch.int64
    for sample in operators.samples(op, dtype, SAMPLES, requires_grad=False):
        for what, args, kwargs in calls(sample):
            expected = _error(op.op, args, kwargs)
            if expected is None or any(reason in str(expected) for reason in OTHER_REASONS):
                continue
            try:
                function, (args, kwargs) = Translator(device).value((op.op, (args, kwargs)))
            except Exception:
                continue  # Not made of what is here.
            error = _error(function, args, kwargs)
            if error is None or (isinstance(error, INTERNAL) and not isinstance(expected, type(error))):
                yield f"{what}: {error!r}, where PyTorch raises {expected!r}"


def _error(function: Any, args: Any, kwargs: Any) -> Exception | None:
    """What a call raises, or the first read of what it gives."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            for leaf in verdict.leaves(function(*args, **kwargs)):
                if verdict.is_tensor(leaf):
                    verdict.array(leaf)
        except Exception as error:
            return error
    return None


# What no function takes, and how often in a row.
WRONG: tuple[tuple[str, Any], ...] = (("a text", "abc"), ("an object", object()), ("a list", [1.0, 2.0]))
SPACES = {
    "Tensor": lambda torch: torch.Tensor,
    "torch": lambda torch: torch,
    "nn.functional": lambda torch: torch.nn.functional,
    "linalg": lambda torch: torch.linalg,
    "special": lambda torch: torch.special,
    "fft": lambda torch: torch.fft,
}
# What takes any object, calls it, or changes what other tests see.
UNCALLED = frozenset((
    "apply_", "backward", "compile", "fork", "hub", "import_ir_module", "load", "map2_", "map_", "register_hook",
    "save", "set_default_device", "set_default_dtype", "set_printoptions", "thread_safe_generator", "visualize", "wait",
))  # fmt: skip
# Taken here: a device that nobody has, tolerances as a list, numbers for counts, an argument more.
TAKEN = frozenset(("get_autocast_dtype", "is_autocast_enabled", "pinv", "pinverse", "histogramdd", "selu"))


def wrong_calls(space: Any, torch: Any, *, is_class: bool) -> Iterator[tuple[str, Any]]:
    """Each public function of a module, or method of a class, called with what it cannot take: the call in words."""
    for name in sorted(dir(space)):
        function = getattr(space, name)
        if name.startswith("_") or name in UNCALLED or not callable(function) or isinstance(function, type):
            continue
        for what, value in WRONG:
            for count in (1, 2):
                x = torch.ones(2, 2)
                args = (x, *[value] * count) if is_class else (value,) if count == 1 else (x, value)
                yield f"{name} {what} {count}", lambda f=function, a=args: f(*a)


def unrefused(space: str, ours: Any) -> Iterator[str]:
    """Of each such call that PyTorch refuses and that is taken here, or ends in an AttributeError: what."""
    spaces, is_class = SPACES[space], space == "Tensor"
    theirs = dict(wrong_calls(spaces(torch), torch, is_class=is_class))
    for what, call in wrong_calls(spaces(ours), ours, is_class=is_class):
        expected = _raised(theirs[what]) if what in theirs and what.split()[0] not in TAKEN else None
        if expected is None or isinstance(expected, AttributeError):
            continue
        error = _raised(call)
        if error is None or isinstance(error, AttributeError):
            yield f"{what}: {error!r}, where PyTorch raises {expected!r}"


def _raised(call: Any) -> Exception | None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            call()
        except Exception as error:
            return error
    return None
