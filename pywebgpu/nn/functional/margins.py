"""Losses of numbers, pairs, margins and distributions: apart from those of classes, by which language models train."""

from collections.abc import Callable as _Callable
from importlib import import_module as _import_module

from pywebgpu.composites import distance as _distance
from pywebgpu.composites import other_losses as _losses
from pywebgpu.nn.functional import loss as _base
from pywebgpu.tensor import create as _create
from pywebgpu.tensor import dispatch as _dispatch
from pywebgpu.tensor import tensor as _tensor
from pywebgpu.tensor.apply import apply as _apply
from pywebgpu.tensor.methods import also_named as _also_named

_T = _tensor.Tensor
_Flag = bool | None


def kl_div(
    input: _T,
    target: _T,
    size_average: _Flag = None,
    reduce: _Flag = None,
    reduction: str = "mean",
    log_target: bool = False,
) -> _T:
    """target (log(target) - x) for logarithms x; reduction "batchmean" is the divergence itself."""
    reduction = _base._reduction(size_average, reduce, reduction)
    return _apply(_losses.kl_div, input, target, reduction=reduction, log_target=log_target)


def poisson_nll_loss(
    input: _T,
    target: _T,
    log_input: bool = True,
    full: bool = False,
    size_average: _Flag = None,
    eps: float = 1e-8,
    reduce: _Flag = None,
    reduction: str = "mean",
) -> _T:
    """exp(x) - target x, or x - target log(x + eps)."""
    reduction = _base._reduction(size_average, reduce, reduction)
    return _apply(_losses.poisson_nll_loss, input, target, log_input=log_input, full=full, eps=eps, reduction=reduction)


def gaussian_nll_loss(
    input: _T, target: _T, var: _T | float, full: bool = False, eps: float = 1e-6, reduction: str = "mean"
) -> _T:
    """(log(var) + (x - target)^2 / var) / 2. Shapes: var as input, or without its last axis, or with one size 1."""
    if isinstance(var, float) and var < 0:
        raise ValueError("var has negative entry/entries")
    spread = var if isinstance(var, _T) else _create.full_like(input, var)
    if spread.shape != input.shape:
        if input.shape[:-1] == spread.shape:
            spread = spread.unsqueeze(-1)
        elif input.ndim != spread.ndim or sum(b for a, b in zip(input.shape, spread.shape, strict=True) if a != b) != 1:
            raise ValueError(f"var is of incorrect size: {spread.shape} for input {input.shape}")
    return _apply(_losses.gaussian_nll_loss, input, target, spread, full=full, eps=eps, reduction=reduction)


def multi_margin_loss(
    input: _T,
    target: _T,
    p: int = 1,
    margin: float = 1.0,
    weight: _T | None = None,
    size_average: _Flag = None,
    reduce: _Flag = None,
    reduction: str = "mean",
) -> _T:
    """The mean over the other classes of max(0, margin - x[target] + x[c])^p."""
    reduction = _base._reduction(size_average, reduce, reduction)
    return _apply(_losses.multi_margin_loss, input, target, p, margin, weight, reduction=reduction)


def multilabel_soft_margin_loss(
    input: _T,
    target: _T,
    weight: _T | None = None,
    size_average: _Flag = None,
    reduce: _Flag = None,
    reduction: str = "mean",
) -> _T:
    """The mean over classes of binary_cross_entropy_with_logits."""
    reduction = _base._reduction(size_average, reduce, reduction)
    return _apply(_losses.multilabel_soft_margin_loss, input, target, weight, reduction=reduction)


# Numbers


def smooth_l1_loss(
    input: _T,
    target: _T,
    size_average: _Flag = None,
    reduce: _Flag = None,
    reduction: str = "mean",
    beta: float = 1.0,
) -> _T:
    """A square near 0, a line further away, joined at beta."""
    reduction = _base._reduction(size_average, reduce, reduction)
    return _apply(_distance.smooth_l1_loss, input, target, reduction=reduction, beta=beta)


def huber_loss(input: _T, target: _T, reduction: str = "mean", delta: float = 1.0, weight: _T | None = None) -> _T:
    """delta times smooth_l1_loss with beta = delta."""
    return _apply(_distance.huber_loss, input, target, weight, reduction=reduction, delta=delta)


def soft_margin_loss(
    input: _T, target: _T, size_average: _Flag = None, reduce: _Flag = None, reduction: str = "mean"
) -> _T:
    """log(1 + exp(-target x)) for targets 1 and -1."""
    reduction = _base._reduction(size_average, reduce, reduction)
    return _apply(_distance.soft_margin_loss, input, target, reduction=reduction)


