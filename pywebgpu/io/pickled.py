"""Pickles as data: containers, numbers, text, and what listed names make of them. No class of Python is ever made.

The interpreter is one of its own, since Python's would hash what a file nests: a tuple that holds the same tuple twice,
and so on forty times, is a few hundred bytes and never ends. For the same reason no value is printed before it is known
to be small.
"""

from __future__ import annotations

import collections
import pickle
import pickletools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from pywebgpu import errors
from pywebgpu.support.documents import MAX_DEPTH

MAX_OPCODES = 20_000_000
MAX_KEY = 1000  # parts of a key, or of an item of a set
CONTAINERS = (tuple, list, dict, set, frozenset, collections.OrderedDict, collections.Counter)


class TorchFileError(errors.PywebgpuError, pickle.UnpicklingError, ValueError):
    """The file is damaged, or holds something else than tensors, containers, numbers and strings."""


class Source(Protocol):
    """Where a pickle is read from."""

    def read(self, n: int, /) -> bytes: ...

    def readline(self) -> bytes: ...


class StandIn(NamedTuple):
    """What a name in the file stands for: something to call, a value, or neither."""

    name: str
    call: Callable[..., Any] | None = None
    value: Any = None


def read(
    source: Source, names: Mapping[str, StandIn], persistent: Callable[[Any], Any], encoding: str = "utf-8"
) -> Any:
    """The value of one pickle. `persistent` makes a value of what the pickle keeps outside itself.

    encoding: of strings that Python 2 wrote, or "bytes".

    Raises: TorchFileError.
    """
    machine = _Machine(names, persistent, encoding)
    try:
        for count, (opcode, argument, _) in enumerate(pickletools.genops(source)):  # type: ignore[arg-type]
            act = ACTIONS.get(opcode.name)
            if act is None:
                raise TorchFileError(f"the file uses the opcode {opcode.name}, which tensors do not need")
            if count > MAX_OPCODES:
                raise TorchFileError(f"the file has a pickle of more than {MAX_OPCODES} opcodes")
            act(machine, argument)
        return machine.stack.pop()
    except TorchFileError:
        raise
    except (ArithmeticError, AttributeError, EOFError, LookupError, TypeError, ValueError) as error:
        raise TorchFileError(f"the file is damaged: {type(error).__name__}: {error}") from None


BLOCKED = ("sys", "os", "posix", "nt")  # modules of which nothing is called, whatever a program names as safe


def refused(name: str) -> TorchFileError:
    """What is raised of a name that no tensor needs."""
    module, _, own = name.rpartition(".")
    if module.partition(".")[0] in BLOCKED:
        return TorchFileError(
            f"Weights only load failed. Trying to load unsupported GLOBAL {name} whose module {module} is blocked."
        )
    return TorchFileError(
        f"Weights only load failed. Unsupported global: GLOBAL {name} was not an allowed global by default: only "
        "tensors, containers, numbers and strings are read. Save a state_dict() instead of a whole object, use "
        f"`torch.serialization.add_safe_globals([{own}])` or the `torch.serialization.safe_globals([{own}])` context "
        "manager to allowlist this global if you trust it, or say weights_only=False if you trust the file."
    )


def check_key(value: object) -> object:
    """The value, which may be a key: a number, text, a name, or a small tuple of these. Raises TorchFileError."""
    waiting: list[Any] = [value]
    n = 1
    while waiting:
        part = waiting.pop()
        if type(part) in (tuple, frozenset):
            n += len(part)
            if n > MAX_KEY:
                raise TorchFileError(f"the file has a key of more than {MAX_KEY} parts")
            waiting.extend(part)
        elif type(part) not in (str, int, float, bool, bytes, type(None), StandIn):
            raise TorchFileError(f"the file has a key that is a {type(part).__name__}")
        elif type(part) is int and part.bit_length() > 64:  # Those of one hash would be searched one by one.
            raise TorchFileError("the file has a key that is a number of more than 64 bits")
    return value


