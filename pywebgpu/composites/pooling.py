"""Pooling: folds over windows. A maximum sends its gradient to the first largest element, as in torch."""

from collections.abc import Sequence
from math import inf, prod

from pywebgpu import dtypes
from pywebgpu.composites import arithmetic, joining, precision, reduce, slicing, sliding_products
from pywebgpu.composites.composite_op import composite
from pywebgpu.composites.convolution import Sizes, sizes
from pywebgpu.dtypes import Kind
from pywebgpu.errors import ShapeError
from pywebgpu.ir.graph import Node, Spec, thread_state
from pywebgpu.ops import extremes, movement, pointwise, reduction
from pywebgpu.support.shapes import Shape

MOST_WINDOWS = 1 << 16  # of unequal size along an axis: each is a part of the graph


@composite
def max_pool(
    x: Node,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    ceil_mode: bool = False,
    *,
    rank: int,
) -> Node:
    """The largest element of each window over the last `rank` axes.

    Shapes: x (n, c, *s) or (c, *s) -> the same with the number of windows for each axis of s.
    Raises: ShapeError when ranks or sizes do not fit.
    """
    seen, _, _ = _max_windows(x, kernel_size, stride, padding, dilation, ceil_mode, rank)
    if not (x.requires and thread_state.grad):
        return reduce.drop(reduction.max_(seen, (0,)), (0,), keepdim=False)
    value, _ = extremes.largest(seen, axes=(0,))
    return reduce.drop(value, (0,), keepdim=False)


def max_pool_with_indices(
    x: Node,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    ceil_mode: bool = False,
    *,
    rank: int,
) -> tuple[Node, Node]:
    """As max_pool, and where each largest element is: its position in the flattened axes s, as int64."""
    seen, step, before = _max_windows(x, kernel_size, stride, padding, dilation, ceil_mode, rank)
    value, where = extremes.largest(seen, axes=(0,))
    values = reduce.drop(value, (0,), keepdim=False)
    offset = reduce.drop(where, (0,), keepdim=False)
    kernel, dilations = sizes("kernel_size", kernel_size, rank), sizes("dilation", dilation, rank)
    space = x.spec.shape[len(x.spec.shape) - rank :]
    index: Node | None = None
    for axis in range(rank):
        inside = pointwise.floor_divide(offset, arithmetic.like(offset, prod(kernel[axis + 1 :])))
        inside = pointwise.remainder(inside, arithmetic.like(offset, kernel[axis]))
        start = pointwise.iota(spec=offset.spec, axis=len(offset.spec.shape) - rank + axis)
        start = pointwise.mul(start, arithmetic.like(start, step[axis]))
        position = pointwise.add(pointwise.mul(inside, arithmetic.like(inside, dilations[axis])), start)
        position = pointwise.sub(position, arithmetic.like(position, before[axis]))
        if before[axis]:  # A window of the least numbers is one of ties with the padding: its first element is meant.
            inside = pointwise.remainder(position, arithmetic.like(position, dilations[axis]))
            position = pointwise.where(pointwise.lt(position, arithmetic.like(position, 0)), inside, position)
        position = pointwise.mul(position, arithmetic.like(position, prod(space[axis + 1 :])))
        index = position if index is None else pointwise.add(index, position)
    assert index is not None
    return values, index


