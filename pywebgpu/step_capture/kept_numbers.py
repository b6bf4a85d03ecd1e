"""Numbers that stand for several values and that a program kept: they become what they are. Seldom asked for."""

from __future__ import annotations

import functools
import types
from collections import deque
from collections.abc import Callable
from typing import Any

from pywebgpu.step_capture import counting, signature
from pywebgpu.step_capture.free_number import FREE, plain
from pywebgpu.step_capture.surroundings import Attributes, Entry, Inside, OfClass, Place, is_a, owner_of, path


def put_back(entry: Entry, refuse: Callable[[str], None]) -> list[Place]:
    """Does so to what an entry shows. The result is where single ones were kept; of others `refuse` is told."""
    look, places = entry.look, []
    home = getattr(look, "sequence", getattr(look, "mapping", None))
    for key, value in zip(entry.keys, entry.values, strict=True):
        if signature.holds_free(value):
            owner = owner_of(look)
            if type(key) is str and owner is not None and type(value) in FREE:
                places.append(Place(owner, key))
            else:
                refuse(f"it keeps a number in {path(entry.title, key)}")
            if isinstance(look, OfClass):
                type.__setattr__(look.owner, key, without_free(value))
            elif isinstance(look, Attributes):
                object.__setattr__(look.thing, key, without_free(value))
            elif is_a(home, (dict, list, deque)):
                kind = deque if is_a(home, deque) else signature.base_of(type(home))
                kind.__setitem__(home, key, without_free(value))
    if isinstance(look, Inside) and any(map(signature.holds_free, entry.values)):
        if is_a(look.thing, BaseException):
            look.thing.args = without_free(look.thing.args)
        elif is_a(look.thing, functools.partial):
            part = look.thing
            part.__setstate__((part.func, without_free(part.args), part.keywords, part.__dict__))
    if any(map(signature.holds_free, entry.keys)):
        refuse(f"it keeps a number as a key of {entry.title}")
    _put_back_keys(home)
    entry.keys, entry.values = look()
    return places


def _put_back_keys(home: Any) -> None:
    if is_a(home, dict) and any(map(signature.holds_free, dict.keys(home))):
        kind = signature.base_of(type(home))
        items = [(without_free(key), value) for key, value in kind.items(home)]
        kind.clear(home)
        for key, value in items:
            kind.__setitem__(home, key, value)
    elif is_a(home, set):
        items = [without_free(value) for value in set.__iter__(home)]
        set.clear(home)
        set.update(home, items)


def put_back_in(function: types.FunctionType) -> None:
    """The same for what a function that was made in the call holds."""
    for cell in function.__closure__ or ():
        _, value = counting.content(("", cell))
        if signature.holds_free(value):
            cell.cell_contents = without_free(value)
    defaults, named = function.__defaults__, function.__kwdefaults__
    if signature.holds_free((*(defaults or ()), *(named or {}).values())):
        function.__defaults__ = without_free(defaults)
        function.__kwdefaults__ = {name: without_free(value) for name, value in (named or {}).items()}


def without_free(value: Any) -> Any:
    """The same with the numbers that they are."""
    if type(value) in FREE or not signature.holds_free(value):
        return plain(value)
    if is_a(value, tuple):
        return signature.tuple_like(value, [*map(without_free, tuple.__iter__(value))])
    if type(value) is slice:
        return slice(*map(without_free, (value.start, value.stop, value.step)))
    return frozenset(map(without_free, frozenset.__iter__(value)))
