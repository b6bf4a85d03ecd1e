"""Losses that few programs have: of probabilities, of distributions, and with margins between classes.

Apart from loss.py because this is imported when one of them is called. `reduction` is torch's: "none", "mean" or "sum".
"""

from math import log, pi, prod

from pywebgpu import dtypes
from pywebgpu.composites import arithmetic, bounds, elementwise, loss, precision, reduce
from pywebgpu.dtypes import DType, Kind
from pywebgpu.errors import REFUSALS, DTypeError, ShapeError
from pywebgpu.ir.graph import Node, Spec
from pywebgpu.ops import clamping, movement, pointwise


def multi_margin_loss(
    x: Node, target: Node, p: int = 1, margin: float = 1.0, weight: Node | None = None, *, reduction: str = "mean"
) -> Node:
    """sum over the other classes of max(0, margin - x[target] + x[c])^p, over their number. Shapes: as nll_loss."""
    precision.require_floating("multi_margin_loss", x)
    if p not in (1, 2):
        raise ValueError("only p == 1 and p == 2 supported")
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f"{reduction} is not a valid value for reduction")
    if weight is not None and len(weight.spec.shape) != 1:
        raise ValueError("weight must be one-dimensional")
    samples = target.spec.shape
    if len(x.spec.shape) < 2:  # One sample.
        x = movement.reshape(x, shape=(prod(x.spec.shape),))
        if prod(samples) == 1:
            target = movement.reshape(target, shape=())
    axis = loss.class_axis(x)
    if axis and target.spec.shape != x.spec.shape[:1]:
        raise ShapeError(
            "multi_margin_loss: target tensor should be 1-D with size equal to the batch. Expected target size "
            f"{list(x.spec.shape[:1])} but got {list(target.spec.shape)}"
        )
    classes, _ = loss.class_numbers(
        loss.class_indices(x, target, axis), x.spec.shape[axis], ignore_index=-1 - x.spec.shape[axis]
    )
    own = arithmetic.broadcast_to(reduce.picked(x, classes, axis), x.spec.shape)
    over = clamping.relu(pointwise.add(pointwise.sub(x, own), arithmetic.like(x, margin)))
    if p == 2:
        over = pointwise.mul(over, over)
    if weight is not None:
        loss.check_weight(x, axis, weight)
        factor = reduce.picked(loss.along(weight, x, axis), classes, axis)
        over = pointwise.mul(over, arithmetic.broadcast_to(factor, x.spec.shape))
    here = pointwise.iota(spec=Spec(x.spec.shape, dtypes.int64), axis=axis)
    mine = pointwise.eq(here, arithmetic.broadcast_to(classes, x.spec.shape))
    out = loss.row_sum(pointwise.where(mine, arithmetic.like(x, 0), over), axis)
    out = reduce.drop(pointwise.div(out, arithmetic.like(out, x.spec.shape[axis])), (axis,), keepdim=False)
    return loss.reduced(movement.reshape(out, shape=samples) if samples == (1,) else out, reduction)


# Probabilities


def binary_cross_entropy(x: Node, target: Node, weight: Node | None = None, *, reduction: str = "mean") -> Node:
    """-(target log(x) + (1 - target) log(1 - x)), each logarithm held at -100 or more.

    Shapes: x and target equal; weight broadcasts to them.
    Raises: ValueError when the shapes differ; DTypeError when the dtypes do.
    Against torch: the same, first gradients at 0 and 1 included.
    """
    _check_same_shape("binary_cross_entropy", x, target)
    precision.require_floating("binary_cross_entropy", x, target)
    dtype = precision.require_same("binary_cross_entropy", x, target)
    wide, goal = _probabilities("input", precision.upcast(x)), _probabilities("target", precision.upcast(target))
    return _weighted(elementwise.logarithms().cross_entropy(wide, goal), weight, reduction, dtype)


def _probabilities(name: str, x: Node) -> Node:
    """x, held to lie in [0, 1]."""
    return bounds.probabilities(x, f"all elements of {name} should be between 0 and 1")


def binary_cross_entropy_with_logits(
    x: Node,
    target: Node,
    weight: Node | None = None,
    *,
    pos_weight: Node | None = None,
    reduction: str = "mean",
) -> Node:
    """binary_cross_entropy of sigmoid(x), computed without the sigmoid so that it never overflows.

    Shapes: x and target equal; weight and pos_weight broadcast to them.
    Raises: ValueError when the shapes differ.
    """
    if x.spec.shape != target.spec.shape:
        raise ValueError(
            f"Target size ({list(target.spec.shape)}) must be the same as input size ({list(x.spec.shape)})"
        )
    precision.require_floating("binary_cross_entropy_with_logits", x)
    dtype = arithmetic.result_type(x, target)
    if target.spec.dtype.kind is not Kind.FLOAT:
        raise DTypeError(
            f"result type {dtype.name.title()} can't be cast to the desired output type {target.spec.dtype.name}"
        )
    wide = precision.upcast(x)
    goal = arithmetic.cast(target, wide.spec.dtype)
    unit = arithmetic.like(wide, 1)
    low, tail = elementwise.sigmoid_parts(wide)
    below = pointwise.sub(tail, low)  # -log(sigmoid(x))
    if pos_weight is not None:
        scale = arithmetic.broadcast_to(precision.upcast(pos_weight), wide.spec.shape)
        below = pointwise.mul(below, pointwise.add(pointwise.mul(pointwise.sub(scale, unit), goal), unit))
    out = pointwise.add(pointwise.mul(pointwise.sub(unit, goal), wide), below)
    return _weighted(out, weight, reduction, dtype)


