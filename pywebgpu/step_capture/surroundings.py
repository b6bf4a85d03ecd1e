"""What stood around a call (see survey.py), and whether it still is as it was.

Everything is compared by identity at once; only where that finds a difference, entry by entry, and by value where
Python knows no other identity than the value.
"""

from __future__ import annotations

import functools
import types
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from gc import get_referents
from importlib import import_module
from itertools import chain, repeat
from operator import attrgetter, call, is_
from typing import Any, TypeGuard

MISSING = object()
HEAP = 1 << 9  # the flag of classes that a program, or a module, made at run time
OF_OBJECTS = ["__dict__"]
EXACT = frozenset({bool, int, float, complex, str, bytes, range, type(None), type(...), type(NotImplemented)})
FUNCTIONS = frozenset({
    types.FunctionType, types.BuiltinFunctionType, types.WrapperDescriptorType, types.MethodDescriptorType,
    types.GetSetDescriptorType, types.MemberDescriptorType, classmethod, staticmethod, property, str, type(None),
})  # fmt: skip


@dataclass(slots=True, eq=False)
class Entry:
    """Something with named or numbered contents, as it was: `look` gives keys and values as they are now.

    wanted: the keys that count; all where it is None.
    by_identity: equal values count as different ones, since code that ran asks whether two are one.
    """

    title: str
    look: Callable[[], tuple[list[Any], list[Any]]]
    keys: list[Any] = field(default_factory=list)
    values: list[Any] = field(default_factory=list)
    wanted: Callable[[Any], bool] | None = None
    by_identity: bool = False

    def __post_init__(self) -> None:
        self.keys, self.values = self.look()

    def changed(self) -> str | None:
        """What is no longer as it was, in words. Where nothing is that counts, this is how it is from now on."""
        keys, values = self.look()
        is_as_before = are_same(keys, self.keys) and are_same(values, self.values)
        reason: str | None = None if is_as_before else _unlike().difference_of(self, keys, values)
        if reason is None and self.by_identity:
            reason = _unlike().replaced_in(self, keys, values)
        if reason is not None:
            return reason
        self.keys, self.values = keys, values
        return None


def _unlike() -> types.ModuleType:
    return import_module("pywebgpu.step_capture.unlike")


def are_same(values: list[Any], others: list[Any]) -> bool:
    """By identity, or by value where that is all there is: what a program calls equal may still be another thing."""
    return len(values) == len(others) and all(map(is_known, values, others))


def is_known(value: object, other: object) -> bool:
    """Whether two values are one, or Python knows nothing of them but that they are equal."""
    return value is other or is_same(value, other)


def is_value(value: object) -> bool:
    """Whether an object is known by its value, unless code asks for its identity."""
    return type(value) in EXACT or type(value) in (tuple, slice)


def is_same(old: Any, new: Any) -> bool:
    """Whether Python cannot tell two values apart, though they are two: the same plain value."""
    if type(old) is not type(new):
        return False
    if type(old) is float:  # A list holds a NaN by its identity.
        return bool(old == new and old.hex() == new.hex())
    if type(old) is complex:
        return repr(old) == repr(new)
    if type(old) in (range, slice):
        return are_same([old.start, old.stop, old.step], [new.start, new.stop, new.step])
    if type(old) in EXACT:
        return bool(old == new)
    if type(old) is tuple:
        return are_same([*old], [*new])
    if type(old) is types.MethodType:  # Python makes a new one whenever it is asked for.
        return old.__func__ is new.__func__ and old.__self__ is new.__self__
    return False


def is_a(value: object, kind: Any) -> TypeGuard[Any]:
    """Whether a value is of a class (or of one of several), whatever it says of itself by a `__class__` of its own."""
    return issubclass(type(value), kind)


def path(title: str, key: object) -> str:
    if type(key) not in EXACT:  # Its own methods might do anything.
        return f"{title}[...]"
    if key in ("_parameters", "_buffers", "_modules", "cell_contents"):
        return title
    if type(key) is str and key.isidentifier():
        return f"{title}.{key}" if title else key
    return f"{title}[{key!r}]"


