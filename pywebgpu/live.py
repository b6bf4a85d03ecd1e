"""Numbers of the host that change from run to run of a compiled step, and the tape that computes them again.

While a step is captured, whatever the host decides (learning rates, step counts, seeds, numbers that were passed) is a
`Live`: its value now, and an expression of the values that the tape reads. Arithmetic makes longer expressions; a
comparison, a conversion or a truth test becomes a guard, since Python itself goes on with what it saw. Replaying the
tape does what the host did in the captured step, and gives the numbers of the next one.

An expression is text that Python and JavaScript read alike, so that an exported step needs no Python.
"""

from __future__ import annotations

import functools
import math
import weakref
from collections.abc import Callable, Iterator, MutableMapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

Number = bool | int | float
Save = Callable[[], Callable[[], None]]  # notes how something is, and returns what puts it back
Seen = tuple[Any, Any, Any]  # weak references to a tensor and to its storage, and its traits
Cell = tuple[Any, str]  # where a number of the host stands: an object, and what the number is called in it


@dataclass(frozen=True, slots=True)
class Entry:
    """One thing that the host does in a step, in its order.

    read: `action` gives the next value of the list `v`.  write: `action` takes the value of `text`.
    act: `action` is called.  guard: `text` must have the value `expected`.
    cell: what is read or written, where it is a number with a place of its own.
    """

    kind: str
    name: str = ""
    text: str = ""
    action: Callable[..., Any] | None = None
    expected: Any = None
    cell: Cell | None = None


class Tape:
    """What the host did in one captured step, and what it touched: modules, gradients, new storages."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.given: set[int] = set()  # the ids of the storages of arguments
        self.saves: list[Save] = []
        self.homes: list[dict[str, Any]] = []  # dicts that entries change
        self.undos: list[Callable[[], None]] = []  # what puts back the state before the capture
        self.endings: list[Callable[[], None]] = []
        self.known: dict[int, Any] = {}  # by id: what was met, kept so that no id comes twice
        self.storages: list[Any] = []  # weak references to those that were made in the step
        self.begun: dict[int, tuple[Any, Any]] = {}  # by id: a storage that was written, and its node before
        self.modules: dict[int, tuple[Any, Any]] = {}  # by id: a module that was called, and what it was like
        self.grads: dict[int, tuple[Any, Any, bool]] = {}  # by id: a leaf (weakly), its gradient before, if it was read
        self.taps: dict[str, Any] = {}
        self.moved: list[Any] = []  # weak references to storages that another one took in, or that left it
        self.tensors: dict[int, Seen] = {}  # by id: those that were read or written
        self.starts: dict[int, list[Live]] = {}  # by id of a storage: where the arguments that show it start
        self.guards: list[Callable[[], str | None]] = []  # what else has to hold: None, or why it does not
        self.always: list[Callable[[], str | None]] = []  # guards of what `recorder.changes` does not count
        self.reason = ""  # why the step cannot run again
        self.reads = 0

    def meet(self, thing: Any) -> bool:
        """Whether the tape meets an object for the first time."""
        if id(thing) in self.known:
            return False
        self.known[id(thing)] = thing
        return True

    def note_gradient(self, leaf: Any, *, read: bool) -> None:
        """A leaf's gradient is read or set: what was there first decides what the step did."""
        known = self.grads.get(id(leaf))
        if known is None or known[0]() is not leaf:
            self.grads[id(leaf)] = weakref.ref(leaf), leaf._grad, read

    def leaves(self) -> Iterator[tuple[Any, Any, bool]]:
        """The leaves whose gradient was read or set, and which are still there: that gradient, whether it was read."""
        for ref, grad, read in self.grads.values():
            leaf = ref()
            if leaf is not None:
                yield leaf, grad, read

    def see(self, tensor: Any) -> None:
        """A tensor is read or written: what it is now decides what the step is."""
        if id(tensor) not in self.tensors:
            tensor._storage.claim()
            self.tensors[id(tensor)] = weakref.ref(tensor), weakref.ref(tensor._storage), tensor._traits()

    def settle(self, storage: Any) -> None:
        """An argument that shows the storage is used in a way for which it has to start where it does."""
        for start in self.starts.pop(id(storage), ()):
            int(start)

    def read(self, name: str, source: Callable[[], Any], cell: Cell | None = None) -> Live:
        """A number that is read anew in each run, at this place of the step."""
        text = f"v[{self.reads}]"
        self.reads += 1
        self.entries.append(Entry("read", name, action=source, cell=cell))
        return Live(source(), text, self)

    def write(self, name: str, number: Live, setter: Callable[[Any], None], cell: Cell | None = None) -> None:
        """Hands the number over, now and in each run."""
        self.entries.append(Entry("write", name, number.text, setter, cell=cell))
        setter(number.value)

    def act(self, name: str, action: Callable[[], Any]) -> None:
        """Calls `action`, now and in each run."""
        self.entries.append(Entry("act", name, action=action))
        with paused():
            action()

    def guard(self, text: str, expected: Any) -> None:
        self.entries.append(Entry("guard", text=text, expected=expected))

    def remember(self, save: Save) -> None:
        """Called before something of the host changes that entries change again in each run."""
        self.saves.append(save)
        self.undos.append(save())

    def save_dict(self, home: dict[str, Any]) -> None:
        """`home` is changed by entries: it is put back where a run cannot go on."""
        if self.meet(home):
            self.homes.append(home)
            self.undos.append(functools.partial(_restore, home, dict(home)))

    def keeps_range(self, leaf: Any) -> bool:
        """Whether whole numbers from outside are in each run where they are now: not those that are passed."""
        held = getattr(leaf, "storage", None)
        storage = held() if held is not None else None
        if storage is None:
            return True
        if id(storage) in self.given:
            return False
        bounds = leaf.attrs["low"], leaf.attrs["high"]

        def guard() -> str | None:
            attrs = storage.node.attrs
            same = (attrs.get("low"), attrs.get("high")) == bounds
            return None if same else "whole numbers that it reads are in another range"

        if self.meet(leaf):
            self.always.append(guard)
        return True

    def snapshot(self) -> Callable[[], None]:
        """Notes all that entries change; the result puts it back."""
        homes = [*map(dict.copy, self.homes)]
        saved = [save() for save in self.saves]

        def restore() -> None:
            for home, was in zip(self.homes, homes, strict=True):
                _restore(home, was)
            for put_back in saved:
                put_back()

        return restore


