"""torch._C, as far as libraries in Python read it."""

from pywebgpu.nn import functional as _nn  # noqa: F401
from pywebgpu.tensor.dispatch import disabled as _disabled_torch_function_impl  # noqa: F401
from pywebgpu.torch_api.overrides import DisableTorchFunction as DisableTorchFunction
from pywebgpu.torch_api.overrides import DisableTorchFunctionSubclass as DisableTorchFunctionSubclass