@dataclass(frozen=True, slots=True, eq=False)
class Place:
    """Where a program keeps a number: by its name in a dict or on a class, or in a cell."""

    owner: Any
    name: str

    def get(self) -> Any:
        if is_a(self.owner, type):
            return type.__getattribute__(self.owner, "__dict__")[self.name]
        return self.owner[self.name] if type(self.owner) is dict else self.owner.cell_contents

    def set(self, value: object) -> None:
        if is_a(self.owner, type):
            type.__setattr__(self.owner, self.name, value)
        elif type(self.owner) is dict:
            self.owner[self.name] = value
        else:
            self.owner.cell_contents = value


@dataclass(slots=True)
class Surroundings:
    """The guards of one call.

    reasons: why they cannot speak for all that the call could see.
    met: ids of all that was met. tensors, containers: of those among it. codes: the code that ran, with its globals.
    library: code of the standard library that ran and looks into what it is given.
    library_codes: the library's code that ran, as in `codes`.
    by_identity: code that ran asks whether two values are one.
    tells: something was met that tells a number which stands for several values from Python's own.
    kept: where the program put numbers that stand for several values, and nothing else keeps it from being replayed.
    n_looks: how often something had changed, and they were looked at one by one.
    """

    entries: list[Entry]
    reasons: list[str]
    tensors: set[int]
    containers: frozenset[int]
    met: frozenset[int]
    codes: dict[tuple[int, int], Any]
    library: set[types.CodeType] = field(default_factory=set)
    library_codes: dict[tuple[int, int], Any] = field(default_factory=dict)
    tells: bool = False
    by_identity: bool = False
    kept: list[Place] = field(default_factory=list)
    n_looks: int = 0
    _fast: Callable[[], bool] | None = None
    _values: set[int] | None = None

    def changed(self) -> str | None:
        """What is no longer as it was, or None."""
        if self._fast is not None:
            if self._fast():
                return None
            self.n_looks += 1
        for entry in self.entries:
            reason = entry.changed()
            if reason is not None:
                return reason
        self._fast = _comparison(self.entries)
        return None

    def share(self, other: Surroundings) -> None:
        """Lists what it knows in the other's lists, where they are the same: most is, for steps of one function."""
        known = {(entry.title, type(entry.look), len(entry.keys)): entry for entry in other.entries}
        for entry in self.entries:
            like = known.get((entry.title, type(entry.look), len(entry.keys)))
            if like is not None and all(map(is_, entry.keys, like.keys)):
                entry.keys = like.keys
                if all(map(is_, entry.values, like.values)):
                    entry.values = like.values

    def values(self) -> set[int]:
        """The ids of what code can see, which entries hold."""
        if self._values is None:
            self._values = {id(value) for entry in self.entries for value in entry.values}
        return self._values

    def counted(self) -> list[Place] | None:
        """Where numbers changed, if nothing else did."""
        places: dict[tuple[int, str], Place] = {}
        for entry in self.entries:
            keys, values = entry.look()
            if are_same(keys, entry.keys) and are_same(values, entry.values):
                continue
            owner = owner_of(entry.look)
            if owner is None or not are_same(keys, entry.keys):
                return None
            for key, old, new in zip(keys, entry.values, values, strict=True):
                if (entry.wanted is None or entry.wanted(key)) and not is_known(old, new):
                    if not (type(key) is str and type(old) is type(new) and type(new) in (int, float)):
                        return None
                    places[id(owner), key] = Place(owner, key)
        return [*places.values()]


def owner_of(look: Any) -> object:
    """What numbers may be kept in: the dict, the cell or the class that a look is at; else None."""
    if isinstance(look, OfClass):
        return look.owner
    owner = getattr(look, "mapping", None)
    owner = getattr(look, "thing", None) if owner is None else owner
    return owner if type(owner) in (dict, types.CellType) else None


