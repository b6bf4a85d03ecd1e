"""Calls and surroundings unlike those before, and arguments that a function changed: seldom asked for, and so apart."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from operator import is_
from typing import Any

from pywebgpu.step_capture import signature, surroundings
from pywebgpu.step_capture.free_number import plain
from pywebgpu.step_capture.surroundings import is_a
from pywebgpu.tensor import create


def difference(old: object, new: object) -> str:
    """In what two keys differ, in words."""
    if not (isinstance(old, tuple) and isinstance(new, tuple) and len(old) == len(new)):
        return f"{_short(old)} became {_short(new)}"
    if old[:1] == new[:1] == ("object",):
        return "an object, which is known by its identity, is another one"
    return next(difference(a, b) for a, b in zip(old, new, strict=True) if a != b)


def are_counted(old: object, new: object) -> bool:
    """Whether two keys differ in whole numbers alone."""
    if old == new:
        return True
    if not (isinstance(old, tuple) and isinstance(new, tuple) and len(old) == len(new)):
        return False
    if len(old) == 2 and old[0] is int and new[0] is int:
        return True
    return all(map(are_counted, old, new))


def replaced(old: object, new: object, call: signature.Call) -> Iterator[object]:
    """The objects of a call that stand where the call with another key had others, which are known by identity."""
    if old == new or not (isinstance(old, tuple) and isinstance(new, tuple)):
        return
    if old[:1] == new[:1] == ("object",):
        yield from (value for value in call.kept if id(value) == new[1])
    elif len(old) == len(new):
        for a, b in zip(old, new, strict=True):
            yield from replaced(a, b, call)


def note_content(value: object) -> bool:
    """Whether objects of a class count by their attributes from now on, and did not before."""
    kind = type(value)
    is_plain = type(kind) in signature.PLAIN_KINDS and surroundings.is_plain(kind)
    if (
        not is_plain
        or signature.hides_attributes(kind)
        or callable(value)
        or kind.__module__.partition(".")[0] in ("pywebgpu", "torch")
    ):
        return False
    if hasattr(kind, "state_dict") or kind in signature.by_content:  # What trains is known by its identity.
        return False
    signature.by_content.add(kind)
    return True


def give_back(value: object, changed: object) -> None:
    """Does to the containers of `value` what a function did to those of `changed`, which `rebuilt` made of them."""
    if value is changed or not signature.is_container(value):
        return
    keys, items = signature.items_of(changed)
    old = dict(zip(*signature.items_of(value), strict=True))
    for entry, item in zip(keys, items, strict=True):
        give_back(old.get(entry), item)
    is_kept = {entry: signature.is_container(part) for entry, part in old.items()}
    kept = [old[entry] if is_kept.get(entry) else plain(item) for entry, item in zip(keys, items, strict=True)]
    if not is_a(value, tuple):
        if is_a(value, signature.CONTAINERS):
            signature.base_of(type(value)).clear(value)
        _give_attributes(value, changed)
        signature.put(value, keys, kept)


def difference_of(entry: surroundings.Entry, keys: list[Any], values: list[Any]) -> str | None:
    """What of an entry is no longer as it was, in words, if it counts."""
    if not {type(key) for key in chain(keys, entry.keys)} <= surroundings.EXACT:
        return f"{entry.title} has other items"
    was, now = dict(zip(entry.keys, entry.values, strict=True)), dict(zip(keys, values, strict=True))
    for key in [*was, *(key for key in now if key not in was)]:
        if entry.wanted is None or entry.wanted(key):
            old, new = was.get(key, surroundings.MISSING), now.get(key, surroundings.MISSING)
            if not surroundings.is_known(old, new):
                return f"{surroundings.path(entry.title, key)} {_words(old, new)}"
    return None if entry.wanted is not None else f"{entry.title} is in another order"


def replaced_in(entry: surroundings.Entry, keys: list[Any], values: list[Any]) -> str | None:
    """Which plain value is another object now, though it is equal."""
    pairs = [*zip(keys, entry.values, values, strict=False)]
    if len(keys) != len(entry.keys) or not all(map(is_, keys, entry.keys)):
        was = dict(zip(entry.keys, entry.values, strict=True))
        pairs = [(key, was.get(key, surroundings.MISSING), value) for key, value in zip(keys, values, strict=True)]
    for key, old, new in pairs:
        if old is not new and surroundings.is_value(new) and (entry.wanted is None or entry.wanted(key)):
            return f"{surroundings.path(entry.title, key)} is another object of the same value"
    return None


def rebuilt_shapes(value: Any) -> Any:
    """Arguments where tensors of zeros stand for shapes."""
    if is_a(value, dict):
        return {name: rebuilt_shapes(item) for name, item in value.items()}
    if is_a(value, tuple) and value and all(type(n) is int for n in value):
        return create.zeros(value)
    return tuple(map(rebuilt_shapes, value)) if is_a(value, tuple) else value


def example(value: object) -> object:
    """A tensor of zeros for what is known of one."""
    if not is_a(value, signature.Outline):
        return value
    return create.zeros(value.spec.shape, dtype=value.spec.dtype, device=value.device)


def _give_attributes(value: object, changed: object) -> None:
    own, new = surroundings.attribute(value, "__dict__"), surroundings.attribute(changed, "__dict__")
    if isinstance(own, dict) and isinstance(new, dict):
        own.clear()
        own.update({name: plain(item) for name, item in new.items()})
    for name in signature.slots(type(value)):
        part = surroundings.attribute(changed, name)
        if part is not surroundings.MISSING:
            object.__setattr__(value, name, plain(part))
        elif surroundings.attribute(value, name) is not part:
            object.__delattr__(value, name)


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) < 80 else f"{text[:77]}..."


def _words(old: object, new: object) -> str:
    if old is surroundings.MISSING:
        return f"is new: {_text_of(new)}"
    if new is surroundings.MISSING:
        return "is gone"
    if type(old) in surroundings.EXACT or type(new) in surroundings.EXACT:
        return f"was {_text_of(old)} and is {_text_of(new)}"
    return f"is another {type(new).__name__}"


def _text_of(value: object) -> str:
    return repr(value) if type(value) in surroundings.EXACT else f"a {type(value).__name__}"
