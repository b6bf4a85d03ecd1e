"""What each op means: one record an op, in the module of its kind.

Import the module, not the name (`from pywebgpu.ops import pointwise`): nothing lists the ops, and tests discover them.
"""

from importlib import import_module


def __getattr__(name: str) -> object:
    """torch.ops.aten: PyTorch's namespace of operators has the name of this folder."""
    if name != "aten":
        raise AttributeError(f"module 'pywebgpu.ops' has no attribute {name!r}")
    return import_module("pywebgpu.torch_api.aten")
