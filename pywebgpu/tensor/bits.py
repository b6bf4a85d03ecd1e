"""Functions of the bits and the factors of numbers: parts of a float, the float beside it, divisors."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING

from pywebgpu import dtypes
from pywebgpu.composites import divisors
from pywebgpu.devices.base import check_supported
from pywebgpu.dtypes import Kind
from pywebgpu.ops import pointwise
from pywebgpu.support import shapes
from pywebgpu.tensor import create, dispatch, functions, outputs
from pywebgpu.tensor.apply import apply
from pywebgpu.tensor.elementwise import ElementwiseMethods
from pywebgpu.tensor.formats import row_major
from pywebgpu.tensor.memory_format import by_operands, described
from pywebgpu.tensor.methods import named_by_numpy, require_tensor
from pywebgpu.torch_api import return_types

if TYPE_CHECKING:
    from pywebgpu.tensor.tensor import Tensor

SIGN = -(2**31)  # the bits of -0.0


@named_by_numpy
@outputs.writable()
def frexp(input: Tensor) -> tuple[Tensor, Tensor]:
    """A mantissa of [0.5, 1) and an exponent of 2, by element. float64 is taken apart as float32."""
    if input.dtype.kind is not Kind.FLOAT:
        raise RuntimeError("torch.frexp() only supports floating-point dtypes")
    x = input if input.dtype.itemsize > 2 else input.float()
    small = x.detach().abs() < 2.0**-126
    size = (x.detach() * functions.where(small, 2.0**24, 1.0)).float()
    exponent = ((size.view(dtypes.int32) >> 23) & 255) - 126 - functions.where(small, 24, 0)
    exponent = functions.where((size == 0).logical_or(size.isfinite().logical_not()), 0, exponent).int()
    half = exponent // 2
    mantissa = x * (half.neg() + 127 << 23).view(dtypes.float32) * (half - exponent + 127 << 23).view(dtypes.float32)
    return return_types.of("frexp", (mantissa.to(input.dtype), exponent))


@named_by_numpy
@outputs.writable()
def ldexp(input: Tensor, other: Tensor) -> Tensor:
    """`input` times 2 to the power `other`; in memory as if pow(2.0, other) had been computed, row by row."""
    return by_operands(ElementwiseMethods.ldexp(input, other), described(input), row_major(other))


@named_by_numpy
@outputs.writable()
def nextafter(input: Tensor, other: Tensor) -> Tensor:
    """The number after `input` on the way to `other`, by element."""
    _require_tensors("nextafter", input, other)
    dtype = functions.result_type(input, other)
    if not dtype.is_floating_point:
        raise NotImplementedError(f'"nextafter" not implemented for {dtype.name!r}: it needs floating numbers')
    input, other = input.to(dtype), other.to(dtype)
    if dtype is dtypes.float64:
        return _next_double(input, other)
    if input.dtype is dtypes.float16:
        return _next_half(input, other)
    step = 1 if input.dtype is dtypes.float32 else 1 << 16  # a bfloat16 is the first half of a float32
    x, y = functions.broadcast_tensors(input.detach().float(), other.detach().float())
    bits = x.view(dtypes.int32)
    grows = (x < y) == (x > 0)
    least = functions.where(y < 0, SIGN + step, step)
    neighbour = functions.where(x == 0, least, bits + functions.where(grows, step, -step)).int().view(dtypes.float32)
    return _moved(input, x, y, neighbour)


def _next_double(input: Tensor, other: Tensor) -> Tensor:
    """As nextafter, of float64, which the host computes."""
    x, y = functions.broadcast_tensors(input.detach(), other.detach())
    neighbour = import_module("pywebgpu.linalg.factorization").one(
        "nextafter", lambda np, a, b: np.nextafter(a, b), x, y
    )
    return _moved(input, x, y, neighbour)


def _next_half(input: Tensor, other: Tensor) -> Tensor:
    """As nextafter, of float16: the steps between them, in float32."""
    x, y = functions.broadcast_tensors(input.detach().float(), other.detach().float())
    mantissa, exponent = frexp(x)
    shrinks = (x < y) != (x > 0)
    lower = shrinks.logical_and(mantissa.abs() == 0.5).logical_and(x != 0)  # Below a power of 2 steps are half as long.
    step = (exponent - lower.int() - 11).clamp_min(-24).float().exp2()
    step = functions.where(x.isinf(), 32.0, functions.where(x == 0, 2.0**-24, step))
    held = x.clamp(-65536.0, 65536.0)
    return _moved(input, x, y, functions.where(x < y, held + step, held - step))


def _moved(input: Tensor, x: Tensor, y: Tensor, neighbour: Tensor) -> Tensor:
    """The found numbers, y where x is there, NaN of NaN; the gradient goes to what moved."""
    neighbour = functions.where(x == y, y, functions.where(x.isnan().logical_or(y.isnan()), x + y, neighbour))
    moves = functions.where(x == y, 0.0, input)
    return apply(pointwise.graft, neighbour.to(input.dtype), moves.to(input.dtype))


@named_by_numpy
def gcd(input: Tensor, other: Tensor) -> Tensor:
    """The greatest common divisor, by element."""
    _require_tensors("gcd", input, other)
    return apply(divisors.gcd, input, other)


@named_by_numpy
def lcm(input: Tensor, other: Tensor) -> Tensor:
    """The least common multiple, by element."""
    _require_tensors("lcm", input, other)
    return apply(divisors.lcm, input, other)


@named_by_numpy
def hash_tensor(
    input: Tensor, dim: int | Sequence[int] = (), *, keepdim: bool = False, mode: int = 0, out: Tensor | None = None
) -> Tensor:
    """The elements as 64 bits each, joined by exclusive or over axes: a uint64, which device cpu alone has.

    Computed by NumPy at once: for telling whether two tensors are the same, and not in a step.
    """
    import numpy as np

    if mode != 0:
        raise RuntimeError(f"hash_tensor: Unknown mode {mode}; 0 is exclusive or")
    device = input._storage.device
    check_supported(dtypes.uint64, device)
    values: Tensor = input.detach()
    values = values.double() if input.dtype.is_floating_point else values.long()
    axes = shapes.axes(dim, input.ndim) if dim != () else tuple(range(input.ndim))
    if not input.numel() and (dim == () or any(not input.shape[axis] for axis in axes)):
        raise IndexError("hash_tensor: Expected reduction dims of non-zero size.")
    words = values.numpy().view("uint64").reshape(tuple(input.shape))
    joined = np.bitwise_xor.reduce(words, axis=axes, keepdims=True)
    hashes: Tensor = create.tensor(joined, device=input.device)
    hashes = hashes if keepdim else hashes.squeeze(axes)
    return outputs.finished("hash_tensor", hashes, out, input)


def _require_tensors(name: str, *values: object) -> None:
    for position, value in enumerate(values):
        require_tensor(name, ("input", "other")[position], position + 1, value)


globals().update(dispatch.all_public(globals(), __name__))
