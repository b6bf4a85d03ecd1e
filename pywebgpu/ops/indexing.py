"""Reading and writing at computed positions: rows taken by number, rows added by number, joining, scanning, ordering.

Row numbers are in range and not negative: composites/indexing.py checks them (pointwise.index) where it cannot know.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pywebgpu import dtypes
from pywebgpu.dtypes import Kind
from pywebgpu.errors import ShapeError
from pywebgpu.ir.graph import Fused, Node, Spec, Structural, host, spec_of, thread_state
from pywebgpu.ops import movement, pointwise, products, reduction
from pywebgpu.support.shapes import Shape

if TYPE_CHECKING:
    from types import ModuleType

    from numpy.typing import NDArray


def _take_spec(x: Spec, index: Spec) -> Spec:
    if len(x.shape) != 2 or len(index.shape) != 1:
        raise ShapeError(f"take: needs (n, d) and (m,), got {x.shape} and {index.shape}")
    return Spec((index.shape[0], x.shape[1]), x.dtype)


take: Structural = Structural(
    "take",  # out[i, :] = x[index[i], :]
    infer=_take_spec,
    reference=lambda xp, x, index: xp.take(x, index, axis=0),
    vjp=(
        lambda g, out, x, index: scatter(pointwise.full(0.0, x.spec), index, g, mode="add"),
        None,
    ),
    by_element=True,
    gathers=True,
)

WIDE = 256  # elements of a row from which NumPy is called for each: below it takes longer than all of them at once
MODES = ("set", "add", "prod", "max", "min")


def _scatter_spec(base: Spec, index: Spec, source: Spec, mode: str) -> Spec:
    if len(base.shape) != 2 or source.shape != (*index.shape, base.shape[1]):
        raise ShapeError(f"scatter: needs (n, d), (m,), (m, d), got {base.shape}, {index.shape}, {source.shape}")
    return base


def _scatter(xp: ModuleType, base: NDArray[Any], index: NDArray[Any], source: NDArray[Any], mode: str) -> NDArray[Any]:
    out = base.copy()
    if mode == "set":
        out[index] = source
        return out
    ufunc = {"add": xp.add, "prod": xp.multiply, "max": xp.maximum, "min": xp.minimum}[mode]
    d = base.shape[1]
    if d >= WIDE:
        for row, values in zip(index.tolist(), source, strict=True):
            ufunc(out[row], values, out=out[row])
    else:  # One flat axis: NumPy is several times faster there, and the order of the additions is the same.
        positions = index if d == 1 else (index[:, None] * d + xp.arange(d)).reshape(-1)
        ufunc.at(out.reshape(-1), positions, xp.ascontiguousarray(source).reshape(-1))
    return out


def _scatter_base_vjp(g: Node, out: Node, base: Node, index: Node, source: Node, mode: str) -> Node:
    if mode == "add":
        return g
    if mode == "set":
        return scatter(g, index, pointwise.full(0.0, source.spec), mode="set")
    if mode == "prod":
        return pointwise.mul(g, scatter(pointwise.full(1.0, base.spec), index, source, mode="prod"))
    return _shared_hits(g, out, base, index, source)[0]


def _scatter_source_vjp(g: Node, out: Node, base: Node, index: Node, source: Node, mode: str) -> Node:
    if mode in ("add", "set"):  # As torch: of several writes to one position each gets the gradient, not only the last.
        return take(g, index)
    if mode == "prod":
        return _scatter_product_vjp(g, out, base, index, source)
    return _shared_hits(g, out, base, index, source)[1]


def _scatter_product_vjp(g: Node, out: Node, base: Node, index: Node, source: Node) -> Node:
    """The product of the others. The only 0 at a position gets that with 1 for itself, each of several gets 0."""
    ones, nothing = pointwise.full(1.0, source.spec), pointwise.full(0.0, source.spec)
    is_zero = pointwise.eq(source, nothing)
    zeros = scatter(pointwise.full(0.0, base.spec), index, pointwise.where(is_zero, ones, nothing), mode="add")
    single = pointwise.bitwise_and(is_zero, pointwise.eq(take(zeros, index), ones))
    without = scatter(base, index, pointwise.where(single, ones, source), mode="prod")
    elsewhere = pointwise.div(take(pointwise.mul(g, out), index), pointwise.where(is_zero, ones, source))
    return pointwise.where(single, take(pointwise.mul(g, without), index), elsewhere)


def _shared_hits(g: Node, out: Node, base: Node, index: Node, source: Node) -> tuple[Node, Node]:
    """max and min: the gradient is shared evenly among the elements that equal the result."""
    unit, zero = pointwise.full(1.0, base.spec), pointwise.full(0.0, base.spec)
    from_base = pointwise.where(pointwise.eq(base, out), unit, zero)
    hits = pointwise.eq(source, take(out, index))
    ones = pointwise.full(1.0, source.spec)
    from_source = pointwise.where(hits, ones, pointwise.full(0.0, source.spec))
    part = pointwise.div(g, scatter(from_base, index, from_source, mode="add"))
    return pointwise.mul(part, from_base), pointwise.mul(take(part, index), from_source)


scatter: Structural = Structural(
    "scatter",  # out[j] = base[j] combined with every source[i] whose index[i] is j, in the order of i
    infer=_scatter_spec,
    reference=_scatter,
    vjp=(_scatter_base_vjp, None, _scatter_source_vjp),
)


def _cat_spec(*parts: Spec, axis: int) -> Spec:
    shape = list(parts[0].shape)
    shape[axis] = sum(part.shape[axis] for part in parts)
    return Spec(tuple(shape), parts[0].dtype)


def _cat_vjp(input_index: int, g: Node, out: Node, *parts: Node, axis: int) -> Node:
    start = sum(part.spec.shape[axis] for part in parts[:input_index])
    rank = len(g.spec.shape)
    starts = tuple(start if a == axis else 0 for a in range(rank))
    return movement.slice_(g, starts=starts, sizes=parts[input_index].spec.shape, steps=(1,) * rank)


cat: Structural = Structural(
    "cat",
    infer=_cat_spec,
    reference=lambda xp, *parts, axis: xp.concatenate(parts, axis=axis),
    vjp=_cat_vjp,
    by_element=True,
    gathers=True,
)


def _write_slice(xp: ModuleType, base: NDArray[Any], value: NDArray[Any], starts: Shape, steps: Shape) -> NDArray[Any]:
    out = base.copy()
    out[movement.slices(starts, value.shape, steps)] = value
    return out


write_slice: Structural = Structural(
    "write_slice",  # base, with value written at every steps[a]-th position from starts[a] on
    infer=lambda base, value, starts, steps: base,
    reference=_write_slice,
    vjp=(
        lambda g, out, base, value, starts, steps: write_slice(
            g, pointwise.full(0.0, value.spec), starts=starts, steps=steps
        ),
        lambda g, out, base, value, starts, steps: movement.slice_(
            g, starts=starts, sizes=value.spec.shape, steps=steps
        ),
    ),
    by_element=True,
)


def _offset_slice(
    xp: ModuleType, x: NDArray[Any], *starts: Any, axes: Shape, sizes: Shape, steps: Shape
) -> NDArray[Any]:
    first = [0] * x.ndim
    for axis, start in zip(axes, starts, strict=True):
        first[axis] = int(start)
    return x[movement.slices(tuple(first), sizes, steps)]


offset_slice: Structural = Structural(
    "offset_slice",  # movement.slice_ of data; the starts of `axes` are host numbers: they change from batch to batch
    infer=lambda x, *starts, axes, sizes, steps: Spec(sizes, x.dtype),
    reference=_offset_slice,
    vjp=(None,),
    is_view=True,
)


def slice_of_data(x: Node, starts: Shape, sizes: Shape, steps: Shape) -> Node:
    """A slice whose start is no part of the program, so that all batches of one size share one."""
    shape, dtype = x.spec
    axes = tuple([axis for axis, size in enumerate(sizes) if size < shape[axis]])
    numbers = [host(starts[axis], dtypes.int64 if shape[axis] > 1 << 31 else dtypes.int32) for axis in axes]
    attrs = {"axes": axes, "sizes": sizes, "steps": steps}
    return Node(offset_slice, (x, *numbers), attrs, spec_of(sizes, dtype))  # A batch is made of many.


def _stacked_specs(x: Spec, *starts: Spec, size: int) -> tuple[Spec, ...]:
    return (Spec((len(starts), size, *x.shape[1:]), x.dtype),)


def _stacked(x: Node, *starts: Node, size: int) -> tuple[Node, ...]:
    sizes = (size, *x.spec.shape[1:])
    parts = [offset_slice(x, start, axes=(0,), sizes=sizes, steps=(1,) * len(sizes)) for start in starts]
    return (cat(*[movement.reshape(part, shape=(1, *sizes)) for part in parts], axis=0),)


def _stacked_on_host(xp: ModuleType, x: NDArray[Any], *starts: Any, size: int) -> tuple[NDArray[Any]]:
    return (x.take(xp.array(starts, "int64")[:, None] + xp.arange(size), 0),)


stacked_slices: Fused = Fused(
    "stacked_slices",  # out[i] = x[starts[i] : starts[i] + size] of data, whose starts are host numbers: a batch
    infer=_stacked_specs,
    fallback=_stacked,
    host=_stacked_on_host,
)


# Scans run along the last axis.


def _scan(xp: ModuleType, x: NDArray[Any], mode: str) -> NDArray[Any]:
    if mode in ("add", "prod"):  # In double precision, as in PyTorch: the errors of 10^7 sums add up.
        wider = {"f": "float64", "c": "complex128"}.get(x.dtype.kind)
        return getattr(xp, {"add": "cumsum", "prod": "cumprod"}[mode])(x, axis=-1, dtype=wider).astype(x.dtype)
    if mode == "logaddexp":
        return xp.logaddexp.accumulate(x.astype("float64"), axis=-1).astype(x.dtype)
    return {"max": xp.maximum, "min": xp.minimum}[mode].accumulate(x, axis=-1)


def _scan_vjp(g: Node, out: Node, x: Node, mode: str) -> Node:
    last = (len(x.spec.shape) - 1,)

    def reverse(y: Node, mode: str) -> Node:
        return movement.flip(scan(movement.flip(y, axes=last), mode=mode), axes=last)

    def reverse_sum(y: Node) -> Node:
        return reverse(y, "add")

    if mode == "add":
        return reverse_sum(g)
    if mode == "prod" and thread_state.grad:
        return pointwise.mul(products.earlier(x), products.weighed_tails(x, g))
    if mode == "prod":
        return _product_vjp(g, out, x, reverse_sum)
    if mode == "logaddexp" and thread_state.grad:
        return _pairwise_vjp(g, out, x)
    if mode == "logaddexp":
        return _exponentials_vjp(g, out, x, lambda y: reverse(y, mode))
    raise ShapeError(f"cum{mode}: no gradient")


scan: Structural = Structural("scan", infer=lambda x, mode: x, reference=_scan, vjp=(_scan_vjp,))


def _scan_blocks(xp: ModuleType, x: NDArray[Any], *totals: NDArray[Any], size: int, mode: str) -> NDArray[Any]:
    ufunc = {"add": xp.add, "prod": xp.multiply, "max": xp.maximum, "min": xp.minimum, "logaddexp": xp.logaddexp}[
        mode.removesuffix("_checked")
    ]
    if not totals:
        return _scan(xp, x, mode)
    parts = [_scan(xp, x[..., start : start + size], mode) for start in range(0, x.shape[-1], size)]
    for block_totals in totals:
        before = ufunc.accumulate(block_totals, axis=-1)
        parts[1:] = [
            ufunc(before[..., index : index + 1], part).astype(x.dtype) for index, part in enumerate(parts[1:])
        ]
    return xp.concatenate(parts, axis=-1)


scan_blocks: Structural = Structural(
    "scan_blocks",  # a scan by blocks of `size` elements; of long rows given what all but the last come to
    infer=lambda x, *totals, size, mode: x,
    reference=_scan_blocks,
    vjp=(None, None),
)


scan_chain: Structural = Structural(
    "scan_chain",  # the same in one kernel, whose workgroups tell each other what their blocks come to
    infer=lambda x, size, mode: x,
    reference=lambda xp, x, size, mode: _scan_blocks(xp, x, size=size, mode=mode),
    vjp=(None,),
)


def _argsort(xp: ModuleType, x: NDArray[Any], descending: bool) -> NDArray[Any]:
    if not descending:
        return xp.argsort(x, axis=-1, kind="stable")
    # Backwards twice: equal elements keep their order.
    order = xp.argsort(x[..., ::-1], axis=-1, kind="stable")[..., ::-1]
    return x.shape[-1] - 1 - order


def _product_vjp(g: Node, out: Node, x: Node, reverse_sum: Callable[[Node], Node]) -> Node:
    """Before the first 0 of a row the sum of g * out over x, at it the same with 1 in its place, after it nothing."""
    ones, nothing = pointwise.full(1.0, x.spec), pointwise.full(0.0, x.spec)
    is_zero = pointwise.eq(x, nothing)
    zeros = scan(pointwise.where(is_zero, ones, nothing), mode="add")
    before = pointwise.eq(zeros, nothing)
    first = pointwise.bitwise_and(is_zero, pointwise.eq(zeros, ones))
    without = scan(pointwise.where(first, ones, x), mode="prod")
    smooth = pointwise.div(reverse_sum(pointwise.mul(g, out)), pointwise.where(before, x, ones))
    at_first = pointwise.where(first, reverse_sum(pointwise.mul(g, without)), nothing)
    return pointwise.where(before, smooth, at_first)


def _exponentials_vjp(g: Node, out: Node, x: Node, reverse: Callable[[Node], Node]) -> Node:
    """The sum of g[i] * exp(x - out[i]) from each on, as logarithms; of what is above 0 and of what is below, apart."""
    nothing, hidden = pointwise.full(0.0, x.spec), pointwise.full(float("-inf"), x.spec)
    is_hidden = pointwise.eq(out, hidden)  # All so far is -inf.

    def part(share: Node) -> Node:
        weighed = pointwise.sub(pointwise.log(share), pointwise.where(is_hidden, nothing, out))
        summed = reverse(pointwise.where(is_hidden, hidden, weighed))
        return pointwise.exp(pointwise.add(summed, x))

    return pointwise.sub(part(pointwise.maximum(g, nothing)), part(pointwise.maximum(pointwise.neg(g), nothing)))


def _pairwise_vjp(g: Node, out: Node, x: Node) -> Node:
    """The same of each pair: linear in g, so that derivatives of every order are right. Work: n^2."""
    *lead, n = x.spec.shape
    rank, square = len(lead) + 2, (*lead, n, n)

    def rows(y: Node, shape: Shape) -> Node:
        return reduction.expand(movement.reshape(y, shape=shape), shape=square)

    nothing, hidden = pointwise.full(0.0, out.spec), pointwise.full(float("-inf"), out.spec)
    shift = pointwise.where(pointwise.eq(out, hidden), nothing, out)
    differences = pointwise.sub(rows(x, (*lead, n, 1)), rows(shift, (*lead, 1, n)))
    spec = spec_of(square, dtypes.int32)
    seen = pointwise.le(pointwise.iota(spec=spec, axis=rank - 2), pointwise.iota(spec=spec, axis=rank - 1))
    weight = pointwise.exp(pointwise.where(seen, differences, pointwise.full(float("-inf"), differences.spec)))
    gradient = reduction.sum_(pointwise.mul(rows(g, (*lead, 1, n)), weight), axes=(rank - 1,))
    return movement.reshape(gradient, shape=x.spec.shape)


argsort: Structural = Structural(
    "argsort",  # along the last axis; stable, NaN is the largest, -0 equals 0
    infer=lambda x, descending: Spec(x.shape, dtypes.int64),
    reference=_argsort,
    vjp=(None,),
)


def _scatter_sorted(
    xp: ModuleType,
    base: NDArray[Any],
    numbers: NDArray[Any],
    order: NDArray[Any],
    source: NDArray[Any],
    *folds: NDArray[Any],
    mode: str,
    size: int = 0,
) -> NDArray[Any]:
    return _scatter(xp, base, numbers, source[order], mode)


scatter_sorted: Structural = Structural(
    # folds: of fold_sorted, which runs longer than a few blocks of `size` read instead of their updates.
    "scatter_sorted",  # scatter, given the row numbers in order and where each stood: what many updates become
    infer=lambda base, numbers, order, source, *folds, mode, size=0: base,
    reference=_scatter_sorted,
    vjp=(None, None, None, None, None),
)


def _folds_of(numbers: Spec, order: Spec, source: Spec, size: int, mode: str) -> Spec:
    dtype = dtypes.float32 if source.dtype.kind is Kind.FLOAT else source.dtype  # Sums of halves are not rounded.
    return Spec((numbers.shape[0] // size, source.shape[1]), dtype)


def _fold_sorted(
    xp: ModuleType, numbers: NDArray[Any], order: NDArray[Any], source: NDArray[Any], size: int, mode: str
) -> NDArray[Any]:
    count = numbers.shape[0] // size
    blocks = source[order][: count * size].reshape(count, size, source.shape[1])
    return xp.stack([_scatter(xp, block[:1], xp.zeros(size - 1, "int64"), block[1:], mode)[0] for block in blocks])


fold_sorted: Structural = Structural(
    "fold_sorted",  # what each block of `size` updates comes to, in the order of their rows, where all are of one row
    infer=_folds_of,
    reference=_fold_sorted,
    vjp=(None, None, None),
)

# What argsort becomes on devices that run WGSL: blocks in order, then runs of twice the width, again and again.

sort_block: Structural = Structural(
    "sort_block",
    infer=lambda keys, size: Spec(keys.shape, dtypes.int32),
    reference=lambda xp, keys, size: xp.concatenate(
        [
            xp.argsort(keys[..., start : start + size], axis=-1, kind="stable") + start
            for start in range(0, keys.shape[-1], size)
        ],
        axis=-1,
    ).astype("int32"),
    vjp=(None,),
)


def _sort_merge(xp: ModuleType, keys: NDArray[Any], order: NDArray[Any], width: int) -> NDArray[Any]:
    out = order.copy()
    for start in range(0, keys.shape[-1], 2 * width):
        run = order[..., start : start + 2 * width]
        by_key = xp.argsort(xp.take_along_axis(keys, run, -1), axis=-1, kind="stable")
        out[..., start : start + 2 * width] = xp.take_along_axis(run, by_key, -1)
    return out


sort_merge: Structural = Structural(
    "sort_merge", infer=lambda keys, order, width: order, reference=_sort_merge, vjp=(None, None)
)
