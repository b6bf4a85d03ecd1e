"""Methods that compute each element on its own, under torch's names."""

from __future__ import annotations

from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, overload

from pywebgpu import dtypes
from pywebgpu.composites import arithmetic, elementwise, logic
from pywebgpu.ir.graph import Node, thread_state, used
from pywebgpu.ops import pointwise as ops
from pywebgpu.tensor.apply import apply, called
from pywebgpu.tensor.base import TensorBase
from pywebgpu.tensor.elementwise import ElementwiseMethods
from pywebgpu.tensor.memory_format import kept
from pywebgpu.tensor.methods import aliased, also_named, binary, later, node_of, operand, pair, settling

if TYPE_CHECKING:
    from pywebgpu.tensor.tensor import Tensor
    from pywebgpu.tensor.types import Operand


def _value_first(name: str, value: object) -> float:
    """The number that an older order of arguments begins with. Raises TypeError for what is no number."""
    if isinstance(value, bool) or not isinstance(value, int | float | complex):
        raise TypeError("an order of arguments of older programs begins with a number")
    memory: Any = import_module("pywebgpu.tensor.host_memory")
    memory.warn_once(f"This overload of {name} is deprecated: name the number that comes first, as value= or alpha=")
    return value  # type: ignore[return-value]  # A complex number, of complex tensors.


