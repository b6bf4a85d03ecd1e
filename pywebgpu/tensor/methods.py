"""Makes Tensor methods of functions of nodes; holds what all methods share: operands, devices, argument names."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from pywebgpu import dtypes
from pywebgpu.composites import arithmetic
from pywebgpu.ir.graph import Node, thread_state, used
from pywebgpu.step_capture.free_number import NUMBERS
from pywebgpu.tensor import from_data, transfer
from pywebgpu.tensor.apply import apply, is_on_host, two_devices
from pywebgpu.tensor.base import TensorBase
from pywebgpu.tensor.dispatch import FAILED
from pywebgpu.tensor.memory_format import kept

if TYPE_CHECKING:
    from pywebgpu.tensor.tensor import Tensor
    from pywebgpu.tensor.types import Binary, NodeOperand, Operand, Unary

P = ParamSpec("P")
R = TypeVar("R")

# NumPy's names; torch takes both.
ALIASES = {"axis": "dim", "keepdims": "keepdim", "axis0": "dim0", "axis1": "dim1", "x2": "other"}
OPERANDS = {"x": "input", "a": "input", "x1": "input"}  # Those of a function's first tensor.


class NoOperandError(TypeError):
    """Raised for what is neither a tensor nor a number."""


class OnHostError(RuntimeError):
    """Raised for a tensor that is a single number of device cpu, whose other operand is elsewhere: it goes there."""


def unary(function: Callable[[Node], Node]) -> Unary:
    """A method without arguments."""

    def method(self: TensorBase) -> Tensor:
        if used.autocast is not None and thread_state.autocast:
            return apply(function, self)
        node = function(self._node)
        return kept(self._new(node.called(graph_name) if graph_name else node, self._storage.device), self)

    graph_name = _graph_name(function)

    return named(method, function)


def binary(function: Callable[[Any, Any], Node]) -> Binary:
    """A method of one other operand: a tensor or a number."""

    @aliased
    def method(self: TensorBase, other: Operand) -> Tensor:
        try:
            right = operand(self, other)
        except OnHostError:
            return method(beside(self, other), other)
        node = function(self._node, right)
        return kept(self._new(node.called(graph_name) if graph_name else node, self._storage.device), self, other)

    graph_name = _graph_name(function)
    return named(method, function)


def pair(function: Callable[[Any, Any], Node]) -> Binary:
    """A method of one other tensor; numbers are refused, as by torch."""
    name = function.args[0].name if isinstance(function, functools.partial) else function.__name__
    of_any = binary(function)

    @aliased
    def method(self: TensorBase, other: Operand) -> Tensor:
        if not isinstance(other, TensorBase):
            raise TypeError(f"{name}(): argument 'other' (position 1) must be Tensor, not {type(other).__name__}")
        return of_any(self, other)

    return named(method, function)


def operator(function: Callable[[Any, Any], Node]) -> Binary:
    """As binary; for what is no operand, Python asks the other side."""

    def method(self: TensorBase, other: Operand) -> Tensor:
        device = self._storage.device
        if used.autocast is None or not thread_state.autocast:  # What nearly every call comes to.
            if type(other) is float:
                return kept(self._new(function(self._node, other), device), self, other)
            if isinstance(other, TensorBase) and other._storage.device is device:
                return kept(self._new(function(self._node, other._node), device), self, other)
        try:
            right = operand(self, other)
        except NoOperandError:
            if not from_data.is_array(other):
                return NotImplemented  # type: ignore[no-any-return]
            right = from_data.from_array(other, None, device)  # As PyTorch's operators take them; its functions do not.
        except OnHostError:
            return method(beside(self, other), other)
        if used.autocast is not None and thread_state.autocast:
            return apply(function, self, right)
        return kept(self._new(function(self._node, right), self._storage.device), self, other)

    return named(method, function)


def with_arrays(method: Callable[P, R]) -> Callable[P, R]:
    """A write in place as an operator, which takes NumPy's arrays: the method of its name does not."""

    @functools.wraps(method)
    def written(self: Any, other: Any) -> Any:
        try:
            return method(self, other)  # type: ignore[call-arg]
        except NoOperandError:
            if not from_data.is_array(other):
                return NotImplemented
            array = self._new(from_data.from_array(other, None, self._storage.device), self._storage.device)
            return method(self, array)  # type: ignore[call-arg]

    return written  # type: ignore[return-value]


def reflected(function: Callable[[Any, Any], Node], laid_out: Callable[..., Tensor] = kept) -> Binary:
    """The operator with the tensor on the right. laid_out: called with the result, the left and the right operand."""

    def method(self: TensorBase, other: Operand) -> Tensor:
        if type(other) is float and (used.autocast is None or not thread_state.autocast):
            return laid_out(self._new(function(other, self._node), self._storage.device), other, self)
        try:
            left = operand(self, other)
        except NoOperandError:
            return NotImplemented  # type: ignore[no-any-return]
        if used.autocast is not None and thread_state.autocast:
            return apply(function, left, self)
        return laid_out(self._new(function(left, self._node), self._storage.device), other, self)

    return named(method, function)


def by_right(result: TensorBase, left: object, right: object) -> Tensor:
    """Laid out by the right operand first, as PyTorch's reflected sum, product and quotient."""
    return kept(result, right, left)


def by_tensors(result: Tensor, left: object, right: object) -> Tensor:
    """Row by row beside a number on the left, as PyTorch's powers of one."""
    return kept(result, left, right) if isinstance(left, TensorBase) else result


