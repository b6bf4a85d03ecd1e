"""Products of rows with the matrix of their group, as mixtures of experts have them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pywebgpu.tensor import create as _create
from pywebgpu.tensor import functions as _functions
from pywebgpu.tensor.methods import named_by_numpy as _named_by_numpy

if TYPE_CHECKING:
    from pywebgpu.dtypes import DType
    from pywebgpu.tensor.tensor import Tensor


@_named_by_numpy
def grouped_mm(
    mat_a: Tensor,
    mat_b: Tensor,
    *,
    offs: Tensor | None = None,
    bias: Tensor | None = None,
    out_dtype: DType | None = None,
) -> Tensor:
    """A product for each group. Where a group ends along the axis that matrices share is in `offs`.

    Shapes: (s, k), (g, k, n) -> (s, n), rows in groups; (g, m, k), (k, s) -> (m, s), columns in groups;
    (m, s), (s, n) -> (g, m, n), what is summed in groups; (g, m, k), (g, k, n) -> (g, m, n), without offs.
    What lies behind the last group is zero, or is not summed. All groups are computed for all rows, since how many
    rows each has is known to the device alone.
    """
    if mat_a.dim() not in (2, 3) or mat_b.dim() not in (2, 3):
        raise RuntimeError(f"grouped_mm: mat_a and mat_b must have 2 or 3 axes, got {mat_a.dim()} and {mat_b.dim()}")
    if (offs is None) != (mat_a.dim() == mat_b.dim() == 3):
        raise RuntimeError("grouped_mm: have to provide offsets if there is a 2d matrix, and only then")
    if offs is None:
        product = mat_a @ mat_b
    else:
        size = mat_b.shape[-1] if mat_a.dim() == 3 else mat_a.shape[0 if mat_b.dim() == 3 else -1]
        positions = _create.arange(size, device=offs.device)
        starts = _functions.cat([offs.new_zeros(1), offs[:-1]])
        inside = (positions >= starts[:, None]) & (positions < offs[:, None])  # (g, s)
        if mat_a.dim() == 2 and mat_b.dim() == 2:
            product = mat_a.masked_fill(~inside[:, None], 0) @ mat_b.masked_fill(~inside[..., None], 0)
        else:
            hidden = ~(inside[..., None] if mat_a.dim() == 2 else inside[:, None])
            product = (mat_a @ mat_b).masked_fill(hidden, 0).sum(0)
    if bias is not None:
        product = product + bias
    return product if out_dtype is None else product.to(out_dtype)
