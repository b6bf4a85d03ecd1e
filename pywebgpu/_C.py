"""torch._C, as far as libraries in Python read it."""

from pywebgpu.overrides import DisableTorchFunction as DisableTorchFunction
from pywebgpu.overrides import DisableTorchFunctionSubclass as DisableTorchFunctionSubclass
from pywebgpu.tensor.dispatch import disabled as _disabled_torch_function_impl  # noqa: F401
