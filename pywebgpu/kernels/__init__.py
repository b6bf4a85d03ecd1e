"""From groups of nodes to WGSL: kernels as data, templates that build them, and how they are laid out over a device."""

from pywebgpu.support import lazy as _lazy

# What a step of training rarely compiles.
_lazy.modules(
    f"{__name__}.templates",
    "attention_parts quantized row_writes scan scan_blocks scatter_few scatter_rows sort sort_large_blocks",
)
_lazy.modules(__name__, "window_parts")  # Buffers larger than one binding are rare.
