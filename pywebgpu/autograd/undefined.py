"""Functions that PyTorch has in torch._C._functions: copies whose gradient is missing, or an error."""

from __future__ import annotations

from typing import Any, NoReturn

from pywebgpu.autograd.function import Function, FunctionCtx
from pywebgpu.tensor.tensor import Tensor


class _Undefined(Function):
    """Copies; no gradient comes back."""

    @staticmethod
    def forward(ctx: FunctionCtx, *tensors: Tensor) -> tuple[Tensor, ...]:
        return tuple(tensor.clone() for tensor in tensors)

    @staticmethod
    def backward(ctx: FunctionCtx, *grads: Tensor) -> tuple[None, ...]:
        return (None,) * len(grads)


class _Delayed(Function):
    """Copies; their gradient is an error of the text that comes first."""

    @staticmethod
    def forward(ctx: Any, text: str, *tensors: Tensor) -> tuple[Tensor, ...]:
        ctx.text = text
        return tuple(tensor.clone() for tensor in tensors)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> NoReturn:
        raise RuntimeError(ctx.text)


class UndefinedGrad:
    """UndefinedGrad()(*tensors): the tensors, whose gradients never arrive."""

    def __call__(self, *tensors: Tensor) -> Any:
        results = _Undefined.apply(*tensors)
        return results[0] if len(tensors) == 1 else results


class DelayedError:
    """DelayedError(text, num_inputs)(*tensors): the tensors; backward through them raises RuntimeError."""

    def __init__(self, msg: str, num_inputs: int) -> None:
        self.text = msg

    def __call__(self, *tensors: Tensor) -> Any:
        results = _Delayed.apply(self.text, *tensors)
        return results[0] if len(tensors) == 1 else results
