from pywebgpu.support import lazy as _lazy

# What a step of training rarely compiles.
_lazy.modules(f"{__name__}.templates", "scan scan_blocks scatter_few scatter_rows sort")
