"""Bags and sequences of numbers: embedding_bag, ctc_loss, multilabel_margin_loss; and attention as one call."""

import importlib as _importlib
import warnings as _warnings
from collections.abc import Sequence as _Sequence

from pywebgpu import dtypes as _dtypes
from pywebgpu.composites import bounds as _bounds
from pywebgpu.composites import embedding as _embedding
from pywebgpu.ir.graph import thread_state as _thread_state
from pywebgpu.nn.functional import rows as _rows
from pywebgpu.tensor import create as _create
from pywebgpu.tensor import dispatch as _dispatch
from pywebgpu.tensor import functions as _functions
from pywebgpu.tensor import sorting as _sorting
from pywebgpu.tensor import tensor as _tensor
from pywebgpu.tensor.apply import apply as _apply
from pywebgpu.tensor.apply import aten as _aten

_T = _tensor.Tensor
_OUTSIDE = "Expected idx >= 0 && idx < num_embeddings but found idx to be {index} of {size} rows"
_SWAPPED = (
    "Argument order of nn.functional.embedding_bag was changed. Usage `embedding_bag(weight, input, ...)` is "
    "deprecated, and should now be `embedding_bag(input, weight, ...)`."
)
_NEVER = -1e30  # the logarithm of what cannot be; infinities would make NaN of gradients


def _check_bags(
    input: _T, weight: _T, offsets: _T | None, mode: str, per_sample_weights: _T | None, padding_idx: int | None
) -> None:
    if mode not in ("sum", "mean", "max"):
        raise ValueError("mode has to be one of sum, mean or max")
    if per_sample_weights is not None and mode != "sum":
        raise NotImplementedError(
            "embedding_bag: per_sample_weights was not None. per_sample_weights is only supported for mode='sum' (got "
            f"mode='{mode}')"
        )
    if per_sample_weights is not None and per_sample_weights.shape != input.shape:
        raise ValueError(
            f"embedding_bag: If per_sample_weights ({list(per_sample_weights.shape)}) is not None, then it must have "
            f"the same shape as the input ({list(input.shape)})"
        )
    for name, numbers in (("indices", input), ("offsets", offsets)):
        if numbers is not None and numbers.dtype not in (_dtypes.int32, _dtypes.int64):
            raise RuntimeError(
                f"Expected tensor for argument #1 '{name}' to have one of the following scalar types: Long, Int; "
                f"but got torch.{numbers.dtype.title}Tensor instead (while checking arguments for embedding_bag)"
            )
    if weight.ndim != 2:
        raise ValueError(f"weight has to be a 2D Tensor, but got Tensor of dimension {weight.ndim}")
    if per_sample_weights is not None and per_sample_weights.dtype is not weight.dtype:
        raise RuntimeError(
            "Expected tensor for argument #1 'weight' to have the same type as tensor for argument #1 "
            f"'per_sample_weights'; but type {weight.type()} does not equal {per_sample_weights.type()} (while "
            "checking arguments for embedding_bag)"
        )
    rows = weight.shape[0]
    if padding_idx is not None and not -rows <= padding_idx < rows:
        raise RuntimeError(
            f"padding_idx must be within the number of embeddings, -{rows} through {rows - 1}, but got {padding_idx}"
        )


def _bags_of_rows(input: _T, offsets: _T | None) -> tuple[_T, int]:
    """The bag of each number where every row is one, and how many there are."""
    if offsets is not None:
        raise ValueError("if input is 2D, then offsets has to be None, as input is treated as a mini-batch of rows")
    n_bags, length = input.shape
    return _create.arange(n_bags, device=input.device).unsqueeze(1).expand(n_bags, length).reshape(-1), n_bags


def _bags_between(input: _T, offsets: _T | None, *, include_last_offset: bool) -> tuple[_T, int, _T]:
    """The bag of each number where bags begin at offsets, how many there are, and the offsets."""
    if offsets is None or offsets.ndim != 1:
        raise ValueError("offsets has to be a 1D Tensor where input is 1D")
    if include_last_offset and not offsets.shape[0]:
        raise RuntimeError("include_last_offset: number of offset should be at least 1")
    n_bags = offsets.shape[0] - (1 if include_last_offset else 0)
    offsets = _checked_offsets(offsets, input.shape[0]).long()
    positions = _create.arange(input.shape[0], device=input.device)
    return _sorting.searchsorted(offsets[:n_bags], positions, right=True) - 1, n_bags, offsets


