"""What the host does and touches in one call that is captured, and the capture that goes on in each thread."""

from __future__ import annotations

import functools
import hashlib
import weakref
from collections.abc import Callable, Iterator, MutableMapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from pywebgpu.errors import CaptureError
from pywebgpu.ir.graph import thread_state, used
from pywebgpu.ir.observer import unobserved
from pywebgpu.step_capture import free_number
from pywebgpu.step_capture.free_number import FREE, FreeNumber, fixed, plain
from pywebgpu.step_capture.host_program import BITS, MOST, Bound, Builder, HostProgram, is_same

N = TypeVar("N")
Seen = tuple[Any, Any, Any]  # weak references to a tensor and to its storage, and its traits

if TYPE_CHECKING:
    from pywebgpu.ir.observer import ALeaf, ANode, ATensor, Check, Save
    from pywebgpu.step_capture.free_number import Number


@dataclass(slots=True, eq=False)
class Cell:
    """Where a number of the host is kept: its name in `owner`, which is None for one that is kept nowhere else.

    key: the same in each call. written: what the call wrote last.
    """

    key: tuple[Any, str]
    owner: Any = None
    get: Callable[[], Any] | None = None
    set: Callable[[Any], None] | None = None
    written: Any = None

    @property
    def name(self) -> str:
        return self.key[1]


class OwnReference(weakref.ref[Any]):
    """A weak reference that a capture holds, which no program knows of."""

    __slots__ = ()


