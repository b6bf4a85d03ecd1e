"""Products with weights that stay quantised: rows of blocks, of which codes and scales lie apart, each in a plane.

A block's codes have few bits, and its scales (and minima) turn them into numbers. Apart from each other both are read
as whole words. What a format's planes mean is said once, by ops, which every device has.
Source: github.com/ggml-org/ggml, ggml-common.h (layouts), ggml-quants.c (meaning).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod

from pywebgpu import dtypes
from pywebgpu.composites import arithmetic, bounds, joining, slicing
from pywebgpu.dtypes import DType
from pywebgpu.errors import ShapeError
from pywebgpu.ir.graph import Fused, Node, Spec
from pywebgpu.ops import contraction, indexing, movement, pointwise


@dataclass(frozen=True, slots=True)
class Plane:
    """A part of a weight's blocks: of each `count` elements of `dtype`, which stand from byte `start` in files."""

    name: str
    dtype: DType
    start: int
    count: int

    @property
    def size(self) -> int:
        """Bytes of a block."""
        return self.count * self.dtype.itemsize


@dataclass(frozen=True, slots=True)
class Quantized:
    """A format: elements of a block, its planes, and what they mean.

    numbers: (the planes, each (rows, blocks, count)) -> (rows, blocks, elements) float32.
    """

    name: str
    elements: int
    planes: tuple[Plane, ...]
    numbers: Callable[..., Node]

    @property
    def size(self) -> int:
        """Bytes of a block."""
        return sum(plane.size for plane in self.planes)


# Parts of blocks


def _float(x: Node) -> Node:
    return arithmetic.cast(x, dtypes.float32)


