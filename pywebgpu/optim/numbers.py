"""Rates and counts of an optimizer in a captured step: they are read anew in each run, and written in each run."""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Callable, ItemsView, Iterator, ValuesView
from functools import partial
from importlib import import_module
from itertools import repeat
from operator import is_
from typing import TYPE_CHECKING, Any, Self
from weakref import WeakValueDictionary

from pywebgpu.ir.graph import thread_state
from pywebgpu.ir.observer import changed
from pywebgpu.optim import grouping
from pywebgpu.step_capture.free_number import FREE, FreeFloat, plain

if TYPE_CHECKING:
    from pywebgpu.ir.observer import Observer
    from pywebgpu.optim.optimizer import Optimizer
    from pywebgpu.tensor.tensor import Tensor

Guard = Callable[[], str | None]
_PLAIN = (bool, int, float, str, tuple)
_PASSING_ON = (__name__, "collections.abc", "_collections_abc")


class Options(dict[str, Any]):
    """A dict whose floats are free where a captured step reads them, and which the step writes in each run."""

    KINDS: tuple[type, ...] = (float,)

    def __iter__(self) -> Iterator[str]:
        """Where this is Python's own, dict(options) and {**options} take the values without asking for them."""
        return super().__iter__()

    def items(self) -> Any:
        return super().items() if thread_state.observer is None else ItemsView(self)

    def values(self) -> Any:
        return super().values() if thread_state.observer is None else ValuesView(self)

    def copy(self) -> dict[str, Any]:
        return dict(self)

    def __or__(self, other: dict[str, Any]) -> dict[str, Any]:  # type: ignore[override]
        return dict(self) | other

    def __ror__(self, other: dict[str, Any]) -> dict[str, Any]:  # type: ignore[override]
        return other | dict(self)

    def __ior__(self, other: dict[str, Any]) -> Self:  # type: ignore[override]
        self.update(other)
        return self

    def update(self, *args: Any, **named: Any) -> None:
        for name, value in dict(*args, **named).items():
            self[name] = value

    def __delitem__(self, name: str) -> None:
        self._note_removal()
        super().__delitem__(name)

    def pop(self, *args: Any) -> Any:
        self._note_removal()
        return super().pop(*args)

    def popitem(self) -> tuple[str, Any]:
        self._note_removal()
        return super().popitem()

    def clear(self) -> None:
        self._note_removal()
        super().clear()

    def __getitem__(self, name: str) -> Any:
        value = super().__getitem__(name)
        return value if thread_state.observer is None else self._read(thread_state.observer, name, value)

    def get(self, name: str, default: object = None) -> Any:
        return self[name] if name in self else default  # noqa: SIM401 - it would call itself

    def setdefault(self, name: str, default: object = None) -> Any:
        if name not in self:
            self[name] = default
        return self[name]

    def __setitem__(self, name: str, value: object) -> None:
        capture = thread_state.observer
        if capture is not None:
            capture.save_dict(self)
            self._note_change(capture, name, value)
            if type(value) in FREE or type(value) in self.KINDS:
                capture.write(name, value, partial(super().__setitem__, name), self)
                return
            if self._are_read_anew(name, value):  # Betas.
                capture.note_number(self, name)
                for index, item in enumerate(value):  # type: ignore[arg-type, var-annotated]
                    capture.write(f"{name}.{index}", item, partial(self._put, name, index), self)
                return
        if self.KINDS is Counts.KINDS or type(value) not in self.KINDS or type(dict.get(self, name)) not in self.KINDS:
            changed()
        super().__setitem__(name, plain(value))

    def _note_removal(self) -> None:
        changed()
        if thread_state.observer is not None:
            thread_state.observer.refuse("it takes an option or a state out of an optimizer")

    def _note_change(self, capture: Observer, name: str, value: object) -> None:
        """What a step does not read anew it may not change either: the next run begins with another value."""
        known = dict.get(self, name, value)
        is_read_anew = type(known) in self.KINDS and (type(value) in FREE or type(value) in self.KINDS)
        if not (is_read_anew or self._are_read_anew(name, value)) and not _is_as(known, value):
            capture.refuse(f"it changes the {name} of an optimizer, which is no number that is read anew")

    def _are_read_anew(self, name: str, value: object) -> bool:
        """Whether it is a tuple of floats, and was one."""
        known = dict.get(self, name)
        if type(value) is not tuple or type(known) is not tuple or not 0 < len(value) == len(known):
            return False
        return all(type(item) is float for item in known) and all(type(item) in (float, FreeFloat) for item in value)

    def _put(self, name: str, index: int, number: float) -> None:
        items = dict.__getitem__(self, name)
        dict.__setitem__(self, name, (*items[:index], number, *items[index + 1 :]))

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (dict(dict.items(self)),)

    def _read(self, capture: Observer, name: str, value: object) -> Any:
        find, handed = super().__getitem__, _is_asked_by_program()
        if type(value) in self.KINDS:
            return capture.read(name, partial(find, name), self, handed=handed)
        if type(value) is tuple and value and all(isinstance(item, float) for item in value):
            capture.note_number(self, name)
            gets = [lambda index=index: find(name)[index] for index in range(len(value))]
            return tuple([capture.read(f"{name}.{index}", get, self, handed=handed) for index, get in enumerate(gets)])
        return value

    def fixed(self) -> list[tuple[str, Any]]:
        """What a captured step does not read anew: a step is for these values, and for these very tensors."""
        return [(name, value) for name, value in dict.items(self) if name != "params" and self._is_fixed(value)]

    def _is_fixed(self, value: object) -> bool:
        if type(value) is tuple:
            return not all(isinstance(item, float) for item in value)
        return type(value) not in self.KINDS


