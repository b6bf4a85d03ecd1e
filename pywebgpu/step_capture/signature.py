"""What a call is given and what it returns, taken apart into tensors, numbers and the rest.

Two calls with equal keys may run the same captured step: tensors count by shape, dtype, device, history and views,
floats count by being there, anything else by type and bits or, where its value is not known, by identity. Of an object
that is no plain value the attributes count, too; its class is looked at by survey.py, as what counts by identity is.
"""

from __future__ import annotations

import copy
import types
from abc import ABCMeta
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Collection, Hashable, Sequence
from dataclasses import dataclass, fields
from enum import Enum
from math import copysign
from typing import TYPE_CHECKING, Any, TypeGuard
from weakref import WeakKeyDictionary, WeakSet

from pywebgpu import devices, dtypes
from pywebgpu.ir.graph import Spec, thread_state
from pywebgpu.ops import movement
from pywebgpu.runtime.storage import whole_of
from pywebgpu.step_capture import surroundings
from pywebgpu.step_capture.free_number import FREE, FreeFloat, FreeInt, plain
from pywebgpu.step_capture.surroundings import HEAP, is_a
from pywebgpu.tensor import dispatch
from pywebgpu.tensor.base import TensorBase

if TYPE_CHECKING:
    from pywebgpu.tensor.types import Array

