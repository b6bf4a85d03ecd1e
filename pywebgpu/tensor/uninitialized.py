"""What memory holds that nothing wrote: zeros; or, with deterministic algorithms, what shows where it is read."""

from __future__ import annotations

from pywebgpu import dtypes
from pywebgpu.dtypes import DType, Kind
from pywebgpu.ir.observer import share


class _Settings:
    """Those of torch.use_deterministic_algorithms, and torch.utils.deterministic.fill_uninitialized_memory."""

    def __init__(self) -> None:
        self.deterministic, self.warns, self.fills = False, False, True


settings = share("deterministic algorithms", _Settings())


def value(dtype: DType) -> float:
    """NaN, the largest whole number, or True; 0 without deterministic algorithms."""
    if not (settings.deterministic and settings.fills):
        return 0
    if dtype is dtypes.bool_:
        return True
    return float("nan") if dtype.kind is Kind.FLOAT else int(dtype.high)
