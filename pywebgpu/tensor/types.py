"""What tensors' methods take, in PyTorch's words. For annotations only: nothing imports it while it runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import EllipsisType
from typing import TYPE_CHECKING, Any, Protocol, SupportsIndex, TypedDict

from pywebgpu.ir.graph import Node
from pywebgpu.step_capture.free_number import Number
from pywebgpu.tensor.base import TensorBase
from pywebgpu.tensor.tensor import Tensor

if TYPE_CHECKING:
    from pywebgpu.dtypes import DType
    from pywebgpu.tensor.factory_options import DeviceLike

Operand = TensorBase | Number  # beside a tensor
NodeOperand = Node | Number  # the same for functions of nodes
Dims = int | Sequence[int] | None  # an axis, several, or None for all
Sizes = int | Sequence[int]
Unary = Callable[[TensorBase], Tensor]  # a method without arguments
Binary = Callable[[TensorBase, Operand], Tensor]
Tensors = Tensor | Sequence[Tensor]
Grads = TensorBase | Sequence[TensorBase | None] | None  # gradients of outputs; None stands for 1
Index = SupportsIndex | slice | EllipsisType | Tensor | Sequence[Any] | None  # a subscript
Part = int | slice | EllipsisType | Node | None  # one part of a subscript, taken apart


class Array(Protocol):
    """What has NumPy's array interface: an array, or a number of NumPy."""

    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def ndim(self) -> int: ...
    @property
    def dtype(self) -> Any: ...
    def astype(self, dtype: str) -> Array: ...
    def tobytes(self) -> bytes: ...
    def __int__(self) -> int: ...
    def tolist(self) -> Any: ...


class Made(TypedDict, total=False):
    """What functions that make a tensor take by keyword; see FactoryOptions."""

    dtype: DType | None
    device: DeviceLike
    requires_grad: bool
    out: Tensor | None
    layout: object
    pin_memory: bool
    memory_format: object
    names: object


class Sized(Made, total=False):
    """The same where the size may come by keyword."""

    size: Sequence[int]


class Bounded(Sized, total=False):
    """The same for whole numbers of [low, high)."""

    low: int
    high: int


class Ranged(Made, total=False):
    """The same where start, end and step may come by keyword."""

    start: Operand
    end: Operand
    step: Operand
