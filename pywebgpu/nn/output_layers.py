"""Losses that hold the layer before them: over many classes, of which not all are computed at once."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, NamedTuple

from pywebgpu.nn import functional
from pywebgpu.nn.container import ModuleList, Sequential
from pywebgpu.nn.linear import Linear
from pywebgpu.nn.loss import _WeightedLoss
from pywebgpu.nn.module import Module
from pywebgpu.tensor import movement
from pywebgpu.tensor.tensor import Tensor

if TYPE_CHECKING:
    from pywebgpu.dtypes import DType
    from pywebgpu.nn.functional.linear_loss import LinearCrossEntropyOptions
    from pywebgpu.tensor.factory_options import DeviceLike


class LinearCrossEntropyLoss(_WeightedLoss):
    """cross_entropy of a linear layer; with `options` without all scores in memory."""

    def __init__(
        self,
        in_features: int,
        num_classes: int,
        *,
        out_features: tuple[int, ...] = (),
        bias: bool = False,
        device: DeviceLike = None,
        dtype: DType | None = None,
        reduction: str = "mean",
        weight: Tensor | None = None,
        ignore_index: int | None = None,
        label_smoothing: float = 0.0,
        options: LinearCrossEntropyOptions | None = None,
    ) -> None:
        if weight is not None and tuple(weight.shape) != (num_classes,):
            raise RuntimeError(f"expected weight shape to be {(num_classes,)}, got {tuple(weight.shape)}")
        if not 0 <= label_smoothing <= 1.0:
            raise RuntimeError(f"expected label_smoothing to be in range [0, 1], got {label_smoothing}")
        super().__init__(weight, reduction=reduction)
        self.num_classes, self.out_features, self.ignore_index = num_classes, out_features, ignore_index
        self.label_smoothing, self.options = label_smoothing, options
        self.linear = Linear(in_features, num_classes * prod(out_features), bias, device, dtype)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        shape, bias = (self.num_classes, *self.out_features), self.linear.bias
        return functional.linear_cross_entropy(
            input,
            self.linear.weight.reshape(*shape, self.linear.in_features),
            target,
            linear_bias=None if bias is None else bias.reshape(shape),
            weight=self.weight,
            reduction=self.reduction,
            ignore_index=self.ignore_index,
            label_smoothing=self.label_smoothing,
            options=self.options,
        )

    def extra_repr(self) -> str:
        return (
            f"in_features={self.linear.in_features}, num_classes={self.num_classes}, out_features={self.out_features}, "
            f"bias={self.linear.bias is not None}, reduction={self.reduction}, ignore_index={self.ignore_index}, "
            f"label_smoothing={self.label_smoothing}, options={self.options}"
        )


class ASMoutput(NamedTuple):
    """log probabilities of the targets, and the negative of their mean."""

    output: Tensor
    loss: Tensor


class AdaptiveLogSoftmaxWithLoss(Module):
    """log_softmax over classes sorted by frequency: the frequent ones by one layer, the others in narrower clusters.

    cutoffs: where the clusters begin; cluster i has in_features / div_value^i features, and is computed for the rows
    whose target is in it. Source: Grave et al. 2016 (arXiv 1609.04309).
    """

    def __init__(
        self,
        in_features: int,
        n_classes: int,
        cutoffs: Sequence[int],
        div_value: float = 4.0,
        head_bias: bool = False,
        device: DeviceLike = None,
        dtype: DType | None = None,
    ) -> None:
        super().__init__()
        cutoffs = list(cutoffs)
        if not cutoffs:
            raise ValueError("cutoffs should be a sequence of length larger than 0")
        is_sorted = cutoffs == sorted(set(cutoffs)) and all(int(cutoff) == cutoff for cutoff in cutoffs)
        if not is_sorted or not 0 < cutoffs[0] <= cutoffs[-1] <= n_classes - 1:
            raise ValueError(
                "cutoffs should be a sequence of unique, positive integers sorted in an increasing order, where each "
                "value is between 1 and n_classes-1"
            )
        self.in_features, self.n_classes, self.cutoffs = in_features, n_classes, [*cutoffs, n_classes]
        self.div_value, self.head_bias, self.shortlist_size = div_value, head_bias, cutoffs[0]
        self.n_clusters = len(cutoffs)
        self.head_size = self.shortlist_size + self.n_clusters
        self.head = Linear(in_features, self.head_size, head_bias, device, dtype)
        self.tail = ModuleList()
        for number, (low, high) in enumerate(itertools.pairwise(self.cutoffs), 1):
            width = int(in_features // div_value**number)
            first = Linear(in_features, width, False, device, dtype)
            self.tail.append(Sequential(first, Linear(width, high - low, False, device, dtype)))

    def reset_parameters(self) -> None:
        self.head.reset_parameters()
        for first, second in self.tail:
            first.reset_parameters()
            second.reset_parameters()

    def forward(self, input_: Tensor, target_: Tensor) -> ASMoutput:
        if target_.dim() > 1:
            raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
        if target_.dim() == 1 and input_.dim() == 2 and input_.shape[0] != target_.shape[0]:
            raise RuntimeError("Input and target should have the same size in the batch dimension.")
        if input_.dim() != target_.dim() + 1:
            raise RuntimeError(
                f"{target_.dim()}D target tensor expects {target_.dim() + 1}D input tensors, but found inputs with "
                f"size {input_.size()}"
            )
        x, target = input_.reshape(-1, input_.shape[-1]), target_.reshape(-1)
        low, high = target.min().item(), target.max().item()
        if not 0 <= low <= high < self.n_classes:
            raise RuntimeError(
                f"Target values should be in [0, {self.n_classes - 1}], but values in range [{low}, {high}] were "
                "found. "
            )
        head, column, output = functional.log_softmax(self.head(x), 1), target, x.new_zeros(x.shape[0])
        for number, (first, end) in enumerate(itertools.pairwise(self.cutoffs)):
            if high < first:
                break
            inside = (target >= first) & (target < end)
            rows = inside.nonzero().reshape(-1)
            column = column.masked_fill(inside, self.shortlist_size + number)
            if rows.numel():
                scores = functional.log_softmax(self.tail[number](x.index_select(0, rows)), 1)
                own = scores.gather(1, (target.index_select(0, rows) - first).unsqueeze(1)).squeeze(1)
                output = output.index_add(0, rows, own)
        output = output + head.gather(1, column.unsqueeze(1)).squeeze(1)
        return ASMoutput(output.reshape(target_.shape), -output.mean())

    def log_prob(self, input: Tensor) -> Tensor:
        """log probabilities of all classes. Shapes: (n, in_features) -> (n, n_classes)."""
        head = functional.log_softmax(self.head(input), 1)
        parts = [head[:, : self.shortlist_size]]
        for number, tail in enumerate(self.tail):
            column = self.shortlist_size + number
            parts.append(functional.log_softmax(tail(input), 1) + head[:, column : column + 1])
        return movement.cat(parts, 1)

    def predict(self, input: Tensor) -> Tensor:
        """The most probable class of each row. Shapes: (n, in_features) -> (n,)."""
        return self.log_prob(input).argmax(1)