@composite
def avg_pool(
    x: Node,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
    *,
    rank: int,
) -> Node:
    """The mean of each window over the last `rank` axes.

    count_include_pad: zeros of the padding count as elements. divisor_override: what to divide by instead.
    Shapes, errors: as max_pool.
    """
    name = f"avg_pool{rank}d"
    if x.spec.dtype is not dtypes.int64:  # PyTorch's only whole numbers here: quotients are cut off.
        precision.require_floating(name, x)
    kernel = sizes("kernel_size", kernel_size, rank)
    step = kernel if stride is None else sizes("stride", stride, rank)
    pad, ones = sizes("padding", padding, rank), (1,) * rank
    space = _space(name, x, rank)
    after = _after(name, space, kernel, step, pad, ones, ceil_mode=ceil_mode)
    wide = precision.upcast(x)
    seen = sliding_products.windows(sliding_products.padded(wide, pad, after), kernel, step, ones)
    inner = tuple(range(len(seen.spec.shape) - rank, len(seen.spec.shape)))
    total = reduce.drop(reduction.sum_(seen, inner), inner, keepdim=False)
    if divisor_override is not None:
        if divisor_override == 0:
            raise ShapeError("divisor must be not zero")
        return arithmetic.cast(_quotient(total, arithmetic.like(total, divisor_override)), x.spec.dtype)
    counted = tuple(n + 2 * p for n, p in zip(space, pad, strict=True)) if count_include_pad else space
    begin = (0,) * rank if count_include_pad else pad
    full = tuple(n + p + a for n, p, a in zip(space, pad, after, strict=True))
    for axis in range(rank):  # The quotient of quotients that are cut off is that of the product.
        n = _counts(total, axis, rank, counted[axis], begin[axis], full[axis], kernel[axis], step[axis])
        total = _quotient(total, n)
    return arithmetic.cast(total, x.spec.dtype)


def _quotient(total: Node, n: Node) -> Node:
    return arithmetic.div(total, n, None if total.spec.dtype.kind is Kind.FLOAT else "trunc")


def _counts(total: Node, axis: int, rank: int, counted: int, begin: int, full: int, kernel: int, step: int) -> Node:
    """How many elements the windows along one axis hold: a constant, or a vector where windows reach outside."""
    window_axis = len(total.spec.shape) - rank + axis
    n_windows = total.spec.shape[window_axis]
    if begin == 0 and (n_windows - 1) * step + kernel <= counted:
        return pointwise.full(kernel, Spec((), total.spec.dtype))
    ones = pointwise.full(1.0, Spec((counted,), total.spec.dtype))
    line = sliding_products.padded(ones, (begin,), (full - begin - counted,))
    seen = sliding_products.windows(line, (kernel,), (step,), (1,))
    shape = tuple(n_windows if a == window_axis else 1 for a in range(len(total.spec.shape)))
    return movement.reshape(reduction.sum_(seen, (1,)), shape=shape)


def lp_pool(
    x: Node, norm_type: float, kernel_size: Sizes, stride: Sizes | None = None, ceil_mode: bool = False, *, rank: int
) -> Node:
    """(sum of x^p)^(1/p) over each window, NaN where there is no such root; p may be infinite.

    Against torch: the same; the gradient is 0 where the sum is.
    """
    if norm_type in (inf, -inf):
        size, sign = pointwise.abs_(x), pointwise.neg if norm_type < 0 else pointwise.copy
        return sign(max_pool(sign(size), kernel_size, stride, ceil_mode=ceil_mode, rank=rank))
    power = pointwise.pow_(x, arithmetic.like(x, norm_type))
    mean = avg_pool(power, kernel_size, stride, 0, ceil_mode, rank=rank)
    total = pointwise.mul(mean, arithmetic.like(mean, prod(sizes("kernel_size", kernel_size, rank))))
    none = pointwise.eq(total, arithmetic.like(total, 0))
    safe = pointwise.where(none, arithmetic.like(total, 1), total)
    root = pointwise.pow_(safe, arithmetic.like(total, 1 / norm_type))
    return pointwise.where(none, arithmetic.like(total, 0.0 if norm_type > 0 else inf), root)


# A given number of windows


