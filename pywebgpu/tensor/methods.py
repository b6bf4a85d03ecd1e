"""Makes Tensor methods of functions of nodes; holds what all methods share: operands, devices, argument names."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from pywebgpu.ir.graph import Node
from pywebgpu.step_capture.free_number import NUMBERS
from pywebgpu.tensor import from_data, transfer
from pywebgpu.tensor.base import TensorBase

ALIASES = {"axis": "dim", "keepdims": "keepdim", "axis0": "dim0", "axis1": "dim1"}  # NumPy's names; torch takes both


class NoOperandError(TypeError):
    """Raised for what is neither a tensor nor a number."""


def unary(function: Callable[[Node], Node]) -> Any:
    """A method without arguments."""

    def method(self: TensorBase) -> Any:
        return self._new(function(self._node), self._storage.device)

    return named(method, function)


def binary(function: Callable[[Any, Any], Node]) -> Any:
    """A method of one other operand: a tensor or a number."""

    def method(self: TensorBase, other: Any) -> Any:
        return self._new(function(self._node, operand(self, other)), self._storage.device)

    return named(method, function)


def pair(function: Callable[[Any, Any], Node]) -> Any:
    """A method of one other tensor; numbers are refused, as by torch."""
    name = function.args[0].name if isinstance(function, functools.partial) else function.__name__

    def method(self: TensorBase, other: Any) -> Any:
        if not isinstance(other, TensorBase):
            raise TypeError(f"{name}(): argument 'other' (position 1) must be Tensor, not {type(other).__name__}")
        return self._new(function(self._node, operand(self, other)), self._storage.device)

    return named(method, function)


def operator(function: Callable[[Any, Any], Node]) -> Any:
    """As binary; for what is no operand, Python asks the other side."""

    def method(self: TensorBase, other: Any) -> Any:
        try:
            found = operand(self, other)
        except NoOperandError:
            return NotImplemented
        return self._new(function(self._node, found), self._storage.device)

    return named(method, function)


def reflected(function: Callable[[Any, Any], Node]) -> Any:
    """The operator with the tensor on the right."""

    def method(self: TensorBase, other: Any) -> Any:
        try:
            found = operand(self, other)
        except NoOperandError:
            return NotImplemented
        return self._new(function(found, self._node), self._storage.device)

    return named(method, function)


def named(method: Callable[..., Any], source: Any) -> Any:
    """Gives a method the name and the words of the function or op that it applies."""
    while isinstance(source, functools.partial):
        source = source.args[0]
    name = getattr(source, "__name__", None) or source.name
    method.__name__ = method.__qualname__ = name.rstrip("_")
    method.__doc__ = source.__doc__ if hasattr(source, "__name__") else f"{method.__name__}, by element."
    return method


def operand(self: TensorBase, other: Any) -> Any:
    """A tensor's node or a Python number. Raises TypeError for anything else, RuntimeError for another device."""
    if isinstance(other, TensorBase):
        if other._storage.device is not self._storage.device:
            return elsewhere(self, other)
        return other._node
    if isinstance(other, NUMBERS):
        return other
    if hasattr(other, "__array_interface__") and getattr(other, "ndim", True):
        return from_data.from_array(other, None, self._storage.device)
    if hasattr(other, "__index__"):
        return int(other)
    if hasattr(other, "__float__"):
        return float(other)
    raise NoOperandError(f"expected a Tensor or a number, but got {type(other).__name__}")


def elsewhere(self: TensorBase, other: TensorBase) -> Node:
    """The node of a tensor on another device: only a single number of device cpu may come from there."""
    if other.ndim == 0 and other._storage.device.name == "cpu":
        moved: Node = transfer.transfer(other, self._storage.device)._node
        return moved
    raise RuntimeError(
        f"Expected all tensors to be on the same device, but found at least two devices, {self._storage.device.name} "
        f"and {other._storage.device.name}!"
    )


def aliased(method: Callable[..., Any]) -> Any:
    """Takes NumPy's names of arguments as well: axis for dim, keepdims for keepdim."""

    @functools.wraps(method)
    def call(*args: Any, **options: Any) -> Any:
        if options:
            options = {ALIASES.get(name, name): value for name, value in options.items()}
        return method(*args, **options)

    return call
