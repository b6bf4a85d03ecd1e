"""Work on rows: linear maps, embeddings, normalisations, attention."""

from collections.abc import Sequence as _Sequence

from pywebgpu.autodiff import grad_mode as _modes
from pywebgpu.composites import attention as _attention
from pywebgpu.composites import einsum as _einsum
from pywebgpu.composites import embedding as _embedding
from pywebgpu.composites import linear as _linear
from pywebgpu.composites import normalize as _normalize
from pywebgpu.tensor import dispatch as _dispatch
from pywebgpu.tensor import outputs as _outputs
from pywebgpu.tensor import random as _random
from pywebgpu.tensor import tensor as _tensor
from pywebgpu.tensor.apply import apply as _apply
from pywebgpu.tensor.methods import named_by_numpy as _named_by_numpy

_T = _tensor.Tensor


@_named_by_numpy
@_outputs.writable("nn.functional.linear")
def linear(input: _T, weight: _T, bias: _T | None = None) -> _T:
    """input weight^T + bias. Shapes: input (..., k), weight (n, k), bias (n) -> (..., n)."""
    return _apply(_linear.linear, input, weight, bias)


def bilinear(input1: _T, input2: _T, weight: _T, bias: _T | None = None) -> _T:
    """input1^T weight input2 + bias. Shapes: (..., m), (..., n), weight (o, m, n), bias (o) -> (..., o)."""
    return _apply(_einsum.bilinear, input1, input2, weight, bias)


def embedding(
    input: _T,
    weight: _T,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> _T:
    """weight[input]: a row for each number; the row `padding_idx` gets no gradient.

    max_norm: rows that are looked up are first scaled down, in place, to this norm.
    sparse: the gradient of `weight` is a sparse tensor of the rows that were looked up.
    Raises: NotImplementedError for scale_grad_by_freq.
    """
    if scale_grad_by_freq:
        raise NotImplementedError(
            "embedding: scale_grad_by_freq is not available; scale the gradient by a hook instead"
        )
    if max_norm is not None:
        with _modes.no_grad():
            rows = input.reshape(-1).long()
            rows_of_weight = _apply(_embedding.embedding, rows, weight)
            norm = rows_of_weight.norm(norm_type, dim=-1, keepdim=True)
            scale = (max_norm / (norm + 1e-7)).where(norm > max_norm, norm * 0 + 1)
            weight.index_copy_(0, rows, rows_of_weight * scale)
    if sparse and weight.requires_grad and _modes.is_grad_enabled():
        return _apply(_embedding.by_rows, input, weight, padding_idx)
    return _apply(_embedding.embedding, input, weight, padding_idx)


def one_hot(tensor: _T, num_classes: int = -1) -> _T:
    """1 at each number, 0 elsewhere, as int64. Shapes: (...) -> (..., num_classes); -1 reads the largest number."""
    if num_classes == -1:
        if tensor.numel() == 0:
            raise RuntimeError("Can not infer total number of classes from empty tensor.")
        num_classes = int(tensor.max().item()) + 1
    return _apply(_embedding.one_hot, tensor, num_classes)


# Normalisation


def layer_norm(
    input: _T,
    normalized_shape: _Sequence[int],
    weight: _T | None = None,
    bias: _T | None = None,
    eps: float = 1e-5,
) -> _T:
    """Each row to mean 0 and variance 1, then by weight and bias. Rows are the last axes, `normalized_shape`."""
    return _apply(_normalize.layer_norm, input, tuple(normalized_shape), weight, bias, eps)


def rms_norm(input: _T, normalized_shape: _Sequence[int], weight: _T | None = None, eps: float | None = None) -> _T:
    """Each row over the root of its mean square, then by weight."""
    return _apply(_normalize.rms_norm, input, tuple(normalized_shape), weight, eps)


def normalize(
    input: _T, p: float = 2.0, dim: int | _Sequence[int] = 1, eps: float = 1e-12, out: _T | None = None
) -> _T:
    """x over its p-norm along `dim`, which counts as `eps` at least."""
    result = _apply(_normalize.normalize, input, p, dim, eps)
    return _outputs.finished("div", result, out, input)


# Attention


def scaled_dot_product_attention(
    query: _T,
    key: _T,
    value: _T,
    attn_mask: _T | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> _T:
    """softmax(query key^T scale + mask) value. Shapes: (..., l, e), (..., s, e), (..., s, v) -> (..., l, v).

    attn_mask: bool, True where a position is seen, or a summand. A dropout_p above 0 always applies.
    """
    window = getattr(attn_mask, "window", _attention.ALL)  # of torch.nn.attention.bias
    if window is not _attention.ALL:
        if is_causal:
            raise ValueError("CausalBias should not be used with causal=True")
        attn_mask = None
    seed = _random.seed_node(query.device) if dropout_p > 0 else None
    return _apply(
        _attention.scaled_dot_product_attention,
        query,
        key,
        value,
        attn_mask,
        dropout_p,
        is_causal,
        scale=scale,
        enable_gqa=enable_gqa,
        window=window,
        seed=seed,
        fused=not query.is_cpu,  # NumPy keeps the weights, rather than to compute them again.
    )


globals().update(_dispatch.all_public(globals(), __name__))
