"""Keys and values of the tokens that a model has read, in buffers of a fixed size: every step has the same shapes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pywebgpu import dtypes
from pywebgpu.composites import row_writes
from pywebgpu.tensor import create
from pywebgpu.tensor.apply import apply
from pywebgpu.tensor.tensor import Tensor

if TYPE_CHECKING:
    from pywebgpu.dtypes import DType
    from pywebgpu.tensor.factory_options import DeviceLike


class Cache:
    """Buffers of keys and values of `n_layers` layers, each (batch, heads, length, head_dim).

    The number of tokens held lies on the device, so that a compiled step decodes at any position.
    """

    def __init__(
        self, n_layers: int, shape: tuple[int, int, int, int], *, dtype: DType | None = None, device: DeviceLike = None
    ) -> None:
        self.length = shape[2]
        self.keys = [create.zeros(shape, dtype=dtype, device=device) for _ in range(n_layers)]
        self.values = [create.zeros(shape, dtype=dtype, device=device) for _ in range(n_layers)]
        self.used = create.zeros((), dtype=dtypes.int64, device=device)

    def advance(self, offsets: Tensor) -> Tensor:
        """The positions of the next tokens, at offsets from those held; they count as held from now on."""
        positions = offsets + self.used
        self.used += offsets.shape[0]
        return positions

    def write(self, layer: int, positions: Tensor, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """All keys and values of a layer, with those of the tokens at the positions, which follow each other."""
        for stored, new in ((self.keys[layer], keys), (self.values[layer], values)):
            stored.copy_(apply(row_writes.write, stored, new, positions[0], axis=2))
        return self.keys[layer], self.values[layer]

    def rewind(self, length: int = 0) -> None:
        """Forgets all but the first `length` tokens."""
        self.used.fill_(length)