def _fields(codes: Node, bits: int, width: int) -> Node:
    """The fields of bytes (rows, blocks, n), of `width` bytes at a time those of the lowest bits first: (rows, blocks,
    n * 8 / bits)."""
    rows, blocks, count = codes.spec.shape
    fields = 8 // bits
    shape = (rows, blocks, count // width, fields, width)
    split = arithmetic.broadcast_to(movement.reshape(codes, shape=(rows, blocks, count // width, 1, width)), shape)
    positions = pointwise.iota(spec=Spec(shape, codes.spec.dtype), axis=3)
    shift = pointwise.mul(positions, arithmetic.like(positions, bits))
    values = pointwise.bitwise_and(pointwise.shift_right(split, shift), arithmetic.like(split, 2**bits - 1))
    return movement.reshape(values, shape=(rows, blocks, count * fields))


def _by_parts(codes: Node, of_part: Node) -> Node:
    """A number of each part of a block (rows, blocks, parts) for each of its codes."""
    rows, blocks, parts = of_part.spec.shape
    elements = codes.spec.shape[2]
    grown = movement.reshape(of_part, shape=(rows, blocks, parts, 1))
    return movement.reshape(
        arithmetic.broadcast_to(grown, (rows, blocks, parts, elements // parts)), shape=codes.spec.shape
    )


def _part(x: Node, start: int, stop: int) -> Node:
    return slicing.part(x, 2, start, stop)


def _q4_0(codes: Node, scales: Node) -> Node:
    values = _less(_float(_fields(codes, 4, 16)), 8)
    return arithmetic.mul(values, _by_parts(values, _float(scales)))


def _q4_1(codes: Node, scales: Node) -> Node:
    values, pairs = _float(_fields(codes, 4, 16)), _float(scales)
    scaled = arithmetic.mul(values, _by_parts(values, _part(pairs, 0, 1)))
    return arithmetic.add(scaled, _by_parts(values, _part(pairs, 1, 2)))


def _q8_0(codes: Node, scales: Node) -> Node:
    values = _float(codes)
    return arithmetic.mul(values, _by_parts(values, _float(scales)))


def _q4_k(codes: Node, scales: Node, parts: Node) -> Node:
    """Eight parts of 32 with six bits of a scale and of a minimum each: of the first four in a byte each, of the others
    four bits, with the other two above the first ones."""
    values, pairs = _float(_fields(codes, 4, 32)), _float(scales)
    first, second, rest = _part(parts, 0, 4), _part(parts, 4, 8), _part(parts, 8, 12)

    def six_bits(low: Node, rest_shift: int) -> Node:
        upper = pointwise.shift_left(_shifted(low, 6), arithmetic.like(low, 4))
        lower = _masked(_shifted(rest, rest_shift), 15)
        return _float(joining.cat([_masked(low, 63), pointwise.bitwise_or(lower, upper)], 2))

    scale = arithmetic.mul(six_bits(first, 0), _part(pairs, 0, 1))
    minimum = arithmetic.mul(six_bits(second, 4), _part(pairs, 1, 2))
    return arithmetic.sub(arithmetic.mul(values, _by_parts(values, scale)), _by_parts(values, minimum))


def _q6_k(low: Node, high: Node, parts: Node, scales: Node) -> Node:
    upper = _fields(high, 2, 32)
    codes = pointwise.bitwise_or(_fields(low, 4, 64), pointwise.shift_left(upper, arithmetic.like(upper, 4)))
    values = _less(_float(codes), 32)
    return arithmetic.mul(values, _by_parts(values, arithmetic.mul(_float(parts), _float(scales))))


def _less(x: Node, middle: int) -> Node:
    return pointwise.sub(x, arithmetic.like(x, middle))


def _shifted(x: Node, bits: int) -> Node:
    return x if bits == 0 else pointwise.shift_right(x, arithmetic.like(x, bits))


def _masked(x: Node, mask: int) -> Node:
    return pointwise.bitwise_and(x, arithmetic.like(x, mask))


_U8, _I8, _F16 = dtypes.uint8, dtypes.int8, dtypes.float16
FORMATS = {
    quantized.name: quantized
    for quantized in (
        Quantized("q4_0", 32, (Plane("codes", _U8, 2, 16), Plane("scales", _F16, 0, 1)), _q4_0),
        Quantized("q4_1", 32, (Plane("codes", _U8, 4, 16), Plane("scales", _F16, 0, 2)), _q4_1),
        Quantized("q8_0", 32, (Plane("codes", _I8, 2, 32), Plane("scales", _F16, 0, 1)), _q8_0),
        Quantized(
            "q4_k",
            256,
            (Plane("codes", _U8, 16, 128), Plane("scales", _F16, 0, 2), Plane("parts", _U8, 4, 12)),
            _q4_k,
        ),
        Quantized(
            "q6_k",
            256,
            (
                Plane("codes", _U8, 0, 128),
                Plane("high", _U8, 128, 64),
                Plane("parts", _I8, 192, 16),
                Plane("scales", _F16, 208, 1),
            ),
            _q6_k,
        ),
    )
}


def dequantize(*planes: Node, format: str) -> Node:
    """The numbers of a weight. Shapes: planes (rows, blocks * count) -> (rows, blocks * elements) float32."""
    quantized = FORMATS[format]
    rows, width = planes[0].spec.shape
    blocks = width // quantized.planes[0].count
    parts = [movement.reshape(plane, shape=(rows, blocks, plane.spec.shape[1] // blocks)) for plane in planes]
    return movement.reshape(quantized.numbers(*parts), shape=(rows, blocks * quantized.elements))


# Products


def _specs(x: Spec, *planes: Spec, format: str) -> tuple[Spec, ...]:
    return (Spec((x.shape[0], planes[0].shape[0]), x.dtype),)


def _product(x: Node, *planes: Node, format: str) -> tuple[Node, ...]:
    weight = arithmetic.cast(dequantize(*planes, format=format), x.spec.dtype)
    return (contraction.matmul(x, contraction.transposed(weight)),)


product: Fused = Fused("quantized_matmul", infer=_specs, fallback=_product)


def linear(x: Node, *planes: Node, format: str, bias: Node | None = None) -> Node:
    """x weight^T + bias, of a weight (n, k) in planes.

    Shapes: x (..., k), planes (n, k / elements * count), bias (n) -> (..., n).  Dtypes: x floating.
    A gradient flows to x and bias.  Raises: ShapeError when k differs.
    """
    quantized = FORMATS[format]
    n, width = planes[0].spec.shape
    k = width // quantized.planes[0].count * quantized.elements
    *lead, own = x.spec.shape
    if own != k:
        raise ShapeError(f"quantised linear: the input has {own} features, the weight {k}")
    rows = movement.reshape(x, shape=(prod(lead), k))
    (out,) = product(rows, *planes, format=format)
    out = movement.reshape(out, shape=(*lead, n))
    return out if bias is None else arithmetic.add(out, bias)


def embedding(index: Node, *planes: Node, format: str) -> Node:
    """Rows of a weight in planes, by number.

    Shapes: index (...), planes (n, k / elements * count) -> (..., k) float32.
    Raises: IndexError when a number is not in 0..n-1, as `embedding.embedding`.
    """
    n = planes[0].spec.shape[0]
    flat = movement.reshape(index, shape=(prod(index.spec.shape),))
    flat = bounds.checked(flat, n, wrap=False, text="index out of range in self: {index} of {size} rows")
    rows = dequantize(*[indexing.take(plane, flat) for plane in planes], format=format)
    return movement.reshape(rows, shape=(*index.spec.shape, rows.spec.shape[1]))