class PointwiseMethods(ElementwiseMethods):
    """Arithmetic, functions of real numbers, comparisons, bits."""

    __slots__ = ()

    # Arithmetic

    @settling
    def add(self, other: Operand, *older: Tensor, alpha: float = 1) -> Tensor:
        """self + alpha other. An older order is (alpha, other)."""
        if older:
            alpha, (other,) = _value_first("add", other), older
        return kept(
            self._new(arithmetic.add(self._node, operand(self, other), alpha), self._storage.device), self, other
        )

    @settling
    def sub(self, other: Operand, *, alpha: float = 1) -> Tensor:
        """self - alpha other"""
        return kept(
            self._new(arithmetic.sub(self._node, operand(self, other), alpha), self._storage.device), self, other
        )

    @settling
    def rsub(self, other: Operand, *, alpha: float = 1) -> Tensor:
        """other - alpha self"""
        return kept(
            self._new(elementwise.rsub(self._node, operand(self, other), alpha), self._storage.device), other, self
        )

    @settling
    def div(self, other: Operand, *, rounding_mode: str | None = None) -> Tensor:
        """self / other; rounding_mode "floor" or "trunc" rounds the quotient and keeps integers integers."""
        result = self._new(arithmetic.div(self._node, operand(self, other), rounding_mode), self._storage.device)
        result = kept(result, self, other)
        return result if rounding_mode is None else called(result, "aten::div.2")

    ldexp = later("pywebgpu.tensor.bits", "ldexp")
    subtract, divide = sub, div
    true_divide = binary(arithmetic.div)
    heaviside = also_named(values="other")(pair(elementwise.heaviside))

    @settling
    def pow(self, exponent: Operand) -> Tensor:
        """self to a power."""
        if used.autocast is not None and thread_state.autocast:
            return apply(elementwise.pow_, self, exponent)
        return kept(
            self._new(elementwise.pow_(self._node, operand(self, exponent)), self._storage.device), self, exponent
        )

    @settling
    def float_power(self, exponent: Operand) -> Tensor:
        """self to a power, in float64."""
        return kept(
            self._new(elementwise.float_power(self._node, operand(self, exponent)), self._storage.device),
            self,
            exponent,
        )

    @aliased
    def logaddexp2(self, other: Tensor) -> Tensor:
        """log2(2^self + 2^other)"""
        return called(apply(elementwise.logaddexp, self, other, 2.0), "aten::logaddexp2")

    def positive(self) -> Tensor:
        """The tensor itself. Raises RuntimeError for bools."""
        if not self.dtype.is_signed and self.dtype.kind == 0:
            raise RuntimeError("The `+` operator, on a bool tensor is not supported.")
        return self  # type: ignore[return-value]  # Only Tensors are made.

    # Functions of real numbers

    def logit(self, eps: float | None = None) -> Tensor:
        """log(x / (1 - x)), with x held in [eps, 1 - eps]."""
        return apply(elementwise.logit, self, eps)

    # Rounding, signs, bounds

    def round(self, *, decimals: int = 0) -> Tensor:
        """The nearest number with `decimals` digits, halves to even."""
        return apply(elementwise.round_, self, decimals)

    def clamp(self, min: Operand | None = None, max: Operand | None = None) -> Tensor:
        """Held between `min` and `max`, numbers or tensors; NaN stays."""
        low = None if min is None else operand(self, min)
        high = None if max is None else operand(self, max)
        kind = "aten::clamp" if isinstance(low, Node) or isinstance(high, Node) else "clamp"
        result = self._new(elementwise.clamp(self._node, low, high), self._storage.device)
        return called(kept(result, self, *(bound for bound in (min, max) if isinstance(bound, TensorBase))), kind)

    clip = clamp

    def clamp_min(self, min: Operand) -> Tensor:
        """No element below a bound."""
        return called(self.clamp(min, None), "clamp_min")

    def clamp_max(self, max: Operand) -> Tensor:
        """No element above a bound."""
        return called(self.clamp(None, max), "clamp_max")

    def nan_to_num(self, nan: float | None = None, posinf: float | None = None, neginf: float | None = None) -> Tensor:
        """NaN and the infinities replaced: by 0, and by the largest numbers of the dtype."""
        return apply(elementwise.nan_to_num, self, nan, posinf, neginf)

    def lerp(self, end: Tensor, weight: Operand) -> Tensor:
        """self + weight (end - self)"""
        return apply(elementwise.lerp, self, end, weight)

    def addcmul(self, tensor1: Tensor, tensor2: Tensor, *older: Tensor, value: float = 1) -> Tensor:
        """self + value tensor1 tensor2. An older order is (value, tensor1, tensor2)."""
        if older:
            value, tensor1, tensor2 = _value_first("addcmul", tensor1), tensor2, *older
        return apply(elementwise.addcmul, self, tensor1, tensor2, value)

    def addcdiv(self, tensor1: Tensor, tensor2: Tensor, *older: Tensor, value: float = 1) -> Tensor:
        """self + value tensor1 / tensor2. An older order is (value, tensor1, tensor2)."""
        if older:
            value, tensor1, tensor2 = _value_first("addcdiv", tensor1), tensor2, *older
        return apply(elementwise.addcdiv, self, tensor1, tensor2, value)

    def where(self, condition: Tensor, other: Operand) -> Tensor:
        """self where `condition`, else `other`."""
        return where(condition, self, other)

    # Comparison and logic

    logical_and = pair(partial(logic.logical, ops.bitwise_and))
    logical_or = pair(partial(logic.logical, ops.bitwise_or))
    logical_xor = pair(partial(logic.logical, ops.bitwise_xor))

    @aliased
    def isclose(
        self, other: Tensor, rtol: Tensor | float = 1e-05, atol: Tensor | float = 1e-08, equal_nan: bool = False
    ) -> Tensor:
        """|self - other| <= atol + rtol |other|, by element."""
        if not isinstance(other, TensorBase):
            raise TypeError(f"isclose(): argument 'other' (position 1) must be Tensor, not {type(other).__name__}")
        bounds = [bound.item() if isinstance(bound, TensorBase) else bound for bound in (rtol, atol)]
        return apply(logic.isclose, self, other, *bounds, equal_nan)

    @aliased
    def allclose(self, other: Tensor, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> bool:
        """Whether all elements are close. Waits for the device."""
        return bool(self.isclose(other, rtol, atol, equal_nan).all().item())

    @aliased
    def equal(self, other: Tensor) -> bool:
        """Whether shape and all elements are equal. Waits for the device."""
        if not isinstance(other, TensorBase):
            raise TypeError(f"equal(): argument 'other' (position 1) must be Tensor, not {type(other).__name__}")
        return tuple(self.shape) == tuple(other.shape) and bool(self.eq(other).all().item())


@overload
def where(condition: TensorBase) -> tuple[Tensor, ...]: ...
@overload
def where(condition: TensorBase, input: Operand, other: Operand) -> Tensor: ...
def where(condition: TensorBase, input: Operand | None = None, other: Operand | None = None) -> object:
    """`input` where the condition holds, else `other`; with the condition alone, where it holds (see nonzero)."""
    if input is None and other is None:
        held: Any = condition
        return held.nonzero(as_tuple=True)
    if not isinstance(condition, TensorBase):
        raise TypeError(f"where(): argument 'condition' (position 1) must be Tensor, not {type(condition).__name__}")
    if condition.dtype not in (dtypes.bool_, dtypes.uint8):
        raise RuntimeError(
            f"where expected condition to be a boolean tensor, but got a tensor with dtype {condition.dtype}"
        )
    device = condition._storage.device
    if condition.ndim == 0:
        device = next((x._storage.device for x in (input, other) if isinstance(x, TensorBase)), device)
    guide = next((x for x in (input, other) if isinstance(x, TensorBase) and x._storage.device is device), condition)
    result = condition._new(
        arithmetic.where(node_of(guide, condition), operand(guide, input), operand(guide, other)), device
    )
    return kept(result, condition, input, other)
