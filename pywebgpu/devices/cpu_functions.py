"""What device cpu calls for an op whose operands' shapes are known: NumPy's fastest way to the op's meaning.

A function here is chosen by specs alone. What an array's layout decides is asked at the call; where no way here fits,
the op's own reference is called.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from operator import itemgetter, methodcaller
from typing import TYPE_CHECKING, Any

import numpy as np

from pywebgpu import dtypes
from pywebgpu.dtypes import Kind
from pywebgpu.ir.graph import Op, Reduction, Spec
from pywebgpu.ops import clamping, contraction, indexing, movement, packing, pointwise, random, reduction, special
from pywebgpu.support.shapes import Shape

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[Any]

Function = Callable[..., Any]

SHORT = 4  # elements of an axis that are copied one by one
BLAS = dtypes.float32, dtypes.float64
LONG = 2048  # elements of a row from which NumPy adds by itself as fast as BLAS, and in parts, so more exactly
NARROW, WIDE = 8, 512  # elements of a row between which its largest is found faster by its position
FEW = 128  # elements in all below which that is slower


def chosen(op: Op, attrs: dict[str, Any], reads: Sequence[Spec], spec: Spec, room: Function | None) -> Function | None:
    """What computes the op, or None. room: gives memory for the result, where that is worth it."""
    maker = _MAKERS.get(op)
    return None if maker is None else maker(attrs, reads, spec, room)


# Movement


def _reshape(attrs: dict[str, Any], reads: Sequence[Spec], spec: Spec, room: Function | None) -> Function:
    return methodcaller("reshape", spec.shape) if room is None else _Reshape(spec.shape, room)


class _Reshape:
    """A reshape that knows from its first run whether it is a view: what it reads lies alike in all of them."""

    def __init__(self, shape: Shape, room: Callable[[], Array]) -> None:
        self._shape, self._room, self._copies = shape, room, False

    def __call__(self, a: Array) -> Array:
        if self._copies:
            out = self._room()
            _copy(out.reshape(a.shape), a)
            return out
        out = a.reshape(self._shape)
        self._copies = not np.may_share_memory(out, a)
        return out


def _copy(out: Array, a: Array) -> None:
    """By elements of a short last axis that lie apart: NumPy's innermost loop would be as short."""
    if a.shape[-1] > SHORT or a.strides[-1] == a.itemsize:
        np.copyto(out, a)
    else:
        for index in range(a.shape[-1]):
            out[..., index] = a[..., index]


def _pad(attrs: dict[str, Any], reads: Sequence[Spec], spec: Spec, room: Function | None) -> Function | None:
    return None if room is None else lambda a: movement.padded(a, room(), **attrs)


def _permute(attrs: dict[str, Any], reads: Sequence[Spec], spec: Spec, room: Function | None) -> Function:
    return methodcaller("transpose", attrs["order"])


def _slice(attrs: dict[str, Any], reads: Sequence[Spec], spec: Spec, room: Function | None) -> Function:
    return itemgetter(movement.slices(attrs["starts"], attrs["sizes"], attrs["steps"]))


def _piece(attrs: dict[str, Any], reads: Sequence[Spec], spec: Spec, room: Function | None) -> Function:
    start, shape = attrs["start"], spec.shape
    part = slice(start, start + prod(shape))
    return itemgetter(part) if len(shape) == 1 else lambda a: a[part].reshape(shape)


def _expand(attrs: dict[str, Any], reads: Sequence[Spec], spec: Spec, room: Function | None) -> Function | None:
    """A view with strides of 0. NumPy's own function for it takes twenty times as long."""
    (source,), shape = reads, spec.shape
    if not prod(shape):
        return None
    kind = np.dtype(special.numpy_dtype(spec.dtype))
    strides, step = [0] * len(shape), kind.itemsize
    for axis in range(1, len(source.shape) + 1):
        if source.shape[-axis] != 1:
            strides[-axis] = step
            step *= source.shape[-axis]
    steps = tuple(strides)
    ndarray, broadcast_to = np.ndarray, np.broadcast_to

    def expand(a: Array) -> Array:
        return ndarray(shape, kind, a, 0, steps) if a.flags.c_contiguous else broadcast_to(a, shape)

    return expand