def _comparison(entries: list[Entry]) -> Callable[[], bool]:
    """All entries against what they were at once, by identity, with next to nothing of Python's per entry."""
    looks = [entry.look for entry in entries]
    shown = _shown(looks)
    mappings = [look.mapping for look in looks if type(look) is Mapping or type(look) is OfClass]
    # Most are empty, as modules' hooks.
    empty = [mapping for mapping in mappings if type(mapping) in (dict, OrderedDict) and not mapping]
    filled = [mapping for mapping in mappings if type(mapping) not in (dict, OrderedDict) or mapping]
    named = [mapping for mapping in filled if type(mapping) is dict and all(type(key) is str for key in mapping)]
    # The attributes of a class are shown by a view, which holds nothing but the dict itself.
    classes = [*chain.from_iterable(get_referents(look.mapping) for look in looks if isinstance(look, OwnClass))]
    owners = [*classes, *(look.mapping for look in looks if isinstance(look, OwnModule))]
    # What an exact tuple holds is as it was as long as it is there, and its entry keeps it.
    sequences = [
        look.sequence for look in looks if isinstance(look, Sequence) and type(look.sequence) not in (tuple, frozenset)
    ]
    holders = [*named, *sequences, *(look.thing for look in looks if isinstance(look, Inside)), *shown.values()]
    facts = [look for look in looks if isinstance(look, Facts)]
    tells, last = [look.tell for look in facts], [look.last for look in facts]
    reads = [_named_read(looks, classes), *_attribute_reads(entries, shown), *_order_reads(filled, named)]
    was = [(read, [*read()]) for read in reads]
    sizes, lengths, titles = [*map(len, filled)], [*map(len, sequences)], [*chain.from_iterable(named)]
    of_own, held = get_referents(*owners), get_referents(*holders)

    def is_unchanged() -> bool:
        try:
            if any(empty) or [*map(len, filled)] != sizes or [*map(len, sequences)] != lengths:
                return False
            if [*chain.from_iterable(named)] != titles:  # Texts alone may be compared by value, which is faster.
                return False
            if get_referents(*owners) != of_own or [*map(call, tells)] != last:
                return False
            holds = get_referents(*holders)
            if len(holds) != len(held) or not all(map(is_, holds, held)):
                return False
            return all(all(map(is_, read(), values)) for read, values in was)
        except Exception:  # Another thread is changing one of them, one is gone, or it is patched with a tensor.
            return False

    return is_unchanged


Read = Callable[[], Iterable[Any]]


def _named_read(looks: list[Any], classes: list[Any]) -> Read:
    """What is read by its name: in mappings, and the attributes of classes that are no functions."""
    named_gets = [(look.get, look.names) for look in looks if isinstance(look, Lookup)]
    # Equal functions are the same one; what else a class has is asked by name.
    named_gets += [(own.get, [name for name, value in own.items() if type(value) not in FUNCTIONS]) for own in classes]
    gets = [get for get, names in named_gets for _ in names]
    names = [name for _, names in named_gets for name in names]
    return functools.partial(map, call, gets, names, [MISSING] * len(names))


def _attribute_reads(entries: list[Entry], shown: dict[int, Any]) -> list[Read]:
    """The attributes of objects and of functions, and the classes of objects."""
    looks = [(entry, entry.look) for entry in entries if isinstance(entry.look, Attributes)]
    others = [entry for entry, _ in looks if any(value is MISSING for value in entry.values)]
    present = [
        look
        for entry, look in looks
        if not any(value is MISSING for value in entry.values)
        and not (look.names == OF_OBJECTS and id(look.thing) in shown)
    ]
    functions = [look for look in present if type(look.thing) is types.FunctionType]
    named = [
        (look.thing, name) for look in present if type(look.thing) is not types.FunctionType for name in look.names
    ]
    classed = [entry.look.thing for entry in entries if isinstance(entry.look, Class)]
    reads: list[Read] = [
        functools.partial(map, object.__getattribute__, [thing for thing, _ in named], [name for _, name in named]),
        functools.partial(map, type, [thing for thing in classed if id(thing) not in shown]),
    ]
    for group in sorted({tuple(look.names) for look in functions}):
        of_group = [look.thing for look in functions if tuple(look.names) == group]
        reads.append(functools.partial(_of_functions, attrgetter(*group), of_group, is_alone=len(group) == 1))
    if others:
        reads.append(lambda: chain.from_iterable([entry.look()[1] for entry in others]))
    return reads


def _order_reads(filled: list[Any], named: list[Any]) -> list[Read]:
    """The contents of mappings whose order is not always that of what they hold."""
    plain = {id(mapping) for mapping in named}
    views = [mapping for mapping in filled if id(mapping) not in plain]
    if not views:
        return []
    return [lambda: chain.from_iterable(map(keys_of, views)), lambda: chain.from_iterable(map(values_of, views))]


def _of_functions(get: Callable[..., Any], functions: list[Any], *, is_alone: bool) -> Iterator[Any]:
    return map(get, functions) if is_alone else chain.from_iterable(map(get, functions))