def adaptive_avg_pool(x: Node, output_size: int | Sequence[int | None], *, rank: int) -> Node:
    """Means of `output_size` windows along each of the last `rank` axes, which cover the axis evenly.

    Window i goes from floor(i n / size) to ceil((i + 1) n / size); a size of None keeps the axis.
    """
    name = f"adaptive_avg_pool{rank}d"
    precision.require_floating(name, x)
    dtype, x = x.spec.dtype, precision.upcast(x)
    for axis, size in _outputs(name, x, output_size, rank, may_lack_channels=rank < 3):
        parts = _split_evenly(x, axis, size)
        if not size:
            x = slicing.part(x, axis, 0, 0)
        elif isinstance(parts, Node):
            x = reduce.drop(reduce.row_mean(parts, (axis + 1,)), (axis + 1,), keepdim=False)
        else:
            x = joining.cat([reduce.row_mean(part, (axis,)) for part in parts], axis)
    return arithmetic.cast(x, dtype)


def adaptive_max_pool(x: Node, output_size: int | Sequence[int | None], *, rank: int) -> Node:
    """The largest elements of the windows of adaptive_avg_pool."""
    return adaptive_max_pool_with_indices(x, output_size, rank=rank)[0]


def adaptive_max_pool_with_indices(x: Node, output_size: int | Sequence[int | None], *, rank: int) -> tuple[Node, Node]:
    """The largest elements of the windows of adaptive_avg_pool, and their positions in the flattened axes (int64).

    Folds one axis after the other, the last one first: each time the position travels with the value.
    """
    name = f"adaptive_max_pool{rank}d"
    outputs, space = _outputs(name, x, output_size, rank), x.spec.shape[len(x.spec.shape) - rank :]
    precision.require_floating(name, x)
    index: Node | None = None
    for axis, size in reversed(outputs):
        stride = prod(space[axis - (len(x.spec.shape) - rank) + 1 :])
        here = pointwise.iota(spec=Spec(x.spec.shape, dtypes.int64), axis=axis)
        here = pointwise.mul(here, arithmetic.like(here, stride))
        index = here if index is None else pointwise.add(index, here)
        values, positions = [], []
        if not size:
            x, index = slicing.part(x, axis, 0, 0), slicing.part(index, axis, 0, 0)
            continue
        for start, stop in _bounds(x.spec.shape[axis], size):
            part, positions_of_part = slicing.part(x, axis, start, stop), slicing.part(index, axis, start, stop)
            value, where = extremes.largest(part, axes=(axis,))
            values.append(value)
            positions.append(reduce.picked(positions_of_part, where, axis))
        x, index = joining.cat(values, axis), joining.cat(positions, axis)
    assert index is not None
    return x, index


def _outputs(
    name: str, x: Node, output_size: int | Sequence[int | None], rank: int, *, may_lack_channels: bool = False
) -> list[tuple[int, int]]:
    """The axes to pool, each with its number of windows. The first axis may be empty."""
    shape = x.spec.shape
    if rank > 1 and len(shape) <= rank:
        raise ValueError(f"{name}: Input dimension should be at least {rank + 1}, got {list(shape)}")
    _check_rank(name, shape, rank)
    if 0 in shape[len(shape) - rank if may_lack_channels else 1 :]:
        raise ShapeError(
            f"{name}: Expected input to have non-zero size for non-batch dimensions, but got: {list(shape)}"
        )
    space = shape[len(shape) - rank :]
    out_sizes = (output_size,) * rank if isinstance(output_size, int) else tuple(output_size)
    if len(out_sizes) != rank:
        raise ShapeError(f"{name}: output_size must have {rank} values, got {out_sizes}")
    if any(size is not None and size < 0 for size in out_sizes):
        raise ShapeError(f"{name}: elements of output_size must be greater than or equal to 0, got {out_sizes}")
    first = len(x.spec.shape) - rank
    return [(first + i, n if size is None else size) for i, (n, size) in enumerate(zip(space, out_sizes, strict=True))]