def _is_asked_by_program() -> bool:
    """Whether code outside of this package asks one of these dicts for a value."""
    frame = sys._getframe(2)
    while frame.f_globals.get("__name__") in _PASSING_ON and frame.f_back is not None:
        frame = frame.f_back
    return not str(frame.f_globals.get("__name__")).startswith("pywebgpu.")


class Counts(Options):
    """Its whole numbers are free, too: they count steps. Which of them are equal decides what is updated together."""

    KINDS = (int, float)


class RuleCounts(Counts):
    """What a rule of this package remembers of a parameter: to a program its counts are tensors, as PyTorch's are.

    There is one tensor of a count as long as a program has it. It shows what is counted, and a write to it counts.
    """

    _shown: WeakValueDictionary[str, Tensor] | None = None

    def __getitem__(self, name: str) -> Any:
        value = super().__getitem__(name)
        return self.shown(name, value) if name in grouping.COUNTS and _is_asked_by_program() else value

    def items(self) -> Any:
        return ItemsView(self)

    def values(self) -> Any:
        return ValuesView(self)

    def __setitem__(self, name: str, value: object) -> None:
        if self._shown is None or name not in grouping.COUNTS or self._shown.get(name) is not value:
            super().__setitem__(name, value)

    def shown(self, name: str, value: Any) -> Any:
        """What a program gets for a value."""
        if name not in grouping.COUNTS or not isinstance(value, int | float):
            return value
        counts = import_module("pywebgpu.optim.counts")
        if thread_state.observer is not None:
            return counts.of_number(value)
        if self._shown is None:
            self._shown = WeakValueDictionary()
        tensor = self._shown.get(name)
        if tensor is None:
            self._shown[name] = tensor = counts.shown(self, name)
        return tensor


class States(defaultdict[Any, Any]):
    """What an optimizer remembers, by parameter. Captured steps look again where a program puts some in or out."""

    def __init__(self, items: dict[Any, Any] | None = None) -> None:
        super().__init__(Counts, items or {})

    def __setitem__(self, parameter: Tensor, state: dict[str, Any]) -> None:
        changed()
        super().__setitem__(parameter, state)

    def __delitem__(self, parameter: Tensor) -> None:
        changed()
        super().__delitem__(parameter)

    def clear(self) -> None:
        changed()
        super().clear()

    def pop(self, *args: Any) -> Any:
        changed()
        return super().pop(*args)

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (dict(self),)


def watch(optimizer: Optimizer) -> None:
    """The captured step is for the groups, the parameters, the flags and the hooks that the optimizer has now."""
    capture = thread_state.observer
    if capture is not None and capture.meet(optimizer):
        capture.guard(_groups_guard(optimizer), always=True)


