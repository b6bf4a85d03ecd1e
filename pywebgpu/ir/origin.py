"""Which part of a program made a node: its phase, module, label and line. Kept beside the graph, and only on request.

`thread_state.origins` is None until somebody watches; asking that is all that recording pays. Origins then travel from
a node to what rewriting makes of it, so that a kernel can say what it is for. Nothing is computed otherwise because
of them: no origin is part of a key or of a Program.
"""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from os.path import basename
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar
from weakref import WeakKeyDictionary, WeakSet

from pywebgpu.errors import PACKAGE
from pywebgpu.ir.graph import Generator, Node, thread_state

StorageT = TypeVar("StorageT")  # what a watcher calls things of the layers above, which are only passed on here
ProgramT = TypeVar("ProgramT")
DeviceT = TypeVar("DeviceT")
FORWARD, BACKWARD, OPTIMIZER = "forward", "backward", "optimizer"
_CELL = re.compile(r"<ipython-input-(\d+)-|__marimo__cell_(\w+?)_")
Stack = tuple[tuple[str, int, str], ...]


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a node comes from.

    module: a path, as "GPT.blocks.0".  label: the innermost `record_function`'s.  line: file:number.
    stack: (file, line, function) of the program's calls that led there, the outermost first.
    """

    phase: str = FORWARD
    module: str = ""
    label: str = ""
    line: str = ""
    stack: Stack = ()


@dataclass(frozen=True, slots=True)
class Span:
    """Something that took time on the host: kind is module, label, backward, optimizer, compile or run.

    failed: an exception ended it.
    """

    kind: str
    name: str
    start: float
    end: float
    phase: str
    failed: bool = False


class Watcher(Generic[StorageT, ProgramT, DeviceT]):
    """What wants to know. Every method may be left out."""

    lines = False  # whether origins need the lines of the program, which take the longest to find
    stacks = False  # whether they need all calls that led there
    checks = False  # whether it has to see every op, so that no captured step may be replayed

    def begins(self, kind: str, name: str) -> None:
        """A part of the program begins; `span` follows."""

    def span(self, span: Span) -> None:
        """A part of the program has ended."""

    def made(self, storage: StorageT, origin: Origin) -> None:
        """A tensor got a storage."""

    def wrote(self, storage: StorageT, origin: Origin) -> None:
        """A tensor got another value."""

    def gradient(self, node: Node, part: Node, input_index: int) -> None:
        """Backward made `part`, the gradient of input `input_index` of `node`."""

    def failed(self, node: Node) -> None:
        """Backward raises an exception at `node`."""

    def compiled(self, program: ProgramT, values: Sequence[Node], steps: Sequence[Sequence[Node]]) -> None:
        """A graph became a Program: the node of each slot, the nodes that each step computes."""

    def loading(
        self, device: DeviceT, program: ProgramT, roots: Sequence[Node], written: tuple[tuple[int, int], ...]
    ) -> None:
        """A Program, just compiled or known, is about to run for these roots."""

    def again(self, device: DeviceT, program: ProgramT) -> None:
        """A Program is about to run as it did before, for nothing that was recorded."""


if TYPE_CHECKING:

    class _Stored(Protocol):
        @property
        def node(self) -> Node: ...

    class _Module(Protocol):
        """What is called, and names the modules below it."""

        forward: Callable[..., Any]

        def named_modules(self) -> Iterator[tuple[str, Any]]: ...


class Origins:
    """What is running now, the origins of nodes, and those who watch."""

    def __init__(self) -> None:
        self.known: WeakKeyDictionary[Node, Origin] = WeakKeyDictionary()
        self.watchers: list[Watcher[Any, Any, Any]] = []
        self._stack = [Origin()]
        self._names: dict[int, str] = {}  # of the modules below the outermost one that runs
        self.models: WeakSet[Any] = WeakSet()  # the outermost modules that were called

    # What is running

    @contextmanager
    def span(self, kind: str, name: str) -> Iterator[None]:
        """Inside, nodes come from here."""
        outer = self._stack[-1]
        match kind:
            case "module":
                self._stack.append(replace(outer, module=name))
            case "label":
                self._stack.append(replace(outer, label=name))
            case "backward":
                self._stack.append(replace(outer, phase=kind))
            case "optimizer":
                self._stack.append(replace(outer, phase=kind, module=name))
            case _:
                self._stack.append(outer)
        inner, start, failed = self._stack[-1], time.perf_counter(), True
        try:
            for watcher in self.watchers:
                watcher.begins(kind, name)
            yield
            failed = False
        finally:
            finished = Span(kind, name, start, time.perf_counter(), inner.phase, failed)
            self._stack.pop()
            for watcher in self.watchers:
                watcher.span(finished)

    def call(self, module: _Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> object:
        """module.forward(*args, **kwargs), whose nodes come from that module."""
        outer = self._stack[-1].module
        name = self._names.get(id(module)) if outer else None
        if not outer:
            top = type(module).__name__
            self.models.add(module)
            self._names = {id(part): f"{top}.{path}" if path else top for path, part in module.named_modules()}
            name = top
        with self.span("module", name or f"{outer}.{type(module).__name__}"):
            return module.forward(*args, **kwargs)

    def here(self) -> Origin:
        """The origin of what is made now."""
        now = self._stack[-1]
        if any(watcher.stacks for watcher in self.watchers):
            stack = user_stack()
            return replace(now, line=_line(*stack[-1]) if stack else "", stack=stack)
        return replace(now, line=user_line()) if any(watcher.lines for watcher in self.watchers) else now

    @property
    def checks(self) -> bool:
        return any(watcher.checks for watcher in self.watchers)

    # Origins

    def made(self, storage: _Stored) -> None:
        """Nodes below a new tensor that nobody claimed come from here."""
        origin = self.here()
        self.claim(storage.node, origin)
        for watcher in self.watchers:
            watcher.made(storage, origin)

    def wrote(self, storage: _Stored) -> None:
        """The same for a tensor that got another value."""
        origin = self.here()
        self.claim(storage.node, origin)
        for watcher in self.watchers:
            watcher.wrote(storage, origin)

    def compiled(self, program: object, values: Sequence[Node], steps: Sequence[Sequence[Node]]) -> None:
        for watcher in self.watchers:
            watcher.compiled(program, values, steps)

    def loading(
        self, device: object, program: object, roots: Sequence[Node], written: tuple[tuple[int, int], ...]
    ) -> None:
        for watcher in self.watchers:
            watcher.loading(device, program, roots, written)

    def again(self, device: object, program: object) -> None:
        for watcher in self.watchers:
            watcher.again(device, program)

    def gradient(self, node: Node, part: Node, input_index: int) -> None:
        """A gradient through `node` belongs to the part of the program that made `node`."""
        self.claim(part, replace(self.find(node), phase=BACKWARD))
        for watcher in self.watchers:
            watcher.gradient(node, part, input_index)

    def failed(self, node: Node) -> None:
        for watcher in self.watchers:
            watcher.failed(node)

    def carry(self, old: Node, new: Node) -> None:
        """`new` stands for `old`."""
        if new is not old:
            self.claim(new, self.find(old))

    def claim(self, node: Node, origin: Origin) -> None:
        """Gives an origin to a node and to those below it that have none. What follows a gradient is no forward."""
        reached: list[Node] = []
        seen: set[int] = set()
        stack = [node]
        while stack:
            current = stack.pop()
            known = self.known.get(current)
            if known is not None:
                turns = known.phase == BACKWARD and origin.phase == FORWARD
                if turns and not isinstance(current.op, Generator):  # Constants are shared.
                    origin = replace(origin, phase=BACKWARD)
            elif id(current) not in seen:
                seen.add(id(current))
                reached.append(current)
                if current.buffer is None:
                    stack.extend(current.inputs)
        for current in reached:
            self.known[current] = origin

    def find(self, node: Node) -> Origin:
        """The origin of a node, or of the first one below it that has one."""
        current = node
        while current not in self.known and current.inputs:
            current = current.inputs[0]
        return self.known.get(current, Origin())


def watch(watcher: Watcher[Any, Any, Any]) -> Origins:
    """Tells `watcher` of everything until `unwatch`. What was recorded earlier has no origin."""
    if thread_state.origins is None:
        thread_state.watch(Origins())
    origins: Origins = thread_state.origins
    origins.watchers.append(watcher)
    return origins


def unwatch(watcher: Watcher[Any, Any, Any]) -> None:
    origins: Origins | None = thread_state.origins
    if origins is not None:
        origins.watchers = [other for other in origins.watchers if other is not watcher]
        if not origins.watchers:
            thread_state.watch(None)


def user_line() -> str:
    """The innermost line that runs outside of this package, as "train.py:12"."""
    frame: Any = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(PACKAGE):
        frame = frame.f_back
    return "" if frame is None else _line(frame.f_code.co_filename, frame.f_lineno)


def user_stack() -> Stack:
    """All lines that run outside of this package, the outermost first."""
    frames: list[tuple[str, int, str]] = []
    frame: Any = sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        if not code.co_filename.startswith(PACKAGE):
            frames.append((code.co_filename, frame.f_lineno, code.co_name))
        frame = frame.f_back
    return tuple(reversed(frames))


def _line(file: str, number: int, function: str = "") -> str:
    return f"{_title(file)}:{number}"


def _title(file: str) -> str:
    """A file's name; "cell 14" for a cell of a notebook, whose file has a name for machines."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    name = getattr(getattr(shell, "compile", None), "format_code_name", lambda name: None)(file)
    if name is not None:  # ("Cell", "In[14]")
        return f"cell {name[1].removeprefix('In[').removesuffix(']')}"
    cell = _CELL.match(basename(file))
    return f"cell {cell[1] or cell[2]}" if cell else file
