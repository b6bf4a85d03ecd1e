"""Losses and similarities. `size_average` and `reduce` are torch's old names for `reduction`."""

from importlib import import_module as _import_module

from pywebgpu.composites import loss as _loss
from pywebgpu.composites import other_losses as _losses
from pywebgpu.tensor import dispatch as _dispatch
from pywebgpu.tensor import tensor as _tensor
from pywebgpu.tensor.apply import apply as _apply

_T = _tensor.Tensor
_Flag = bool | None


def _reduction(size_average: _Flag, reduce: _Flag, reduction: str) -> str:
    if size_average is None and reduce is None:
        return reduction
    name: str = _import_module("pywebgpu.nn._reduction").legacy_get_string(size_average, reduce)  # Few programs ask.
    return name


def cross_entropy(
    input: _T,
    target: _T,
    weight: _T | None = None,
    size_average: _Flag = None,
    ignore_index: int = -100,
    reduce: _Flag = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> _T:
    """-log(softmax(input))[target]. Shapes: input (n, c, ...), target (n, ...) or, as probabilities, (n, c, ...)."""
    reduction = _reduction(size_average, reduce, reduction)
    return _apply(
        _loss.cross_entropy,
        input,
        target,
        weight,
        ignore_index=ignore_index,
        reduction=reduction,
        label_smoothing=label_smoothing,
    )


def nll_loss(
    input: _T,
    target: _T,
    weight: _T | None = None,
    size_average: _Flag = None,
    ignore_index: int = -100,
    reduce: _Flag = None,
    reduction: str = "mean",
) -> _T:
    """-input[target] for logarithms of probabilities. Shapes: input (n, c, ...), target (n, ...)."""
    reduction = _reduction(size_average, reduce, reduction)
    return _apply(_loss.nll_loss, input, target, weight, ignore_index=ignore_index, reduction=reduction)


def binary_cross_entropy(
    input: _T,
    target: _T,
    weight: _T | None = None,
    size_average: _Flag = None,
    reduce: _Flag = None,
    reduction: str = "mean",
) -> _T:
    """-(target log(x) + (1 - target) log(1 - x)) for probabilities x."""
    reduction = _reduction(size_average, reduce, reduction)
    return _apply(_losses.binary_cross_entropy, input, target, weight, reduction=reduction)


def binary_cross_entropy_with_logits(
    input: _T,
    target: _T,
    weight: _T | None = None,
    size_average: _Flag = None,
    reduce: _Flag = None,
    reduction: str = "mean",
    pos_weight: _T | None = None,
) -> _T:
    """binary_cross_entropy of sigmoid(x), without overflow."""
    reduction = _reduction(size_average, reduce, reduction)
    return _apply(
        _losses.binary_cross_entropy_with_logits,
        input,
        target,
        weight,
        pos_weight=pos_weight,
        reduction=reduction,
    )


globals().update(_dispatch.all_public(globals(), __name__))