def watch_states(optimizer: Optimizer) -> None:
    """The captured step is for states with the names, the tensors and what else is no number that they have now."""
    capture = thread_state.observer
    if capture is not None and not isinstance(optimizer.state, States):
        capture.refuse("the optimizer keeps its state in a dict of the program's own, which no replay would write")
    if capture is not None and capture.meet(optimizer.state):
        capture.guard(_states_guard(optimizer))


def _groups_guard(optimizer: Optimizer) -> Guard:
    title = type(optimizer).__name__
    groups = [(group, list(group["params"]), *_looks(group)) for group in optimizer.param_groups]
    hooks = _hooks(optimizer)

    def guard() -> str | None:
        now = optimizer.param_groups
        if len(now) != len(groups) or any(
            current is not group for current, (group, *_) in zip(now, groups, strict=True)
        ):
            return f"{title} has other parameter groups"
        for group, params, fixed, names, values in groups:
            listed = dict.__getitem__(group, "params")
            if len(listed) != len(params) or not all(map(is_, listed, params)):
                return f"{title} has other parameters"
            if all(map(is_, map(dict.get, repeat(group), names), values)):
                continue
            name = _changed(group, fixed)
            if name is not None:
                return f"{title}: {name} was {dict(fixed)[name]!r} and is {group.get(name)!r}"
        if (hooks or any(optimizer._hooks.values())) and _hooks(optimizer) != hooks:
            return f"{title} has other hooks"
        return None

    return guard


def _states_guard(optimizer: Optimizer) -> Guard:
    states = []
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            state = optimizer.state.get(parameter) or {}
            states.append((parameter, state or None, len(state), _fixed(state)))

    def guard() -> str | None:
        for parameter, state, size, fixed in states:
            now = optimizer.state.get(parameter) or None
            if now is not state or (now is not None and (len(now) != size or _changed(now, fixed) is not None)):
                return f"{type(optimizer).__name__} has another state of a parameter"
        return None

    return guard


def keep_alike(states: list[dict[str, Any]]) -> None:
    """The captured step updates parameters together, by the numbers of the first: all have to have these."""
    capture = thread_state.observer
    if capture is None:
        return
    names = [name for name, value in dict.items(states[0]) if type(value) in Counts.KINDS]

    def guard() -> str | None:
        for name in names:
            first, *others = [dict.get(state, name) for state in states]
            if not all(_is_as(first, number) for number in others):
                return f"the {name} of a parameter is no longer that of those which are updated with it"
        return None

    def end() -> None:
        """Where the step itself parts them, no change from outside tells that they may differ."""
        is_kept = all(are_of_one(states, name) for name in names)  # The capture goes on until all ends were called.
        capture.guard(guard, always=not is_kept)

    capture.at_end(end)


def written(state: dict[str, Any], name: str) -> object:
    """The number that the step which is being captured wrote there last, if it did: others may only be equal now."""
    capture = thread_state.observer
    return None if capture is None else capture.written(state, name)


def are_of_one(states: list[dict[str, Any]], name: str) -> bool:
    """Whether the step wrote one and the same number into all of the states, or none into any."""
    capture = thread_state.observer
    return capture is None or len({id(capture.written(state, name)) for state in states}) == 1


def _looks(group: dict[str, Any]) -> tuple[list[tuple[str, Any]], list[str], list[Any]]:
    """What is fixed of a group; the same as names and values."""
    fixed = _fixed(group)
    return fixed, [name for name, _ in fixed], [value for _, value in fixed]


def _fixed(home: dict[str, Any]) -> list[tuple[str, Any]]:
    """In a dict that a program put there itself all numbers are fixed."""
    return home.fixed() if isinstance(home, Options) else [item for item in home.items() if item[0] != "params"]


def _changed(home: dict[str, Any], fixed: list[tuple[str, Any]]) -> str | None:
    """The name of something that is no longer what it was."""
    for name, value in fixed:
        if not _is_as(value, dict.get(home, name)):
            return name
    return None


def _is_as(value: object, now: object) -> bool:
    """Whether an option is the same, or an equal number or text."""
    return now is value or (isinstance(value, _PLAIN) and type(now) is type(value) and now == value)


def _hooks(optimizer: Optimizer) -> dict[str, dict[int, Any]]:
    return {event: dict(hooks) for event, hooks in optimizer._hooks.items() if hooks}
