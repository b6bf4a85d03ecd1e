"""Attention with several heads, and the layers of transformers."""

from __future__ import annotations

import enum
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from pywebgpu import dtypes
from pywebgpu.dtypes import Kind
from pywebgpu.nn import functional, init
from pywebgpu.nn.linear import NonDynamicallyQuantizableLinear
from pywebgpu.nn.module import Module
from pywebgpu.nn.parameter import Parameter
from pywebgpu.support import lazy
from pywebgpu.tensor import create
from pywebgpu.tensor.movement import cat
from pywebgpu.tensor.tensor import Tensor

if TYPE_CHECKING:
    from pywebgpu.dtypes import DType
    from pywebgpu.tensor.factory_options import DeviceLike


class MultiheadAttention(Module):
    """Attention over `num_heads` slices of embed_dim, between two linear maps (Vaswani et al. 2017, arXiv 1706.03762).

    Shapes: query (l, n, embed_dim), key (s, n, kdim), value (s, n, vdim), or (n, l, ...) with batch_first, or without
    the batch axis -> the output as query, and the weights (n, l, s), averaged over heads, or None.
    """

    _static: tuple[Tensor | None, Tensor | None] = None, None  # keys and values in place of the projected ones

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        device: DeviceLike = None,
        dtype: DType | None = None,
    ) -> None:
        super().__init__()
        if embed_dim <= 0 or num_heads <= 0:
            raise ValueError(
                f"embed_dim and num_heads must be greater than 0, got embed_dim={embed_dim} and num_heads={num_heads}"
            )
        if embed_dim % num_heads:
            raise AssertionError("embed_dim must be divisible by num_heads")
        self.embed_dim, self.num_heads, self.dropout = embed_dim, num_heads, dropout
        self.kdim, self.vdim = kdim or embed_dim, vdim or embed_dim
        self.head_dim, self.batch_first, self.add_zero_attn = embed_dim // num_heads, batch_first, add_zero_attn
        self._qkv_same_embed_dim = self.kdim == embed_dim and self.vdim == embed_dim

        def made(*shape: int) -> Parameter:
            return Parameter(create.empty(shape, device=device, dtype=dtype))

        same = self._qkv_same_embed_dim
        for name, width in (("q", embed_dim), ("k", self.kdim), ("v", self.vdim)):
            self.register_parameter(f"{name}_proj_weight", None if same else made(embed_dim, width))
        self.register_parameter("in_proj_weight", made(3 * embed_dim, embed_dim) if same else None)
        self.register_parameter("in_proj_bias", made(3 * embed_dim) if bias else None)
        self.out_proj = NonDynamicallyQuantizableLinear(embed_dim, embed_dim, bias, device=device, dtype=dtype)
        for name in ("bias_k", "bias_v"):
            self.register_parameter(name, made(1, 1, embed_dim) if add_bias_kv else None)
        self._reset_parameters()

    def _reset_parameters(self) -> None:
        for name in ("in_proj_weight", "q_proj_weight", "k_proj_weight", "v_proj_weight"):
            if getattr(self, name) is not None:
                init.xavier_uniform_(getattr(self, name))
        if self.in_proj_bias is not None:
            init.zeros_(self.in_proj_bias)
            init.zeros_(self.out_proj.bias)
        for name in ("bias_k", "bias_v"):
            if getattr(self, name) is not None:
                init.xavier_normal_(getattr(self, name))

    def _extended(self, *sides: Tensor) -> Iterator[Tensor]:
        """Keys and values with a further row: a parameter's, then zeros."""
        for x, bias in zip(sides, (self.bias_k, self.bias_v), strict=True):
            x = x if bias is None else cat([x, bias.expand(x.shape[0], 1, -1)], 1)
            yield functional.pad(x, (0, 0, 0, 1)) if self.add_zero_attn else x

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """Masks: True hides a position, floats are added. key_padding_mask (n, s), attn_mask (l, s) or (n heads, l, s).

        is_causal: says that attn_mask is the causal one, which is then not read.
        """
        batched = query.ndim == 3
        self._check(query, key, value, key_padding_mask, attn_mask)
        q, k, v = self._projected(query, key, value, batched=batched)  # (n, l, embed_dim)
        mask = self._mask(query, key_padding_mask, attn_mask, causal=is_causal and not need_weights)
        n = q.shape[0]
        k, v = (x if static is None else self._given(static, n) for x, static in zip((k, v), self._static, strict=True))
        extra = (self.bias_k is not None) + self.add_zero_attn
        if extra:
            k, v = self._extended(k, v)
        if mask is not None and extra:
            mask = functional.pad(mask, (0, extra))
        q, k, v = (x.reshape(n, x.shape[1], self.num_heads, self.head_dim).transpose(1, 2) for x in (q, k, v))
        drop = self.dropout if self.training else 0.0
        weights = None
        if need_weights:
            weights = self._weights(q, k, mask, drop)
            out = weights @ v
            weights = weights.mean(1) if average_attn_weights else weights
        else:
            causal = is_causal and mask is None and not extra
            out = functional.scaled_dot_product_attention(q, k, v, mask, drop, causal)
        out = self.out_proj(self._joined(out, batch_first=self.batch_first or not batched))
        if not batched:
            return out.squeeze(0), None if weights is None else weights.squeeze(0)
        return out, weights

    def _joined(self, out: Tensor, *, batch_first: bool) -> Tensor:
        """What the heads (n, heads, l, head_dim) found, side by side: (n, l, embed_dim) or (l, n, embed_dim)."""
        n, _, length, _ = out.shape
        if batch_first:
            return out.transpose(1, 2).reshape(n, length, self.embed_dim)
        return out.permute(2, 0, 1, 3).reshape(length, n, self.embed_dim)

    def _weights(self, q: Tensor, k: Tensor, mask: Tensor | None, drop: float) -> Tensor:
        """What each query takes of each key. (n, heads, l, s)"""
        scores = (q * self.head_dim**-0.5) @ k.transpose(-2, -1)
        scores = scores if mask is None else scores + mask.to(dtype=scores.dtype)
        return functional.dropout(functional.softmax(scores, -1), drop)

    def _given(self, x: Tensor, n: int) -> Tensor:
        """Keys or values that were projected before, (n heads, s, head_dim), as (n, s, embed_dim)."""
        if x.shape[0] != n * self.num_heads or x.shape[2] != self.head_dim:
            raise AssertionError(
                f"expecting static keys and values of {n * self.num_heads} times {self.head_dim}, but got {x.shape}"
            )
        return x.reshape(n, self.num_heads, -1, self.head_dim).transpose(1, 2).reshape(n, -1, self.embed_dim)

    def _check(
        self, query: Tensor, key: Tensor, value: Tensor, key_padding_mask: Tensor | None, attn_mask: Tensor | None
    ) -> None:
        self._check_ranks(query, key, value, key_padding_mask, attn_mask)
        if query.shape[-1] != self.embed_dim:
            raise AssertionError(f"was expecting embedding dimension of {self.embed_dim}, but got {query.shape[-1]}")
        if key.shape[:-1] != value.shape[:-1]:
            raise AssertionError(
                f"key's sequence and batch dims {key.shape[:-1]} do not match value's {value.shape[:-1]}"
            )
        for mask in (key_padding_mask, attn_mask):
            if mask is not None and mask.dtype is not dtypes.bool_ and mask.dtype.kind is not Kind.FLOAT:
                raise AssertionError("only bool and floating types of masks are supported")

    def _check_ranks(
        self, query: Tensor, key: Tensor, value: Tensor, key_padding_mask: Tensor | None, attn_mask: Tensor | None
    ) -> None:
        rank = query.ndim
        if rank not in (2, 3):
            raise AssertionError(
                f"query should be unbatched 2D or batched 3D tensor but received {rank}-D query tensor"
            )
        kind = f"For {'unbatched (2-D)' if rank == 2 else 'batched (3-D)'} `query`, expected"
        if key.ndim != rank or value.ndim != rank:
            raise AssertionError(
                f"{kind} `key` and `value` to be {rank}-D but found {key.ndim}-D and {value.ndim}-D tensors "
                f"respectively"
            )
        if key_padding_mask is not None and key_padding_mask.ndim != rank - 1:
            raise AssertionError(
                f"{kind} `key_padding_mask` to be `None` or {rank - 1}-D but found {key_padding_mask.ndim}-D tensor "
                f"instead"
            )
        if attn_mask is not None and attn_mask.ndim not in (2, 3):
            raise AssertionError(
                f"{kind} `attn_mask` to be `None`, 2-D or 3-D but found {attn_mask.ndim}-D tensor instead"
            )
        if rank == 2 and attn_mask is not None and attn_mask.ndim == 3:
            wanted = (self.num_heads, query.shape[0], key.shape[0])
            if tuple(attn_mask.shape) != wanted:
                raise AssertionError(f"Expected `attn_mask` shape to be {wanted} but got {attn_mask.shape}")

    def _projected(self, query: Tensor, key: Tensor, value: Tensor, *, batched: bool) -> list[Any]:
        """Query, key and value after their linear maps, each (n, length, embed_dim)."""
        same = self._qkv_same_embed_dim
        inputs: list[Any] = [query, key, value]
        if same and query is key and key is value:
            projected = list(functional.linear(query, self.in_proj_weight, self.in_proj_bias).chunk(3, -1))
        else:
            weights = self.in_proj_weight.chunk(3) if same else (
                self.q_proj_weight, self.k_proj_weight, self.v_proj_weight)  # fmt: skip
            biases = (None,) * 3 if self.in_proj_bias is None else self.in_proj_bias.chunk(3)
            projected = [functional.linear(x, w, b) for x, w, b in zip(inputs, weights, biases, strict=True)]
        if not batched:
            return [x.unsqueeze(0) for x in projected]
        return projected if self.batch_first else [x.transpose(0, 1) for x in projected]

    def _mask(self, query: Tensor, padding: Tensor | None, mask: Tensor | None, *, causal: bool) -> Tensor | None:
        """One summand for the scores (n, heads, l, s), or None."""
        if causal and padding is None:
            return None
        parts = []
        if mask is not None:
            mask = _summand(mask, query)
            parts.append(mask if mask.ndim == 2 else mask.reshape(-1, self.num_heads, *mask.shape[1:]))
        if padding is not None:
            padding = _summand(padding, query)
            parts.append(padding.reshape(-1, 1, 1, padding.shape[-1]))
        return None if not parts else parts[0] if len(parts) == 1 else parts[0] + parts[1]


def _summand(mask: Tensor, like: Tensor) -> Tensor:
    """A mask as what is added to scores: -inf where a bool mask hides."""
    if mask.dtype is not dtypes.bool_:
        return mask.to(dtype=like.dtype)
    return create.zeros(mask.shape, dtype=like.dtype, device=mask.device).masked_fill(mask, float("-inf"))


class SDPBackend(enum.IntEnum):
    """PyTorch's names of kernels for attention. Here the compiler picks the kernel."""

    ERROR, MATH, FLASH_ATTENTION, EFFICIENT_ATTENTION, CUDNN_ATTENTION, OVERRIDEABLE = range(-1, 5)


@contextmanager
def sdpa_kernel(backends: object, set_priority: bool = False) -> Iterator[None]:
    """Changes nothing: the compiler picks the kernel."""
    yield


__getattr__ = lazy.absent(__name__)
