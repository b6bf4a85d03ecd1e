"""`out=` of every operator that takes it, right and wrong: dtypes, devices, shapes, strides, memory that overlaps."""

import functools
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import torch

import pywebgpu
from tests.opdb import operators, verdict
from tests.opdb.gradients import leaves
from tests.opdb.translate import Translator
from tests.opdb.verdict import Difference, Verdict

# Refused here wherever PyTorch does not look: what it writes then depends on how far it has read; or is no gradient's.
STRICTER = (
    "to a single memory location",
    "don't support automatic differentiation",
    "Expected out tensor to have device",
)
DTYPES = ("bool", "uint8", "int32", "int64", "float16", "float32", "float64", "complex64", "complex128")
DRAWN = {"bernoulli", "multinomial", "normal", "randn"}
# PyTorch writes beyond the memory of some, or not into `out`, or refuses what is right.
CRASHING = {
    "narrow_copy",
    "nn.functional.avg_pool3d",
    "nn.functional.gelu",
    "nn.functional.linear",
    "_batch_norm_with_update",
}
# What such a tensor is made of, by case. Each is made by the library that it is given: of PyTorch and of this one.
Make = Callable[[Any, Any, str], Any]  # library, a result of PyTorch's, device


def _empty(library: Any, like: torch.Tensor, device: str, *, shape: Any = None, dtype: str = "") -> Any:
    dtype = dtype or str(like.dtype).removeprefix("torch.")
    return library.ones(tuple(like.shape) if shape is None else shape, dtype=getattr(library, dtype), device=device)


def _spaced(library: Any, like: torch.Tensor, device: str) -> Any:
    """Every second element of memory."""
    return _empty(library, like, device, shape=(*like.shape, 2))[..., 0]


def _grown(library: Any, like: torch.Tensor, device: str) -> Any:
    """One element again and again."""
    return _empty(library, like, device, shape=(1,) * like.ndim).expand(tuple(like.shape))


def _elsewhere(library: Any, like: torch.Tensor, device: str) -> Any:
    """On a device that no input is on."""
    return _empty(library, like, "meta" if library is torch else "null", dtype="float32")


CASES: dict[str, Make] = {
    "right": _empty,
    "spaced": _spaced,
    "turned": lambda library, like, device: _empty(library, like, device, shape=tuple(like.shape[::-1])).permute(
        tuple(range(like.ndim - 1, -1, -1))
    ),
    "none": lambda library, like, device: _empty(library, like, device, shape=(0,)),
    "longer": lambda library, like, device: _empty(library, like, device, shape=(*like.shape, 2)),
    "grown": _grown,
    "elsewhere": _elsewhere,
    "with a gradient": lambda library, like, device: _empty(library, like, device).requires_grad_(),
}


def _as(dtype: str, library: Any, like: torch.Tensor, device: str) -> Any:
    return _empty(library, like, device, dtype=dtype)


CASES |= {dtype: functools.partial(_as, dtype) for dtype in DTYPES}


def judge(op: Any, dtype: torch.dtype, device: str, most: int) -> Iterator[tuple[str, Verdict]]:
    """A case and a verdict for each kind of `out=`, and for memory that is the first input's."""
    if not op.supports_out or not op.supports_dtype(dtype, "cpu") or op.name in CRASHING:
        return
    for sample in operators.samples(op, dtype, most, requires_grad=False):
        given = (sample.input, *sample.args), dict(sample.kwargs)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                expected = op.op(*given[0], **given[1])
        except Exception:
            continue  # PyTorch itself refuses its sample.
        parts = leaves(expected)
        if not all(isinstance(part, torch.Tensor) and part.layout is torch.strided for part in parts):
            continue
        for name in CASES:
            if _is_meant(name, op, parts, device):
                run = functools.partial(_written, CASES[name], expected, device)
                yield name, verdict.judged(functools.partial(_compare, op, given, device, run, name))
        if isinstance(expected, torch.Tensor) and torch.is_tensor(sample.input) and _shifts(sample.input, expected):
            for shift in (0, 1):
                run, name = functools.partial(_shifted, shift), f"shifted by {shift}"
                yield name, verdict.judged(functools.partial(_compare, op, given, device, run, name))


