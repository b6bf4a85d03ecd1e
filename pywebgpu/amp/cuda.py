"""torch.cuda.amp: PyTorch's older names, for the default device."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from pywebgpu import dtypes
from pywebgpu.amp import autocast_mode, function, grad_scaler
from pywebgpu.dtypes import DType

custom_fwd: Callable[..., Any] = functools.partial(function.custom_fwd, device_type="cuda")
custom_bwd: Callable[..., Any] = functools.partial(function.custom_bwd, device_type="cuda")


class autocast(autocast_mode.autocast):
    """amp.autocast("cuda", ...)"""

    def __init__(self, enabled: bool = True, dtype: DType = dtypes.float16, cache_enabled: bool | None = None) -> None:
        super().__init__("cuda", dtype, enabled, cache_enabled)


class GradScaler(grad_scaler.GradScaler):
    """amp.GradScaler("cuda", ...)"""

    def __init__(
        self,
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        super().__init__("cuda", init_scale, growth_factor, backoff_factor, growth_interval, enabled)
