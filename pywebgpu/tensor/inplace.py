"""Forms in place: the same method, its result written into the tensor, so into its storage and all views of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ParamSpec, Self, TypeVar

from pywebgpu import dtypes
from pywebgpu.composites import arithmetic
from pywebgpu.ir.graph import Node, thread_state
from pywebgpu.ops import pointwise
from pywebgpu.step_capture.free_number import number
from pywebgpu.tensor import overlap, transfer
from pywebgpu.tensor.apply import called
from pywebgpu.tensor.base import TensorBase
from pywebgpu.tensor.contraction import ContractionMethods
from pywebgpu.tensor.view import shows_twice
from pywebgpu.tensor.written import form

if TYPE_CHECKING:
    from pywebgpu.tensor.tensor import Tensor
    from pywebgpu.tensor.types import Operand

P = ParamSpec("P")
S = TypeVar("S", bound=TensorBase)


_of = ContractionMethods


class InplaceMethods(ContractionMethods):
    """Methods that write into their own tensor and return it."""

    __slots__ = ()

    add_, sub_, div_ = form(_of.add), form(_of.sub), form(_of.div)
    subtract_, divide_, true_divide_ = sub_, div_, form(_of.true_divide)
    pow_, heaviside_ = form(_of.pow), form(_of.heaviside)
    _float_power_ = form(_of.float_power)
    logit_, round_, nan_to_num_ = form(_of.logit), form(_of.round), form(_of.nan_to_num)
    clamp_ = clip_ = form(_of.clamp)
    clamp_min_, clamp_max_ = form(_of.clamp_min), form(_of.clamp_max)
    lerp_, addcmul_, addcdiv_ = form(_of.lerp), form(_of.addcmul), form(_of.addcdiv)
    logical_and_, logical_or_, logical_xor_ = form(_of.logical_and), form(_of.logical_or), form(_of.logical_xor)
    cumsum_, cumprod_ = form(_of.cumsum), form(_of.cumprod)
    addmm_, addmv_, addr_ = form(_of.addmm), form(_of.addmv), form(_of.addr)
    baddbmm_, addbmm_ = form(_of.baddbmm), form(_of.addbmm)

    # Values from elsewhere

    def float_power_(self, exponent: Operand) -> Self:
        """self to the power of the exponent. Raises RuntimeError where self is of another dtype than the result."""
        power: Any = exponent._node if isinstance(exponent, TensorBase) else exponent
        is_complex = type(power) is complex or arithmetic.result_type(self._node, power).part is not None
        dtype = dtypes.complex128 if is_complex else dtypes.float64
        if self.dtype is not dtype:
            raise RuntimeError(
                f"the base given to float_power_ has dtype {self.dtype.title} but the operation's result requires "
                f"dtype {dtype.title}"
            )
        return self._float_power_(exponent)  # type: ignore[return-value]  # The tensor itself.

    def zero_(self) -> Self:
        """0 everywhere."""
        return called(self.fill_(0), "aten::zero")  # type: ignore[return-value]  # The tensor itself.

    def fill_(self, value: Operand) -> Self:
        """One number everywhere: of Python, or of a tensor without axes."""
        if not isinstance(value, TensorBase):
            value = number(value, "fill_", "value")
        elif value.ndim:
            raise RuntimeError(
                f"fill_ only supports 0-dimension value tensor but got tensor with {value.ndim} dimensions."
            )
        if self._path:
            once = self._shown_once()
            if shows_twice(tuple(once.shape), once.stride()):
                for position in range(once.shape[0]):
                    once.select(0, position).fill_(value)
            else:
                once._assign(once._fitted(value))
            return self
        filled = self._assign(self._fitted(value))
        return called(filled, "aten::fill.3" if isinstance(value, TensorBase) else "aten::fill.2")  # type: ignore[return-value]

    def _shown_once(self) -> Tensor:
        """The first of all positions along an expanded axis, which show one element."""
        once: Any = self
        for axis, step in enumerate(self.stride()):
            if step == 0 and self.shape[axis] > 1:
                once = once.narrow(axis, 0, 1)
        return once  # type: ignore[no-any-return]

    def copy_(self, src: Operand, non_blocking: bool = False) -> Self:
        """The elements of `src`, which broadcasts, in this tensor's dtype and on its device."""
        if isinstance(src, TensorBase):
            if overlap.shows_same(self, src) and not self._changes_history(src):
                self._check_writable()
                return self
            overlap.check(self, src)
            if src._storage.device is not self._storage.device:
                src = transfer.transfer(src, self._storage.device)
        return called(self._assign(self._fitted(src)), "aten::copy_")  # type: ignore[return-value]  # The tensor itself.

    def _changes_history(self, src: TensorBase) -> bool:
        """Whether a copy from another view of the same elements is one for the gradient."""
        return thread_state.grad and src._history is not self._history and (self.requires_grad or src.requires_grad)

    def _fitted(self, value: Operand) -> Node:
        """A value as a node of this tensor's shape and dtype."""
        old = self._spec_node()
        dtype = old.spec.dtype
        if isinstance(value, TensorBase):
            if value._storage.device is not self._storage.device:
                value = transfer.transfer(value, self._storage.device)
            node = arithmetic.cast(value._node, dtype)
            if node is value._node:
                node = pointwise.copy(node)  # The other tensor's, which marks it when it is written.
        else:
            node = arithmetic.stored(value, dtype)
        node = arithmetic.broadcast_to(node, _fits(node.spec.shape, old.spec.shape))
        return pointwise.unmoved(node, self._node) if node.requires and thread_state.grad else node


def _fits(small: tuple[int, ...], large: tuple[int, ...]) -> tuple[int, ...]:
    padded = (1,) * (len(large) - len(small)) + small
    if len(padded) > len(large) or any(m not in (1, n) for m, n in zip(padded, large, strict=True)):
        raise RuntimeError(
            f"The size of tensor a ({list(large)}) must match the size of tensor b ({list(small)}): the value does not "
            f"broadcast"
        )
    return large
