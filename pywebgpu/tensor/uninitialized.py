"""What memory holds that nothing wrote: zeros; or, with deterministic algorithms, what shows where it is read."""

from __future__ import annotations

from pywebgpu import dtypes
from pywebgpu.dtypes import DType, Kind

deterministic = False  # use_deterministic_algorithms
warns = False  # its warn_only
fills = True  # torch.utils.deterministic.fill_uninitialized_memory


def value(dtype: DType) -> float:
    """NaN, the largest whole number, or True; 0 without deterministic algorithms."""
    if not (deterministic and fills):
        return 0
    if dtype is dtypes.bool_:
        return True
    return float("nan") if dtype.kind is Kind.FLOAT else int(dtype.high)
