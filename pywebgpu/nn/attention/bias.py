"""torch.nn.attention.bias: masks of scaled_dot_product_attention that are windows, and no memory."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING

from pywebgpu import dtypes
from pywebgpu.composites.attention import CAUSAL
from pywebgpu.support import lazy
from pywebgpu.tensor import create

if TYPE_CHECKING:
    from pywebgpu.tensor.factory_options import DeviceLike
    from pywebgpu.tensor.tensor import Tensor


class CausalVariant(enum.IntEnum):
    """Which corner the diagonal goes through."""

    UPPER_LEFT = enum.auto()
    LOWER_RIGHT = enum.auto()


class CausalBias:
    """attn_mask of scaled_dot_product_attention: a row sees keys up to the diagonal through a corner."""

    def __init__(self, variant: CausalVariant, seq_len_q: int, seq_len_kv: int) -> None:
        if not isinstance(variant, CausalVariant):
            raise AssertionError(f"variant must be a CausalVariant, got {type(variant).__name__}")
        self.variant, self.seq_len_q, self.seq_len_kv = variant, seq_len_q, seq_len_kv
        diagonal = seq_len_kv - seq_len_q if variant is CausalVariant.LOWER_RIGHT else 0
        self.window = (CAUSAL[0], diagonal)

    def _materialize(self, device: DeviceLike = None) -> Tensor:
        ones = create.ones((self.seq_len_q, self.seq_len_kv), dtype=dtypes.bool_, device=device)
        return ones.tril(self.window[1])

    def __repr__(self) -> str:
        return repr(self._materialize("cpu"))


def causal_upper_left(*size: int) -> CausalBias:
    """Row i sees keys 0..i."""
    return _made(CausalVariant.UPPER_LEFT, size)


def causal_lower_right(*size: int) -> CausalBias:
    """The last row sees all keys, and each row before it one fewer."""
    return _made(CausalVariant.LOWER_RIGHT, size)


def _made(variant: CausalVariant, size: tuple[int, ...]) -> CausalBias:
    if len(size) != 2:
        raise AssertionError(f"{variant.name.lower()} only supports 2D tensors, got {len(size)} dimensions")
    return CausalBias(variant, *size)


__getattr__ = lazy.absent(__name__)
