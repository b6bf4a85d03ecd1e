"""torch.nn.utils.stateless: functional_call by its older name."""

from pywebgpu.func.modules import functional_call as _functional_call  # noqa: F401
from pywebgpu.func.modules import functional_call as functional_call
from pywebgpu.func.modules import reparametrize_module as _reparametrize_module  # noqa: F401
