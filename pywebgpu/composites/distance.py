"""How far apart numbers, vectors and pairs are: regression losses, similarities, ranking losses."""

import warnings

from pywebgpu.composites import arithmetic, normalize, precision, reduce
from pywebgpu.composites.composite_op import composite
from pywebgpu.composites.loss import reduced
from pywebgpu.errors import ShapeError
from pywebgpu.ir.graph import Node
from pywebgpu.ops import clamping, pointwise
from pywebgpu.support.shapes import broadcast


def mse_loss(x: Node, target: Node, weight: Node | None = None, *, reduction: str = "mean") -> Node:
    """(x - target)^2. Shapes: broadcast, with a warning where they differ."""
    _warn_of_sizes("mse_loss", x, target)
    if weight is None:
        return squared_error(x, target, reduction)
    difference = arithmetic.sub(x, target)
    return _weighted(pointwise.mul(difference, difference), weight, reduction)


@composite
def squared_error(x: Node, target: Node, reduction: str) -> Node:
    """mse_loss without weights."""
    difference = arithmetic.sub(x, target)
    return reduced(pointwise.mul(difference, difference), reduction)


def l1_loss(x: Node, target: Node, weight: Node | None = None, *, reduction: str = "mean") -> Node:
    """|x - target|. Shapes: broadcast, with a warning where they differ."""
    _warn_of_sizes("l1_loss", x, target)
    difference = arithmetic.sub(x, target)
    size = pointwise.abs_(difference) if difference.spec.dtype.part is None else arithmetic.parts().modulus(difference)
    return _weighted(size, weight, reduction)


def smooth_l1_loss(x: Node, target: Node, *, reduction: str = "mean", beta: float = 1.0) -> Node:
    """d^2 / (2 beta) where d = |x - target| < beta, else d - beta / 2."""
    if beta < 0:
        raise ShapeError(f"smooth_l1_loss does not support negative values for beta, got {beta}")
    if beta == 0:
        return l1_loss(x, target, reduction=reduction)
    _warn_of_sizes("smooth_l1_loss", x, target)
    return smooth_error(x, target, reduction, beta)


@composite
def smooth_error(x: Node, target: Node, reduction: str, beta: float) -> Node:
    """smooth_l1_loss for a beta above 0."""
    loss = huber(arithmetic.sub(x, target), beta)
    return reduced(pointwise.div(loss, arithmetic.like(loss, beta)), reduction)


def huber_loss(
    x: Node, target: Node, weight: Node | None = None, *, reduction: str = "mean", delta: float = 1.0
) -> Node:
    """d^2 / 2 where d = |x - target| <= delta, else delta (d - delta / 2)."""
    if not delta > 0:
        raise ShapeError(f"huber_loss does not support non-positive values for delta, got {delta}")
    _warn_of_sizes("huber_loss", x, target)
    return _weighted(huber(arithmetic.sub(x, target), delta), weight, reduction)


def huber(difference: Node, delta: float) -> Node:
    size = pointwise.abs_(difference)
    far = pointwise.ge(size, arithmetic.like(size, delta))
    small = pointwise.where(far, arithmetic.like(difference, 0), difference)
    square = pointwise.mul(pointwise.mul(small, small), arithmetic.like(difference, 0.5))
    line = pointwise.mul(arithmetic.like(size, delta), pointwise.sub(size, arithmetic.like(size, 0.5 * delta)))
    return pointwise.where(far, line, square)


def soft_margin_loss(x: Node, target: Node, *, reduction: str = "mean") -> Node:
    """log(1 + exp(-target x))"""
    product = arithmetic.mul(target, x)
    if product.spec.shape != x.spec.shape:
        raise ShapeError(f"soft_margin_loss: target {target.spec.shape} does not broadcast to input {x.spec.shape}")
    precision.require_floating("soft_margin_loss", product)
    losses = pointwise.log1p(pointwise.exp(pointwise.neg(precision.upcast(product))))
    return arithmetic.cast(reduced(losses, reduction), product.spec.dtype)


# Vectors


def cosine_similarity(a: Node, b: Node, dim: int = 1, eps: float = 1e-8) -> Node:
    """a . b / (|a| |b|) along `dim`, each norm held at `eps` or more. Shapes: broadcast, then without `dim`."""
    a, b = arithmetic.together(a, b)
    precision.require_floating("cosine_similarity", a)
    return reduce.sum(pointwise.mul(_directed(a, dim, eps), _directed(b, dim, eps)), dim)


def pairwise_distance(a: Node, b: Node, p: float = 2.0, eps: float = 1e-6, *, keepdim: bool = False) -> Node:
    """The p-norm of a - b + eps along the last axis."""
    return reduce.norm(_moved(arithmetic.sub(a, b), eps), p, -1, keepdim)


