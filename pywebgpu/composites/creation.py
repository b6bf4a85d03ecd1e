"""Tensors that a few numbers describe: ranges, constants, unit matrices. All are computed from positions."""

import struct
from math import ceil, frexp, isfinite, ldexp, prod
from operator import index

from pywebgpu import dtypes
from pywebgpu.composites import arithmetic, indexing, masks, matrix, wide
from pywebgpu.dtypes import DType, Kind
from pywebgpu.errors import ShapeError
from pywebgpu.ir.graph import LARGE, Node, Spec
from pywebgpu.ops import indexing as ops
from pywebgpu.ops import pointwise
from pywebgpu.step_capture.free_number import Number
from pywebgpu.support import numbers
from pywebgpu.support.shapes import Shape

EXACT = 1 << 24  # whole numbers up to here are exact in float32


def full(value: Number, shape: Shape, dtype: DType) -> Node:
    """One number everywhere. Raises: DTypeError where the dtype cannot hold it."""
    return arithmetic.broadcast_to(
        arithmetic.stored(numbers.rounded(value, dtype) if prod(shape) == 1 else value, dtype), shape
    )


def arange(start: Number, end: Number, step: Number, dtype: DType) -> Node:
    """start, start + step, ... below end (above it for a negative step).

    Raises: ShapeError for a step of 0 or one that leads away from end.  Against torch: within the last bit.
    """
    if not (isfinite(start) and isfinite(end)):
        raise ShapeError(f"unsupported range: {start} -> {end}")
    if dtype is dtypes.int64:  # Others count by the fractions that were given, and compute without.
        if 0 < abs(step) < 1:
            raise ValueError("step must be nonzero, also as a whole number")
        start, end, step = int(start), int(end), int(step)
    if step == 0:
        raise ShapeError("step must be nonzero")
    if (end < start) if step > 0 else (end > start):
        raise ShapeError(
            f"upper bound and lower bound inconsistent with step sign: start={start}, end={end}, step={step}"
        )
    if isinstance(start, int) and isinstance(end, int) and isinstance(step, int):
        count = -((start - end) // step) if step > 0 else -((end - start) // -step)
    else:
        count = ceil((end - start) / step)
    return _stepped(index(count), start, step, dtype)


def _stepped(count: int, start: Number, step: Number, dtype: DType) -> Node:
    """start + i * step for i below count."""
    if dtype.kind is not Kind.FLOAT or dtype is dtypes.float64:
        is_whole = not isinstance(start, float) and not isinstance(step, float)
        ends = (start, start + step * (count - 1)) if count and is_whole else ()
        work = dtype if dtype.kind is Kind.FLOAT else dtypes.int64
        if work is dtypes.int64 and ends != (0, count - 1) and type(start) is int is type(step) and _fit(*ends):
            work = dtypes.int32  # What wraps on the way is right in the end, and needs no check.
        line = _line(count, start, step, work)
        return arithmetic.cast(wide.noted(line, *ends), dtype)
    if abs(step) > dtypes.float32.high:
        return _leap(count, start, step, dtype)
    is_integral = float(start).is_integer() and float(step).is_integer()
    if is_integral and max(abs(start), abs(start + step * count)) < EXACT:
        return arithmetic.cast(_line(count, start, step, dtypes.float32), dtype)
    # A step of few bits, whose multiples are exact, and the rest of it: as close as a product in float64.
    coarse = _of_bits(float(step), max(24 - count.bit_length(), 1))
    first = struct.unpack("<f", struct.pack("<f", start))[0]
    out = pointwise.add(
        _line(count, first, coarse, dtypes.float32),
        _line(count, float(start) - first, float(step) - coarse, dtypes.float32),
    )
    return arithmetic.cast(out, dtype)


def _fit(*values: Number) -> bool:
    return all(numbers.WORD[0] <= value <= numbers.WORD[1] for value in values)


def _leap(count: int, start: Number, step: Number, dtype: DType) -> Node:
    """start, and infinities after it: the step is one in float32."""
    positions = pointwise.iota(spec=Spec((count,), dtypes.float32), axis=0)
    first = pointwise.eq(positions, arithmetic.like(positions, 0))
    return arithmetic.cast(
        pointwise.where(first, *(arithmetic.number(n, dtypes.float32) for n in (start, step))), dtype
    )


def _line(count: int, start: Number, step: Number, dtype: DType) -> Node:
    positions = pointwise.iota(spec=Spec((count,), dtype), axis=0)
    if step != 1:
        positions = pointwise.mul(positions, arithmetic.number(step, dtype))
    return positions if start == 0 else pointwise.add(positions, arithmetic.number(start, dtype))


def _of_bits(value: float, bits: int) -> float:
    """The value rounded to `bits` binary digits."""
    fraction, exponent = frexp(value)
    return ldexp(round(ldexp(fraction, bits)), exponent - bits)


def linspace(start: Number, end: Number, steps: int, dtype: DType) -> Node:
    """`steps` numbers from start to end, both included, at equal distances; whole numbers are cut off."""
    if steps < 0:
        raise ShapeError("number of steps must be non-negative")
    if dtype is dtypes.bool_ and steps > 1:
        raise NotImplementedError("linspace: needs numbers, not torch.bool; compare its result with a bound instead")
    for value in (start, end):
        numbers.check(value, dtype)
    if steps < 2:
        return full(start, (steps,), dtype)
    if dtype.kind is not Kind.FLOAT:
        first, last = int(start) * (steps - 1), int(end) * (steps - 1)
        integers = wide.noted(_line(steps, first, int(end) - int(start), dtypes.int64), first, last)
        return arithmetic.cast(arithmetic.div(integers, steps - 1, "trunc"), dtype)
    work = dtype if dtype is dtypes.float64 else dtypes.float32
    step = full((end - start) / (steps - 1), (steps,), work)
    positions = pointwise.iota(spec=Spec((steps,), work), axis=0)
    back = pointwise.sub(full(steps - 1, (steps,), work), positions)
    rising = pointwise.add(full(start, (steps,), work), pointwise.mul(step, positions))
    falling = pointwise.sub(full(end, (steps,), work), pointwise.mul(step, back))
    return arithmetic.cast(pointwise.where(pointwise.lt(positions, back), rising, falling), dtype)


def logspace(start: Number, end: Number, steps: int, base: float, dtype: DType) -> Node:
    """base to the power of linspace."""
    work = dtype if dtype.kind is not Kind.INT else dtypes.float32
    if dtype.kind is Kind.INT:  # torch cuts off the ends as well.
        for value in (start, end):
            numbers.check(value, dtype)
        start, end = int(start), int(end)
    powers = linspace(start, end, steps, work)
    return arithmetic.cast(pointwise.pow_(full(float(base), (steps,), work), powers), dtype)


def eye(n: int, m: int, dtype: DType) -> Node:
    """1 on the diagonal, 0 elsewhere."""
    spec = Spec((n, m), dtypes.int32)
    return pointwise.cast(
        pointwise.eq(pointwise.iota(spec=spec, axis=0), pointwise.iota(spec=spec, axis=1)), dtype=dtype
    )


def triangle_indices(rows: int, columns: int, offset: int, dtype: DType, *, upper: bool) -> Node:
    """The coordinates (2, count) of a triangle of a matrix, row by row."""
    lower = offset - 1 if upper else offset
    if rows * columns > LARGE:
        raise ShapeError(f"Storage size calculation overflowed: a triangle of {rows} x {columns} has too many elements")
    under = sum(min(max(row + lower + 1, 0), columns) for row in range(rows))
    mask = matrix.below((rows, columns), lower)
    flat = pointwise.bitwise_not(mask) if upper else mask
    flat = indexing.shaped(flat, (rows * columns,))
    positions = masks.held(masks.counted(flat), rows * columns - under if upper else under)
    lines = [indexing.shaped(part, (1, *part.spec.shape)) for part in masks.coordinates(positions, (rows, columns))]
    return arithmetic.cast(ops.cat(*lines, axis=0), dtype)
