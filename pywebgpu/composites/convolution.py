"""Convolutions, their transposes, and the windows that they see.

See sliding_products.py for what is multiplied.
"""

from collections.abc import Sequence
from math import prod

from pywebgpu.composites import activation, precision
from pywebgpu.composites.composite_op import composite
from pywebgpu.composites.sliding_products import overlapped, padded, sliding_product, spread, windows
from pywebgpu.errors import ShapeError
from pywebgpu.ir.graph import Node
from pywebgpu.ops import movement, pointwise
from pywebgpu.support import shapes
from pywebgpu.support.shapes import Shape

Sizes = int | Sequence[int]


def sizes(name: str, value: Sizes, rank: int) -> Shape:
    """One number for all axes, or one for each. Raises ShapeError when there are more or less."""
    value = shapes.plain(value)
    if isinstance(value, int):
        return (value,) * rank
    values = tuple(int(n) for n in value)
    if len(values) == 1:
        return values * rank
    if len(values) != rank:
        raise ShapeError(
            f"expected {name} to be a single integer value or a list of {rank} values, but got {list(values)}"
        )
    return values


@composite
def conv(
    x: Node,
    weight: Node,
    bias: Node | None = None,
    stride: Sizes = 1,
    padding: Sizes | str = 0,
    dilation: Sizes = 1,
    groups: int = 1,
    *,
    rank: int,
) -> Node:
    """Slides `weight` over the last `rank` axes of x and sums products (a cross-correlation, as everywhere).

    Shapes: x (n, c, *s) or (c, *s), weight (o, c / groups, *kernel), bias (o) -> (n, o, *positions).
    padding: zeros on both sides, or "same" (stride 1 only), or "valid" (none).
    Raises: ShapeError when channels, ranks or sizes do not fit; DTypeError when dtypes differ.
    """
    name = f"conv{rank}d"
    x, batched = _batched(name, x, rank)
    _check_weight(name, x, weight, bias, rank, groups, channels=weight.spec.shape[1] * groups)
    kernel = weight.spec.shape[2:]
    step, dilations = sizes("stride", stride, rank), sizes("dilation", dilation, rank)
    before, after = _padding(padding, kernel, step, dilations, rank)
    _check_sizes(name, x, kernel, step, dilations, before, after)
    (out,) = sliding_product(x, weight, step=step, dilation=dilations, groups=groups, before=before, after=after)
    return _finished(out, bias, batched=batched)


@composite
def conv_transpose(
    x: Node,
    weight: Node,
    bias: Node | None = None,
    stride: Sizes = 1,
    padding: Sizes = 0,
    output_padding: Sizes = 0,
    groups: int = 1,
    dilation: Sizes = 1,
    *,
    rank: int,
) -> Node:
    """The gradient of `conv` with respect to its input, as a layer of its own.

    Shapes: x (n, c, *s) or (c, *s), weight (c, o / groups, *kernel), bias (o) ->
    (n, o, *((s - 1) stride - 2 padding + dilation (kernel - 1) + output_padding + 1)).
    Raises: as conv.
    """
    name = f"conv_transpose{rank}d"
    x, batched = _batched(name, x, rank)
    _check_weight(name, x, weight, bias, rank, groups, channels=weight.spec.shape[0])
    kernel = weight.spec.shape[2:]
    step, dilations = sizes("stride", stride, rank), sizes("dilation", dilation, rank)
    cut, extra = sizes("padding", padding, rank), sizes("output_padding", output_padding, rank)
    if any(n < 0 for n in cut):
        raise ShapeError("negative padding is not supported")
    if any(e >= max(s, d) for e, s, d in zip(extra, step, dilations, strict=True)):
        raise ShapeError(
            f"output padding must be smaller than either stride or dilation, but got output_padding: {extra}, "
            f"stride: {step}, dilation: {dilations}"
        )
    sizes_ = zip(x.spec.shape[2:], step, dilations, kernel, extra, strict=True)
    full = tuple((a - 1) * s + d * (k - 1) + 1 + e for a, s, d, k, e in sizes_)
    out = spread(x, weight, full, step, dilations, groups)
    ends = tuple(-c for c in cut)
    if any(f <= 2 * c for f, c in zip(full, cut, strict=True)):
        raise ShapeError(f"{name}: output size is too small: {full} less padding {cut} on both sides")
    return _finished(padded(out, ends, ends), bias, batched=batched)


def unfold(x: Node, kernel_size: Sizes, dilation: Sizes = 1, padding: Sizes = 0, stride: Sizes = 1) -> Node:
    """(n, c, h, w) -> (n, c * kernel, positions): the columns that `conv` multiplies."""
    x, batched = _batched("unfold", x, 2)
    kernel, step, dilations = (
        sizes("kernel_size", kernel_size, 2),
        sizes("stride", stride, 2),
        sizes("dilation", dilation, 2),
    )
    pad = sizes("padding", padding, 2)
    _check_sizes("unfold", x, kernel, step, dilations, pad, pad)
    seen = windows(padded(x, pad, pad), kernel, step, dilations)
    n, c, *positions = seen.spec.shape[:4]
    order = (0, 1, 4, 5, 2, 3)
    out = movement.reshape(movement.permute(seen, order=order), shape=(n, c * prod(kernel), prod(positions)))
    return out if batched else movement.reshape(out, shape=out.spec.shape[1:])


