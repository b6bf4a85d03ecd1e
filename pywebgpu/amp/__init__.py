"""torch.amp: lower precision where it is safe, chosen op by op, and gradients scaled so that float16 can hold them."""

from pywebgpu.amp.autocast_mode import autocast, is_autocast_available
from pywebgpu.amp.function import custom_bwd, custom_fwd
from pywebgpu.amp.grad_scaler import GradScaler

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd", "is_autocast_available"]