def fill(target: object, items: Sequence[Any]) -> object:
    """The dict, with the keys and values that alternate in `items`."""
    if not isinstance(target, dict) or len(items) % 2:
        raise TorchFileError(f"the file stores names in a {type(target).__name__}")
    for index in range(0, len(items), 2):
        key = items[index]
        target[key if type(key) is str else check_key(key)] = items[index + 1]
    return target


class _Machine:
    """A stack of values, the stacks below the marks, and the memo.

    A container is filled before it stands in another one, as pickle does it, so its depth can be counted on the way:
    where Python runs in a browser, freeing a nest that is too deep would end the page.
    """

    def __init__(self, names: Mapping[str, StandIn], persistent: Callable[[Any], Any], encoding: str) -> None:
        self.names, self.persistent, self.encoding = names, persistent, encoding
        self.stack: list[Any] = []
        self.below: list[list[Any]] = []
        self.memo: dict[int, Any] = {}
        self.depths: dict[int, int] = {}  # by id; containers that are no more are not asked for
        self.closed: set[int] = set()

    def push(self, value: object) -> None:
        self.stack.append(value)

    def make(self, container: object, items: Iterable[object] = ()) -> None:
        """Pushes a container that is new, and holds the items."""
        self.closed.discard(id(container))
        self.depths[id(container)] = 1
        self.put(container, items)
        self.push(container)

    def gather(self, items: Sequence[Any], kind: Callable[[Any], Any]) -> None:
        self.make(kind(items), items)

    def put(self, container: object, items: Iterable[object]) -> None:
        """Notes that the container holds the items."""
        if id(container) in self.closed:
            raise TorchFileError("the file changes a container that stands in another one")
        depth = self.depths.get(id(container), 1)
        for item in items:
            if type(item) in CONTAINERS:
                self.closed.add(id(item))
                depth = max(depth, 1 + self.depths[id(item)])
        if depth > MAX_DEPTH:
            raise TorchFileError(f"the file holds containers in containers, more than {MAX_DEPTH} deep")
        self.depths[id(container)] = depth

    def mark(self) -> None:
        self.below.append(self.stack)
        self.stack = []

    def marked(self) -> list[Any]:
        """The values since the last mark, which is gone then."""
        items, self.stack = self.stack, self.below.pop()
        return items

    def top(self, n: int) -> tuple[Any, ...]:
        """The last `n` values, which are gone then."""
        if len(self.stack) < n:
            raise TorchFileError("the file is damaged: its pickle takes what is not there")
        items = tuple(self.stack[-n:])
        del self.stack[-n:]
        return items

    def pop(self) -> None:
        if self.stack:
            self.stack.pop()
        else:
            self.marked()

    def text(self, argument: str) -> None:
        held = argument.encode("latin1")
        self.push(held if self.encoding == "bytes" else held.decode(self.encoding))

    def append(self, items: list[Any]) -> None:
        if type(self.stack[-1]) is not list:
            raise TorchFileError(f"the file appends to a {type(self.stack[-1]).__name__}")
        self.put(self.stack[-1], items)
        self.stack[-1].extend(items)

    def fill(self, target: object, items: Sequence[Any]) -> None:
        self.put(target, items)
        fill(target, items)

    def add(self, items: list[Any]) -> None:
        if type(self.stack[-1]) is not set:
            raise TorchFileError(f"the file adds to a {type(self.stack[-1]).__name__}")
        self.put(self.stack[-1], items)
        self.stack[-1].update(check_key(item) for item in items)

    def keep(self, index: int | None) -> None:
        self.memo[len(self.memo) if index is None else int(index)] = self.stack[-1]

    def name(self, module: object, name: object) -> None:
        stand_in = self.names.get(f"{module}.{name}") if type(module) is type(name) is str else None
        if stand_in is None:
            if not type(module) is type(name) is str:
                raise TorchFileError("the file holds a name that is no text")
            raise refused(f"{str(module)[:80]}.{str(name)[:80]}")
        self.push(stand_in)

    def reduce(self) -> None:
        function, arguments = self.top(2)
        if type(function) is not StandIn or function.call is None or type(arguments) is not tuple:
            name = function.name if type(function) is StandIn else f"a {type(function).__name__}"
            raise TorchFileError(f"the file calls {name}, which makes no value")
        result = function.call(*arguments)
        if type(result) in CONTAINERS:
            self.make(result, arguments)
        else:
            self.push(result)

    def build(self) -> None:
        """Attributes of a dict, as those of a state dict, are left out; nothing else may have some."""
        self.top(1)
        if type(self.stack[-1]) not in (collections.OrderedDict, collections.Counter):
            raise TorchFileError(f"the file gives attributes to a {type(self.stack[-1]).__name__}")


