"""torch.signal: windows."""

from pywebgpu.signal import windows as windows
