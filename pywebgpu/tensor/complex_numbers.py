"""Complex tensors: made of parts, and taken apart. Arithmetic with them is that of all tensors."""

from __future__ import annotations

from collections.abc import Callable
from math import pi
from typing import TYPE_CHECKING, Any

from pywebgpu import dtypes
from pywebgpu.composites import arithmetic
from pywebgpu.dtypes import DType
from pywebgpu.ir.graph import Node
from pywebgpu.ops import complex_parts, pointwise
from pywebgpu.tensor import dispatch, outputs, show
from pywebgpu.tensor.apply import apply, called
from pywebgpu.tensor.layout import through
from pywebgpu.tensor.methods import named_by_numpy

if TYPE_CHECKING:
    from pywebgpu.tensor.tensor import Tensor


PARTS = (dtypes.float16, dtypes.float32, dtypes.float64)


@named_by_numpy
def view_as_real(input: Tensor) -> Tensor:
    """(...) complex -> (..., 2) real: the same memory. Raises RuntimeError for a real tensor."""
    if not input.dtype.is_complex:
        raise RuntimeError("view_as_real is only supported for complex tensors")
    return input._view(complex_parts.as_real)


@named_by_numpy
def view_as_complex(input: Tensor) -> Tensor:
    """(..., 2) real -> (...) complex: the same memory.

    Raises: RuntimeError for another dtype than float16, float32 and float64, another last axis, or one whose two
    elements do not lie side by side.
    """
    if input.dtype not in PARTS:
        raise RuntimeError(
            f"view_as_complex is only supported for half, float and double tensors, but got a tensor of scalar type: "
            f"{input.dtype.title}"
        )
    if not input.ndim:
        raise RuntimeError("Input tensor must have one or more dimensions")
    input._settle()
    steps, offset = through(input._storage.node.spec.shape, input._path)
    if input.shape[-1] == 2:
        if steps[-1] != 1:
            raise RuntimeError("Tensor must have a last dimension with stride 1")
        if any(n > 1 and step % 2 for n, step in zip(input.shape[:-1], steps, strict=False)):
            raise RuntimeError("Tensor must have a stride divisible by 2 for all but last dimension")
        if offset % 2:
            raise RuntimeError("Tensor must have a storage_offset divisible by 2")
    return input._view(complex_parts.as_complex)


@named_by_numpy
def real(input: Tensor) -> Tensor:
    """The real part, in the same memory; a real tensor itself."""
    return view_as_real(input).select(-1, 0) if input.dtype.is_complex else input


@named_by_numpy
def imag(input: Tensor) -> Tensor:
    """The imaginary part, in the same memory. Raises RuntimeError for a real tensor."""
    if not input.dtype.is_complex:
        raise RuntimeError("imag is not implemented for tensors with non-complex dtypes.")
    return view_as_real(input).select(-1, 1)


def isreal(input: Tensor) -> Tensor:
    """Whether each element's imaginary part is 0."""
    if not input.dtype.is_complex:
        return input._new(pointwise.full(True, input._node.spec._replace(dtype=dtypes.bool_)), input._storage.device)
    return imag(input).eq(0)


def conj(input: Tensor) -> Tensor:
    """Each number with its imaginary part negated, computed at once; a real tensor itself."""
    return apply(complex_parts.conj, input) if input.dtype.is_complex else input


def conj_physical(input: Tensor) -> Tensor:
    """As conj; a real tensor as it is."""
    return apply(complex_parts.conj, input) if input.dtype.is_complex else input


def angle(input: Tensor) -> Tensor:
    """The angle to the positive real axis: of real numbers 0 or pi."""
    return apply(_angle, input)


def _angle(x: Node) -> Node:
    if x.spec.dtype.part is not None:
        return pointwise.atan2(complex_parts.imag(x), complex_parts.real(x))
    x = arithmetic.cast(x, arithmetic.floating(x))
    nothing = arithmetic.like(x, 0.0)
    phase = pointwise.where(pointwise.lt(x, nothing), arithmetic.like(x, pi), nothing)
    return pointwise.where(pointwise.isnan(x), x, phase)


def sgn(input: Tensor) -> Tensor:
    """Each number over its absolute value, 0 for 0; of real numbers the sign."""
    return called(apply(_sgn, input) if input.dtype.is_complex else input.sign(), "aten::sgn")


def _sgn(x: Node) -> Node:
    size = complex_parts.modulus(x)
    nothing = arithmetic.like(size, 0.0)
    zero = pointwise.eq(size, nothing)
    safe = pointwise.where(zero, arithmetic.like(size, 1.0), size)
    parts = [pointwise.div(part(x), safe) for part in (complex_parts.real, complex_parts.imag)]
    return complex_parts.complex_(*[pointwise.where(zero, nothing, part) for part in parts])


@named_by_numpy
def vdot(input: Tensor, other: Tensor) -> Tensor:
    """The sum of products of the first one's conjugates with the second: (n), (n) -> ()."""
    return called(conj(input).dot(other), "aten::vdot")


def complex(real: Tensor, imag: Tensor, *, out: Tensor | None = None) -> Tensor:
    """real + i imag, which are of one floating dtype and broadcast."""
    return _of_two("complex", _complex, real, imag, out)


def polar(abs: Tensor, angle: Tensor, *, out: Tensor | None = None) -> Tensor:
    """abs (cos(angle) + i sin(angle))"""
    return _of_two("polar", _polar, abs, angle, out)


def _of_two(
    name: str, function: Callable[[Node, Node], Node], first: Tensor, second: Tensor, out: Tensor | None
) -> Tensor:
    if name == "polar" and first.dtype is dtypes.float16:
        raise NotImplementedError("\"polar_cpu\" not implemented for 'Half'")
    if first.dtype not in PARTS:
        raise RuntimeError(
            f"Expected both inputs to be Half, Float or Double tensors but got {first.dtype.title} and "
            f"{second.dtype.title}"
        )
    if second.dtype is not first.dtype:
        raise RuntimeError(
            f"Expected object of scalar type {first.dtype.title} but got scalar type {second.dtype.title} for "
            "second argument"
        )
    result = apply(function, first, second)
    if out is not None and out.dtype is not result.dtype:
        raise RuntimeError(
            f"Expected object of scalar type {result.dtype.title} but got scalar type {out.dtype.title} for "
            "argument 'out'"
        )
    return outputs.finished(name, result, out, first, second)


def _complex(a: Node, b: Node) -> Node:
    return complex_parts.complex_(*arithmetic.together(a, b))


def _polar(size: Node, angle: Node) -> Node:
    size, angle = arithmetic.together(size, angle)
    parts = [pointwise.mul(size, part(angle)) for part in (pointwise.cos, pointwise.sin)]
    return complex_parts.complex_(*parts)


def chalf(input: Tensor, *, memory_format: object = None) -> Tensor:
    """As complex numbers with parts of float16."""
    return input.to(dtypes.complex32, memory_format=memory_format)


class Pairs(show.Column):
    """Writes complex numbers, each part as a column of its own."""

    def __init__(self, values: list[Any], dtype: DType, options: show.Options) -> None:
        self.options, part = options, complex_parts.part(dtype)
        self._real = show.Column([value.real for value in values], part, options)
        self._imag = show.Column([value.imag for value in values], part, options)
        self.width = self._real.width + self._imag.width + 1

    def __call__(self, value: Any) -> str:
        imag = self._imag(value.imag).lstrip()
        return f"{self._real(value.real)}{imag if imag[0] in '+-' else '+' + imag}j"


globals().update(dispatch.all_public(globals(), __name__))