def fold(
    x: Node, output_size: Sizes, kernel_size: Sizes, dilation: Sizes = 1, padding: Sizes = 0, stride: Sizes = 1
) -> Node:
    """(n, c * kernel, positions) -> (n, c, *output_size): the columns of `unfold` added where they overlap."""
    kernel, step, dilations = (
        sizes("kernel_size", kernel_size, 2),
        sizes("stride", stride, 2),
        sizes("dilation", dilation, 2),
    )
    pad, size = sizes("padding", padding, 2), sizes("output_size", output_size, 2)
    batched = len(x.spec.shape) == 3
    if not batched:
        x = movement.reshape(x, shape=(1, *x.spec.shape))
    full = tuple(n + 2 * p for n, p in zip(size, pad, strict=True))
    positions = tuple((f - d * (k - 1) - 1) // s + 1 for f, d, k, s in zip(full, dilations, kernel, step, strict=True))
    if len(x.spec.shape) != 3 or x.spec.shape[1] % prod(kernel) or x.spec.shape[2] != prod(positions):
        raise ShapeError(
            f"fold: needs (n, c * {prod(kernel)}, {prod(positions)}) for output_size={size}, kernel_size={kernel}, "
            f"dilation={dilations}, padding={pad}, stride={step}, got {x.spec.shape}"
        )
    n, c = x.spec.shape[0], x.spec.shape[1] // prod(kernel)
    columns = movement.permute(movement.reshape(x, shape=(n, c, *kernel, *positions)), order=(0, 1, 4, 5, 2, 3))
    out = overlapped(columns, full, kernel, step, dilations)
    ends = tuple(-p for p in pad)
    out = padded(out, ends, ends)
    return out if batched else movement.reshape(out, shape=out.spec.shape[1:])


# Parts


def _batched(name: str, x: Node, rank: int) -> tuple[Node, bool]:
    """x with a batch axis, and whether it had one."""
    if len(x.spec.shape) == rank + 2:
        return x, True
    if len(x.spec.shape) != rank + 1:
        raise ShapeError(
            f"Expected {rank + 1}D (unbatched) or {rank + 2}D (batched) input to {name}, but got input of size: "
            f"{list(x.spec.shape)}"
        )
    return movement.reshape(x, shape=(1, *x.spec.shape)), False


def _finished(out: Node, bias: Node | None, *, batched: bool) -> Node:
    if bias is not None:
        out = pointwise.add(out, activation.per_channel(bias, out))
    return out if batched else movement.reshape(out, shape=out.spec.shape[1:])


def _padding(padding: Sizes | str, kernel: Shape, step: Shape, dilation: Shape, rank: int) -> tuple[Shape, Shape]:
    if padding == "valid":
        return (0,) * rank, (0,) * rank
    if padding == "same":
        if any(s != 1 for s in step):
            raise ShapeError("padding='same' is not supported for strided convolutions")
        total = [d * (k - 1) for k, d in zip(kernel, dilation, strict=True)]
        return tuple(t // 2 for t in total), tuple(t - t // 2 for t in total)
    if isinstance(padding, str):
        raise ShapeError(f"Invalid padding string {padding!r}, should be one of 'valid', 'same'")
    pads = sizes("padding", padding, rank)
    return pads, pads


def _check_weight(
    name: str, x: Node, weight: Node, bias: Node | None, rank: int, groups: int, *, channels: int
) -> None:
    dtype = precision.require_same(name, x, weight)
    if len(weight.spec.shape) != rank + 2:
        raise ShapeError(f"{name}: weight should have {rank + 2} dimensions, but got shape {list(weight.spec.shape)}")
    if groups < 1 or weight.spec.shape[0] % groups:
        raise ShapeError(f"{name}: weight {list(weight.spec.shape)} cannot be divided into groups={groups}")
    if x.spec.shape[1] != channels:
        raise ShapeError(
            f"Given groups={groups}, weight of size {list(weight.spec.shape)}, expected input{list(x.spec.shape)} to "
            f"have {channels} channels, but got {x.spec.shape[1]} channels instead"
        )
    if bias is None:
        return
    precision.require_same(name, x, bias)
    n_out = weight.spec.shape[1] * groups if "transpose" in name else weight.spec.shape[0]
    if bias.spec.shape != (n_out,):
        raise ShapeError(
            f"Given weight of size {list(weight.spec.shape)}, expected bias to be 1-dimensional with {n_out} elements, "
            f"but got bias of size {list(bias.spec.shape)} instead (dtype {dtype.name})"
        )


def _check_sizes(name: str, x: Node, kernel: Shape, step: Shape, dilation: Shape, before: Shape, after: Shape) -> None:
    if any(k < 1 for k in kernel):
        raise ShapeError(f"{name}: kernel size should be greater than zero, but got {kernel}")
    if any(s < 1 for s in step):
        raise ShapeError(f"{name}: non-positive stride is not supported, got {step}")
    if any(d < 1 for d in dilation):
        raise ShapeError(f"{name}: dilation should be greater than zero, got {dilation}")
    if any(p < 0 for p in (*before, *after)):
        raise ShapeError(f"{name}: negative padding is not supported, got {before}")
    space = x.spec.shape[len(x.spec.shape) - len(kernel) :]
    full = [n + b + a for n, b, a in zip(space, before, after, strict=True)]
    reach = [d * (k - 1) + 1 for k, d in zip(kernel, dilation, strict=True)]
    if any(n < r for n, r in zip(full, reach, strict=True)):
        raise ShapeError(
            f"Calculated padded input size per channel: ({' x '.join(map(str, full))}). Kernel size: "
            f"({' x '.join(map(str, reach))}). Kernel size can't be greater than actual input size"
        )
