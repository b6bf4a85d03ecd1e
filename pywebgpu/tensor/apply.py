"""Functions of nodes, called with tensors."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from types import FunctionType
from typing import TYPE_CHECKING, ParamSpec, TypeVar, overload

from pywebgpu import dtypes
from pywebgpu.composites import arithmetic
from pywebgpu.ir.graph import Node, thread_state, used
from pywebgpu.ops import movement
from pywebgpu.support import shapes
from pywebgpu.tensor import memory_format, transfer
from pywebgpu.tensor.base import TensorBase

if TYPE_CHECKING:
    from pywebgpu.devices.base import Device
    from pywebgpu.tensor.tensor import Tensor

T = TypeVar("T")
P = ParamSpec("P")


@overload
def apply(function: Callable[..., Node], *args: object, **kwargs: object) -> Tensor: ...
@overload
def apply(function: Callable[..., tuple[Node, Node]], *args: object, **kwargs: object) -> tuple[Tensor, Tensor]: ...
@overload
def apply(function: Callable[..., Sequence[Node]], *args: object, **kwargs: object) -> tuple[Tensor, ...]: ...
@overload
def apply(function: Callable[..., T], *args: object, **kwargs: object) -> T: ...
def apply(function: Callable[..., object], *args: object, **kwargs: object) -> object:
    """Calls a function of nodes with tensors: `apply(activation.gelu, x)`; returned nodes become tensors.

    Tensors inside lists and tuples count. Raises RuntimeError when tensors are on different devices.
    """
    if used.autocast is not None and thread_state.autocast:
        return used.autocast(apply, function, args, kwargs)
    tensors: list[TensorBase] = []
    nodes: list[object] = []
    for arg in args:
        if isinstance(arg, TensorBase):
            tensors.append(arg)
            nodes.append(arg._node)
        else:
            nodes.append(arg if type(arg) in _PLAIN else _unwrapped(arg, tensors))
    options = {name: _unwrapped(value, tensors) for name, value in kwargs.items()} if kwargs else kwargs
    if not tensors:
        return _without_tensors(function, nodes, options)
    device, make = tensors[0]._storage.device, tensors[0]._new
    is_permuted = False
    for tensor in tensors:
        if tensor._path and memory_format.is_permuted(tensor._path):
            is_permuted = True
        if tensor._storage.device is not device:
            if tensor._storage.device.name == device.name:  # One has no memory: its class computes.
                device = device if not device.has_values else tensor._storage.device
                continue
            target = next((x._storage.device for x in tensors if not is_on_host(x)), device)
            args = tuple([_on(target, arg) for arg in args])
            return apply(function, *args, **{name: _on(target, value) for name, value in kwargs.items()})
    try:
        result = function(*nodes, **options)
    except AttributeError as error:
        import_module("pywebgpu.tensor.no_tensors").refuse_in_method(error, sys._getframe(1))
        raise
    except TypeError:
        read = import_module("pywebgpu.tensor.no_tensors").with_numbers(function, args)
        if read is None:
            raise
        return apply(function, *read, **kwargs)
    if isinstance(result, Node):
        for node in nodes:
            if result is node:
                result = movement.alias(result)  # Another tensor needs a node of its own: hooks hang on nodes.
                break
        new = make(result, device)
        if is_permuted:
            memory_format.of_call(function, (new,), tensors, args, kwargs)
        if result.requires and function.__class__ is FunctionType:
            node = new._storage.node
            if not hasattr(node, "function"):  # Else the function knows it better.
                node.function = function.__name__
        return new
    if not isinstance(result, tuple | list):
        return result
    parts = [make(item, device) if isinstance(item, Node) else item for item in result]
    if is_permuted:
        memory_format.of_call(function, parts, tensors, args, kwargs)
    if parts and isinstance(parts[0], TensorBase) and function.__class__ is FunctionType:
        called(parts[0], function.__name__)
    return tuple(parts)


def _without_tensors(function: Callable[..., object], nodes: list[object], options: dict[str, object]) -> object:
    """What a function says of numbers alone. Raises TypeError where it needs a tensor first."""
    if nodes and not isinstance(nodes[0], list | tuple):
        name = getattr(function, "__name__", "function")
        raise TypeError(f"{name}(): argument 'input' (position 1) must be Tensor, not {type(nodes[0]).__name__}")
    return function(*nodes, **options)


def called(result: TensorBase, name: str) -> Tensor:
    """Notes which function a tensor, a view perhaps, is the result of: `grad_fn` tells it."""
    node = result._storage.node if not result._path else result._cached[1] if result._cached is not None else None
    if node is not None and node.requires:
        node.function = name
    return result  # type: ignore[return-value]  # Tensors are of that class.


def aten(name: str) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Decorates a function of tensors that is one of PyTorch's graph: its results have that `grad_fn`."""

    def decorate(function: Callable[P, T]) -> Callable[P, T]:
        @functools.wraps(function)
        def call(*args: P.args, **options: P.kwargs) -> T:
            result = function(*args, **options)
            first = args[0] if args else next(iter(options.values()))
            for part in result if isinstance(result, tuple) else (result,):
                if isinstance(part, TensorBase) and part is not first:
                    called(part, f"aten::{name}")
            return result

        return call

    return decorate


def is_on_host(tensor: TensorBase) -> bool:
    """Whether it is a single number of device cpu: such a one may stand among tensors of another device."""
    return tensor.ndim == 0 and tensor._storage.device.is_host


def two_devices(first: Device, other: Device) -> str:
    return (
        f"Expected all tensors to be on the same device, but found at least two devices, {first.name} and {other.name}!"
    )


def _on(device: Device, value: object) -> object:
    """Moves single numbers of device cpu to another. Raises RuntimeError for any other tensor that is elsewhere."""
    if isinstance(value, list | tuple) and any(isinstance(item, TensorBase) for item in value):
        return [_on(device, item) for item in value]
    if not isinstance(value, TensorBase) or value._storage.device is device:
        return value
    if is_on_host(value):
        return transfer.transfer(value, device)
    raise RuntimeError(two_devices(device, value._storage.device))


_PLAIN = frozenset((type(None), bool, int, float, str))


def _unwrapped(value: object, tensors: list[TensorBase]) -> object:
    """The node of a tensor, which is noted in `tensors`; also in lists and tuples."""
    if isinstance(value, TensorBase):
        tensors.append(value)
        return value._node
    if type(value) is complex:
        return arithmetic.parts().beside(value, tensors[0].dtype if tensors else dtypes.default())
    if isinstance(value, list | tuple):
        if any(isinstance(item, TensorBase) for item in value):
            return [_unwrapped(item, tensors) for item in value]
        return type(value)(map(shapes.plain, value)) if type(value) in (list, tuple) else value
    return shapes.plain(value)
