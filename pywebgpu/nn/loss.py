"""Losses and similarities as modules. `size_average` and `reduce` are torch's old names for `reduction`."""

from collections.abc import Callable, Sequence
from typing import Any

from pywebgpu.nn import functional
from pywebgpu.nn.functional.loss import _reduction
from pywebgpu.nn.module import Module
from pywebgpu.tensor.tensor import Tensor


class _Loss(Module):
    """A loss of an input and a target, by the name of its function."""

    function: str

    def __init__(self, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean") -> None:
        super().__init__()
        self.reduction = _reduction(size_average, reduce, reduction)

    def _options(self) -> dict[str, Any]:
        return {}

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        out: Tensor = getattr(functional, self.function)(input, target, reduction=self.reduction, **self._options())
        return out


class _WeightedLoss(_Loss):
    """A loss whose elements or classes have weights."""

    weight: Tensor | None

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.register_buffer("weight", weight)

    def _options(self) -> dict[str, Any]:
        return {"weight": self.weight}


class MSELoss(_Loss):
    """(x - target)^2"""

    function = "mse_loss"


class L1Loss(_Loss):
    """|x - target|"""

    function = "l1_loss"


class SoftMarginLoss(_Loss):
    """log(1 + exp(-target x)) for targets 1 and -1."""

    function = "soft_margin_loss"


class MultiLabelMarginLoss(_Loss):
    """The mean over pairs of a target's class and another of max(0, 1 - (x_own - x_other))."""

    function = "multilabel_margin_loss"


class SmoothL1Loss(_Loss):
    """A square near 0, a line further away, joined at beta."""

    function = "smooth_l1_loss"

    def __init__(
        self, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean", beta: float = 1.0
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.beta = beta

    def _options(self) -> dict[str, Any]:
        return {"beta": self.beta}


class HuberLoss(_Loss):
    """delta times SmoothL1Loss with beta = delta."""

    function = "huber_loss"

    def __init__(self, reduction: str = "mean", delta: float = 1.0) -> None:
        if not isinstance(delta, float | int):
            raise TypeError(f"delta must be a float or int, got: {type(delta)}")
        super().__init__(reduction=reduction)
        self.delta = delta

    def _options(self) -> dict[str, Any]:
        return {"delta": self.delta}


class KLDivLoss(_Loss):
    """target (log(target) - x) for logarithms x; reduction "batchmean" is the divergence itself."""

    function = "kl_div"

    def __init__(
        self,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
        log_target: bool = False,
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.log_target = log_target

    def _options(self) -> dict[str, Any]:
        return {"log_target": self.log_target}


class PoissonNLLLoss(_Loss):
    """exp(x) - target x, or x - target log(x + eps)."""

    function = "poisson_nll_loss"

    def __init__(
        self,
        log_input: bool = True,
        full: bool = False,
        size_average: bool | None = None,
        eps: float = 1e-8,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.log_input, self.full, self.eps = log_input, full, eps

    def _options(self) -> dict[str, Any]:
        return {"log_input": self.log_input, "full": self.full, "eps": self.eps}


class HingeEmbeddingLoss(_Loss):
    """x where target is 1, max(0, margin - x) where it is -1."""

    function = "hinge_embedding_loss"

    def __init__(
        self, margin: float = 1.0, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean"
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.margin = margin

    def _options(self) -> dict[str, Any]:
        return {"margin": self.margin}


class CrossEntropyLoss(_WeightedLoss):
    """-log(softmax(x))[target]. Shapes: x (n, c, ...), target (n, ...) or, as probabilities, (n, c, ...)."""

    function = "cross_entropy"

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        ignore_index: int = -100,
        reduce: bool | None = None,
        reduction: str = "mean",
        label_smoothing: float = 0.0,
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        self.ignore_index, self.label_smoothing = ignore_index, label_smoothing

    def _options(self) -> dict[str, Any]:
        return {"weight": self.weight, "ignore_index": self.ignore_index, "label_smoothing": self.label_smoothing}


class NLLLoss(_WeightedLoss):
    """-x[target] for logarithms of probabilities x. Shapes: x (n, c, ...), target (n, ...)."""

    function = "nll_loss"

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        ignore_index: int = -100,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        self.ignore_index = ignore_index

    def _options(self) -> dict[str, Any]:
        return {"weight": self.weight, "ignore_index": self.ignore_index}


class BCELoss(_WeightedLoss):
    """-(target log(x) + (1 - target) log(1 - x)) for probabilities x."""

    function = "binary_cross_entropy"


class BCEWithLogitsLoss(_WeightedLoss):
    """BCELoss of sigmoid(x), without overflow."""

    function = "binary_cross_entropy_with_logits"
    pos_weight: Tensor | None

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
        pos_weight: Tensor | None = None,
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        self.register_buffer("pos_weight", pos_weight)

    def _options(self) -> dict[str, Any]:
        return {"weight": self.weight, "pos_weight": self.pos_weight}


class MultiLabelSoftMarginLoss(_WeightedLoss):
    """The mean over classes of BCEWithLogitsLoss."""

    function = "multilabel_soft_margin_loss"


class MultiMarginLoss(_WeightedLoss):
    """The mean over the other classes of max(0, margin - x[target] + x[c])^p."""

    function = "multi_margin_loss"

    def __init__(
        self,
        p: int = 1,
        margin: float = 1.0,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        self.p, self.margin = p, margin

    def _options(self) -> dict[str, Any]:
        return {"p": self.p, "margin": self.margin, "weight": self.weight}


class GaussianNLLLoss(_Loss):
    """(log(var) + (x - target)^2 / var) / 2"""

    def __init__(self, *, full: bool = False, eps: float = 1e-6, reduction: str = "mean") -> None:
        super().__init__(reduction=reduction)
        self.full, self.eps = full, eps

    def forward(self, input: Tensor, target: Tensor, var: Tensor | float) -> Tensor:  # type: ignore[override]  # as torch
        return functional.gaussian_nll_loss(input, target, var, self.full, self.eps, self.reduction)


# Pairs


class _PairLoss(_Loss):
    """A loss of two inputs and a target, with a margin."""

    def __init__(
        self, margin: float = 0.0, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean"
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.margin = margin

    def forward(self, input1: Tensor, input2: Tensor, target: Tensor) -> Tensor:  # type: ignore[override]  # as torch
        function = getattr(functional, self.function)
        out: Tensor = function(input1, input2, target, margin=self.margin, reduction=self.reduction)
        return out


class CosineEmbeddingLoss(_PairLoss):
    """1 - cos where target is 1, max(0, cos - margin) where it is -1."""

    function = "cosine_embedding_loss"


class MarginRankingLoss(_PairLoss):
    """max(0, -target (x1 - x2) + margin)"""

    function = "margin_ranking_loss"


class TripletMarginLoss(_Loss):
    """max(0, |anchor - positive| - |anchor - negative| + margin)"""

    def __init__(
        self,
        margin: float = 1.0,
        p: float = 2.0,
        eps: float = 1e-6,
        swap: bool = False,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.margin, self.p, self.eps, self.swap = margin, p, eps, swap

    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:  # type: ignore[override]  # as torch
        return functional.triplet_margin_loss(
            anchor,
            positive,
            negative,
            margin=self.margin,
            p=self.p,
            eps=self.eps,
            swap=self.swap,
            reduction=self.reduction,
        )


class TripletMarginWithDistanceLoss(_Loss):
    """max(0, d(anchor, positive) - d(anchor, negative) + margin), of any distance d."""

    def __init__(
        self,
        *,
        distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
        margin: float = 1.0,
        swap: bool = False,
        reduction: str = "mean",
    ) -> None:
        super().__init__(reduction=reduction)
        if margin <= 0:
            raise ValueError(
                f"TripletMarginWithDistanceLoss: expected margin to be greater than 0, got {margin} instead"
            )
        self.distance_function = distance_function or PairwiseDistance()
        self.margin, self.swap = margin, swap

    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:  # type: ignore[override]  # as torch
        return functional.triplet_margin_with_distance_loss(
            anchor,
            positive,
            negative,
            distance_function=self.distance_function,
            margin=self.margin,
            swap=self.swap,
            reduction=self.reduction,
        )


class CTCLoss(_Loss):
    """-log of the probability of all alignments of a target with the steps of an input (Graves et al. 2006)."""

    def __init__(self, blank: int = 0, reduction: str = "mean", zero_infinity: bool = False) -> None:
        super().__init__(reduction=reduction)
        self.blank, self.zero_infinity = blank, zero_infinity

    def forward(  # type: ignore[override]  # as torch
        self,
        log_probs: Tensor,
        targets: Tensor,
        input_lengths: Tensor | Sequence[int],
        target_lengths: Tensor | Sequence[int],
    ) -> Tensor:
        return functional.ctc_loss(
            log_probs, targets, input_lengths, target_lengths, self.blank, self.reduction, self.zero_infinity
        )


class CosineSimilarity(Module):
    """x1 . x2 / (|x1| |x2|) along `dim`."""

    def __init__(self, dim: int = 1, eps: float = 1e-8) -> None:
        super().__init__()
        self.dim, self.eps = dim, eps

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        return functional.cosine_similarity(x1, x2, self.dim, self.eps)


class PairwiseDistance(Module):
    """The p-norm of x1 - x2 along the last axis."""

    def __init__(self, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> None:
        super().__init__()
        self.norm, self.eps, self.keepdim = p, eps, keepdim

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        return functional.pairwise_distance(x1, x2, self.norm, self.eps, self.keepdim)
