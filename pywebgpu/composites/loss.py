"""Losses over classes.

A loss over classes is one pass over each row: the picked class is a sum over where(position == target, x, 0), never a
gather. `reduction` is torch's: "none", "mean" or "sum".
"""

from math import prod

from pywebgpu import dtypes
from pywebgpu.composites import arithmetic, bounds, precision, reduce
from pywebgpu.composites.composite_op import composite
from pywebgpu.dtypes import Kind
from pywebgpu.errors import DTypeError, RangeError, ShapeError
from pywebgpu.ir.graph import Node, thread_state
from pywebgpu.ops import indexing, movement, pointwise, reduction

OUT_OF_BOUNDS = "Target {index} is out of bounds: there are {size} classes."


def reduced(loss: Node, reduction: str) -> Node:
    """The loss of each element, their mean, or their sum."""
    if reduction == "mean":
        return reduce.mean(loss)
    if reduction == "sum":
        return reduce.sum(loss)
    if reduction != "none":
        raise ValueError(f"{reduction} is not a valid value for reduction")
    return loss


# Classes


def cross_entropy(
    x: Node,
    target: Node,
    weight: Node | None = None,
    *,
    ignore_index: int = -100,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Node:
    """-log(softmax(x))[target] of each row, or -sum(target * log_softmax(x)) for a target of probabilities.

    Shapes: x (c,), (n, c) or (n, c, ...); target x without its class axis (whole numbers) or as x (floating);
    weight (c,) -> x without its class axis, or () for "mean" and "sum".
    Dtypes: floating x; computed in float32 for half floats.
    Raises: ValueError when the batches differ; ShapeError for other shapes; DTypeError for dtypes; RangeError for a
    target outside 0..c-1, at once where it is known, else when a value is read.
    Against torch: the same.
    """
    if not 0 <= label_smoothing <= 1:
        raise ShapeError(f"label_smoothing must be between 0.0 and 1.0. Got: {label_smoothing}")
    precision.require_floating("cross_entropy_loss", x)
    axis = class_axis(x)
    check_weight(x, axis, weight)
    if target.spec.dtype.kind is Kind.FLOAT:
        if ignore_index >= 0:
            raise ShapeError("ignore_index is not supported for floating point target")
        wide = precision.upcast(x)
        scales = None if weight is None else along(precision.upcast(weight), wide, axis)
        out = _against_probabilities(wide, target, scales, axis, reduction, label_smoothing)
        return arithmetic.cast(out, x.spec.dtype)
    classes, ignored = class_numbers(class_indices(x, target, axis), x.spec.shape[axis], ignore_index)
    return class_entropy(x, classes, ignored, weight, axis, reduction, label_smoothing)


@composite
def class_entropy(
    x: Node,
    classes: Node,
    ignored: Node | None,
    weight: Node | None,
    axis: int,
    reduction: str,
    label_smoothing: float,
) -> Node:
    """cross_entropy of checked class numbers, of which some may be ignored."""
    wide = precision.upcast(x)
    scales = None if weight is None else along(precision.upcast(weight), wide, axis)
    shifted, _, total = reduce.shifted_exponentials(wide, axis)
    logs = pointwise.log(total)
    loss = pointwise.sub(logs, reduce.picked(shifted, classes, axis))
    factor = None if scales is None else reduce.picked(scales, classes, axis)
    if factor is not None:
        loss = pointwise.mul(loss, factor)
    if label_smoothing:
        spread = pointwise.sub(arithmetic.broadcast_to(logs, shifted.spec.shape), shifted)
        if scales is not None:
            spread = pointwise.mul(spread, scales)
        even = arithmetic.like(loss, label_smoothing / x.spec.shape[axis])
        loss = pointwise.mul(loss, arithmetic.like(loss, 1 - label_smoothing))
        loss = pointwise.add(loss, pointwise.mul(row_sum(spread, axis), even))
    out = _over_classes(loss, factor, ignored, axis, reduction)
    return arithmetic.cast(out, x.spec.dtype)


def nll_loss(
    x: Node, target: Node, weight: Node | None = None, *, ignore_index: int = -100, reduction: str = "mean"
) -> Node:
    """-x[target] of each row of logarithms of probabilities.

    Shapes: x (c,), (n, c) or (n, c, ...); target x without its class axis; weight (c,) -> as cross_entropy.
    Raises: as cross_entropy.
    """
    precision.require_floating("nll_loss", x)
    axis = class_axis(x)
    check_weight(x, axis, weight)
    classes, ignored = class_numbers(class_indices(x, target, axis), x.spec.shape[axis], ignore_index)
    return picked_loss(x, classes, ignored, weight, axis, reduction)


@composite
def picked_loss(x: Node, classes: Node, ignored: Node | None, weight: Node | None, axis: int, reduction: str) -> Node:
    """nll_loss of checked class numbers, of which some may be ignored."""
    wide = precision.upcast(x)
    loss = pointwise.neg(reduce.picked(wide, classes, axis))
    factor = None
    if weight is not None:
        factor = reduce.picked(along(precision.upcast(weight), wide, axis), classes, axis)
        loss = pointwise.mul(loss, factor)
    out = _over_classes(loss, factor, ignored, axis, reduction)
    return arithmetic.cast(out, x.spec.dtype)


# Parts


def row_sum(x: Node, axis: int) -> Node:
    return reduction.sum_(x, (axis,))


def along(weight: Node, x: Node, axis: int) -> Node:
    """(c,) -> x's shape, along `axis`."""
    shape = tuple(n if a == axis else 1 for a, n in enumerate(x.spec.shape))
    return arithmetic.broadcast_to(movement.reshape(weight, shape=shape), x.spec.shape)


def class_axis(x: Node) -> int:
    if not x.spec.shape:
        raise ShapeError("input of a loss over classes should be 1D or more, got a tensor of shape ()")
    return 0 if len(x.spec.shape) == 1 else 1


def check_weight(x: Node, axis: int, weight: Node | None) -> None:
    if weight is not None and weight.spec.shape != (x.spec.shape[axis],):
        raise ShapeError(
            f"weight tensor should be defined either for all {x.spec.shape[axis]} classes or no classes but got weight "
            f"tensor of shape: {list(weight.spec.shape)}"
        )
    if weight is not None and weight.spec.dtype is not x.spec.dtype:
        raise ShapeError(f"expected scalar type {x.spec.dtype} but found {weight.spec.dtype}, the weights of classes")


def class_indices(x: Node, target: Node, axis: int) -> Node:
    """The target as int64, with size 1 at the class axis."""
    if target.spec.dtype.kind is not Kind.INT:
        raise DTypeError(f"expected target of whole numbers (torch.int64), got {target.spec.dtype}: target.long()")
    have, want = target.spec.shape, x.spec.shape[:axis] + x.spec.shape[axis + 1 :]
    if have != want:
        if have and want and have[0] != want[0]:
            raise ValueError(
                f"Expected input batch_size ({want[0]}) to match target batch_size ({have[0]}): input "
                f"{list(x.spec.shape)}, target {list(have)}."
            )
        raise ShapeError(f"Expected target size {list(want)}, got {list(have)} for input of size {list(x.spec.shape)}")
    shape = x.spec.shape[:axis] + (1,) + x.spec.shape[axis + 1 :]
    return movement.reshape(arithmetic.cast(target, dtypes.int64), shape=shape)


def class_numbers(classes: Node, n_classes: int, ignore_index: int) -> tuple[Node, Node | None]:
    """The target where it is not ignored (else 0), and where it is ignored; None where it is known that none is."""
    known = bounds.known_range(classes)
    if known is not None and known.exact:
        for number in (known.low, known.high):
            if number != ignore_index and not 0 <= number < n_classes:
                raise RangeError(f"Target {number} is out of bounds: there are {n_classes} classes.")
    inside = known is not None and known.low >= 0 and known.high < n_classes
    if inside and not 0 <= ignore_index < n_classes:
        return classes, None
    ignored = pointwise.eq(classes, arithmetic.like(classes, ignore_index))
    kept = pointwise.where(ignored, arithmetic.like(classes, 0), classes)
    return bounds.checked(kept, n_classes, wrap=False, text=OUT_OF_BOUNDS), ignored


def _over_classes(loss: Node, factor: Node | None, ignored: Node | None, axis: int, reduction: str) -> Node:
    """Ignored rows count nothing; "mean" is over the factors of the rows that count."""
    zero = arithmetic.like(loss, 0)
    if ignored is not None:
        loss = pointwise.where(ignored, zero, loss)
    loss = reduce.drop(loss, (axis,), keepdim=False)
    if reduction != "mean" or (factor is None and ignored is None):
        return reduced(loss, reduction)
    counted = arithmetic.like(zero, 1) if factor is None else factor
    if ignored is not None:
        counted = pointwise.where(ignored, zero, counted)
    learns = loss.requires and thread_state.grad and factor is None and 0 not in loss.spec.shape
    return pointwise.div(reduce.sum(loss), _count(counted) if learns else reduce.sum(counted))


def _count(counted: Node) -> Node:
    """The sum, by a kernel of its own: the gradient of the rows needs it, and would else wait for their losses."""
    n = prod(counted.spec.shape)
    running = indexing.scan(movement.reshape(counted, shape=(n,)), mode="add")
    return movement.reshape(movement.slice_(running, starts=(n - 1,), sizes=(1,), steps=(1,)), shape=())


def _against_probabilities(
    x: Node, target: Node, scales: Node | None, axis: int, reduction: str, label_smoothing: float
) -> Node:
    if target.spec.shape != x.spec.shape:
        if len(x.spec.shape) > 1 and target.spec.shape[:1] != x.spec.shape[:1]:
            raise ValueError(
                f"Expected input batch_size ({x.spec.shape[0]}) to match target batch_size ({target.spec.shape[0]})."
            )
        advice = "; class numbers are whole: target.long()" if len(target.spec.shape) < len(x.spec.shape) else ""
        raise ShapeError(
            f"cross_entropy: expected a target of probabilities with the shape of the input {list(x.spec.shape)}, got "
            f"{list(target.spec.shape)} of {target.spec.dtype}{advice}"
        )
    goal = arithmetic.cast(target, x.spec.dtype)
    n_classes = x.spec.shape[axis]
    if label_smoothing:
        goal = pointwise.mul(goal, arithmetic.like(goal, 1 - label_smoothing))
        goal = pointwise.add(goal, arithmetic.like(goal, label_smoothing / n_classes))
    terms = pointwise.mul(reduce.log_softmax(x, axis), goal)
    if scales is not None:
        terms = pointwise.mul(terms, scales)
    loss = pointwise.neg(reduce.sum(terms, axis))
    if reduction != "mean":
        return reduced(loss, reduction)
    n_rows = reduce.count(loss, tuple(range(len(loss.spec.shape))))
    total = reduce.sum(loss)
    return pointwise.div(total, arithmetic.like(total, n_rows))