OF_PYTHON_2 = ("STRING", "BINSTRING", "SHORT_BINSTRING")  # bytes that may be text
PUSHED = """
    INT BININT BININT1 BININT2 LONG LONG1 LONG4 FLOAT BINFLOAT
    UNICODE BINUNICODE SHORT_BINUNICODE BINUNICODE8 BINBYTES SHORT_BINBYTES BINBYTES8
"""
# Opcodes of containers, numbers, strings, the memo, and of calls of a listed name.
ACTIONS: dict[str, Callable[[_Machine, Any], Any]] = {
    **dict.fromkeys(PUSHED.split(), lambda machine, argument: machine.push(argument)),
    **dict.fromkeys(OF_PYTHON_2, lambda machine, argument: machine.text(argument)),
    **dict.fromkeys(("PROTO", "FRAME", "STOP"), lambda machine, _: None),
    "NONE": lambda machine, _: machine.push(None),
    "NEWTRUE": lambda machine, _: machine.push(True),
    "NEWFALSE": lambda machine, _: machine.push(False),
    "MARK": lambda machine, _: machine.mark(),
    "POP": lambda machine, _: machine.pop(),
    "POP_MARK": lambda machine, _: machine.marked(),
    "DUP": lambda machine, _: machine.push(machine.stack[-1]),
    "EMPTY_LIST": lambda machine, _: machine.make([]),
    "LIST": lambda machine, _: machine.gather(machine.marked(), list),
    "APPEND": lambda machine, _: machine.append([*machine.top(1)]),
    "APPENDS": lambda machine, _: machine.append(machine.marked()),
    "EMPTY_TUPLE": lambda machine, _: machine.make(()),
    "TUPLE": lambda machine, _: machine.gather(machine.marked(), tuple),
    "TUPLE1": lambda machine, _: machine.gather(machine.top(1), tuple),
    "TUPLE2": lambda machine, _: machine.gather(machine.top(2), tuple),
    "TUPLE3": lambda machine, _: machine.gather(machine.top(3), tuple),
    "EMPTY_DICT": lambda machine, _: machine.make({}),
    "DICT": lambda machine, _: machine.gather(machine.marked(), lambda items: fill({}, items)),
    "SETITEM": lambda machine, _: machine.fill(machine.stack[-3], machine.top(2)),
    "SETITEMS": lambda machine, _: machine.fill(machine.below[-1][-1], machine.marked()),
    "EMPTY_SET": lambda machine, _: machine.make(set()),
    "ADDITEMS": lambda machine, _: machine.add(machine.marked()),
    "FROZENSET": lambda machine, _: machine.gather(machine.marked(), lambda items: frozenset(map(check_key, items))),
    **dict.fromkeys(("PUT", "BINPUT", "LONG_BINPUT", "MEMOIZE"), lambda machine, index: machine.keep(index)),
    **dict.fromkeys(("GET", "BINGET", "LONG_BINGET"), lambda machine, index: machine.push(machine.memo[int(index)])),
    "GLOBAL": lambda machine, name: machine.name(*name.split(" ", 1)),
    "STACK_GLOBAL": lambda machine, _: machine.name(*machine.top(2)),
    "REDUCE": lambda machine, _: machine.reduce(),
    "BUILD": lambda machine, _: machine.build(),
    "BINPERSID": lambda machine, _: machine.push(machine.persistent(*machine.top(1))),
}