def _is_meant(name: str, op: Any, parts: list[torch.Tensor], device: str) -> bool:
    match name:
        case "grown":
            return all(part.numel() > 1 for part in parts)
        case "with a gradient":
            return all(part.is_floating_point() or part.is_complex() for part in parts)
        case "elsewhere":
            return str(op.name) != "lu"  # It copies.
        case "float64" | "complex128":
            return device != "webgpu"
    return device != "webgpu" or op.name != "hash_tensor"  # Its numbers are of 64 bits.


def _written(make: Make, like: Any, device: str, library: Any, function: Any, given: Any) -> Any:
    place = device if library is pywebgpu else "cpu"
    outs = [make(library, part, place) for part in leaves(like)]
    return _called(function, given[0], given[1], outs if isinstance(like, tuple | list) else outs[0])


def _shifted(shift: int, library: Any, function: Any, given: Any) -> Any:
    """The first input and `out` are parts of one memory."""
    (first, *rest), options = given
    memory = library.cat([first.reshape(-1), first.reshape(-1)])
    first, out = (memory[start : start + first.numel()].reshape(first.shape) for start in (0, shift))
    return _called(function, [first, *rest], options, out)


def _shifts(first: torch.Tensor, result: torch.Tensor) -> bool:
    return bool(first.shape == result.shape and first.dtype is result.dtype and first.numel() > 1)


def _called(function: Any, args: Any, kwargs: Any, out: Any) -> Any:
    """What was raised, or the warnings of a resize, whether the result is `out`, and what that holds."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = function(*args, **kwargs, out=out)
        except Exception as error:
            return error
    resized = any("was resized" in str(warning.message) for warning in caught)
    parts = leaves(out)
    same = result is None or all(one is other for one, other in zip(leaves(result), parts, strict=False))
    return resized, same, [part.detach() for part in parts], [tuple(part.stride()) for part in parts]


def _compare(op: Any, given: Any, device: str, run: Any, name: str) -> None:
    wanted = run(torch, op.op, given)
    translator = Translator(device)
    args, options = translator.value(given)
    options |= {"device": device} if "device" in options else {}
    found = run(pywebgpu, translator.value(op.op), (args, options))
    if isinstance(found, Exception):
        if not isinstance(wanted, Exception):
            if any(told in str(found) for told in STRICTER):
                return
            raise found
        kind = RuntimeError if isinstance(wanted, NotImplementedError) else type(wanted)
        if not isinstance(found, kind):
            raise Difference(f"{verdict.text(found)}, where PyTorch raises {verdict.text(wanted)}")
        return
    if isinstance(wanted, Exception):
        raise Difference(f"silent, where PyTorch raises {verdict.text(wanted)}")
    if found[0] != wanted[0]:
        raise Difference("no warning of a resize" if wanted[0] else "a warning of a resize")
    if found[1] != wanted[1]:
        raise Difference("what is returned is not `out`")
    for ours, theirs, own, other in zip(found[2], wanted[2], found[3], wanted[3], strict=True):
        _same(op, given[0], ours, theirs)
        if own != other and theirs.numel() > 1 and name not in ("none", "longer"):  # Those get memory anew.
            raise Difference(f"strides {own} for {other}")


def _same(op: Any, args: Any, ours: Any, theirs: torch.Tensor) -> None:
    if str(ours.dtype) != str(theirs.dtype):
        raise Difference(f"{ours.dtype} for {theirs.dtype}")
    dtype = _like(args, theirs)
    ours = ours.to(getattr(pywebgpu, str(dtype).removeprefix("torch.")))
    is_known = op.name not in operators.UNWRITTEN | DRAWN | operators.SIGNS
    verdict.same("out", ours, theirs.to(dtype), values=is_known, kind="model", subject=op.name)


def _like(args: Any, part: torch.Tensor) -> torch.dtype:
    """The dtype in which a result is compared: what is written as float64 was computed of float32."""
    narrower = {torch.float64: torch.float32, torch.complex128: torch.complex64}
    first = next((leaf.dtype for leaf in leaves(args) if torch.is_tensor(leaf)), torch.float32)
    return part.dtype if first in narrower else narrower.get(part.dtype, part.dtype)
