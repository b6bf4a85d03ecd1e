"""torch._custom_ops: the older names of torch.library."""

from pywebgpu.torch_api.library import custom_op as custom_op
from pywebgpu.torch_api.library import get_ctx as get_ctx
from pywebgpu.torch_api.library import impl as impl
from pywebgpu.torch_api.library import impl_abstract as impl_abstract