PLAIN = (bool, int, str, bytes, complex, range, type(None))
VALUES = frozenset({bool, int, str, bytes, type(None), type(...), type(NotImplemented)})  # equal ones are the same
BASES = (int, str, bytes, float, complex)  # of classes whose objects are values with attributes
OWN = frozenset(TensorBase.__slots__)
SUBCLASSES = frozenset({"matrix", "memmap", "recarray"})  # of NumPy's arrays, which have attributes of their own
CONTAINERS = (list, tuple, dict)
FACTORY: Any = vars(defaultdict)["default_factory"]
MUTABLE = (set, bytearray, deque)  # besides the containers whose items are looked at
Map = Callable[[Any], Any]
PLAIN_KINDS = (type, ABCMeta)
by_content: WeakSet[type] = WeakSet()  # classes of plain objects of which calls are given new ones: they are containers


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
    has_array_views: an array of NumPy's is a part of a larger one.
    kinds: the classes of what counts by its content, as far as they are not Python's own.
    containers: those that can be written, in their order.
    counts: whole numbers, too, count by being there.
    """

    __slots__ = (
        "_number_of",
        "args",
        "containers",
        "counts",
        "has_array_views",
        "has_history",
        "kept",
        "key",
        "kinds",
        "kwargs",
        "numbers",
        "tensors",
    )

    def __init__(self, args: tuple[Any, ...], kwargs: dict[str, Any], *, counts: bool = False) -> None:
        self.args, self.kwargs, self.counts = args, kwargs, counts
        self.tensors: list[TensorBase] = []
        self.numbers: list[float] = []
        self.kept: list[Any] = []
        self.kinds: list[type] = []
        self.containers: list[Any] = []
        self._number_of: dict[int, int] = {}  # by id: of a container
        self.has_history = self.has_array_views = False
        state = thread_state
        asked = dispatch.state
        modes: tuple[Any, ...] = (state.grad, state.inference, state.autocast, dtypes.default())
        modes = (*modes, devices.default_device(), asked.n_off > 0, asked.n_all_off > 0, *map(id, asked.modes))
        self.kept += asked.modes
        positional = self._describe(args)  # First, as in `rebuilt`: numbers and tensors are known by their order.
        named = tuple([(name, self._describe(value)) for name, value in kwargs.items()])
        self.key: Hashable = (modes, positional, named)

    @classmethod
    def nothing(cls) -> Call:
        """No call. It is made while files are imported, when the default device may not be known yet."""
        empty = cls.__new__(cls)
        empty.args, empty.kwargs, empty.key, empty.has_history, empty.counts = (), {}, None, False, False
        empty.tensors, empty.numbers, empty.kept, empty.kinds, empty.containers = [], [], [], [], []
        return empty

    def _describe(self, value: object) -> Hashable:
        kind = type(value)
        if issubclass(kind, TensorBase) and not hides_attributes(kind):
            return self._tensor(value)  # type: ignore[arg-type]
        if kind in VALUES and not (self.counts and kind is int):
            return kind, value
        if self._is_free(value):
            self.numbers.append(value)  # type: ignore[arg-type]
            kind = {FreeFloat: float, FreeInt: int}.get(kind, kind)
            return "number" if kind is float else (kind, "number")
        if kind is tuple:
            return kind, tuple([self._describe(item) for item in value])  # type: ignore[attr-defined]
        if is_container(value):
            number = self._number_of.get(id(value))
            if number is not None:
                return "again", number
            if not is_a(value, tuple):
                self._number_of[id(value)] = len(self.containers)
                self.containers.append(value)
            keys, items = items_of(value)
            names = tuple([self._constant(key) for key in keys])
            inside = tuple([self._describe(item) for item in items])
            fields = () if is_a(value, CONTAINERS) else keys
            return kind, names, inside, None if kind is dict else self._attributes(value, fields)
        return self._constant(value)

    def _constant(self, value: object) -> Hashable:
        """What a step takes for granted: exact types by their bits, other objects by identity."""
        kind = type(value)
        if kind in VALUES:
            return kind, value
        if is_a(value, float) and is_nan(value):  # Containers find it by its identity alone.
            self.kept.append(value)
            return "object", id(value)
        if kind is float or kind is complex or kind is range:
            return kind, _bits(value)
        if kind is slice:
            return kind, tuple([self._constant(bound) for bound in (value.start, value.stop, value.step)])  # type: ignore[attr-defined]
        if kind is tuple or kind is list or kind is dict:
            keys, items = items_of(value)
            names = tuple([self._constant(key) for key in keys]) if kind is dict else ()
            return kind, names, tuple([self._constant(item) for item in items])
        if is_array(value):  # Others may write to it.
            self.has_array_views |= value.base is not None  # type: ignore[attr-defined]
            return kind, *of_array(value)
        if is_a(value, BASES) and not is_a(value, Enum):
            base = next(base for base in BASES if is_a(value, base))
            return kind, base.__repr__(value), self._attributes(value, ())
        self.kept.append(value)
        return "object", id(value)

    def _attributes(self, value: object, fields: Collection[Any]) -> Hashable:
        """What an object has besides its items; its class is looked at as well."""
        kind = type(value)
        self.kinds.append(kind)
        own = surroundings.attribute(value, "__dict__")
        items = () if own is surroundings.MISSING else own.items()  # type: ignore[attr-defined]
        attributes = {name: item for name, item in items if name not in fields}
        if is_a(value, defaultdict):
            attributes["default_factory"] = FACTORY.__get__(value)
        for name in slots(kind):
            item = surroundings.attribute(value, name)
            if name not in fields and item is not surroundings.MISSING:
                attributes[name] = item
        return tuple([(name, self._constant(item)) for name, item in attributes.items()])

    def _tensor(self, value: TensorBase) -> Hashable:
        self.has_history |= not value._flag and value._node.requires
        for number, other in enumerate(self.tensors):
            if other is value:
                return "again", number
            if whole_of(other._storage) is whole_of(value._storage):
                self.tensors.append(value)
                return "shared", number, self._facts(value)
        self.tensors.append(value)
        return self._facts(value)

    def _facts(self, value: TensorBase) -> Hashable:
        facts = _facts(value)
        waiting = () if value._accumulator is None else value._accumulator.waiting()
        if waiting:
            facts = facts, self._constant(waiting)
        if type(value) is not value._kind or value.__dict__:
            return facts, self._attributes(value, OWN)
        return facts

    def outline(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments with what is known of each tensor in its place; nothing of a caller's is held by it."""
        numbers = {id(tensor): number for number, tensor in enumerate(self.tensors)}

        def change(value: object) -> object:
            if is_a(value, TensorBase):
                is_whole = not value._path and value._storage.whole is None
                return Outline(numbers[id(value)], value._storage.node.spec, value._storage.device.name, is_whole)
            return value if is_a(value, (*PLAIN, float)) else None

        args = rebuilt(self.args, change)
        return args, rebuilt(self.kwargs, change)

    def _is_free(self, value: object) -> bool:
        return (is_number(value) and not is_nan(value)) or (self.counts and type(value) is int)

    def mapped(self, numbers: list[float]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments with other numbers instead of the floats."""
        left = iter(numbers)
        change = lambda value: next(left) if self._is_free(value) else value  # noqa: E731
        args = rebuilt(self.args, change)
        return args, rebuilt(self.kwargs, change)


class _Noting(Call):
    """The arguments taken apart once more: each value is noted."""

    __slots__ = ("values",)

    def __init__(self, args: tuple[Any, ...], kwargs: dict[str, Any], *, counts: bool) -> None:
        self.values: list[Any] = []
        super().__init__(args, kwargs, counts=counts)

    def _describe(self, value: object) -> Hashable:
        self.values.append(value)
        return super()._describe(value)

    def _constant(self, value: object) -> Hashable:
        self.values.append(value)
        return super()._constant(value)


def _facts(value: TensorBase) -> Hashable:
    storage = value._storage
    specs = storage.node.spec, None if storage.whole is None else storage.whole.node.spec
    is_of_leaf = value._base is not None and value._base._flag
    return specs, value._storage.device, value._flag or value._node.requires, is_of_leaf, type(value), _views(value)


def _views(value: TensorBase) -> Hashable:
    """The views of a tensor; where a slice starts is a number of the host."""
    if not value._path:
        return ()
    path = []
    for op, attrs in value._path:
        kept = tuple([(name, attr) for name, attr in attrs.items() if op is not movement.slice_ or name != "starts"])
        path.append((op, kept))
    return tuple(path)


def rebuilt(value: object, change: Map) -> Any:
    """The same lists, tuples, dicts and dataclasses around what `change` makes of everything else.

    One in which nothing changes is itself, and what is there twice is one thing afterwards, too.
    """
    return _rebuilt(value, change, {})


def _rebuilt(value: object, change: Map, copies: dict[int, Any]) -> Any:
    if not is_container(value):
        return change(value)
    if id(value) in copies:
        return copies[id(value)]
    keys, old = items_of(value)
    if not is_a(value, tuple):
        copies[id(value)] = value  # Until it is known whether anything in it changes.
    items = [_rebuilt(item, change, copies) for item in old]
    if all(item is other for item, other in zip(items, old, strict=True)):
        return value
    if is_a(value, tuple):
        return tuple_like(value, items)
    copies[id(value)] = _emptied(value)
    put(copies[id(value)], keys, items)
    return copies[id(value)]


def is_copied(value: object) -> bool:
    """Whether `copied` makes a new one of it, or looks into it."""
    return type(value) in MUTABLE or is_container(value)


def copied(value: object, change: Map, known: Collection[int] = ()) -> Any:
    """As `rebuilt`, with new containers, each once, but for those whose ids are `known`."""
    return _copied(value, change, known, {})


def _copied(value: object, change: Map, known: Collection[int], copies: dict[int, Any]) -> Any:
    if type(value) in MUTABLE and id(value) not in known:
        if id(value) not in copies:
            new: Any = copy.copy(value)  # Of these very classes, which have no methods of a program's.
            if not is_a(value, bytearray):
                items = [_copied(item, change, known, copies) for item in value]  # type: ignore[attr-defined]
                new.clear()
                (new.extend if is_a(value, deque) else new.update)(items)
            copies[id(value)] = new
        return copies[id(value)]
    if not is_container(value) or id(value) in known:
        return change(value)
    if id(value) not in copies:
        keys, old = items_of(value)
        items = [_copied(item, change, known, copies) for item in old]
        if is_a(value, tuple):
            copies[id(value)] = tuple_like(value, items)
        else:
            copies[id(value)] = _emptied(value)
            put(copies[id(value)], keys, items)
    return copies[id(value)]


def containers_in(value: object) -> list[Any]:
    """The containers of a value, itself too; one that holds itself is there once."""
    inside: dict[int, Any] = {}
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if is_container(item) and id(item) not in inside:
            inside[id(item)] = item
            waiting += items_of(item)[1]
    return [*inside.values()]


def has_more(value: object) -> bool:
    """Whether a container has attributes besides its items."""
    if type(value) in (list, tuple, dict):
        return False
    fields = () if is_a(value, CONTAINERS) else items_of(value)[0]
    own = surroundings.attribute(value, "__dict__")
    names = [*slots(type(value)), *(own if isinstance(own, dict) else ())]
    return any(name not in fields for name in names)


def holds_free(value: object) -> bool:
    """Whether a value is a number that stands for several values, or a tuple with one in it."""
    kind = type(value)
    if kind in FREE:
        return True
    if kind is slice:
        return any(map(holds_free, (value.start, value.stop, value.step)))  # type: ignore[attr-defined]
    if not issubclass(kind, (tuple, frozenset)):
        return False
    items = tuple.__iter__ if issubclass(kind, tuple) else frozenset.__iter__
    return any(map(holds_free, items(value)))  # type: ignore[arg-type]


def is_number(value: object) -> TypeGuard[float]:
    """A float that a step may read anew in each run: Python's own, or one of NumPy's."""
    kind = type(value)
    return kind is float or kind in FREE or (is_a(value, float) and kind.__module__ == "numpy")


def is_nan(value: float) -> bool:
    number = plain(value)
    return bool(number != number)


def values_in(call: Call) -> list[Any]:
    """All that is passed, also inside of something else: what of it is one object decides where code asks for it."""
    noting = _Noting(call.args, call.kwargs, counts=call.counts)
    return noting.values


def firsts(values: Sequence[object]) -> list[int]:
    """For each of several values, the place of the first that is the same object."""
    places: dict[int, int] = {}
    return [places.setdefault(id(value), number) for number, value in enumerate(values)]


def is_array(value: object) -> TypeGuard[Array]:
    """NumPy's own arrays and numbers, without objects in them."""
    kind = type(value)
    is_of_numpy = kind.__module__ == "numpy" and (kind.__name__ == "ndarray" or hasattr(kind, "__array_interface__"))
    return is_of_numpy and kind.__name__ not in SUBCLASSES and not value.dtype.hasobject  # type: ignore[attr-defined]


def of_array(array: Array) -> tuple[Any, ...]:
    """What there is to know of an array."""
    dtype: Any = array.dtype
    kind = dtype if dtype.names is None else repr(dtype)  # Fields may be given other names.
    return kind, repr(dtype.metadata), array.shape, array.strides, array.flags.num, array.tobytes()  # type: ignore[attr-defined]


def slots(kind: type) -> list[str]:
    """The names of the slots that a class and its bases gave to objects, but for the interpreter's own."""
    return _slots_of(kind) if kind.__flags__ & HEAP else []


_slots: WeakKeyDictionary[type, list[str]] = WeakKeyDictionary()  # A class holds all that its methods can see.


def _slots_of(kind: type) -> list[str]:
    names = _slots.get(kind)
    if names is None:
        bases = [base for base in surroundings.mro(kind) if base.__flags__ & HEAP]
        parts = [item for base in bases for item in vars(base).items()]
        names = _slots[kind] = [name for name, part in parts if isinstance(part, types.MemberDescriptorType)]
    return names


def tuple_like(value: tuple[Any, ...], items: list[Any]) -> tuple[Any, ...]:
    """A tuple of the same class, with the same attributes."""
    try:
        result = tuple.__new__(type(value), items)
    except TypeError:  # A class of the interpreter's that counts its fields.
        return type(value)(items)
    if getattr(value, "__dict__", None):
        result.__dict__.update(value.__dict__)
    return result


def _bits(value: object) -> Hashable:
    """What tells a value from one that is equal and another: the sign of a zero, the type of a bound."""
    if is_a(value, range):
        return tuple([(type(part), part) for part in (value.start, value.stop, value.step)])
    if type(value) is float:
        return value.hex() if value == value else f"{copysign(1, value)} nan"
    return repr(value) if type(value) is complex else value


def is_container(value: object) -> bool:
    kind = type(value)
    if issubclass(kind, CONTAINERS) or (by_content and type(kind) in PLAIN_KINDS and kind in by_content):
        return True
    return _is_dataclass(kind) and not (issubclass(kind, (type, Outline, Enum, BaseException)) or callable(value))


def hides_attributes(kind: type) -> bool:
    """Whether objects of a class, which is made in Python, say themselves what their attributes are."""
    read: object = kind.__getattribute__
    return read is not object.__getattribute__


def _is_dataclass(kind: type) -> bool:
    """As Python's own, asking no metaclass, which might say anything."""
    bases = surroundings.mro(kind)
    return any("__dataclass_fields__" in base.__dict__ for base in bases) and not hides_attributes(kind)


def items_of(value: Any) -> tuple[list[Any], list[Any]]:
    """The keys of a container, and its items."""
    if is_a(value, dict):
        return [*surroundings.keys_of(value)], [*surroundings.values_of(value)]
    if is_a(value, (list, tuple)):
        items = [*list.__iter__(value)] if is_a(value, list) else [*tuple.__iter__(value)]
        return [*range(len(items))], items
    if not _is_dataclass(type(value)):
        own: Any = surroundings.attribute(value, "__dict__")
        return [*own], [*own.values()]
    parts = {field.name: surroundings.attribute(value, field.name) for field in fields(type(value))}
    parts = {name: part for name, part in parts.items() if part is not surroundings.MISSING}
    return [*parts], [*parts.values()]


def put(value: object, keys: list[Any], items: list[Any]) -> None:
    """Puts items into what has none, by no method of a program's class."""
    base = base_of(type(value))
    if base is list:
        list.extend(value, items)  # type: ignore[arg-type]
        return
    put = object.__setattr__ if base is object else base.__setitem__
    for entry, item in zip(keys, items, strict=True):
        put(value, entry, item)


def base_of(kind: type) -> Any:
    """The class of Python's own that keeps the items. An OrderedDict notes the order of its keys beside the dict."""
    return next((base for base in (OrderedDict, defaultdict, dict, list) if issubclass(kind, base)), object)


def _emptied(value: Any) -> Any:
    """Another container of the same class with the same attributes and no items, by no method of a program's class."""
    kind = type(value)
    base = base_of(kind)
    new = base.__new__(kind)
    if base is defaultdict:
        defaultdict.__init__(new, FACTORY.__get__(value))
    own = surroundings.attribute(value, "__dict__")
    if isinstance(own, dict):
        object.__getattribute__(new, "__dict__").update(own)
    for name in slots(kind):
        part = surroundings.attribute(value, name)
        if part is not surroundings.MISSING:
            object.__setattr__(new, name, part)
    return new