def _shown(looks: list[Any]) -> dict[int, Any]:
    """By id, plain objects: what the garbage collector is shown of them is their class and their attributes' dict."""
    asked = {id(look.thing) for look in looks if isinstance(look, Attributes) and look.names == OF_OBJECTS}
    things = {id(look.thing): look.thing for look in looks if isinstance(look, Class) and id(look.thing) in asked}
    return {identity: thing for identity, thing in things.items() if is_plain(type(thing))}


def is_plain(kind: type) -> bool:
    """Whether the objects of a class hold their attributes, and nothing else."""
    bases = mro(kind)[:-1]
    has_slots = any(isinstance(part, types.MemberDescriptorType) for base in bases for part in vars(base).values())
    return not has_slots and all(base.__flags__ & HEAP for base in bases)


def keys_of(mapping: Any) -> Any:
    """The keys of a dict, whatever its class says of them, or of what shows one."""
    if is_a(mapping, OrderedDict):  # It has an order of its own.
        return OrderedDict.__iter__(mapping)
    return dict.keys(mapping) if is_a(mapping, dict) else mapping


def values_of(mapping: Any) -> Any:
    """The values of a dict in the order of `keys_of`, whatever its class says of them, or of what shows one."""
    if is_a(mapping, OrderedDict):
        return [dict.__getitem__(mapping, key) for key in OrderedDict.__iter__(mapping)]
    return dict.values(mapping) if is_a(mapping, dict) else mapping.values()


@dataclass(slots=True)
class Mapping:
    mapping: Any

    def __call__(self) -> tuple[list[Any], list[Any]]:
        return [*keys_of(self.mapping)], [*values_of(self.mapping)]


@dataclass(slots=True)
class OfClass(Mapping):
    """The attributes of a program's class."""

    owner: type


class OwnClass(Mapping):
    """The attributes of a class of this package: hundreds of functions, which are compared in one go."""

    __slots__ = ()


class OwnModule(Mapping):
    """The names of a module of this package, which are compared in one go as well."""

    __slots__ = ()


def contents_of(sequence: Any) -> Any:
    """What a container holds, whatever its class says of it."""
    for kind in (list, tuple, set, frozenset, deque):
        if is_a(sequence, kind):
            return kind.__iter__(sequence)
    return sequence


@dataclass(slots=True)
class Sequence:
    sequence: Any

    def __call__(self) -> tuple[list[Any], list[Any]]:
        items = [*contents_of(self.sequence)]
        return [*range(len(items))], items


@dataclass(slots=True)
class Inside:
    """What an object that is made in C holds: what it shows to the garbage collector."""

    thing: Any

    def __call__(self) -> tuple[list[Any], list[Any]]:
        held = [referent for referent in get_referents(self.thing) if type(referent) is not types.TracebackType]
        return [*range(len(held))], held


@dataclass(slots=True)
class Lookup:
    """Some names of a large mapping, such as a module's globals."""

    get: Callable[..., Any]
    names: list[str]
    mapping: Any = None  # where it can be written

    def __call__(self) -> tuple[list[Any], list[Any]]:
        return self.names, [*map(self.get, self.names, repeat(MISSING))]


@dataclass(slots=True)
class Class:
    """Of which class an object is, whatever it says itself."""

    thing: Any

    def __call__(self) -> tuple[list[Any], list[Any]]:
        return ["__class__"], [type(self.thing)]


@dataclass(slots=True)
class Attributes:
    """Some attributes of an object, read where they are kept."""

    thing: Any
    names: list[str]

    def __call__(self) -> tuple[list[Any], list[Any]]:
        return self.names, [attribute(self.thing, name) for name in self.names]


def attribute(thing: object, name: str) -> object:
    try:
        return object.__getattribute__(thing, name)
    except Exception:  # An empty cell has no content, and a property may raise anything.
        return MISSING


def mro(kind: type) -> tuple[type, ...]:
    """The bases of a class, whatever its metaclass says of them."""
    bases: tuple[type, ...] = type.__getattribute__(kind, "__mro__")
    return bases


@dataclass(slots=True)
class Facts:
    """What a function says of a thing: a tuple of plain values, of which equal ones are the same."""

    title: str
    tell: Callable[[], Any]
    last: Any = MISSING

    def __call__(self) -> tuple[list[Any], list[Any]]:
        now = self.tell()
        if not is_same(now, self.last):
            self.last = now
        return [self.title], [self.last]