def multilabel_soft_margin_loss(x: Node, target: Node, weight: Node | None = None, *, reduction: str = "mean") -> Node:
    """The mean over classes (the last axis) of binary_cross_entropy_with_logits; targets may be whole numbers."""
    goal = target if target.spec.dtype.kind is Kind.FLOAT else arithmetic.cast(target, x.spec.dtype)
    out = binary_cross_entropy_with_logits(x, goal, weight, reduction="none")
    return loss.reduced(reduce.mean(out, -1), reduction)


def kl_div(x: Node, target: Node, *, reduction: str = "mean", log_target: bool = False) -> Node:
    """target * (log(target) - x) for logarithms x; `log_target` says that the target is one, too.

    Shapes: x and target broadcast. reduction "batchmean" divides the sum by the length of the first axis of x.
    """
    precision.require_floating("kl_div", x, target)
    if log_target:
        out = arithmetic.mul(pointwise.exp(target), arithmetic.sub(target, x))
    else:
        none = pointwise.eq(target, arithmetic.like(target, 0))
        logs = pointwise.log(pointwise.where(none, arithmetic.like(target, 1), target))
        out = arithmetic.sub(pointwise.mul(target, logs), arithmetic.mul(target, x))
    if reduction == "batchmean":
        return arithmetic.div(reduce.sum(out), x.spec.shape[0] if x.spec.shape else 1)
    return loss.reduced(out, reduction)


def poisson_nll_loss(
    x: Node, target: Node, *, log_input: bool = True, full: bool = False, eps: float = 1e-8, reduction: str = "mean"
) -> Node:
    """exp(x) - target x, or x - target log(x + eps) without `log_input`; `full` adds Stirling's term."""
    if log_input:
        out = arithmetic.sub(arithmetic.unary_float(pointwise.exp, x), arithmetic.mul(target, x))
    else:
        wide = arithmetic.cast(x, arithmetic.floating(x))
        logs = pointwise.log(pointwise.add(wide, arithmetic.like(wide, eps)))
        out = arithmetic.sub(x, arithmetic.mul(target, logs))
    if full:
        precision.refuse_bool("poisson_nll_loss", target)
        goal = arithmetic.cast(target, out.spec.dtype)
        unit = arithmetic.like(goal, 1)
        large = pointwise.gt(goal, unit)
        safe = pointwise.where(large, goal, unit)
        logs = pointwise.log(pointwise.mul(safe, arithmetic.like(goal, 2 * pi)))
        term = pointwise.add(
            pointwise.sub(pointwise.mul(safe, pointwise.log(safe)), safe),
            pointwise.mul(logs, arithmetic.like(goal, 0.5)),
        )
        out = arithmetic.add(out, pointwise.where(large, term, arithmetic.like(goal, 0)))
    return loss.reduced(out, reduction)


def gaussian_nll_loss(
    x: Node, target: Node, variance: Node, *, full: bool = False, eps: float = 1e-6, reduction: str = "mean"
) -> Node:
    """(log(variance) + (x - target)^2 / variance) / 2, where the variance counts as `eps` at least and as constant."""
    precision.require_floating("gaussian_nll_loss", variance)
    variance = bounds.not_negative(variance, REFUSALS[6])
    bound = arithmetic.like(variance, eps)
    floor = reduce.stop_gradient(variance)
    held = pointwise.add(variance, pointwise.sub(pointwise.maximum(floor, bound), floor))
    difference = arithmetic.sub(x, target)
    out = arithmetic.mul(
        arithmetic.add(pointwise.log(held), arithmetic.div(arithmetic.mul(difference, difference), held)), 0.5
    )
    if full:
        out = pointwise.add(out, arithmetic.like(out, 0.5 * log(2 * pi)))
    return loss.reduced(out, reduction)


def _check_same_shape(name: str, x: Node, target: Node) -> None:
    if x.spec.shape != target.spec.shape:
        raise ValueError(
            f"{name}: using a target size ({list(target.spec.shape)}) that is different to the input size "
            f"({list(x.spec.shape)}) is deprecated. Please ensure they have the same size."
        )


def _weighted(out: Node, weight: Node | None, reduction: str, dtype: DType) -> Node:
    if weight is not None:
        out = pointwise.mul(out, arithmetic.broadcast_to(precision.upcast(weight), out.spec.shape))
    return arithmetic.cast(loss.reduced(out, reduction), dtype)
