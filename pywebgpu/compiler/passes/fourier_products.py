"""Fourier transforms as products with matrices of roots of unity, which kernels for products do best.

A length n1 n2 is transformed as n2 rows of n1, turned by roots of unity, then as n1 rows of n2 (Cooley, Tukey 1965). A
long length with a large prime factor is a convolution of a length that is a power of 2 (Bluestein 1970).
"""

from __future__ import annotations

from collections.abc import Callable
from math import isqrt, pi

from pywebgpu.compiler.passes.complex_functions import Pair, conjugate, product, whole
from pywebgpu.dtypes import DType, int32, uint32
from pywebgpu.errors import CompileError
from pywebgpu.ir.graph import Node, Spec
from pywebgpu.ops import contraction, indexing, movement, pointwise, reduction

MOST = 64  # the largest factor that is one product
PRIME = 1024  # the largest length without such factors that is one product
LONGEST = 1 << 15  # the largest prime whose squares 32 bits hold


def transform(x: Pair, *, inverse: bool) -> Pair:
    """The transform along the last axis."""
    *lead, n = x[0].spec.shape
    if n <= 1 or 0 in lead:
        return x
    if n <= MOST:
        return _product(x, inverse)
    first = _factor(n)
    if first:
        return _divided(x, first, inverse)
    return _product(x, inverse) if n <= PRIME else _convolved(x, inverse)


def _factor(n: int) -> int:
    """The divisor nearest to the root of n that is not above MOST; 0 where there is none."""
    return max((d for d in range(2, min(MOST, isqrt(n)) + 1) if n % d == 0), default=0)


def _roots(counts: Node, n: int, dtype: DType, *, inverse: bool) -> Pair:
    """exp(-2 pi i m / n) for whole numbers m of [0, n), of which the larger half is taken below 0."""
    centred = pointwise.where(
        pointwise.gt(counts, pointwise.scalar(n // 2, int32)), pointwise.sub(counts, pointwise.scalar(n, int32)), counts
    )
    angle = pointwise.cast(centred, dtype=dtype)
    angle = pointwise.mul(angle, pointwise.scalar((2 if inverse else -2) * pi / n, dtype))
    return pointwise.cos(angle), pointwise.sin(angle)


def _counted(shape: tuple[int, ...], axis: int) -> Node:
    return pointwise.iota(spec=Spec(shape, int32), axis=axis)


def _product(x: Pair, inverse: bool) -> Pair:
    """Real and imaginary parts side by side, as one row that one matrix multiplies."""
    re, im = x
    n, dtype = re.spec.shape[-1], re.spec.dtype
    counts = pointwise.mul(_counted((n, n), 0), _counted((n, n), 1))
    cos, sin = whole(_roots(pointwise.remainder(counts, pointwise.scalar(n, int32)), n, dtype, inverse=inverse))
    matrix = indexing.cat(cos, sin, axis=1)
    if im is not None:
        matrix = indexing.cat(matrix, indexing.cat(pointwise.neg(sin), cos, axis=1), axis=0)
    row = re if im is None else indexing.cat(re, im, axis=len(re.spec.shape) - 1)
    if len(row.spec.shape) == 1:
        row = movement.reshape(row, shape=(1, *row.spec.shape))
    stacked = contraction.matmul(row, matrix)
    parts = [movement.reshape(_cut(stacked, start, n), shape=re.spec.shape) for start in (0, n)]
    return parts[0], parts[1]


def _divided(x: Pair, first: int, inverse: bool) -> Pair:
    *lead, n = x[0].spec.shape
    rest, rank = n // first, len(lead)
    turn = (*range(rank), rank + 1, rank)

    def rows(pair: Pair, shape: tuple[int, ...]) -> Pair:
        turned = [
            None if part is None else movement.permute(movement.reshape(part, shape=shape), order=turn) for part in pair
        ]
        assert turned[0] is not None
        return turned[0], turned[1]

    inner = transform(rows(x, (*lead, first, rest)), inverse=inverse)  # (..., j2, k1)
    shape = (rest, first)
    counts = pointwise.mul(_counted(shape, 0), _counted(shape, 1))
    turns = _roots(counts, n, x[0].spec.dtype, inverse=inverse)
    grown = [reduction.expand(part, shape=(*lead, *shape)) for part in whole(turns)]
    outer = transform(rows(product(inner, (grown[0], grown[1])), (*lead, *shape)), inverse=inverse)  # (..., k1, k2)
    parts = [movement.reshape(part, shape=(*lead, n)) for part in whole(rows(outer, (*lead, first, rest)))]
    return parts[0], parts[1]


def _convolved(x: Pair, inverse: bool) -> Pair:
    """j k = (j^2 + k^2 - (k - j)^2) / 2: a product, a convolution with what it is multiplied with, a product."""
    *lead, n = x[0].spec.shape
    if n > LONGEST:
        raise CompileError(f"fft: a length of {n} has a prime factor too large for this device; compute it on the cpu")
    size = 1 << (2 * n - 2).bit_length()
    chirp = _chirp(n, x[0].spec.dtype, inverse)
    shape = x[0].spec.shape
    wide = _each(chirp, lambda part: reduction.expand(part, shape=shape))
    left = _each(product(x, wide), lambda part: _padded(part, size, 0))
    back = conjugate(chirp)
    tail = _each(back, lambda part: _padded(movement.flip(_cut(part, 1, n - 1), axes=(0,)), size, size - n + 1))
    right = _each(back, lambda part: _padded(part, size, 0))
    right = pointwise.add(right[0], tail[0]), pointwise.add(whole(right)[1], whole(tail)[1])
    spectrum = transform(right, inverse=False)
    around = _each(spectrum, lambda part: reduction.expand(part, shape=(*lead, size)))
    convolved = transform(product(transform(left, inverse=False), around), inverse=True)
    kept = _each(convolved, lambda part: _cut(part, 0, n))
    scale = pointwise.scalar(1 / size, x[0].spec.dtype)
    return _each(product(kept, wide), lambda part: pointwise.mul(part, scale))


def _chirp(n: int, dtype: DType, inverse: bool) -> Pair:
    """exp(-pi i j^2 / n)"""
    counts = pointwise.iota(spec=Spec((n,), uint32), axis=0)
    squares = pointwise.remainder(pointwise.mul(counts, counts), pointwise.scalar(2 * n, uint32))
    return _roots(pointwise.cast(squares, dtype=int32), 2 * n, dtype, inverse=inverse)


def _each(pair: Pair, function: Callable[[Node], Node]) -> Pair:
    return function(pair[0]), None if pair[1] is None else function(pair[1])


def _cut(x: Node, start: int, size: int) -> Node:
    """Of the last axis."""
    lead = x.spec.shape[:-1]
    return movement.slice_(x, starts=(*(0,) * len(lead), start), sizes=(*lead, size), steps=(1,) * (len(lead) + 1))


def _padded(x: Node, size: int, start: int) -> Node:
    lead = x.spec.shape[:-1]
    return movement.pad(x, shape=(*lead, size), starts=(*(0,) * len(lead), start), steps=(1,) * (len(lead) + 1))