# Vectors and pairs


def pdist(input: _T, p: float = 2.0) -> _T:
    """The p-norm of every row minus every later row, as a vector."""
    distances: _T = _import_module("pywebgpu.tensor.numeric").pdist(input, p)
    return distances


@_also_named(x2="x2")
def cosine_similarity(x1: _T, x2: _T, dim: int = 1, eps: float = 1e-8) -> _T:
    """x1 . x2 / (|x1| |x2|) along `dim`."""
    return _apply(_distance.cosine_similarity, x1, x2, dim, eps)


def pairwise_distance(x1: _T, x2: _T, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> _T:
    """The p-norm of x1 - x2 along the last axis."""
    return _apply(_distance.pairwise_distance, x1, x2, p, eps, keepdim=keepdim)


def cosine_embedding_loss(
    input1: _T,
    input2: _T,
    target: _T,
    margin: float = 0,
    size_average: _Flag = None,
    reduce: _Flag = None,
    reduction: str = "mean",
) -> _T:
    """1 - cos where target is 1, max(0, cos - margin) where it is -1."""
    reduction = _base._reduction(size_average, reduce, reduction)
    return _apply(_distance.cosine_embedding_loss, input1, input2, target, margin=margin, reduction=reduction)


def margin_ranking_loss(
    input1: _T,
    input2: _T,
    target: _T,
    margin: float = 0,
    size_average: _Flag = None,
    reduce: _Flag = None,
    reduction: str = "mean",
) -> _T:
    """max(0, -target (x1 - x2) + margin)"""
    reduction = _base._reduction(size_average, reduce, reduction)
    return _apply(_distance.margin_ranking_loss, input1, input2, target, margin=margin, reduction=reduction)


def hinge_embedding_loss(
    input: _T,
    target: _T,
    margin: float = 1.0,
    size_average: _Flag = None,
    reduce: _Flag = None,
    reduction: str = "mean",
) -> _T:
    """x where target is 1, max(0, margin - x) where it is -1."""
    reduction = _base._reduction(size_average, reduce, reduction)
    return _apply(_distance.hinge_embedding_loss, input, target, margin=margin, reduction=reduction)


def triplet_margin_loss(
    anchor: _T,
    positive: _T,
    negative: _T,
    margin: float = 1.0,
    p: float = 2,
    eps: float = 1e-6,
    swap: bool = False,
    size_average: _Flag = None,
    reduce: _Flag = None,
    reduction: str = "mean",
) -> _T:
    """max(0, |anchor - positive| - |anchor - negative| + margin)"""
    reduction = _base._reduction(size_average, reduce, reduction)
    return _apply(
        _distance.triplet_margin_loss,
        anchor,
        positive,
        negative,
        margin=margin,
        p=p,
        eps=eps,
        swap=swap,
        reduction=reduction,
    )


def triplet_margin_with_distance_loss(
    anchor: _T,
    positive: _T,
    negative: _T,
    *,
    distance_function: _Callable[[_T, _T], _T] | None = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
) -> _T:
    """max(0, d(anchor, positive) - d(anchor, negative) + margin), d being the distance between rows where not given."""
    if reduction not in ("mean", "sum", "none"):
        raise ValueError(f"{reduction} is not a valid value for reduction")
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    dims = [sample.dim() for sample in (anchor, positive, negative)]
    if len(set(dims)) > 1:
        raise RuntimeError(
            "The anchor, positive, and negative tensors are expected to have the same number of dimensions, but got: "
            "anchor {}D, positive {}D, and negative {}D inputs".format(*dims)
        )
    distance = distance_function or pairwise_distance
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = far.minimum(distance(positive, negative))
    loss: _T = (near - far + margin).clamp(min=0)
    return loss if reduction == "none" else loss.sum() if reduction == "sum" else loss.mean()


def mse_loss(
    input: _T,
    target: _T,
    size_average: _Flag = None,
    reduce: _Flag = None,
    reduction: str = "mean",
    weight: _T | None = None,
) -> _T:
    """(x - target)^2"""
    reduction = _base._reduction(size_average, reduce, reduction)
    return _apply(_distance.mse_loss, input, target, weight, reduction=reduction)


def l1_loss(
    input: _T,
    target: _T,
    size_average: _Flag = None,
    reduce: _Flag = None,
    reduction: str = "mean",
    weight: _T | None = None,
) -> _T:
    """|x - target|"""
    reduction = _base._reduction(size_average, reduce, reduction)
    return _apply(_distance.l1_loss, input, target, weight, reduction=reduction)


globals().update(_dispatch.all_public(globals(), __name__))
