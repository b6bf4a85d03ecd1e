"""What a call is given and what it returns, taken apart into tensors, numbers and the rest.

Two calls with equal keys may run the same captured step: tensors count by shape, dtype, device, history and views,
floats count by being there, anything else by value or, where it has none, by identity.
"""

from __future__ import annotations

import copy
from collections import deque
from collections.abc import Callable, Collection, Hashable
from dataclasses import dataclass, fields, is_dataclass
from typing import TYPE_CHECKING, Any, TypeGuard

from pywebgpu import devices, dtypes
from pywebgpu.ir.graph import Spec, thread_state
from pywebgpu.ops import movement
from pywebgpu.runtime.storage import whole_of
from pywebgpu.step_capture.free_number import plain
from pywebgpu.tensor import create
from pywebgpu.tensor.base import TensorBase

if TYPE_CHECKING:
    from pywebgpu.tensor.types import Array

PLAIN = (bool, int, str, bytes, complex, range, type(None))
MUTABLE = (set, bytearray, deque)  # besides the containers whose items are looked at
Map = Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class Outline:
    """A tensor that was given: its number, and the spec of its storage. `is_whole`: it is no view and no part."""

    at: int
    spec: Spec
    device: str
    is_whole: bool


class Call:
    """The arguments of one call. `key` decides which captured step fits; `kept` holds what it knows by identity.

    has_history: a gradient may flow out of the call through an argument.
    """

    __slots__ = ("args", "has_history", "kept", "key", "kwargs", "numbers", "tensors")

    def __init__(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.args, self.kwargs = args, kwargs
        self.tensors: list[TensorBase] = []
        self.numbers: list[float] = []
        self.kept: list[Any] = []
        self.has_history = False
        state = thread_state
        modes = (state.grad, state.inference, state.autocast, dtypes.default(), devices.default_device())
        self.key: Hashable = (modes, self._describe(args), self._describe(kwargs) if kwargs else None)

    @classmethod
    def nothing(cls) -> Call:
        """No call. It is made while files are imported, when the default device may not be known yet."""
        found = cls.__new__(cls)
        found.args, found.kwargs, found.key, found.has_history = (), {}, None, False
        found.tensors, found.numbers, found.kept = [], [], []
        return found

    def _describe(self, value: object) -> Hashable:
        if isinstance(value, TensorBase):
            return self._tensor(value)
        if isinstance(value, float):
            self.numbers.append(value)
            return "number"
        if isinstance(value, PLAIN):
            return type(value), value
        if isinstance(value, list | tuple):
            return type(value), tuple([self._describe(item) for item in value])
        if is_container(value):
            keys, items = items_of(value)
            return type(value), tuple(keys), tuple([self._describe(item) for item in items])
        if is_array(value):  # Others may write to it.
            return type(value), value.dtype.str, value.shape, value.tobytes()
        self.kept.append(value)
        return "object", id(value)

    def _tensor(self, value: TensorBase) -> Hashable:
        self.has_history |= not value._flag and value._node.requires
        for at, other in enumerate(self.tensors):
            if other is value:
                return "again", at
            if whole_of(other._storage) is whole_of(value._storage):
                self.tensors.append(value)
                return "shared", at, _facts(value)
        self.tensors.append(value)
        return _facts(value)

    def outline(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments with what is known of each tensor in its place; nothing of a caller's is held by it."""
        at = {id(tensor): at for at, tensor in enumerate(self.tensors)}

        def change(value: object) -> object:
            if isinstance(value, TensorBase):
                is_whole = not value._path and value._storage.whole is None
                return Outline(at[id(value)], value._storage.node.spec, value._storage.device.name, is_whole)
            return value if isinstance(value, (*PLAIN, float)) else None

        args = rebuilt(self.args, change)
        return args, rebuilt(self.kwargs, change)

    def mapped(self, numbers: list[float]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments with other numbers instead of the floats."""
        left = iter(numbers)
        change = lambda value: next(left) if isinstance(value, float) else value  # noqa: E731
        args = rebuilt(self.args, change)
        return args, rebuilt(self.kwargs, change)


def _facts(value: TensorBase) -> Hashable:
    storage = value._storage
    specs = storage.node.spec, None if storage.whole is None else storage.whole.node.spec
    is_of_leaf = value._base is not None and value._base._flag
    return specs, value._storage.device, value._flag or value._node.requires, is_of_leaf, type(value), _views(value)


def _views(value: TensorBase) -> Hashable:
    """The views of a tensor; where a slice starts is a number of the host."""
    found = []
    for op, attrs in value._path:
        kept = tuple([(name, attr) for name, attr in attrs.items() if op is not movement.slice_ or name != "starts"])
        found.append((op, kept))
    return tuple(found)


def example(value: object) -> object:
    """A tensor of zeros for what is known of one."""
    if not isinstance(value, Outline):
        return value
    return create.zeros(value.spec.shape, dtype=value.spec.dtype, device=value.device)


def rebuilt_shapes(value: Any) -> Any:
    """Arguments where tensors of zeros stand for shapes."""
    if isinstance(value, dict):
        return {name: rebuilt_shapes(item) for name, item in value.items()}
    if isinstance(value, tuple) and value and all(type(n) is int for n in value):
        return create.zeros(value)
    return tuple(map(rebuilt_shapes, value)) if isinstance(value, tuple) else value


def rebuilt(value: object, change: Map) -> Any:
    """The same lists, tuples, dicts and dataclasses around what `change` makes of everything else.

    One in which nothing changes is itself.
    """
    if not is_container(value):
        return change(value)
    keys, old = items_of(value)
    items = [rebuilt(item, change) for item in old]
    if all(item is other for item, other in zip(items, old, strict=True)):
        return value
    if isinstance(value, tuple):
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    made = copy.copy(value)
    _put(made, keys, items)
    return made


def copied(value: object, change: Map, known: Collection[int] = ()) -> Any:
    """As `rebuilt`, with new containers, each once, but for those whose ids are `known`."""
    return _copied(value, change, known, {})


def _copied(value: object, change: Map, known: Collection[int], made: dict[int, Any]) -> Any:
    if type(value) in MUTABLE and id(value) not in known:
        return made.setdefault(id(value), copy.copy(value))
    if not is_container(value) or id(value) in known:
        return change(value)
    if id(value) not in made:
        keys, old = items_of(value)
        items = [_copied(item, change, known, made) for item in old]
        if isinstance(value, tuple):
            made[id(value)] = type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
        else:
            made[id(value)] = copy.copy(value)
            _put(made[id(value)], keys, items)
    return made[id(value)]


def give_back(value: object, changed: object) -> None:
    """Does to the containers of `value` what a function did to those of `changed`, which `rebuilt` made of them."""
    if value is changed or not is_container(value):
        return
    keys, items = items_of(changed)
    old = dict(zip(*items_of(value), strict=True))
    for entry, item in zip(keys, items, strict=True):
        give_back(old.get(entry), item)
    kept = [
        old[entry] if is_container(old.get(entry)) else plain(item) for entry, item in zip(keys, items, strict=True)
    ]
    if isinstance(value, list | dict):
        value.clear()
    if isinstance(value, list):
        value.extend(kept)
    elif not isinstance(value, tuple):
        _put(value, keys, kept)


def is_array(value: object) -> TypeGuard[Array]:
    """NumPy's arrays and numbers. The class is asked: an object may have an answer to any name."""
    return hasattr(type(value), "__array_interface__") and hasattr(type(value), "tobytes")


def is_container(value: object) -> bool:
    return isinstance(value, list | tuple | dict) or (
        is_dataclass(value) and not (isinstance(value, type | Outline) or callable(value))
    )


def items_of(value: Any) -> tuple[list[Any], list[Any]]:
    """The keys of a container, and its items."""
    if isinstance(value, dict):
        return list(value), list(value.values())
    if isinstance(value, list | tuple):
        return list(range(len(value))), list(value)
    names = [field.name for field in fields(value) if hasattr(value, field.name)]
    return names, [getattr(value, name) for name in names]


def _put(value: object, keys: list[Any], items: list[Any]) -> None:
    if isinstance(value, dict | list):
        put: Callable[[Any, Any, Any], None] = dict.__setitem__ if isinstance(value, dict) else list.__setitem__
    else:
        put = object.__setattr__
    for entry, item in zip(keys, items, strict=True):
        put(value, entry, item)