@_aten("_embedding_bag")
def embedding_bag(
    input: _T,
    weight: _T,
    offsets: _T | None = None,
    max_norm: float | None = None,
    norm_type: float = 2,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: _T | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> _T:
    """Sums, means or maxima of rows of `weight`: of each row of input, or of what lies between two offsets."""
    if weight.dtype is _dtypes.int64 and input.is_floating_point():
        _warnings.warn(_SWAPPED, stacklevel=2)
        input, weight = weight, input
    _check_bags(input, weight, offsets, mode, per_sample_weights, padding_idx)
    rows, wide = weight.shape[0], weight.dtype is _dtypes.float64
    if input.ndim == 2:
        bag, n_bags = _bags_of_rows(input, offsets)
    elif input.ndim == 1:
        bag, n_bags, offsets = _bags_between(input, offsets, include_last_offset=include_last_offset)
    else:
        raise ValueError(f"input has to be 1D or 2D Tensor, but got Tensor of dimension {input.ndim}")
    numbers = input.reshape(-1).long()
    numbers = _apply(_bounds.checked, numbers, rows, wrap=False, text=_OUTSIDE)
    rows_of_weight: _T = _rows.embedding(numbers, weight, padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse)
    kept = numbers == numbers if padding_idx is None else numbers != padding_idx % rows
    if include_last_offset and offsets is not None and mode != "max" and padding_idx is None and not wide:
        # What lies behind the last offset is part of the last bag where torch has no kernel of its own for the case.
        kept = kept & (_create.arange(input.shape[0], device=input.device) < offsets[-1])
    if per_sample_weights is not None:
        rows_of_weight = rows_of_weight * per_sample_weights.reshape(-1, 1)
    if mode == "max":
        return _largest(rows_of_weight, kept, bag, n_bags)
    counted = kept.to(weight.dtype)
    total = weight.new_zeros(n_bags, weight.shape[1]).index_add(0, bag, rows_of_weight * counted.unsqueeze(1))
    return total if mode == "sum" else total / _sizes(counted, bag, n_bags)


def _sizes(counted: _T, bag: _T, n_bags: int) -> _T:
    """How many rows each bag has, at least 1. Shapes: counted, bag (rows) -> (n_bags, 1)."""
    return counted.new_zeros(n_bags).index_add(0, bag, counted).clamp(min=1).unsqueeze(1)


def _largest(rows: _T, kept: _T, bag: _T, n_bags: int) -> _T:
    """The largest elements of each bag's rows; 0 where it has none."""
    rows = rows.masked_fill(kept.logical_not().unsqueeze(1), float("-inf"))
    out: _T = rows.new_full((n_bags, rows.shape[1]), float("-inf")).index_reduce(0, bag, rows, "amax")
    return out.masked_fill(out == float("-inf"), 0.0)


def _checked_offsets(offsets: _T, length: int) -> _T:
    """The offsets. Those of device cpu are looked at, as in torch; wrong ones of others are an error of a read."""
    if offsets.is_cpu and _thread_state.observer is None and offsets.numel():
        first, last = offsets[0].item(), offsets[-1].item()
        if first:
            raise RuntimeError(
                "offsets[0] has to be 0, i.e., the first sequence in the mini-batch has to start from position 0. "
                f"However, got {first}"
            )
        if last > length:
            raise RuntimeError(
                f"offsets[-1] can not be greater than input's length {length} but got offsets[-1] of {last}"
            )
    return _apply(_embedding.offsets, offsets, length=length)


@_aten("multilabel_margin_loss")
def multilabel_margin_loss(
    input: _T,
    target: _T,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> _T:
    """sum over classes of the target and others of max(0, 1 - x[own] + x[other]) / c; -1 ends a target's classes."""
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f"{reduction} is not a valid value for reduction")
    if input.shape != target.shape or input.ndim > 2:
        raise RuntimeError(f"inconsistent target size: {list(target.shape)} for input of size: {list(input.shape)}")
    x, classes = (part.reshape(-1, part.shape[-1] if part.ndim else 1) for part in (input, target.long()))
    valid = (classes >= 0).to(x.dtype).cumprod(1)
    own = classes.clamp(min=0)
    is_own = x.detach().new_zeros(x.shape).scatter_add(1, own, valid) > 0
    margins = (1 - x.gather(1, own).unsqueeze(2) + x.unsqueeze(1)).clamp(min=0)
    counted = valid.unsqueeze(2) * is_own.logical_not().to(x.dtype).unsqueeze(1)
    loss: _T = (margins * counted).sum((1, 2)) / x.shape[1]
    if reduction == "none":
        return loss if input.ndim == 2 else loss.reshape(())
    return loss.mean() if reduction == "mean" else loss.sum()


def _alignments(seen: _T, ends: _T, may_skip: _T) -> _T:
    """The log-probability of all alignments that end at each symbol after each sample's last step."""
    never = seen[0].detach() * 0 + _NEVER
    start = _create.arange(seen.shape[2], device=seen.device) < 2
    alpha: _T = _functions.where(start, seen[0], never)
    for t in range(1, seen.shape[0]):
        shifted = _functions.cat([never[:, :1], alpha[:, :-1]], 1)
        skipping = _functions.cat([never[:, :2], alpha[:, :-2]], 1)[:, : seen.shape[2]]
        skipping = _functions.where(may_skip, skipping, never)
        moved = _functions.stack([alpha, shifted, skipping]).logsumexp(0) + seen[t]
        alpha = _functions.where(ends > t, moved, alpha)
    return alpha


def _lengths(
    input_lengths: _T | _Sequence[int], target_lengths: _T | _Sequence[int], n: int, steps: int
) -> tuple[list[int], list[int]]:
    """The lengths of each input and of each target. Raises RuntimeError for those that do not fit."""
    for name, counts in (("input_lengths", input_lengths), ("target_lengths", target_lengths)):
        if isinstance(counts, _T) and counts.dtype.kind is not _dtypes.Kind.INT:
            raise RuntimeError(f"{name} must be integral")
    lengths, sizes = ([int(v) for v in _listed(argument)] for argument in (input_lengths, target_lengths))
    if len(lengths) != n or len(sizes) != n:
        raise RuntimeError(f"input_lengths and target_lengths must be of size {n}")
    if max(lengths, default=0) > steps:
        raise RuntimeError(f"Expected input_lengths to have value at most {steps}, but got value {max(lengths)}")
    return lengths, sizes


def _reduced(loss: _T, sizes: list[int], reduction: str) -> _T:
    """Of the losses of targets of these sizes."""
    if reduction == "mean":
        return (loss / _create.tensor([float(max(size, 1)) for size in sizes], device=loss.device)).mean()
    return loss.sum() if reduction == "sum" else loss


def ctc_loss(
    log_probs: _T,
    targets: _T,
    input_lengths: _T | _Sequence[int],
    target_lengths: _T | _Sequence[int],
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> _T:
    """-log of the probability of all alignments of a target with the steps of log_probs (t, n, c).

    Shapes: log_probs (t, n, c) or (t, c); targets (n, s) or all in a row; lengths (n,).
    Source: Graves et al. 2006.  Against torch: the same; the gradient is the one of log_softmax's input, as there.
    """
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f"{reduction} is not a valid value for reduction")
    batched = log_probs.ndim == 3
    x = log_probs if batched else log_probs.unsqueeze(1)
    steps, n, where = x.shape[0], x.shape[1], x.device
    lengths, sizes = _lengths(input_lengths, target_lengths, n, steps)
    longest = max(sizes, default=0)
    labels = _padded(targets, sizes, longest, blank, batched=batched)
    extended = [[label for target_label in row for label in (blank, target_label)] + [blank] for row in labels]
    skips = [[s >= 2 and row[s] != blank and row[s] != row[s - 2] for s in range(len(row))] for row in extended]
    index = _create.tensor(extended, device=where)
    may_skip = _create.tensor(skips, device=where)
    seen: _T = x.gather(2, index.unsqueeze(0).expand(steps, n, 2 * longest + 1))
    ends = _create.tensor(lengths, device=where).unsqueeze(1)
    alpha = _alignments(seen, ends, may_skip)
    last = _create.tensor([[2 * size, max(2 * size - 1, 0)] for size in sizes], device=where)
    both = alpha.gather(1, last)
    alone = _create.tensor([[False, size == 0] for size in sizes], device=where)
    loss = -both.masked_fill(alone, _NEVER).logsumexp(1)
    impossible = loss > -_NEVER / 2
    # PyTorch's gradient is that of the scores below log_softmax: it adds the probabilities themselves.
    inside = (_create.arange(steps, device=where).unsqueeze(1) < ends.t()).to(x.dtype)
    mass = (x.exp().sum(2) * inside).sum(0)
    loss = (loss + (mass - mass.detach())).masked_fill(impossible, 0.0 if zero_infinity else float("inf"))
    return _reduced(loss if batched or reduction in ("mean", "sum") else loss.reshape(()), sizes, reduction)


def _listed(values: _T | _Sequence[int]) -> list[int]:
    listed = values.tolist() if isinstance(values, _T) else list(values)
    return listed if isinstance(listed, list) else [listed]


def _padded(targets: _T, sizes: list[int], longest: int, blank: int, *, batched: bool) -> list[list[int]]:
    is_row = targets.ndim == 1 and batched
    if (sum(sizes) != targets.shape[0]) if is_row else (longest > targets.shape[-1]):
        raise RuntimeError(f"Expected targets to hold {sizes} labels, but got targets of shape {list(targets.shape)}")
    values = targets.tolist()
    if is_row:
        starts = [sum(sizes[:i]) for i in range(len(sizes))]
        rows = [values[start : start + size] for start, size in zip(starts, sizes, strict=True)]
    else:
        rows = [row[:size] for row, size in zip(values if targets.ndim == 2 else [values], sizes, strict=True)]
    return [[int(v) for v in row] + [blank] * (longest - len(row)) for row in rows]


def multi_head_attention_forward(
    query: _T,
    key: _T,
    value: _T,
    embed_dim_to_check: int,
    num_heads: int,
    in_proj_weight: _T | None,
    in_proj_bias: _T | None,
    bias_k: _T | None,
    bias_v: _T | None,
    add_zero_attn: bool,
    dropout_p: float,
    out_proj_weight: _T,
    out_proj_bias: _T | None,
    training: bool = True,
    key_padding_mask: _T | None = None,
    need_weights: bool = True,
    attn_mask: _T | None = None,
    use_separate_proj_weight: bool = False,
    q_proj_weight: _T | None = None,
    k_proj_weight: _T | None = None,
    v_proj_weight: _T | None = None,
    static_k: _T | None = None,
    static_v: _T | None = None,
    average_attn_weights: bool = True,
    is_causal: bool = False,
) -> tuple[_T, _T | None]:
    """What nn.MultiheadAttention computes, with its parameters as arguments."""
    for static, name in ((static_k, "key"), (static_v, "value")):
        if bias_k is not None and bias_v is not None and static is not None:
            raise AssertionError(f"bias cannot be added to static {name}.")
    layer = _importlib.import_module("pywebgpu.nn.attention").MultiheadAttention(
        embed_dim_to_check, num_heads, dropout_p, out_proj_bias is not None, bias_k is not None, add_zero_attn,
        key.shape[-1] if use_separate_proj_weight else None, value.shape[-1] if use_separate_proj_weight else None,
        device=query.device, dtype=query.dtype,
    )  # fmt: skip
    layer._static = static_k, static_v
    layer._qkv_same_embed_dim = not use_separate_proj_weight  # also where keys and values are as wide as queries
    layer._parameters |= {
        "in_proj_weight": None if use_separate_proj_weight else in_proj_weight, "in_proj_bias": in_proj_bias,
        "q_proj_weight": q_proj_weight, "k_proj_weight": k_proj_weight, "v_proj_weight": v_proj_weight,
        "bias_k": None if bias_k is None else bias_k.reshape(1, 1, -1),
        "bias_v": None if bias_v is None else bias_v.reshape(1, 1, -1),
    }  # fmt: skip
    layer.out_proj._parameters |= {"weight": out_proj_weight, "bias": out_proj_bias}
    layer.train(training)
    attended: tuple[_T, _T | None] = layer(
        query, key, value, key_padding_mask, need_weights, attn_mask, average_attn_weights, is_causal=is_causal
    )
    return attended


globals().update(_dispatch.all_public(globals(), __name__))
