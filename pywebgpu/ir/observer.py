"""Who is notified of what a program does besides recording ops: the capture of a step, where one goes on.

At the ground, so that every layer notifies it in the same way and none needs to know what it does.
`thread_state.observer` is None where nobody observes; hot code asks `used.observed` first, since to ask a thread takes
longer.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NoReturn, Protocol, TypeVar

from pywebgpu.ir.graph import thread_state

N = TypeVar("N")

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pywebgpu.errors import CaptureError

    Check = Callable[[], str | None]  # None, or why something no longer holds
    Save = Callable[[], Callable[[], None]]  # notes how something is, and returns what puts it back

    class ANode(Protocol):
        """A value of the graph, as far as an observer looks at it."""

        attrs: Mapping[str, Any]

    class AStorage(Protocol):
        def claim(self) -> None: ...

    class ATensor(Protocol):
        """What is read or written: its memory, and what else of it decides what a step is."""

        @property
        def _storage(self) -> AStorage: ...
        def _traits(self) -> object: ...

    class ALeaf(Protocol):
        _grad: Any

    class Observer(Protocol):
        """What is notified, in the thread where it happens."""

        # What a step cannot be made of

        def refuse(self, reason: str) -> None:
            """Each run would have to do this in Python."""

        def leave(self, reason: str) -> None:
            """The rest is ordinary code, which may wait for values."""

        def fail(self, error: CaptureError) -> NoReturn:
            """The program asks for what is not there yet."""

        # Memory and tensors

        def created(self, storage: object) -> None: ...
        def have_created(self, storages: Sequence[object]) -> bool:
            """Whether all of them are new."""

        def overwrites(self, storage: object, node: object) -> None:
            """node: the value before."""

        def note_copy(self, copy: object, source: object, show: Callable[[Any, Any], None]) -> None:
            """A storage is a copy of another, whose memory `show` makes it show."""

        def shows_copies_of(self, storage: object) -> bool:
            """Before it is written to: whether it was one of two such storages. The rest is ordinary code then."""

        def moves(self, storage: object) -> None:
            """Another storage took it in, or it left one."""

        def see(self, tensor: ATensor) -> None:
            """A tensor is read or written."""

        def settle(self, storage: object) -> None:
            """It is used in a way for which it has to start where it does."""

        def note_gradient(self, leaf: ALeaf, *, read: bool) -> None: ...
        def note_upload(self, buffer: object, data: bytes | memoryview) -> None: ...
        def keeps_range(self, leaf: ANode) -> bool:
            """Whether whole numbers from outside stay in their range."""

        def tap(self, name: str, tensor: object) -> None:
            """The program asks for a value that it does not return."""

        # Modules, and what else outlives the call

        def calls(self, module: object) -> None: ...
        def set_mode(self, home: dict[str, Any], mode: bool) -> None: ...
        def meet(self, thing: object) -> bool:
            """Whether it is met for the first time."""

        def guard(self, check: Check, *, always: bool = False) -> None:
            """What has to hold in each run. always: even where `changed` does not count what it looks at."""

        def check(self, tensor: object) -> None:
            """Computing it raises where something does not hold."""

        def remember(self, save: Save) -> None: ...
        def save_dict(self, home: dict[str, Any]) -> None: ...
        def at_end(self, action: Callable[[], None]) -> None: ...

        # Numbers of the host

        def read(self, name: str, get: Callable[[], N], owner: object = None, *, handed: bool = False) -> N: ...
        def write(self, name: str, number: N, set: Callable[[N], None], owner: object = None) -> None: ...
        def act(self, name: str, action: Callable[[], Any]) -> None: ...
        def note_number(self, owner: object, name: str) -> None: ...
        def written(self, owner: object, name: str) -> object:
            """What the call wrote there last."""


shared: dict[str, Any] = {}  # by title: tables and switches of this package that programs set, which all steps guard
_changes = [0]
_numbers = itertools.count(1)


def share(title: str, home: N) -> N:
    """Makes all captured steps guard what programs put there, though no code of theirs names it."""
    shared[title] = home
    return home


def changed() -> None:
    """What steps take for granted changed: attributes of modules, memory of tensors, gradients, hooks."""
    _changes[0] = next(_numbers)


def change_count() -> int:
    """A number that is another one after each change, in any thread."""
    return _changes[0]


def leave(reason: str) -> None:
    """Called by what waits for values: no step can be made of a call that does."""
    if thread_state.observer is not None:
        thread_state.observer.leave(reason)


@contextmanager
def unobserved() -> Iterator[None]:
    """What happens inside is no part of the step that is being captured."""
    observer, thread_state.observer = thread_state.observer, None
    try:
        yield
    finally:
        thread_state.observer = observer