# Folding axes


def _runs(shape: Shape, axes: Shape) -> list[tuple[int, bool]]:
    """The axes as few: how many elements neighbours have that are all folded, or all kept. Those of size 1 are gone."""
    runs: list[tuple[int, bool]] = []
    for axis, n in enumerate(shape):
        if n == 1:
            continue
        folded = axis in axes
        if runs and runs[-1][1] == folded:
            runs[-1] = runs[-1][0] * n, folded
        else:
            runs.append((n, folded))
    return runs


def drops(op: Op, source: Spec) -> bool:
    """Whether a fold gives any shape that has as many elements as it has results."""
    return op in (reduction.sum_, reduction.max_, reduction.min_) and source.dtype in BLAS


def _shaped(fold: Function, natural: Shape, shape: Shape) -> Function:
    """The fold, whose results have one shape, with another."""
    return fold if natural == shape else lambda a: fold(a).reshape(shape)


def _rows(source: Shape, size: int) -> Function | None:
    """What makes rows of so many elements of an array. None: it has them."""
    return None if len(source) == 2 and source[1] == size else methodcaller("reshape", prod(source) // size, size)


def _reference(op: Op, attrs: dict[str, Any], reads: Sequence[Spec], spec: Spec) -> Function:
    assert isinstance(op, Reduction)
    reference, axes = op.reference, attrs["axes"]
    kept = tuple([1 if axis in axes else n for axis, n in enumerate(reads[0].shape)])
    return _shaped(lambda a: reference(np, a, axes), kept, spec.shape)


def _sum(attrs: dict[str, Any], reads: Sequence[Spec], spec: Spec, room: Function | None) -> Function | None:
    """By products with ones, which BLAS computes many times as fast as NumPy adds short rows."""
    (source,), axes = reads, attrs["axes"]
    if spec.dtype not in BLAS:
        return None
    plain = _reference(reduction.sum_, attrs, reads, spec)
    fold = _product_with_ones(source, axes, spec) if prod(source.shape) else None
    return plain if fold is None else lambda a: fold(a) if a.flags.c_contiguous else plain(a)


def _product_with_ones(source: Spec, axes: Shape, spec: Spec) -> Function | None:
    runs = _runs(source.shape, axes)
    sizes, folded = [n for n, _ in runs], [is_folded for _, is_folded in runs]
    if folded not in ([True], [False, True], [True, False], [True, False, True]) or (folded[-1] and sizes[-1] > LONG):
        return None
    size, kind = sizes[-1], special.numpy_dtype(spec.dtype)
    left, right, rows = np.ones(sizes[0], kind), np.ones(size, kind), _rows(source.shape, size)
    if folded == [True]:
        ones = np.ones((1, size), kind)
        fold = ones.dot if len(source.shape) == 1 else lambda a: ones.dot(a.reshape(size))
        return _shaped(fold, (1,), spec.shape)
    if folded == [True, False]:
        if sizes[0] > LONG:
            return _shaped(_long_columns(sizes[0], size, kind), (size,), spec.shape)
        return _shaped(left.dot if rows is None else lambda a: left.dot(rows(a)), (size,), spec.shape)
    if folded == [False, True]:
        by_row = (lambda a: a.dot(right)) if rows is None else lambda a: rows(a).dot(right)
        return _shaped(by_row, (sizes[0],), spec.shape)
    inner = sizes[0], sizes[1]
    both = methodcaller("reshape", inner[0] * inner[1], size)
    return _shaped(lambda a: left.dot(both(a).dot(right).reshape(inner)), (sizes[1],), spec.shape)


def _long_columns(count: int, size: int, kind: str) -> Function:
    """Sums of columns of so many rows: LONG at a time, then those, so that what is added is never much smaller."""
    ones, last = np.ones(LONG, kind), np.ones(count % LONG, kind)
    n_full = count - len(last)

    def columns(a: Array) -> Array:
        a = a.reshape(count, size)
        sums: Array = last.dot(a[n_full:])
        for start in range(0, n_full, LONG):
            sums += ones.dot(a[start : start + LONG])
        return sums

    return columns


def _max(attrs: dict[str, Any], reads: Sequence[Spec], spec: Spec, room: Function | None) -> Function | None:
    return _extreme("argmax", reduction.max_, attrs, reads, spec)


def _min(attrs: dict[str, Any], reads: Sequence[Spec], spec: Spec, room: Function | None) -> Function | None:
    return _extreme("argmin", reduction.min_, attrs, reads, spec)


def _extreme(name: str, op: Op, attrs: dict[str, Any], reads: Sequence[Spec], spec: Spec) -> Function | None:
    """By its position: NumPy looks for that in whole vectors, and at one element after the other for the value."""
    if spec.dtype not in BLAS:
        return None
    runs, plain = _runs(reads[0].shape, attrs["axes"]), _reference(op, attrs, reads, spec)
    if [folded for _, folded in runs] != [False, True]:
        return plain
    (rows, _), (size, _) = runs
    if not NARROW <= size <= WIDE or rows * size < FEW:
        return plain
    starts, shape, position = np.arange(0, rows * size, size), spec.shape, methodcaller(name, 1)

    def extreme(a: Array) -> Array:
        if not a.flags.c_contiguous:
            return plain(a)  # type: ignore[no-any-return]
        indices: Array = position(a.reshape(rows, size))
        indices += starts
        return a.reshape(-1).take(indices.reshape(shape))

    return extreme


def _argmax(attrs: dict[str, Any], reads: Sequence[Spec], spec: Spec, room: Function | None) -> Function | None:
    return _position("argmax", attrs["axes"], reads[0], spec)


def _argmin(attrs: dict[str, Any], reads: Sequence[Spec], spec: Spec, room: Function | None) -> Function | None:
    return _position("argmin", attrs["axes"], reads[0], spec)


def _position(name: str, axes: Shape, source: Spec, spec: Spec) -> Function | None:
    runs, shape = _runs(source.shape, axes), spec.shape
    if not prod(source.shape) or [folded for _, folded in runs] != [False, True][-len(runs) :]:
        return None
    size, position = runs[-1][0], methodcaller(name, 1)
    return lambda a: position(a.reshape(-1, size)).reshape(shape)


# Products


def _matmul(attrs: dict[str, Any], reads: Sequence[Spec], spec: Spec, room: Function | None) -> Function | None:
    """All rows of all matrices in one product where the right side is one matrix; a product of vectors by elements."""
    if spec.dtype not in BLAS:
        return None
    (left, right), shape = (read.shape for read in reads), spec.shape
    if left[-1] == 1:
        return np.multiply if room is None else lambda a, b: np.multiply(a, b, room())
    if len(left) == 2:
        return np.dot if room is None else lambda a, b: np.dot(a, b, room())
    if len(right) > 2 or not prod(left):
        return np.matmul if room is None else lambda a, b: np.matmul(a, b, room())
    depth, width, dot, matmul = left[-1], shape[-1], np.dot, np.matmul

    def rows(a: Array, b: Array) -> Array:
        if not a.flags.c_contiguous:
            return matmul(a, b) if room is None else matmul(a, b, room())  # type: ignore[no-any-return]
        if room is None:
            return dot(a.reshape(-1, depth), b).reshape(shape)  # type: ignore[no-any-return]
        out: Array = room()
        dot(a.reshape(-1, depth), b, out.reshape(-1, width))
        return out

    return rows


# By element


def _where(attrs: dict[str, Any], reads: Sequence[Spec], spec: Spec, room: Function | None) -> Function | None:
    """NumPy's for few elements, else by bits (special.where)."""
    if spec.dtype in special.ROUNDED:
        return None
    condition, *sides = (prod(read.shape) for read in reads)
    if condition < special.MANY or sum(sides) <= condition:
        return np.where
    return lambda c, a, b: special.where(np, c, a, b, room)


def _relu(attrs: dict[str, Any], reads: Sequence[Spec], spec: Spec, room: Function | None) -> Function | None:
    if spec.dtype in special.ROUNDED:
        return None
    zero, at_least = np.zeros((), special.numpy_dtype(spec.dtype)), special.at_least
    return (lambda a: at_least(np, a, zero)) if room is None else lambda a: at_least(np, a, zero, room())


def _rsqrt(attrs: dict[str, Any], reads: Sequence[Spec], spec: Spec, room: Function | None) -> Function | None:
    if spec.dtype not in BLAS or not spec.shape:
        return None
    sqrt, reciprocal = np.sqrt, np.reciprocal

    def rsqrt(a: Array) -> Array:
        out = sqrt(a) if room is None else sqrt(a, room())
        return reciprocal(out, out)

    return rsqrt


def _sigmoid(attrs: dict[str, Any], reads: Sequence[Spec], spec: Spec, room: Function | None) -> Function | None:
    if spec.dtype not in BLAS or not spec.shape:
        return None
    negative, exp, add, reciprocal = np.negative, np.exp, np.add, np.reciprocal
    ones = np.ones((), special.numpy_dtype(spec.dtype))

    def sigmoid(a: Array) -> Array:
        out = negative(a) if room is None else negative(a, room())
        exp(out, out)
        add(out, ones, out)
        return reciprocal(out, out)

    return sigmoid


def _cast(attrs: dict[str, Any], reads: Sequence[Spec], spec: Spec, room: Function | None) -> Function | None:
    source, dtype = reads[0].dtype, attrs["dtype"]
    if source in special.ROUNDED or dtype in special.ROUNDED or source.part is not None or dtype.part is not None:
        return None
    if source.kind is Kind.FLOAT and dtype.kind is Kind.INT:
        return None
    return methodcaller("astype", np.dtype(special.numpy_dtype(dtype)))


def _index(attrs: dict[str, Any], reads: Sequence[Spec], spec: Spec, room: Function | None) -> Function | None:
    """As words without a sign, where what is negative is too large as well: one look for all that are right."""
    size, kind = attrs["size"], special.numpy_dtype(reads[0].dtype)
    if kind not in ("int64", "int32") or not prod(spec.shape):
        return None
    wrap, unsigned, largest = attrs.get("wrap", True), np.dtype(f"u{kind}"), np.maximum.reduce

    def index(a: Array) -> Array:
        return a.copy() if largest(a.view(unsigned), None) < size else special.index(np, a, size, wrap)

    return index


# Rows by number


def _take(attrs: dict[str, Any], reads: Sequence[Spec], spec: Spec, room: Function | None) -> Function | None:
    return lambda a, index: a.take(index, 0)


def _offset_slice(attrs: dict[str, Any], reads: Sequence[Spec], spec: Spec, room: Function | None) -> Function | None:
    """Of neighbours along the first axis; starts are numbers of Python."""
    if attrs["axes"] != (0,) or any(step != 1 for step in attrs["steps"]):
        return None
    size = spec.shape[0]
    return lambda x, start: x[start : start + size]


def _cat(attrs: dict[str, Any], reads: Sequence[Spec], spec: Spec, room: Function | None) -> Function | None:
    axis, concatenate = attrs["axis"], np.concatenate
    return lambda *parts: concatenate(parts, axis)


# Ops that look at their numbers in Python.
AS_NUMBERS: frozenset[Any] = frozenset({indexing.offset_slice, indexing.stacked_slices, random.bits})

_MAKERS: dict[Any, Callable[..., Function | None]] = {
    movement.reshape: _reshape,
    movement.permute: _permute,
    movement.slice_: _slice,
    movement.pad: _pad,
    packing.piece: _piece,
    reduction.expand: _expand,
    reduction.sum_: _sum,
    reduction.max_: _max,
    reduction.min_: _min,
    reduction.argmax: _argmax,
    reduction.argmin: _argmin,
    contraction.matmul: _matmul,
    pointwise.where: _where,
    clamping.relu: _relu,
    pointwise.rsqrt: _rsqrt,
    pointwise.sigmoid: _sigmoid,
    pointwise.cast: _cast,
    pointwise.index: _index,
    indexing.offset_slice: _offset_slice,
    indexing.take: _take,
    indexing.cat: _cat,
}
