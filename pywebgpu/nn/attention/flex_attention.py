"""torch.nn.attention.flex_attention: attention with a function of scores, and a mask that is a function of positions.

A mask that says how far before and after its row a key may lie is a window: what lies outside is neither read nor
computed. What it says beside is a mask in memory. A function of scores has them in memory, too.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from functools import cached_property, reduce
from importlib import import_module
from operator import and_, or_
from typing import TYPE_CHECKING, Any, NamedTuple

from pywebgpu import dtypes
from pywebgpu.composites import attention as _attention
from pywebgpu.composites.attention import HIDDEN
from pywebgpu.nn import functional
from pywebgpu.nn.attention import windows
from pywebgpu.support import lazy
from pywebgpu.tensor import create
from pywebgpu.tensor.apply import apply

if TYPE_CHECKING:
    from pywebgpu.tensor.factory_options import DeviceLike
    from pywebgpu.tensor.tensor import Tensor

Mod = Callable[..., Any]
FlexKernelOptions = dict  # Accepted, and without meaning: the compiler lays kernels out.
_DEFAULT_SPARSE_BLOCK_SIZE = 128  # Libraries read it.


class AuxRequest(NamedTuple):
    """What flex_attention gives beside its result: logarithms of sums of exponentials, the largest scores."""

    lse: bool = False
    max_scores: bool = False


class AuxOutput(NamedTuple):
    """What was asked for, (b, h, l) each."""

    lse: Tensor | None = None
    max_scores: Tensor | None = None


def noop_mask(batch: Tensor, head: Tensor, token_q: Tensor, token_kv: Tensor) -> Tensor:
    """All is seen."""
    return batch.new_ones((), dtype=dtypes.bool_)


def and_masks(*mask_mods: Mod) -> Mod:
    """What all of the masks let see."""
    return _joined(and_, True, mask_mods)


def or_masks(*mask_mods: Mod) -> Mod:
    """What one of the masks lets see."""
    return _joined(or_, False, mask_mods)


def _joined(op: Callable[[Any, Any], Any], empty: bool, mask_mods: tuple[Mod, ...]) -> Mod:
    if not all(callable(mask_mod) for mask_mod in mask_mods):
        raise RuntimeError(f"All inputs should be callable mask_mods: {mask_mods}")

    def joined(b: Tensor, h: Tensor, q_idx: Tensor, kv_idx: Tensor) -> Tensor:
        first = b.new_full((), empty, dtype=dtypes.bool_)
        return reduce(op, (mask_mod(b, h, q_idx, kv_idx) for mask_mod in mask_mods), first)

    return joined


def _positions(shape: tuple[int, ...], device: DeviceLike) -> list[Tensor]:
    return [create.arange(size, device=device) for size in shape]


def _everywhere(function: Mod, *operands: Tensor, positions: list[Tensor]) -> Tensor:
    """A function of a batch, a head, and positions of a row and a key, over all of them; `operands` has these axes."""
    vmap = import_module("pywebgpu.func.batch").vmap  # It is made of what is made of layers.
    for axis in range(3, -1, -1):
        mapped = [0 if position == axis else None for position in range(4)]
        function = vmap(function, (*(0 for _ in operands), *mapped))
    scores: Tensor = function(*operands, *positions)
    return scores


def create_mask(
    mod_fn: Mod, B: int | None, H: int | None, Q_LEN: int, KV_LEN: int, device: DeviceLike = None
) -> Tensor:
    """What a mask_mod (b, h, q_idx, kv_idx), or a score_mod with a score before those, lets see: (b, h, q, kv)."""
    shape = (B or 1, H or 1, Q_LEN, KV_LEN)
    if len(inspect.signature(mod_fn).parameters) == 5:
        scores = create.zeros(shape, device=device)
        shown: Tensor = _everywhere(mod_fn, scores, positions=_positions(shape, device)) != -math.inf
        return shown
    mask: Tensor = _everywhere(mod_fn, positions=_positions(shape, device))
    return mask


class BlockMask:
    """A mask over positions: the window that it keeps to, and `seen`, (b, h, q, kv), where that is not all it says.

    Blocks are counted when they are asked for: kv_num_blocks and kv_indices those with some pair to be seen and some
    not, full_kv_num_blocks and full_kv_indices those that are seen altogether.
    """

    def __init__(
        self, mask_mod: Mod, shape: tuple[int, int, int, int], block: tuple[int, int], device: DeviceLike
    ) -> None:
        self.mask_mod, self.shape, self.BLOCK_SIZE, self.seq_lengths = mask_mod, shape, block, shape[2:]
        positions = _positions(shape, device)
        self.device = positions[0].device
        mask = _everywhere(mask_mod, positions=positions)
        if mask.dtype is not dtypes.bool_:
            raise TypeError(f"create_block_mask: mask_mod must give bool, got {mask.dtype}")
        self.window, is_whole = windows.of(mask._node, positions[2]._node, positions[3]._node)
        self.seen: Tensor | None = None if is_whole else mask

    def to_mask(self) -> Tensor:
        """(b, h, q, kv), True where a pair is seen."""
        return create_mask(self.mask_mod, *self.shape, device=self.device) if self.seen is None else self.seen

    def to_dense(self) -> Tensor:
        """(b, h, blocks of q, blocks of kv): 1 where some pair of a block is seen."""
        return (self._counts > 0).to(dtypes.int32)

    @cached_property
    def _counts(self) -> Tensor:
        """How many pairs of each block are seen."""
        rows, columns = (-(-size // block) for size, block in zip(self.seq_lengths, self.BLOCK_SIZE, strict=True))
        high, wide = self.BLOCK_SIZE
        mask = self.to_mask().to(dtypes.int32)
        mask = functional.pad(mask, (0, columns * wide - self.shape[3], 0, rows * high - self.shape[2]))
        return mask.reshape(*self.shape[:2], rows, high, columns, wide).sum((3, 5), dtype=dtypes.int32)

    @cached_property
    def _partial(self) -> tuple[Tensor, Tensor]:
        return _ordered((self._counts > 0) & (self._counts < math.prod(self.BLOCK_SIZE)))

    @cached_property
    def _full(self) -> tuple[Tensor, Tensor]:
        return _ordered(self._counts == math.prod(self.BLOCK_SIZE))

    kv_num_blocks = property(lambda self: self._partial[0])
    kv_indices = property(lambda self: self._partial[1])
    full_kv_num_blocks = property(lambda self: self._full[0])
    full_kv_indices = property(lambda self: self._full[1])

    def numel(self) -> int:
        return math.prod(self.shape)

    def sparsity(self) -> float:
        """How much less than all pairs the blocks have of which something is seen, in per cent."""
        return 100 * (1 - int(self.to_dense().sum().item()) * math.prod(self.BLOCK_SIZE) / self.numel())

    def to(self, device: DeviceLike) -> BlockMask:
        return BlockMask(self.mask_mod, self.shape, self.BLOCK_SIZE, device)

    def __repr__(self) -> str:
        return f"BlockMask(shape={self.shape}, BLOCK_SIZE={self.BLOCK_SIZE}, sparsity={self.sparsity():.2f}%)"

    @classmethod
    def from_kv_blocks(cls, *args: object, **options: object) -> BlockMask:
        raise NotImplementedError("BlockMask.from_kv_blocks is not here: use create_block_mask with a mask_mod")


def _ordered(blocks: Tensor) -> tuple[Tensor, Tensor]:
    """Of each row of blocks how many are True, and the numbers of those first."""
    chosen = blocks.to(dtypes.int32)
    return chosen.sum(-1, dtype=dtypes.int32), chosen.argsort(-1, descending=True, stable=True).to(dtypes.int32)


def create_block_mask(
    mask_mod: Mod,
    B: int | None,
    H: int | None,
    Q_LEN: int,
    KV_LEN: int,
    device: DeviceLike = None,
    BLOCK_SIZE: int | tuple[int, int] = _DEFAULT_SPARSE_BLOCK_SIZE,
    _compile: bool = False,
    **options: bool,
) -> BlockMask:
    """The mask that mask_mod(b, h, q_idx, kv_idx) makes, for attention over q_idx < Q_LEN and kv_idx < KV_LEN.

    B, H: None where the mask is the same for each batch or head. options: how kernels of PyTorch's walk blocks.
    """
    block = (BLOCK_SIZE, BLOCK_SIZE) if isinstance(BLOCK_SIZE, int) else BLOCK_SIZE
    return BlockMask(mask_mod, (B or 1, H or 1, Q_LEN, KV_LEN), (block[0], block[1]), device)


def flex_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    score_mod: Mod | None = None,
    block_mask: BlockMask | None = None,
    scale: float | None = None,
    enable_gqa: bool = False,
    return_lse: bool = False,
    kernel_options: dict[str, Any] | None = None,
    *,
    return_aux: AuxRequest | None = None,
) -> Tensor | tuple[Tensor, Tensor | AuxOutput | None]:
    """softmax(score_mod(query key^T scale), where block_mask lets see) value; a row that sees nothing gives zeros.

    Shapes: query (b, h, l, e), key (b, h, s, e), value (b, h, s, v) -> (b, h, l, v); with enable_gqa key and value may
    have fewer heads. score_mod: (score, b, h, q_idx, kv_idx) -> score. return_aux, return_lse: what is given beside.
    """
    _check(query, key, block_mask, enable_gqa)
    if return_lse and return_aux is not None:
        raise ValueError("Cannot specify both return_lse and return_aux: return_aux=AuxRequest(lse=True) says both")
    if score_mod is None and not return_lse and return_aux is None:
        return _fused(query, key, value, block_mask, scale, enable_gqa)
    scores = _scores(query, key, score_mod, block_mask, scale)
    peak = scores.amax(-1)
    is_hidden = peak < HIDDEN / 2
    known = peak.detach().masked_fill(is_hidden, 0.0)
    powers = (scores - known.unsqueeze(-1)).exp()
    sums = powers.sum(-1).masked_fill(is_hidden, 1.0)
    out = (powers / sums.unsqueeze(-1)).to(query.dtype) @ _for_heads(value, query)
    if return_aux is None and not return_lse:
        return out
    wanted = return_aux or AuxRequest(lse=True)
    lse = (sums.log() + known).masked_fill(is_hidden, -math.inf) if wanted.lse else None
    if return_aux is None:
        return out, lse
    return out, AuxOutput(lse, peak.masked_fill(is_hidden, -math.inf) if wanted.max_scores else None)


def _check(query: Tensor, key: Tensor, block_mask: BlockMask | None, enable_gqa: bool) -> None:
    if query.ndim != 4 or key.ndim != 4:
        raise NotImplementedError("NYI: query, key, and value must be 4D tensors")
    if not enable_gqa and query.shape[1] != key.shape[1]:
        raise ValueError(
            f"Expect query and key/value to have the same number of heads but got Hq={query.shape[1]} and "
            f"Hkv={key.shape[1]}. Try setting enable_gqa=True for GQA."
        )
    if query.shape[1] % key.shape[1]:
        raise ValueError(
            f"Expect number of query heads to be a multiple of kv heads for GQA but got Hq={query.shape[1]} and "
            f"Hkv={key.shape[1]}."
        )
    if block_mask is None:
        return
    if (query.shape[2], key.shape[2]) != block_mask.seq_lengths:
        raise ValueError(
            f"block_mask was created for block_mask.shape={block_mask.shape} but got q_len={query.shape[2]} and "
            f"kv_len={key.shape[2]}: create a mask for these lengths"
        )
    if query.device != block_mask.device:
        raise RuntimeError(
            f"Expect q/k/v and block_mask to be on the same device but got {query.device} and {block_mask.device}."
        )


def _fused(
    query: Tensor, key: Tensor, value: Tensor, mask: BlockMask | None, scale: float | None, enable_gqa: bool
) -> Tensor:
    return apply(
        _attention.scaled_dot_product_attention,
        query,
        key,
        value,
        None if mask is None else mask.seen,
        scale=scale,
        enable_gqa=enable_gqa and query.shape[1] != key.shape[1],
        window=_attention.ALL if mask is None else mask.window,
        fused=not query.is_cpu,
    )


def _scores(query: Tensor, key: Tensor, score_mod: Mod | None, mask: BlockMask | None, scale: float | None) -> Tensor:
    """float32, or float64. Of pairs that are hidden a number below all others: -inf is none to compute with."""
    wide = dtypes.float64 if query.dtype is dtypes.float64 else dtypes.float32
    scale = query.shape[-1] ** -0.5 if scale is None else scale
    scores: Any = query.to(wide) @ _for_heads(key, query).to(wide).transpose(-2, -1) * scale
    if score_mod is not None:
        scores = _everywhere(score_mod, scores, positions=_positions(scores.shape, query.device)).to(wide)
    scores = scores if mask is None else scores.masked_fill(~mask.to_mask(), HIDDEN)
    least: Tensor = scores.clamp_min(HIDDEN)
    return least


def _for_heads(x: Tensor, query: Tensor) -> Tensor:
    """Key or value, for each head of the query."""
    count = query.shape[1] // x.shape[1]
    return x if count == 1 else x.repeat_interleave(count, 1)


__getattr__ = lazy.absent(__name__)
