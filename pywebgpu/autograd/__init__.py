"""Gradients for users, computed and written by them: backward, grad, Function, gradcheck, jacobian."""

from collections.abc import Sequence
from importlib import import_module
from types import ModuleType

from pywebgpu.autodiff.grad_mode import enable_grad, inference_mode, is_grad_enabled, no_grad, set_grad_enabled
from pywebgpu.autograd import functional
from pywebgpu.autograd.anomaly import detect_anomaly, set_detect_anomaly
from pywebgpu.autograd.function import Function, FunctionCtx, once_differentiable
from pywebgpu.autograd.gradcheck import GradcheckError, gradcheck, gradgradcheck
from pywebgpu.support.lazy import names as _names
from pywebgpu.tensor.gradient import backward, grad
from pywebgpu.tensor.tensor import Tensor


def _part(name: str) -> ModuleType | None:
    """A module of PyTorch's autograd that few programs name; None where there is none."""
    return None if name.startswith("__") else import_module("pywebgpu.torch_api.stand_ins").module(f"autograd.{name}")


__getattr__, __dir__, _ = _names(__name__, {}, _part)
__all__ = [
    "Function", "FunctionCtx", "GradcheckError", "Variable", "backward", "detect_anomaly", "enable_grad", "functional",
    "grad", "gradcheck", "gradgradcheck", "inference_mode", "is_grad_enabled", "no_grad", "once_differentiable",
    "set_detect_anomaly", "set_grad_enabled",
]  # fmt: skip


def _calculate_shape(output: Tensor, grad: Tensor, is_grads_batched: bool) -> tuple[Sequence[int], Sequence[int]]:
    """The shapes of an output and of its gradient; of a batch of gradients, that of one."""
    return output.shape, grad.shape[1:] if is_grads_batched else grad.shape


def Variable(data: Tensor, requires_grad: bool = False, volatile: bool = False) -> Tensor:
    """The tensor without history; what programs wrote before tensors had gradients."""
    tensor: Tensor = data.detach()
    return tensor.requires_grad_() if requires_grad else tensor
