"""Cross-entropy of a linear layer, and how it is cut: apart from the other losses because few programs want it."""

import warnings as _warnings
from dataclasses import dataclass as _dataclass
from math import prod as _prod

from pywebgpu import dtypes as _dtypes
from pywebgpu.composites import linear_loss as _linear_loss
from pywebgpu.nn.functional import loss as _loss
from pywebgpu.nn.functional import rows as _rows
from pywebgpu.tensor import dispatch as _dispatch
from pywebgpu.tensor import tensor as _tensor
from pywebgpu.tensor.apply import apply as _apply

_T = _tensor.Tensor
_POLICIES = ("auto", "accurate", "balanced", "compact")


@_dataclass(frozen=True, slots=True)
class LinearCrossEntropyOptions:
    """How `linear_cross_entropy` is cut into parts of the batch: by rows, or by a rule.

    batch_chunk_size: rows of a part.  chunking_method: "aspect_ratio": parts whose scores take as much memory as the
    input; "aspect_ratio:N": a part of that; "auto": the rule with 2; None: as batch_chunk_size says.
    The others are PyTorch's and change nothing: sums are float32 or wider.
    """

    allow_retain_graph: bool = False
    batch_chunk_size: int | None = None
    chunking_method: str | None = "auto"
    acc_policy: str = "auto"
    acc_dtype: _dtypes.DType | None = None

    def __post_init__(self) -> None:
        if self.acc_policy not in _POLICIES:
            raise ValueError(f"invalid acc_policy: {self.acc_policy!r}")
        if self.chunking_method not in (None, "auto") and not self._parts():
            raise ValueError(f"invalid chunking_method: {self.chunking_method!r}")
        size = self.batch_chunk_size
        if size is not None and not (isinstance(size, int) and size > 0):
            raise ValueError(f"batch_chunk_size must be positive int or None, got {size!r}")

    def _parts(self) -> int:
        """N of "aspect_ratio:N"; 0 where it is not of this form."""
        name, _, factor = str(self.chunking_method).partition(":")
        factor = factor if ":" in str(self.chunking_method) else "1"
        return int(factor) if name == "aspect_ratio" and factor.isdigit() else 0

    def rows(self, batch: int, features: int, classes: int) -> int:
        """The rows of a part. Raises: ValueError where both options say it, and differ."""
        method, size = self.chunking_method, self.batch_chunk_size
        if method is None or (method == "auto" and size is not None):
            return min(size or batch, batch)
        target = -(-batch // -(-classes // features))
        n_rows = min((1 << (target - 1).bit_length()) // (2 if method == "auto" else self._parts()), batch)
        if size is not None and min(size, batch) != n_rows:
            raise ValueError(
                f"batch_chunk_size (={size}) and chunking_method ('{method}') give different chunk sizes ({size} vs "
                f"{n_rows}); pass only one."
            )
        return max(n_rows, 1)


_UNUSED = (
    "linear_cross_entropy: ``options`` ignored; chunked path needs reduction in {'mean','sum','none'}, "
    "label_smoothing == 0, target.dtype == int64, out_features == ()."
)


def linear_cross_entropy(
    input: _T,
    linear_weight: _T,
    target: _T,
    *,
    linear_bias: _T | None = None,
    weight: _T | None = None,
    reduction: str = "mean",
    ignore_index: int | None = None,
    label_smoothing: float = 0.0,
    options: LinearCrossEntropyOptions | None = None,
) -> _T:
    """cross_entropy(linear(input, linear_weight, linear_bias), target); with `options` without all scores in memory.

    Shapes: input (k,) or (n, k), linear_weight (c, k) or (c, d1, ..., k), linear_bias (c, d1, ...).
    Raises: RuntimeError for shapes that do not fit, and for ignore_index beside probabilities.
    Against torch: the same; parts with reduction="none" are those of the whole.
    """
    _check(input, linear_weight, linear_bias)
    *batch, features = input.shape
    classes, *extra = linear_weight.shape[:-1]
    if tuple(target.shape) == (*batch, classes, *extra) and ignore_index is not None:
        raise RuntimeError("ignore_index cannot be specified when target contains probabilities")
    ignored = -100 if ignore_index is None else ignore_index
    if options is not None:
        is_plain = not extra and target.dtype == _dtypes.int64 and label_smoothing == 0
        if is_plain and reduction in ("mean", "sum") and 0 not in input.shape:
            rows = input if batch else input.unsqueeze(0)
            return _apply(
                _linear_loss.chunked_cross_entropy, rows, linear_weight, target if batch else target.unsqueeze(0),
                linear_bias, weight, ignore_index=ignored, reduction=reduction,
                rows=options.rows(rows.shape[0], features, classes),
            )  # fmt: skip
        if not is_plain or reduction != "none":
            _warnings.warn(_UNUSED, stacklevel=2)
    scores = _scores(input, linear_weight, linear_bias)
    return _loss.cross_entropy(
        scores, target, weight, ignore_index=ignored, reduction=reduction, label_smoothing=label_smoothing
    )


def _scores(input: _T, linear_weight: _T, linear_bias: _T | None) -> _T:
    """(..., c, d1, ...)"""
    *shape, features = linear_weight.shape
    if len(shape) > 1:
        linear_weight = linear_weight.reshape(_prod(shape), features)
        linear_bias = None if linear_bias is None else linear_bias.reshape(_prod(shape))
    scores: _T = _rows.linear(input, linear_weight, linear_bias).reshape(*input.shape[:-1], *shape)
    return scores


def _check(input: _T, linear_weight: _T, linear_bias: _T | None) -> None:
    if not 1 <= input.dim() <= 2:
        raise RuntimeError(f"expected input with dimensionality 1 or 2, got {input.dim()}")
    if linear_weight.dim() < 2:
        raise RuntimeError(f"expected linear_weight with dimensionality at least 2, got {linear_weight.dim()}")
    if input.shape[-1] != linear_weight.shape[-1]:
        raise RuntimeError(
            "expected equal input and linear_weight last dimensions (in_features), got "
            f"{input.shape[-1]} and {linear_weight.shape[-1]}, respectively"
        )
    if linear_bias is not None and linear_bias.shape != linear_weight.shape[:-1]:
        raise RuntimeError(
            f"expected linear_bias shape {tuple(linear_weight.shape[:-1])}, got {tuple(linear_bias.shape)}"
        )
    if linear_weight.dim() > 2 and input.dim() == 1:
        raise RuntimeError(
            f"K-dimensional loss defined by linear_weight shape {tuple(linear_weight.shape)} requires batched input, "
            f"(N, {input.shape[-1]}), got unbatched input with shape {tuple(input.shape)}"
        )


globals().update(_dispatch.all_public(globals(), __name__))