def _bounds(length: int, size: int) -> list[tuple[int, int]]:
    """Raises ShapeError for more windows than can be cut one after another."""
    if size > MOST_WINDOWS:
        raise ShapeError(
            f"adaptive pooling: {size} windows of an axis are more than {MOST_WINDOWS}; use smaller tensors"
        )
    return [(i * length // size, -(-(i + 1) * length // size)) for i in range(size)]


def _split_evenly(x: Node, axis: int, size: int) -> Node | list[Node]:
    """Equal windows as a new axis after `axis`, or a list of unequal ones."""
    length = x.spec.shape[axis]
    if size and length % size == 0:
        return movement.reshape(x, shape=(*x.spec.shape[:axis], size, length // size, *x.spec.shape[axis + 1 :]))
    return [slicing.part(x, axis, start, stop) for start, stop in _bounds(length, size)]


# Parts


def _space(name: str, x: Node, rank: int) -> Shape:
    shape = x.spec.shape
    _check_rank(name, shape, rank)
    if 0 in shape[len(shape) - rank - 1 :]:
        raise ShapeError(
            f"{name}: Expected {rank + 1}D or {rank + 2}D (batch mode) tensor with optional 0 dim batch size: Expected "
            f"input's non-batch dimensions to have positive length, but got: {list(shape)}"
        )
    return shape[len(shape) - rank :]


def _check_rank(name: str, shape: Shape, rank: int) -> None:
    if len(shape) not in (rank + 1, rank + 2):
        raise ShapeError(f"{name}: Expected {rank + 1}D or {rank + 2}D input, but got: {list(shape)}")


def _after(
    name: str, space: Shape, kernel: Shape, step: Shape, pad: Shape, dilation: Shape, *, ceil_mode: bool
) -> Shape:
    """The padding behind each axis: `pad`, and what the last window of ceil_mode reaches further."""
    out = []
    for n, k, s, p, d in zip(space, kernel, step, pad, dilation, strict=True):
        for argument, number in (("stride", s), ("kernel_size", k), ("dilation", d)):
            if number < 1:
                raise ShapeError(f"{name}: {argument} must be greater than zero, but got {number}")
        reach = d * (k - 1) + 1
        if p < 0 or p > reach // 2:
            raise ShapeError(
                f"{name}: pad should be at most half of effective kernel size, but got pad={p}, kernel_size={k} and "
                f"dilation={d}"
            )
        if n + 2 * p < reach and not (ceil_mode and n + 2 * p + s - 1 >= reach):
            raise ShapeError(
                f"{name}: Given input size {space}, calculated output size is too small for kernel {kernel}"
            )
        count = (n + 2 * p - reach + (s - 1 if ceil_mode else 0)) // s + 1
        if ceil_mode and (count - 1) * s >= n + p:
            count -= 1
        out.append(max(p, (count - 1) * s + reach - n - p))
    return tuple(out)


def _max_windows(
    x: Node, kernel_size: Sizes, stride: Sizes | None, padding: Sizes, dilation: Sizes, ceil_mode: bool, rank: int
) -> tuple[Node, Shape, Shape]:
    """Windows with their elements on one first axis, with rows to walk along; the step, the padding in front."""
    name = f"max_pool{rank}d"
    if rank == 1:
        precision.require_floating(name, x)
    kernel = sizes("kernel_size", kernel_size, rank)
    step = kernel if stride is None else sizes("stride", stride, rank)
    pad, dilations = sizes("padding", padding, rank), sizes("dilation", dilation, rank)
    space = _space(name, x, rank)
    after = _after(name, space, kernel, step, pad, dilations, ceil_mode=ceil_mode)
    lowest = float("-inf") if x.spec.dtype.kind is Kind.FLOAT else x.spec.dtype.low
    seen = sliding_products.windows(sliding_products.padded(x, pad, after, lowest), kernel, step, dilations)
    lead = len(seen.spec.shape) - rank
    seen = movement.permute(seen, order=(*range(lead, lead + rank), *range(lead)))
    return movement.reshape(seen, shape=(prod(kernel), *seen.spec.shape[rank:])), step, pad
