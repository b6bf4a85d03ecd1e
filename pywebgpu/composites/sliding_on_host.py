"""Products of a kernel with what it sees at each position, on NumPy's arrays: some samples at a time, in the cache.

What a kernel sees is copied to columns, and one product of matrices takes it from there. With steps of 1 the columns
are cut from whole padded rows, as long pieces: positions beyond a row's end are computed too, and left out. Shapes are
those of sliding_products.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import TYPE_CHECKING, Any

from pywebgpu.support.shapes import Shape

if TYPE_CHECKING:
    from types import ModuleType

    from numpy.typing import NDArray

    Array = NDArray[Any]

BYTES = 1 << 19  # of columns at a time
WASTE = 1.35  # how much longer than what is wanted padded rows may be
LONG = 64  # positions of a sample from which a product of its own is worth it


@dataclass(frozen=True, slots=True)
class Sliding:
    """How a kernel slides: the last axes of what it slides over, padded, and the positions.

    row: positions that are computed along the last axis.
    """

    kernel: Shape
    step: Shape
    dilation: Shape
    before: Shape
    full: Shape
    at: Shape
    row: int

    @property
    def is_flat(self) -> bool:
        return self.row != self.at[-1]

    @property
    def count(self) -> int:
        """Positions that are computed."""
        return prod(self.at[:-1]) * self.row


def _sliding(space: Shape, kernel: Shape, step: Shape, dilation: Shape, before: Shape, after: Shape) -> Sliding:
    full = tuple([n + b + a for n, b, a in zip(space, before, after, strict=True)])
    positions = tuple([(n - d * (k - 1) - 1) // s + 1 for n, d, k, s in zip(full, dilation, kernel, step, strict=True)])
    is_flat = len(full) == 2 and set(step) == {1} and full[-1] <= WASTE * positions[-1]
    return Sliding(kernel, step, dilation, before, full, positions, full[-1] if is_flat else positions[-1])


def _seen(xp: ModuleType, padded: Array, how: Sliding) -> Array:
    """(n, c, *kernel, *positions that are computed): a view."""
    *lead, unit = padded.strides
    strides = [unit * prod(how.full[axis + 1 :]) for axis in range(len(how.full))]
    inner = [d * stride for d, stride in zip(how.dilation, strides, strict=True)]
    outer = [s * stride for s, stride in zip(how.step, strides, strict=True)]
    shape = (*padded.shape[:2], *how.kernel, *how.at[:-1], how.row)
    if how.is_flat:  # Rows follow one another, so the positions are one axis.
        shape, outer = (*padded.shape[:2], *how.kernel, how.count), [unit]
    view: Array = xp.lib.stride_tricks.as_strided(padded, shape, (*lead, *inner, *outer), writeable=False)
    return view


class _Room:
    """Memory for what some samples are padded to and for their columns, used again for the next ones."""

    def __init__(self, xp: ModuleType, how: Sliding) -> None:
        self._xp, self._how = xp, how
        self._padded: dict[Shape, tuple[Array, Array]] = {}
        self._columns: dict[Shape, Array] = {}

    def seen(self, x: Array) -> Array:
        """(n, c, *s) -> (n, c, *kernel, *positions that are computed): a view. Less than 0 before or after cuts."""
        (n, channels, *space), how = x.shape, self._how
        extra = how.full[-1] - how.at[-1] if how.is_flat else 0
        if not extra and tuple(space) == how.full and not any(how.before):
            return _seen(self._xp, x.reshape(n, channels, prod(space)), how)
        to: list[Any] = [...]  # NumPy's types know no index of unknown length.
        of: list[Any] = [...]
        for start, length, n_full in zip(how.before, space, how.full, strict=True):
            to.append(slice(max(start, 0), min(start + length, n_full)))
            of.append(slice(max(-start, 0), min(length, n_full - start)))
        if x.shape not in self._padded:
            size = prod(how.full)  # Behind each channel are zeros that the longest row reads.
            room: Array = self._xp.zeros((n, channels, size + extra), x.dtype)
            inner = room[:, :, :size].reshape(n, channels, *how.full)  # A view: one axis becomes several.
            self._padded[x.shape] = inner[tuple(to)], _seen(self._xp, room, how)
        inside, seen = self._padded[x.shape]
        inside[...] = x[tuple(of)]
        return seen

    def columns(self, x: Array) -> Array:
        """(n, c, *s) -> (c * kernel, n * count)."""
        (n, channels), how = x.shape[:2], self._how
        seen, rank = self.seen(x), len(how.kernel)
        turned = seen.transpose((1, *range(2, 2 + rank), 0, *range(2 + rank, seen.ndim)))
        if x.shape not in self._columns:
            self._columns[x.shape] = self._xp.empty(turned.shape, x.dtype)
        into = self._columns[x.shape]
        into[...] = turned
        return into.reshape(channels * prod(how.kernel), n * how.count)


def _spans(n: int, size: int) -> Iterator[slice]:
    """Some samples after the other, of so many bytes each."""
    each = max(1, min(n, BYTES // max(1, size)))
    return (slice(start, min(start + each, n)) for start in range(0, n, each))


def _of_groups(x: Array, groups: int) -> list[Array]:
    each = x.shape[1] // groups
    return [x[:, index * each : (index + 1) * each] for index in range(groups)]


def product_of(
    xp: ModuleType, x: Array, weight: Array, *, step: Shape, dilation: Shape, groups: int, before: Shape, after: Shape
) -> tuple[Array]:
    """sliding_product."""
    how = _sliding(x.shape[2:], weight.shape[2:], step, dilation, before, after)
    out = xp.empty((x.shape[0], weight.shape[0], *how.at), x.dtype)
    if weight.shape[1] == 1 and groups > 1:
        _depthwise(xp, x, weight, how, out)
    else:
        parts = _of_groups(out, groups)
        each = weight.shape[0] // groups
        for index, part in enumerate(_of_groups(x, groups)):
            _one_product(xp, part, weight[index * each : (index + 1) * each], how, parts[index])
    return (out,)


def _one_product(xp: ModuleType, x: Array, weight: Array, how: Sliding, out: Array) -> None:
    n, n_out, rows = x.shape[0], weight.shape[0], weight.reshape(weight.shape[0], prod(weight.shape[1:]))
    if _is_plain(how) and how.count >= LONG:
        operand = xp.matmul(rows, x.reshape(n, x.shape[1], how.count))
        out[:] = operand.reshape(out.shape)
        return
    room = _Room(xp, how)
    for span in _spans(n, rows.shape[1] * how.count * x.itemsize):
        operand = rows.dot(room.columns(x[span])).reshape(n_out, span.stop - span.start, *how.at[:-1], how.row)
        out[span] = operand[..., : how.at[-1]].swapaxes(0, 1)


def _is_plain(how: Sliding) -> bool:
    """Whether a kernel of one element sees each element once."""
    return prod(how.kernel) == 1 and how.full == how.at and not any(how.before)


def kernel_product_of(
    xp: ModuleType, g: Array, x: Array, *, shape: Shape, step: Shape, dilation: Shape, groups: int, before: Shape,
    after: Shape,
) -> tuple[Array]:  # fmt: skip
    """kernel_product."""
    how = _sliding(x.shape[2:], shape[2:], step, dilation, before, after)
    if shape[1] == 1 and groups > 1:
        return (_depthwise_kernel(xp, g, x, shape, how),)
    pairs = zip(_of_groups(g, groups), _of_groups(x, groups), strict=True)
    kernels = [_one_kernel(xp, part, seen, how) for part, seen in pairs]
    return ((kernels[0] if groups == 1 else xp.concatenate(kernels)).reshape(shape),)


def _one_kernel(xp: ModuleType, g: Array, x: Array, how: Sliding) -> Array:
    n, n_out, channels = x.shape[0], g.shape[1], x.shape[1]
    if _is_plain(how) and how.count >= LONG:
        each: Array = xp.matmul(g.reshape(n, n_out, how.count), x.reshape(n, channels, how.count).swapaxes(1, 2))
        return each.sum(0)  # type: ignore[no-any-return]
    total: Array = xp.zeros((n_out, channels * prod(how.kernel)), x.dtype)
    room = _Room(xp, how)
    for span in _spans(n, total.shape[1] * how.count * x.itemsize):
        columns = room.columns(x[span])
        total += _widened(xp, g[span], how).swapaxes(0, 1).reshape(n_out, columns.shape[1]).dot(columns.T)
    return total


def _widened(xp: ModuleType, g: Array, how: Sliding) -> Array:
    """(n, o, *at) with zeros at the positions that are computed and not wanted."""
    if not how.is_flat:
        return g
    room: Array = xp.zeros((*g.shape[:-1], how.row), g.dtype)
    room[..., : how.at[-1]] = g
    return room


# Depthwise: a kernel sees one channel


def _at(place: Shape) -> tuple[Any, ...]:
    """The index of what an element of the kernel sees."""
    return (slice(None), slice(None), *place)


def _depthwise(xp: ModuleType, x: Array, weight: Array, how: Sliding, out: Array) -> None:
    each = weight.shape[0] // x.shape[1]
    flat = weight.reshape(weight.shape[0], prod(weight.shape[1:]))
    room, sums = _Room(xp, how), xp.empty((2, 0), x.dtype)
    for span in _spans(x.shape[0], x.shape[1] * each * how.count * x.itemsize):
        seen = room.seen(x[span] if each == 1 else xp.repeat(x[span], each, axis=1))
        first, *places = [_at(place) for place in product(*map(range, how.kernel))]
        shape = seen[first].shape
        if sums.shape[1:] != shape:
            sums = xp.empty((2, *shape), x.dtype)
        factors = flat.reshape(*flat.shape, *(1,) * (len(shape) - 2))
        total, term = sums
        xp.multiply(seen[first], factors[:, 0], total)
        for index, place in enumerate(places, 1):
            xp.multiply(seen[place], factors[:, index], term)
            xp.add(total, term, total)
        out[span] = total.reshape(*shape[:2], *how.at[:-1], how.row)[..., : how.at[-1]]


def _depthwise_kernel(xp: ModuleType, g: Array, x: Array, shape: Shape, how: Sliding) -> Array:
    each = g.shape[1] // x.shape[1]
    sums: Array = xp.zeros((shape[0], prod(how.kernel)), x.dtype)
    room = _Room(xp, how)
    for span in _spans(x.shape[0], x.shape[1] * each * how.count * x.itemsize):
        part = x[span] if each == 1 else xp.repeat(x[span], each, axis=1)
        seen = room.seen(part)
        wide = _widened(xp, g[span], how)
        wide = wide.reshape(*wide.shape[:2], *seen.shape[2 + len(how.kernel) :])
        axes = "nc" + "xyz"[: wide.ndim - 2]
        for index, place in enumerate(product(*map(range, how.kernel))):
            sums[:, index] += xp.einsum(f"{axes},{axes}->c", wide, seen[_at(place)])
    return sums.reshape(shape)


def spread_of(
    xp: ModuleType, x: Array, weight: Array, *, lengths: Shape, step: Shape, dilation: Shape, groups: int
) -> tuple[Array]:
    """spread."""
    n, channels = x.shape[:2]
    out = xp.zeros((n, weight.shape[1] * groups, *lengths), x.dtype)
    parts, each = _of_groups(out, groups), channels // groups
    for number, part in enumerate(_of_groups(x, groups)):
        _one_spread(xp, part, weight[number * each : (number + 1) * each], step, dilation, parts[number])
    return (out,)


def _one_spread(xp: ModuleType, x: Array, weight: Array, step: Shape, dilation: Shape, out: Array) -> None:
    n, channels, *positions = x.shape
    n_out, *kernel = weight.shape[1:]
    rows = weight.reshape(channels, prod(weight.shape[1:])).T
    for span in _spans(n, rows.shape[0] * prod(positions) * x.itemsize):
        each = span.stop - span.start
        products = rows.dot(x[span].swapaxes(0, 1).reshape(channels, each * prod(positions)))
        products = products.reshape(n_out, *kernel, each, *positions)
        room = out[span].swapaxes(0, 1)
        for place in product(*map(range, kernel)):
            starts = [p * d for p, d in zip(place, dilation, strict=True)]
            where: list[Any] = [
                slice(b, b + (m - 1) * s + 1, s) for b, m, s in zip(starts, positions, step, strict=True)
            ]
            room[(..., *where)] += products[(slice(None), *place)]