def _graph_name(function: Callable[..., Node]) -> str:
    """What `grad_fn` is told: the name of a function of several ops; "" of one op."""
    return "" if isinstance(function, functools.partial) else function.__name__


def named(method: Callable[P, Tensor], source: Callable[..., Node]) -> Callable[P, Tensor]:
    """Gives a method the name and the words of the function or op that it applies."""
    while isinstance(source, functools.partial):
        source = source.args[0]
    name: str = getattr(source, "__name__", "") or getattr(source, "name", "")
    method.__name__ = method.__qualname__ = name.rstrip("_")
    own = source.__doc__ if hasattr(source, "__name__") else ""
    method.__doc__ = own or f"{method.__name__}, by element."
    return method


def operand(self: TensorBase, other: object) -> NodeOperand:
    """A tensor's node or a Python number. Raises TypeError for anything else, RuntimeError for another device."""
    if isinstance(other, TensorBase):
        if other._storage.device is not self._storage.device:
            return elsewhere(self, other)
        return other._node
    if isinstance(other, NUMBERS):
        return other
    if from_data.is_array(other) and getattr(other, "ndim", True):
        raise NoOperandError(f"argument 'other' must be Tensor, not {type(other).__module__}.{type(other).__name__}")
    if isinstance(other, complex) or str(getattr(other, "dtype", "")).startswith("complex"):
        number: Node = arithmetic.parts().beside(complex(other), self.dtype)  # type: ignore[call-overload]
        return number
    if hasattr(other, "__index__"):
        return int(other)
    if hasattr(other, "__float__"):
        return float(other)
    raise NoOperandError(f"expected a Tensor or a number, but got {type(other).__name__}")


def require_tensor(name: str, argument: str, position: int, value: object) -> None:
    """Raises TypeError for what is no tensor."""
    if not isinstance(value, TensorBase):
        raise TypeError(
            f"{name}(): argument '{argument}' (position {position}) must be Tensor, not {type(value).__name__}"
        )


def settling(method: Callable[P, R]) -> Callable[P, R]:
    """A method of one other operand, to which a single number of device cpu goes."""

    @functools.wraps(method)
    def call(*args: Any, **options: Any) -> R:
        if options:
            options = {ALIASES.get(name, name): value for name, value in options.items()}
        try:
            return method(*args, **options)
        except OnHostError:
            other = next(value for value in (*args[1:], *options.values()) if isinstance(value, TensorBase))
            return method(beside(args[0], other), *args[1:], **options)  # type: ignore[arg-type]

    return call


def node_of(self: TensorBase, other: TensorBase) -> Node:
    """A tensor's node. Raises RuntimeError for another device."""
    return other._node if other._storage.device is self._storage.device else elsewhere(self, other)


def elsewhere(self: TensorBase, other: TensorBase) -> Node:
    """The node of a tensor on another device: only a single number of device cpu may come from there."""
    if other._storage.device.name == self._storage.device.name:  # One has no memory: its class computes.
        return other._node
    if is_on_host(other):
        return beside(other, self)._node
    kind = OnHostError if is_on_host(self) else RuntimeError
    raise kind(two_devices(self._storage.device, other._storage.device))


def beside(self: TensorBase, other: object) -> TensorBase:
    """A number of device cpu on the device of another tensor.

    One of float64 is float32 where the device has no float64, if the other tensor's dtype decides that of the result.
    """
    assert isinstance(other, TensorBase)
    device, dtype = other._storage.device, self.dtype
    if dtype.compute is None and not device.holds_all and other.dtype.kind is dtype.kind and other.shape:
        narrower = {dtypes.float64: dtypes.float32, dtypes.complex128: dtypes.complex64}.get(dtype)
        if narrower is not None and (other.dtype.part is not None or dtype.part is None):
            self = self.to(narrower)  # type: ignore[attr-defined]  # It is a Tensor.
    return transfer.transfer(self, device)


def _renaming(method: Callable[P, R], names: Mapping[str, str]) -> Callable[P, R]:
    """The same with further names of arguments: each for the argument that it stands for."""

    @functools.wraps(method)
    def call(*args: Any, **options: Any) -> R:
        if options:
            options = {names.get(name, name): value for name, value in options.items()}
        try:
            return method(*args, **options)
        except AttributeError as error:
            import_module(FAILED).refuse(error, method, args, options)
            raise

    return call


def aliased(method: Callable[P, R]) -> Callable[P, R]:
    """Takes NumPy's names of arguments as well: axis for dim, keepdims for keepdim."""
    return _renaming(method, ALIASES)


def also_named(**names: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """As aliased, with further names."""
    return lambda method: _renaming(method, ALIASES | names)


def named_by_numpy(function: Callable[P, R]) -> Callable[P, R]:
    """As aliased, for a function of a tensor: takes NumPy's names of tensors as well, and torch's of the first."""
    first = inspect.unwrap(function).__code__.co_varnames[0]
    return _renaming(function, ALIASES | dict.fromkeys((*OPERANDS, "input"), "input" if first == "self" else first))


def later(module: str, name: str) -> Callable[..., Any]:
    """A method that is a function of a module which few programs need."""

    def method(self: Any, *args: Any, **options: Any) -> object:
        return getattr(import_module(module), name)(self, *args, **options)

    method.__name__ = method.__qualname__ = name
    method.__doc__ = f"See torch.{name}."
    return method
