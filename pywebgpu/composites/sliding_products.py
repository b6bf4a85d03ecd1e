"""Products of a kernel with what it sees at each position, as one op with its gradients; and windows as views.

A window view (no copy) puts what a kernel sees on axes of its own; the contraction is weight (g, o, k) x windows
(g, k, n * positions), so that neighbouring pixels stay neighbours in memory on both sides. Nothing is unfolded in
memory: a product reads through the view. That holds for the gradients, too: with steps of 1 that of the input is such
a product itself, of the gradient and the kernel turned around.
"""

from collections.abc import Iterator, Sequence
from itertools import product
from math import prod

from pywebgpu import dtypes
from pywebgpu.composites import arithmetic, joining, precision, reduce, sliding_on_host
from pywebgpu.ir.graph import Fused, Node, Spec
from pywebgpu.ops import contraction, movement, pointwise, reduction
from pywebgpu.support.shapes import Shape

HOSTED = frozenset({dtypes.float32, dtypes.float64})  # of which device cpu multiplies some samples at a time
MOST = 32  # places of a depthwise kernel: a larger one is a product of matrices


def windows(x: Node, kernel: Shape, step: Shape, dilation: Shape) -> Node:
    """(..., *s) -> (..., *positions, *kernel): what a kernel sees at each position. A view."""
    first = len(x.spec.shape) - len(kernel)
    for number, (size, jump, spacing) in enumerate(zip(kernel, step, dilation, strict=True)):
        axis = first + number
        length, rank = x.spec.shape[axis], len(x.spec.shape)
        if size == jump and spacing == 1 and length % size == 0:  # Windows that do not overlap are a reshape.
            shape = (*x.spec.shape[:axis], length // size, size, *x.spec.shape[axis + 1 :])
            order = (*range(axis + 1), *range(axis + 2, rank + 1), axis + 1)
            x = movement.permute(movement.reshape(x, shape=shape), order=order)
        else:
            x = movement.window(x, axis=axis, size=size, step=jump, dilation=spacing)
    return x


def overlapped(x: Node, lengths: Shape, kernel: Shape, step: Shape, dilation: Shape) -> Node:
    """(..., *positions, *kernel) -> (..., *lengths): windows laid back and added where they overlap."""
    first = len(x.spec.shape) - 2 * len(kernel)
    for number in reversed(range(len(kernel))):
        axis, rank = first + number, len(x.spec.shape)
        size, jump, spacing, length = kernel[number], step[number], dilation[number], lengths[number]
        if size == jump and spacing == 1 and length == x.spec.shape[axis] * size:
            order = (*range(axis + 1), rank - 1, *range(axis + 1, rank - 1))
            shape = (*x.spec.shape[:axis], length, *x.spec.shape[axis + 1 : -1])
            x = movement.reshape(movement.permute(x, order=order), shape=shape)
        else:
            layers = movement.unwindow(x, axis=axis, length=length, step=jump, dilation=spacing)
            x = reduce.drop(reduction.sum_(layers, (rank - 1,)), (rank - 1,), keepdim=False)
    return x


def padded(x: Node, before: Shape, after: Shape, value: float = 0.0) -> Node:
    """`value` around the last axes; negative numbers cut."""
    rank, count = len(x.spec.shape), len(before)
    starts = (0,) * (rank - count) + before
    ends = (0,) * (rank - count) + after
    if any(n < 0 for n in (*starts, *ends)):
        cut = tuple(max(-n, 0) for n in starts)
        kept = tuple(n - c - max(-e, 0) for n, c, e in zip(x.spec.shape, cut, ends, strict=True))
        x = movement.slice_(x, starts=cut, sizes=kept, steps=(1,) * rank)
        starts, ends = tuple(max(n, 0) for n in starts), tuple(max(n, 0) for n in ends)
    if not any(starts) and not any(ends):
        return x
    shape = tuple(n + s + e for n, s, e in zip(x.spec.shape, starts, ends, strict=True))
    return movement.pad(x, shape=shape, starts=starts, steps=(1,) * rank, value=value)


def _spec(
    x: Spec, weight: Spec, *, step: Shape, dilation: Shape, groups: int, before: Shape, after: Shape
) -> tuple[Spec]:
    kernel = weight.shape[2:]
    full = (n + b + a for n, b, a in zip(x.shape[2:], before, after, strict=True))
    positions = ((n - d * (k - 1) - 1) // s + 1 for n, d, k, s in zip(full, dilation, kernel, step, strict=True))
    return (Spec((x.shape[0], weight.shape[0], *positions), x.dtype),)


def _columns(x: Node, kernel: Shape, step: Shape, dilation: Shape, groups: int) -> Node:
    """(n, c, *s) -> (groups, c / groups * kernel, n * positions): a column for each position."""
    rank = len(kernel)
    n, channels = x.spec.shape[:2]
    seen = windows(x, kernel, step, dilation)
    positions = seen.spec.shape[2 : 2 + rank]
    seen = movement.reshape(seen, shape=(n, groups, channels // groups, *positions, *kernel))
    space, inner = range(3, 3 + rank), range(3 + rank, 3 + 2 * rank)
    order = (1, 2, *inner, 0, *space)
    shape = (groups, channels // groups * prod(kernel), n * prod(positions))
    return movement.reshape(movement.permute(seen, order=order), shape=shape)


def _by_groups(x: Node, groups: int) -> Node:
    """(n, c, *s) -> (groups, c / groups, n * s)."""
    n, channels, *space = x.spec.shape
    values = movement.reshape(x, shape=(n, groups, channels // groups, *space))
    order = (1, 2, 0, *range(3, 3 + len(space)))
    return movement.reshape(movement.permute(values, order=order), shape=(groups, channels // groups, n * prod(space)))


def _product(
    x: Node, weight: Node, *, step: Shape, dilation: Shape, groups: int, before: Shape, after: Shape
) -> tuple[Node]:
    kernel, n_out, n = weight.spec.shape[2:], weight.spec.shape[0], x.spec.shape[0]
    if _is_depthwise(weight.spec.shape, groups):
        return (_depthwise(padded(x, before, after), weight, step, dilation),)
    ((_, _, *positions), _) = _spec(
        x.spec, weight.spec, step=step, dilation=dilation, groups=groups, before=before, after=after
    )[0]
    columns = _columns(padded(x, before, after), kernel, step, dilation, groups)
    rows = movement.reshape(weight, shape=(groups, n_out // groups, columns.spec.shape[1]))
    out = movement.reshape(contraction.matmul(rows, columns), shape=(n_out, n, *positions))
    return (movement.permute(out, order=(1, 0, *range(2, 2 + len(positions)))),)


def _gradients(
    grads: tuple[Node | None],
    outs: tuple[Node],
    x: Node,
    weight: Node,
    *,
    step: Shape,
    dilation: Shape,
    groups: int,
    before: Shape,
    after: Shape,
) -> Sequence[Node | None]:
    (g,) = grads
    if g is None:
        return None, None
    shape = weight.spec.shape
    kernel, space = shape[2:], x.spec.shape[2:]
    ends = {"before": before, "after": after}
    (of_weight,) = kernel_product(g, x, shape=shape, step=step, dilation=dilation, groups=groups, **ends)
    if all(s == 1 for s in step) or _is_depthwise(shape, groups):
        reach = [d * (k - 1) for d, k in zip(dilation, kernel, strict=True)]
        g = _dilated(g, step)
        first = tuple(r - b for r, b in zip(reach, before, strict=True))
        sizes = zip(space, reach, first, g.spec.shape[2:], strict=True)
        ends = {"before": first, "after": tuple(n + r - b - have for n, r, b, have in sizes)}
        ones = (1,) * len(kernel)
        (of_x,) = sliding_product(g, _turned(weight, groups), step=ones, dilation=dilation, groups=groups, **ends)
    else:
        full = tuple(n + b + a for n, b, a in zip(space, before, after, strict=True))
        of_x = padded(
            spread(g, weight, full, step, dilation, groups), tuple(-b for b in before), tuple(-a for a in after)
        )
    return of_x, of_weight


def _dilated(x: Node, step: Shape) -> Node:
    """(n, c, *s) with zeros between neighbours, so that they are `step` apart."""
    if all(s == 1 for s in step):
        return x
    shape = (*x.spec.shape[:2], *((n - 1) * s + 1 for n, s in zip(x.spec.shape[2:], step, strict=True)))
    return movement.pad(x, shape=shape, starts=(0,) * len(shape), steps=(1, 1, *step))


def _of_kernel(
    g: Node, x: Node, *, shape: Shape, step: Shape, dilation: Shape, groups: int, before: Shape, after: Shape
) -> tuple[Node]:
    seen = padded(x, before, after)
    if not _is_depthwise(shape, groups):
        columns = _columns(seen, shape[2:], step, dilation, groups)
        rows = contraction.matmul(_by_groups(g, groups), contraction.transposed(columns))
        return (movement.reshape(rows, shape=shape),)
    axes = (0, *range(2, len(shape)))
    wide = precision.upcast(g)
    sums = [
        movement.reshape(reduction.sum_(pointwise.mul(part, wide), axes), shape=(shape[0], 1))
        for _, part in _shifted(seen, shape, g.spec.shape[2:], step, dilation)
    ]
    return (arithmetic.cast(movement.reshape(joining.cat(sums, 1), shape=shape), x.spec.dtype),)


kernel_product: Fused = Fused(
    "kernel_product",  # the gradient of sliding_product's kernel, of that of its result and of what it slid over
    infer=lambda g, x, shape, **_: (Spec(shape, x.dtype),),
    fallback=_of_kernel,
    host=sliding_on_host.kernel_product_of,
    hosted=HOSTED,
)


# Depthwise: a kernel sees one channel, and there is no sum of products over channels that a matrix product could be


def _is_depthwise(shape: Shape, groups: int) -> bool:
    return shape[1] == 1 and groups > 1 and prod(shape[2:]) <= MOST


def _depthwise(x: Node, weight: Node, step: Shape, dilation: Shape) -> Node:
    """The picture moved to each place of the kernel, times that, added up: by element."""
    shape = weight.spec.shape
    kernel, n_out = shape[2:], shape[0]
    positions = [
        (n - d * (k - 1) - 1) // s + 1 for n, d, k, s in zip(x.spec.shape[2:], dilation, kernel, step, strict=True)
    ]
    total: Node | None = None
    for offset, part in _shifted(x, shape, positions, step, dilation):
        sizes = (n_out, *(1,) * (len(shape) - 1))
        weights = movement.slice_(weight, starts=(0, 0, *offset), sizes=sizes, steps=(1,) * len(shape))
        factor = movement.reshape(precision.upcast(weights), shape=(1, n_out, *(1,) * len(kernel)))
        term = arithmetic.mul(part, factor)
        total = term if total is None else pointwise.add(total, term)
    assert total is not None
    return arithmetic.cast(total, weight.spec.dtype)


def _shifted(
    x: Node, shape: Shape, positions: Sequence[int], step: Shape, dilation: Shape
) -> Iterator[tuple[tuple[int, ...], Node]]:
    """For each place of a kernel what it sees there: (n, o, *at), float32 for half floats."""
    n, channels = x.spec.shape[:2]
    each = shape[0] // channels
    for offset in product(*map(range, shape[2:])):
        starts = (0, 0, *(o * d for o, d in zip(offset, dilation, strict=True)))
        part = movement.slice_(x, starts=starts, sizes=(n, channels, *positions), steps=(1, 1, *step))
        if each > 1:
            part = movement.reshape(part, shape=(n, channels, 1, *positions))
            part = movement.reshape(
                arithmetic.broadcast_to(part, (n, channels, each, *positions)), shape=(n, shape[0], *positions)
            )
        yield offset, precision.upcast(part)


def _turned(weight: Node, groups: int) -> Node:
    """(o, c / groups, *kernel) -> (c, o / groups, *kernel), with each kernel turned around."""
    n_out, inner, *kernel = weight.spec.shape
    by_group = movement.reshape(weight, shape=(groups, n_out // groups, inner, *kernel))
    swapped = movement.permute(by_group, order=(0, 2, 1, *range(3, 3 + len(kernel))))
    turned = movement.reshape(swapped, shape=(groups * inner, n_out // groups, *kernel))
    return movement.flip(turned, axes=tuple(range(2, 2 + len(kernel))))


sliding_product: Fused = Fused(
    "sliding_product",  # (n, c, *s), (o, c / groups, *kernel) -> (n, o, *positions)
    infer=_spec,
    fallback=_product,
    vjp=_gradients,
    host=sliding_on_host.product_of,
    hosted=HOSTED,
)


def _spread(x: Node, weight: Node, *, lengths: Shape, step: Shape, dilation: Shape, groups: int) -> tuple[Node]:
    n, channels, *positions = x.spec.shape
    n_out, *kernel = weight.spec.shape[1:]
    rank = len(kernel)
    rows = movement.reshape(weight, shape=(groups, channels // groups, n_out * prod(kernel)))
    out = contraction.matmul(movement.permute(rows, order=(0, 2, 1)), _by_groups(x, groups))
    out = movement.reshape(out, shape=(groups, n_out, *kernel, n, *positions))
    order = (2 + rank, 0, 1, *range(3 + rank, 3 + 2 * rank), *range(2, 2 + rank))
    out = movement.reshape(movement.permute(out, order=order), shape=(n, groups * n_out, *positions, *kernel))
    return (overlapped(out, lengths, tuple(kernel), step, dilation),)


def _spread_spec(x: Spec, weight: Spec, *, lengths: Shape, groups: int, **_: object) -> tuple[Spec]:
    return (Spec((x.shape[0], weight.shape[1] * groups, *lengths), x.dtype),)


def _spread_gradients(
    grads: tuple[Node | None],
    outs: tuple[Node],
    x: Node,
    weight: Node,
    *,
    lengths: Shape,
    step: Shape,
    dilation: Shape,
    groups: int,
) -> Sequence[Node | None]:
    (g,) = grads
    if g is None:
        return None, None
    shape = weight.spec.shape
    sizes = zip(x.spec.shape[2:], lengths, step, dilation, shape[2:], strict=True)
    ends = {"before": (0,) * len(step), "after": tuple((m - 1) * s + d * (k - 1) + 1 - n for m, n, s, d, k in sizes)}
    (of_x,) = sliding_product(g, weight, step=step, dilation=dilation, groups=groups, **ends)
    (of_weight,) = kernel_product(x, g, shape=shape, step=step, dilation=dilation, groups=groups, **ends)
    return of_x, of_weight


spread_product: Fused = Fused(
    "spread_product",  # (n, c, *at), (c, o / groups, *kernel) -> (n, o, *lengths)
    infer=_spread_spec,
    fallback=_spread,
    vjp=_spread_gradients,
    host=sliding_on_host.spread_of,
    hosted=HOSTED,
)


def spread(x: Node, weight: Node, lengths: Shape, step: Shape, dilation: Shape, groups: int) -> Node:
    """The other way: each element of x (n, c, *at) times the kernels (c, o / groups, *kernel), added where they overlap
    in (n, o, *lengths)."""
    return spread_product(x, weight, lengths=lengths, step=step, dilation=dilation, groups=groups)[0]
