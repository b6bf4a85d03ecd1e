"""What the functions of this package share: their dtypes, their `out`, their gradients, polynomials."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from pywebgpu import dtypes
from pywebgpu.autograd.function import Function, FunctionCtx
from pywebgpu.dtypes import Kind
from pywebgpu.step_capture.free_number import NUMBERS
from pywebgpu.tensor import functions, outputs
from pywebgpu.tensor.apply import called
from pywebgpu.tensor.base import TensorBase
from pywebgpu.tensor.memory_format import kept
from pywebgpu.tensor.methods import named_by_numpy

if TYPE_CHECKING:
    from pywebgpu.tensor.tensor import Tensor
    from pywebgpu.tensor.types import Operand

    Smooth = Callable[[Tensor], Tensor]


def unary(name: str, text: str, value: Smooth, derivative: Smooth | None = None) -> Callable[..., Tensor]:
    """The public function of one tensor: whole numbers as floats, half floats computed in float32."""

    def function(input: Tensor, *, out: Tensor | None = None) -> Tensor:
        (x,), dtype = real(tensor_of(name, input))
        return finished(f"special.{name}", smooth(x, value, derivative, name).to(dtype), out, input)

    function.__name__ = function.__qualname__ = name
    function.__doc__, function.__module__ = text, value.__module__
    return named_by_numpy(function)


def finished(name: str, result: Tensor, out: Tensor | None, *operands: Operand) -> Tensor:
    """The result of a function by element, in `out` where that is given; in memory as one op's of the operands."""
    return outputs.finished(name, kept(result, *operands), out, *operands)


def tensor_of(name: str, value: Any) -> Any:
    """The value. Raises TypeError for what is no tensor."""
    if not isinstance(value, TensorBase):
        raise TypeError(f"{name}(): argument 'input' must be Tensor, not {type(value).__name__}")
    return value


def real(*operands: Any) -> tuple[list[Any], dtypes.DType]:
    """Tensors and numbers as tensors of the dtype to compute in, broadcast; and the dtype of the result."""
    items: list[Any] = list(operands)
    if not any(isinstance(item, TensorBase) for item in items):
        raise TypeError(f"one of the arguments must be Tensor, not {type(items[0]).__name__}")
    first: Any = next(item for item in items if isinstance(item, TensorBase))
    dtype = items[0].dtype if len(items) == 1 else functions.result_type(*items)
    dtype = dtype if dtype.kind is Kind.FLOAT else dtypes.default()
    wide = dtypes.float32 if dtype.itemsize == 2 else dtype
    converted = [first.new_full((), item, dtype=wide) if isinstance(item, NUMBERS) else item.to(wide) for item in items]
    return converted if len(converted) == 1 else list(functions.broadcast_tensors(*converted)), dtype


def smooth(x: Tensor, value: Smooth, derivative: Smooth | None, name: str) -> Tensor:
    """value(x), whose gradient is `derivative`."""
    result: Tensor = _function(value, derivative, name).apply(x) if x.requires_grad else value(x)
    return called(result, f"aten::special_{name}")


@lru_cache(256)
def _function(value: Smooth, derivative: Smooth | None, name: str) -> type[Function]:
    def forward(ctx: FunctionCtx, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return value(x)

    def backward(ctx: FunctionCtx, g: Tensor) -> Tensor:
        if derivative is None:
            raise NotImplementedError(f"the derivative of special.{name} is not here")
        (x,) = ctx.saved_tensors
        return g * derivative(x)

    return type(name, (Function,), {"forward": staticmethod(forward), "backward": staticmethod(backward)})


def polynomial(t: Tensor, factors: Sequence[float]) -> Tensor:
    """The factors times 1, t, t^2 and so on: they were fitted for t in [-1, 1]."""
    total = t * factors[-1] + factors[-2]
    for factor in factors[-3::-1]:
        total = total * t + factor
    return total


def between(x: Tensor, low: float, high: float) -> Tensor:
    """x in [low, high] as t in [-1, 1]; what is outside as the nearest end."""
    return (x.clamp(low, high) - (low + high) / 2) * (2 / (high - low))