class Capture:
    """One captured call: its host program, and the modules, gradients and storages that it touched.

    free: the numbers that it reads are free. Where not, they are plain, nothing is written as instructions, and
    `reads` and `writes` hold, with the number of the cell, what the instructions would read and write, in their order.
    guarded: those that the program's code is handed are plain, and a replay needs them to be what they are now.
    dry: the Program is made ready and does not run.
    """

    def __init__(self, *, free: bool = True, guarded: bool = False, dry: bool = False) -> None:
        self.is_free, self.is_guarded, self.is_dry = free, guarded, dry
        self.left = ""  # why the rest of the call ran as ordinary code
        self.failed: CaptureError | None = None  # raised, and perhaps caught by the program
        self.has_handed = False  # the program's code was handed a free number
        self.is_open = True  # until the call is over
        self.cells: list[Cell] = []
        self.acts: list[tuple[str, Callable[[], Any]]] = []
        self.reads: list[tuple[int, Any]] = []
        self.writes: list[tuple[int, Any]] = []
        self._program = Builder()
        self._cell_at: dict[tuple[int, str], int] = {}
        self._names_in: dict[int, set[str]] = {}  # by id of an owner: of its cells
        self._n_alone = 0  # cells without an owner
        self._current: dict[int, Any] = {}  # by cell: the number that was read or written last

        self.pending: dict[Any, dict[int, Any]] = {}  # by device, by id: weak references to storages without a value
        self.given: set[int] = set()  # the ids of the storages of arguments
        self.saves: list[Save] = []
        self.homes: list[dict[str, Any]] = []  # dicts that a replay changes
        self.before: dict[int, dict[str, Any]] = {}  # by id: what was in them
        self.undos: list[Callable[[], None]] = []  # what puts back the state before the capture
        self.endings: list[Callable[[], None]] = []
        self.known: dict[int, Any] = {}  # by id: what was met, kept so that no id comes twice
        self.storages: list[Any] = []  # weak references to those that were made in the step
        self.copies: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()  # see note_copy
        self.begun: dict[int, tuple[Any, Any]] = {}  # by id: a storage that was written, and its node before
        self.modules: dict[int, Any] = {}  # by id: those that were called
        self.grads: dict[int, tuple[Any, Any, bool]] = {}  # by id: a leaf (weakly), its gradient before, if it was read
        self.taps: dict[str, Any] = {}
        self.modes: dict[int, dict[str, Any]] = {}  # by id: modules that are told whether they train, before it counts
        self.has_named: Callable[[str], bool] = _is_not_named  # whether code that ran up to now may read a name
        self.checks: list[Any] = []  # tensors that nobody reads: to compute them raises where something does not hold
        self.moved: list[Any] = []  # weak references to storages that another one took in, or that left it
        self.tensors: dict[int, Seen] = {}  # by id: those that were read or written
        self.starts: dict[int, list[Any]] = {}  # by id of a storage: where the arguments that show it start
        self.guards: list[Callable[[], str | None]] = []  # what else has to hold: None, or why it does not
        self.always: list[Callable[[], str | None]] = []  # guards of what `changes` does not count
        self.uploads: dict[int, tuple[Any, bytes]] = {}  # by id: buffers that were filled by the host, and a digest
        self.reason = ""  # why the step cannot run again

    @contextmanager
    def active(self) -> Iterator[None]:
        """Whatever this thread does inside belongs to the capture, which is over then."""
        used.observed = True
        thread_state.observer = self
        try:
            yield
        finally:
            if not self.left:
                self._end()

    def _end(self) -> None:
        try:
            for ending in self.endings:
                ending()
        finally:
            thread_state.observer, self.is_open = None, False
            self.has_named = _is_not_named

    def leave(self, reason: str) -> None:
        """The rest of the call is ordinary code, which may read values: such a call is recorded each time.

        Raises: CaptureError where nothing may run.
        """
        if self.is_dry:
            raise CaptureError(f"{reason}, so it cannot be made ready without running")
        self.left = reason
        self._end()

    def is_current(self) -> bool:
        """Whether what happens here and now belongs to the capture."""
        return thread_state.observer is self

    # Numbers

    def read(self, name: str, get: Callable[[], N], owner: object = None, *, handed: bool = False) -> N:
        """A number that is read anew in each replay, at this point of the step: what `get` gives.

        handed: the program's code asks for it, not this package.
        """
        number: N = self._read(name, get, owner)
        if handed and type(number) in FREE:
            if self.is_guarded:
                return fixed(number)
            self.has_handed = True
        return number

    def _read(self, name: str, get: Callable[[], N], owner: object) -> N:
        value, cell = get(), self._cell(name, owner)
        self.cells[cell].get = get
        known = self._current.get(cell)
        if known is not None and is_same(plain(known), value):
            return known  # type: ignore[no-any-return]
        if not self.is_free:
            self.reads.append((cell, value))
            self._current[cell] = value
            return value
        kind = type(value)
        number = free_number.make(value, self._program.read(cell, kind), self)  # type: ignore[arg-type]
        if kind not in (float, int) or self._is_full():
            return fixed(number)  # type: ignore[return-value]
        self._current[cell] = number
        return number  # type: ignore[return-value]

    def write(self, name: str, number: N, set: Callable[[N], None], owner: object = None) -> None:
        """Hands a number over, now and in each replay."""
        cell = self._cell(name, owner)
        self.cells[cell].set, self.cells[cell].written = set, number
        self._current[cell] = number
        if self.is_free:
            self._program.write(cell, self.index_of(number))  # type: ignore[arg-type]
        else:
            self.writes.append((cell, number))
        set(plain(number))

    def written(self, owner: object, name: str) -> object:
        """The number that the call wrote last under a name, if it did."""
        cell = self._cell_at.get((id(owner), name))
        return None if cell is None else self.cells[cell].written

    def act(self, name: str, action: Callable[[], Any]) -> None:
        """Calls `action`, now and in each replay. It may change any cell."""
        if self.is_free:
            self._program.act(len(self.acts))
        self._current.clear()
        self.acts.append((name, action))
        with unobserved():
            action()

    def apply(self, op: str, rule: Callable[..., N], *numbers: Any) -> N:
        """An operation on numbers, of which some are free. The result is free, where it can be."""
        try:
            value = rule(*map(plain, numbers))
        except Exception:
            for number in numbers:  # Whoever catches it goes another way than without it.
                fixed(number)
            raise
        is_kept = type(value) is not complex and not (type(value) is int and value.bit_length() > BITS)  # type: ignore[attr-defined]
        if not is_kept or self._is_full():
            for number in numbers:
                fixed(number)
            return value
        return free_number.make(value, self._program.apply(op, *map(self.index_of, numbers)), self)  # type: ignore[arg-type, return-value]

    def index_of(self, number: Number) -> int:
        """Where the host program computes a number: a constant, unless it is a free one of this capture."""
        if type(number) in FREE and number._capture is self:  # type: ignore[union-attr]
            return int(number._index)  # type: ignore[union-attr]
        return self._program.const(fixed(number))

    def fix(self, number: FreeNumber) -> None:
        """Python goes on with what the number is now, so a replay needs it to be that."""
        if self.is_open:
            self._program.guard(number._index, number._value)

    def hold(self, number: Number) -> None:
        """A free number is part of the graph itself: a replay needs it to be what it is, though the call is over."""
        if type(number) in FREE and number._capture is self:  # type: ignore[union-attr]
            self._program.guard(number._index, number._value)  # type: ignore[union-attr]

    def program(self) -> HostProgram:
        """What the host did up to now."""
        return self._program.built(len(self.cells), len(self.acts))

    def bound(self) -> Bound:
        """The host program with the cells and the actions of the call."""
        cells, actions = self.cells, [action for _, action in self.acts]
        names = [cell.name for cell in cells]
        return self.program().bound(names, [cell.get for cell in cells], [cell.set for cell in cells], actions)

    def _cell(self, name: str, owner: object) -> int:
        if owner is None:
            key = self._n_alone, name
            self._n_alone += 1
        else:
            key = id(owner), name
            self.note_number(owner, name)
        number = self._cell_at.setdefault(key, len(self.cells))
        if number == len(self.cells):
            self.cells.append(Cell(key, owner))
        return number

    def note_number(self, owner: object, name: str) -> None:
        """A number, or a tuple of numbers, is kept there by this name, which each run reads or writes."""
        self._names_in.setdefault(id(owner), set()).add(name)

    def reads_anew(self, owner: object) -> set[str]:
        """The names of the numbers that each run reads or writes there."""
        return self._names_in.get(id(owner), set())

    def _is_full(self) -> bool:
        if self._program.is_full:
            self.reason = self.reason or f"the host does more than {MOST} things with numbers in it"
        return self._program.is_full

    # What is touched

    def refuse(self, reason: str) -> None:
        """The step cannot run again."""
        self.reason = reason

    def fail(self, error: CaptureError) -> NoReturn:
        """Ends the call, though the program may catch it."""
        self.failed = error
        raise error

    def created(self, storage: object) -> None:
        """The step makes a storage."""
        self.storages.append(weakref.ref(storage))

    def have_created(self, storages: Sequence[object]) -> bool:
        """Whether the step made all of them."""
        known = {id(storage) for ref in self.storages if (storage := ref()) is not None}
        return all(id(storage) in known for storage in storages)

    def overwrites(self, storage: object, node: object) -> None:
        """A storage gets another value than `node`."""
        self.begun.setdefault(id(storage), (storage, node))

    def note_copy(self, copy: object, source: object, show: Callable[[Any, Any], None]) -> None:
        """A storage is a copy of another where it would have its memory: `show` makes it so."""
        self.copies[copy] = source, show

    def shows_copies_of(self, storage: object) -> bool:
        """Whether a storage, which the program writes to, is one of two such that are still there."""
        is_one = any(storage is copy or storage is source for copy, (source, _) in self.copies.items())
        if is_one:
            self._show_copies()
        return is_one

    def leave_with_shared(self) -> None:
        """The call is over: what it made and has memory in common with others keeps it."""
        if self.is_open and self.copies:
            self._show_copies()
        if self.is_open and any((storage := ref()) is not None and storage.is_shared for ref in self.storages):
            self.leave("it leaves a tensor whose memory others have")

    def _show_copies(self) -> None:
        self.leave("it writes to memory, or leaves it, that it views as another dtype")
        for copy, (source, show) in [*self.copies.items()]:
            show(copy, source)

    def moves(self, storage: object) -> None:
        """A storage was taken in by another one, or left it."""
        self.moved.append(weakref.ref(storage))

    def calls(self, module: object) -> None:
        """A module is called."""
        self.modules[id(module)] = module

    def tap(self, name: str, tensor: object) -> None:
        """The program asks for a value that it does not return."""
        self.taps[name] = tensor

    def guard(self, check: Check, *, always: bool = False) -> None:
        """What has to hold in each run."""
        (self.always if always else self.guards).append(check)

    def check(self, tensor: object) -> None:
        """Computing the tensor raises where something does not hold."""
        self.checks.append(tensor)

    def at_end(self, action: Callable[[], None]) -> None:
        """Called when the call is over."""
        self.endings.append(action)

    def meet(self, thing: object) -> bool:
        """Whether the capture meets an object for the first time."""
        if id(thing) in self.known:
            return False
        self.known[id(thing)] = thing
        return True

    def set_mode(self, home: dict[str, Any], mode: bool) -> None:
        """A module is told whether it trains. If nothing asked for that before, it does not count what it was."""
        if not (self.modules or self.has_named("training")):
            self.modes[id(home)] = home
        elif home["training"] is not mode and id(home) not in self.modes:
            self.reason = self.reason or "it tells a module whether it trains, after that may have counted"

    def note_gradient(self, leaf: ALeaf, *, read: bool) -> None:
        """A leaf's gradient is read or set: what was there first decides what the step did."""
        known = self.grads.get(id(leaf))
        if known is None or known[0]() is not leaf:
            self.grads[id(leaf)] = OwnReference(leaf), leaf._grad, read

    def leaves(self) -> Iterator[tuple[Any, Any, bool]]:
        """The leaves whose gradient was read or set, and which are still there: that gradient, whether it was read."""
        for ref, grad, read in self.grads.values():
            leaf = ref()
            if leaf is not None:
                yield leaf, grad, read

    def forget_gradients(self) -> None:
        """Holds those no longer that nobody read: their memory is free for the ones that took their place."""
        self.grads = {
            identity: (ref, grad if read else None, read) for identity, (ref, grad, read) in self.grads.items()
        }

    def see(self, tensor: ATensor) -> None:
        """A tensor is read or written: what it is now decides what the step is."""
        known = self.tensors.get(id(tensor))
        if known is None or known[0]() is not tensor:  # One that is gone leaves its id to another.
            tensor._storage.claim()
            self.tensors[id(tensor)] = OwnReference(tensor), weakref.ref(tensor._storage), tensor._traits()

    def note_upload(self, buffer: object, data: bytes | memoryview) -> None:
        """The host fills a buffer: a constant of the step, if it is so at each call."""
        self.uploads[id(buffer)] = buffer, hashlib.blake2b(data, digest_size=16).digest()

    def settle(self, storage: object) -> None:
        """An argument that shows the storage is used in a way for which it has to start where it does."""
        for start in self.starts.pop(id(storage), ()):
            fixed(start)

    def keeps_range(self, leaf: ANode) -> bool:
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

    # What a replay changes

    def remember(self, save: Save) -> None:
        """Called before something of the host changes that a replay changes again."""
        self.saves.append(save)
        self.undos.append(save())

    def save_dict(self, home: dict[str, Any]) -> None:
        """A replay changes `home`: it is put back where the replay cannot go on."""
        if self.meet(home):
            self.homes.append(home)
            self.before[id(home)] = before = dict(dict.items(home))
            self.undos.append(functools.partial(_restore, home, before))

    def snapshot(self) -> Callable[[], None]:
        """Notes all that a replay changes; the result puts it back."""
        homes = [*map(dict.copy, self.homes)]
        saved = [save() for save in self.saves]

        def restore() -> None:
            for home, was in zip(self.homes, homes, strict=True):
                _restore(home, was)
            for put_back in saved:
                put_back()

        return restore


def _is_not_named(name: str) -> bool:
    return False


def _restore(home: MutableMapping[str, Any], was: dict[str, Any]) -> None:
    home.clear()
    home.update(was)