def cosine_embedding_loss(a: Node, b: Node, target: Node, *, margin: float = 0.0, reduction: str = "mean") -> Node:
    """1 - cos(a, b) where target is 1, max(0, cos(a, b) - margin) where it is -1. Shapes: a, b (n, d), target (n,)."""
    if len(target.spec.shape) not in (0, 1) or a.spec.shape != b.spec.shape:
        raise ShapeError(
            f"cosine_embedding_loss: needs (n, d), (n, d) and (n,), got {a.spec.shape}, {b.spec.shape} and "
            f"{target.spec.shape}"
        )
    kept = len(target.spec.shape)
    if len(a.spec.shape) != kept + 1:
        raise ShapeError(
            f"{kept}D target tensor expects {kept + 1}D input tensors, but found inputs with sizes "
            f"{list(a.spec.shape)} and {list(b.spec.shape)}."
        )
    rows = -1
    dot = reduce.sum(arithmetic.mul(a, b), rows)
    squares = [_moved(reduce.sum(pointwise.mul(v, v), rows), 1e-12) for v in (a, b)]
    cosine = arithmetic.div(dot, pointwise.sqrt(arithmetic.mul(*squares)))
    alike = pointwise.sub(arithmetic.like(cosine, 1), cosine)
    excess = clamping.relu(pointwise.sub(cosine, arithmetic.like(cosine, margin)))
    none = arithmetic.like(cosine, 0)
    goal = arithmetic.broadcast_to(target, cosine.spec.shape)
    is_one, is_minus = (arithmetic.binary(pointwise.eq, goal, v) for v in (1, -1))
    return reduced(
        pointwise.add(pointwise.where(is_one, alike, none), pointwise.where(is_minus, excess, none)), reduction
    )


def margin_ranking_loss(a: Node, b: Node, target: Node, *, margin: float = 0.0, reduction: str = "mean") -> Node:
    """max(0, -target (a - b) + margin). Raises ShapeError when the ranks differ."""
    if not len(a.spec.shape) == len(b.spec.shape) == len(target.spec.shape):
        raise ShapeError(
            f"margin_ranking_loss : All input tensors should have same dimension but got sizes: input1: "
            f"{a.spec.shape}, input2: {b.spec.shape}, target: {target.spec.shape} "
        )
    product = pointwise.neg(arithmetic.mul(target, arithmetic.sub(a, b)))
    return reduced(_held(product, margin), reduction)


def hinge_embedding_loss(x: Node, target: Node, *, margin: float = 1.0, reduction: str = "mean") -> Node:
    """x where target is 1, max(0, margin - x) where it is -1."""
    precision.refuse_bool("hinge_embedding_loss", x)
    shape = broadcast(x.spec.shape, target.spec.shape)
    x, goal = arithmetic.broadcast_to(x, shape), arithmetic.broadcast_to(target, shape)
    none = arithmetic.like(x, 0)
    shortfall = normalize.at_least(pointwise.sub(arithmetic.like(x, margin), x), 0)
    is_one, is_minus = (arithmetic.binary(pointwise.eq, goal, v) for v in (1, -1))
    near, far = pointwise.where(is_minus, none, x), pointwise.where(is_one, none, shortfall)
    return reduced(pointwise.add(near, far), reduction)


def triplet_margin_loss(
    anchor: Node,
    positive: Node,
    negative: Node,
    *,
    margin: float = 1.0,
    p: float = 2.0,
    eps: float = 1e-6,
    swap: bool = False,
    reduction: str = "mean",
) -> Node:
    """max(0, |anchor - positive| - |anchor - negative| + margin); `swap` takes the nearer of both for the negative."""
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    ranks = [len(sample.spec.shape) for sample in (anchor, positive, negative)]
    if len({*ranks}) > 1:
        raise ShapeError(f"triplet_margin_loss: anchor, positive and negative have different ranks: {ranks}")
    near = pairwise_distance(anchor, positive, p, eps)
    far = pairwise_distance(anchor, negative, p, eps)
    if swap:
        far = pointwise.minimum(far, pairwise_distance(positive, negative, p, eps))
    return reduced(_held(pointwise.sub(near, far), margin), reduction)


# Parts


def _directed(x: Node, dim: int, eps: float) -> Node:
    """x over its norm along `dim`, which counts as `eps` at least; no gradient flows where it does."""
    size = reduce.norm(x, 2, dim, keepdim=True)
    bound = arithmetic.like(size, eps)
    return arithmetic.div(x, pointwise.where(pointwise.lt(size, bound), bound, size))


def _moved(x: Node, distance: float) -> Node:
    """x + distance; whole numbers become floats."""
    x = arithmetic.cast(x, arithmetic.floating(x))
    return pointwise.add(x, arithmetic.like(x, distance))


def _held(x: Node, margin: float) -> Node:
    """max(0, x + margin), with the gradient of torch's clamp_min: 1 at 0."""
    over = _moved(x, margin)
    zero = arithmetic.like(over, 0)
    return pointwise.where(pointwise.lt(over, zero), zero, over)


def _warn_of_sizes(name: str, x: Node, target: Node) -> None:
    if x.spec.shape != target.spec.shape:
        warnings.warn(
            f"{name}: using a target size ({list(target.spec.shape)}) that is different to the input size "
            f"({list(x.spec.shape)}). This will likely lead to incorrect results due to broadcasting. Please ensure "
            f"they have the same size.",
            stacklevel=5,
        )


def _weighted(loss: Node, weight: Node | None, reduction: str) -> Node:
    if weight is None:
        return reduced(loss, reduction)
    if weight.spec.shape != loss.spec.shape:
        raise ValueError(f"Inputs and weights must have the same size, got {loss.spec.shape} and {weight.spec.shape}")
    loss = arithmetic.mul(loss, weight)
    if reduction == "mean":
        return arithmetic.div(reduce.sum(loss), reduce.sum(weight))
    return reduced(loss, reduction)