def _restore(home: MutableMapping[str, Any], was: dict[str, Any]) -> None:
    home.clear()
    home.update(was)


class Live:
    """A number of the host whose next value the tape knows.

    counted: for a whole number that was counted up, from which text and by how much, so that counts do not nest.
    """

    __slots__ = ("counted", "tape", "text", "value")

    def __init__(self, value: Number, text: str, tape: Tape) -> None:
        self.value, self.text, self.tape = value, text, tape
        self.counted = (text, 0)

    def __repr__(self) -> str:
        return repr(self._fixed())

    def _binary(self, other: Any, symbol: str, *, turned: bool = False) -> Any:
        if self.tape is not recorder.tape:  # Its step is over: only the number is left.
            other = plain(other)
            return _RULES[symbol](other, self.value) if turned else _RULES[symbol](self.value, other)
        if isinstance(other, Live):
            text, value = other.text, other.value
        elif isinstance(other, bool | int | float):
            text, value = repr(other + 0 if isinstance(other, bool) else other), other
        else:
            return NotImplemented
        (a, b), (x, y) = (
            ((text, self.text), (value, self.value)) if turned else ((self.text, text), (self.value, value))
        )
        return Live(_RULES[symbol](x, y), f"({a} {symbol} {b})", self.tape)

    def _compared(self, other: Any, symbol: str) -> Any:
        made = self._binary(other, symbol)
        if isinstance(made, Live):
            self.tape.guard(made.text, made.value)
            return made.value
        return made

    def __add__(self, other: Any) -> Any:
        if type(other) is int and type(self.value) is int and self.tape is recorder.tape:
            text, count = self.counted[0], self.counted[1] + other
            made = Live(self.value + other, f"({text} + {count})", self.tape)
            made.counted = (text, count)
            return made
        return self._binary(other, "+")

    def __radd__(self, other: Any) -> Any:
        return self._binary(other, "+", turned=True)

    def __sub__(self, other: Any) -> Any:
        return self._binary(other, "-")

    def __rsub__(self, other: Any) -> Any:
        return self._binary(other, "-", turned=True)

    def __mul__(self, other: Any) -> Any:
        return self._binary(other, "*")

    def __rmul__(self, other: Any) -> Any:
        return self._binary(other, "*", turned=True)

    def __truediv__(self, other: Any) -> Any:
        return self._binary(other, "/")

    def __rtruediv__(self, other: Any) -> Any:
        return self._binary(other, "/", turned=True)

    def __pow__(self, other: Any) -> Any:
        return self._binary(other, "**")

    def __rpow__(self, other: Any) -> Any:
        return self._binary(other, "**", turned=True)

    def __neg__(self) -> Any:
        return self._binary(-1, "*")

    def __pos__(self) -> Live:
        return self

    def __lt__(self, other: Any) -> Any:
        return self._compared(other, "<")

    def __le__(self, other: Any) -> Any:
        return self._compared(other, "<=")

    def __gt__(self, other: Any) -> Any:
        return self._compared(other, ">")

    def __ge__(self, other: Any) -> Any:
        return self._compared(other, ">=")

    def __eq__(self, other: object) -> Any:
        return self._compared(other, "==")

    def __ne__(self, other: object) -> Any:
        return self._compared(other, "!=")

    def _fixed(self) -> Number:
        """The value as Python's own number: from here on the step depends on it."""
        if self.tape is recorder.tape:
            self.tape.guard(self.text, self.value)
        return self.value

    def __float__(self) -> float:
        return float(self._fixed())

    def __int__(self) -> int:
        return int(self._fixed())

    def __index__(self) -> int:
        return self._fixed().__index__()  # type: ignore[union-attr]

    def __bool__(self) -> bool:
        return bool(self._fixed())

    def __abs__(self) -> Number:
        return abs(self._fixed())

    def __round__(self, digits: int | None = None) -> Number:
        return round(self._fixed(), digits)

    def __mod__(self, other: Any) -> Number:
        return self._fixed() % other  # type: ignore[no-any-return]

    def __rmod__(self, other: Any) -> Any:
        return other % self._fixed()

    def __floordiv__(self, other: Any) -> Number:
        return self._fixed() // other  # type: ignore[no-any-return]

    def __rfloordiv__(self, other: Any) -> Any:
        return other // self._fixed()

    def __trunc__(self) -> int:
        return int(self._fixed())

    def __floor__(self) -> int:
        return math.floor(self._fixed())

    def __ceil__(self) -> int:
        return math.ceil(self._fixed())

    def __hash__(self) -> int:
        return hash(self._fixed())

    def __format__(self, spec: str) -> str:
        return format(self._fixed(), spec)

    def is_integer(self) -> bool:
        return float(self._fixed()).is_integer()


_RULES: dict[str, Callable[[Any, Any], Any]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b,
    "**": lambda a, b: a**b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
}
NUMBERS = (bool, int, float, Live)


class Recorder:
    """The tape of the step that is being captured, if one is."""

    __slots__ = ("changes", "tape")

    def __init__(self) -> None:
        self.tape: Tape | None = None
        self.changes = 0  # of what steps take for granted: attributes of modules, memory of tensors, gradients, hooks


recorder = Recorder()


@contextmanager
def paused() -> Iterator[None]:
    """What happens inside is no part of the step that is being captured."""
    tape, recorder.tape = recorder.tape, None
    try:
        yield
    finally:
        recorder.tape = tape


def plain(number: Any) -> Any:
    """A number without its expression."""
    return number.value if isinstance(number, Live) else number
