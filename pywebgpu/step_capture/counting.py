"""Which names of objects count for a step, and what else decides what code does: of the package, of the interpreter."""

from __future__ import annotations

import builtins
import codecs
import decimal
import dis
import functools
import inspect
import operator
import re
import sys
import types
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any

from pywebgpu.step_capture import kinds, watch
from pywebgpu.step_capture.surroundings import FUNCTIONS, attribute, is_a, mro

Codes = dict[tuple[int, int], tuple[types.CodeType, dict[str, Any]]]
# Attributes and methods of modules that the package itself reads.
OWN = frozenset(
    {"training", "_parameters", "_buffers", "_modules", "forward", "_call_impl", "__call__", "_slow_forward"}
)
PROTOCOLS = frozenset({"keys", "dtype", "send", "throw", "close"})  # that code in C reads of any object
BASES = frozenset({"Module", "StateDict", "ModuleTree", "object"})  # of every module
# What reads or writes attributes whose names nobody sees.
READERS = (
    getattr, hasattr, setattr, delattr, vars, dir, object.__getattribute__, type.__getattribute__,
    super.__getattribute__, object.__setattr__, object.__delattr__, type.__setattr__, type.__delattr__,
)  # fmt: skip
READING = frozenset(map(id, (*READERS, operator.attrgetter, operator.methodcaller, str.format, str.format_map)))
FORMATTING = frozenset({"format", "format_map"})  # methods of a text that read attributes of what they are given
# Of optimizers, which a capture looks after by itself: rates, counts and states are new in each run.
MANAGED = frozenset({"param_groups", "state", "defaults", "_seen", "_opt_called", "_hooks"})
# Of modules, for saving alone.
STATE_DICT = frozenset(
    {
        "_non_persistent_buffers_set",
        "_state_dict_hooks",
        "_state_dict_pre_hooks",
        "_load_state_dict_pre_hooks",
        "_load_state_dict_post_hooks",
    }
)
ABOUT = (
    "__annotations__", "__closure__", "__code__", "__defaults__", "__doc__", "__kwdefaults__", "__module__", "__name__",
)  # fmt: skip
SPACES = ("__builtins__", "__globals__")  # all names of a module
# Folders of this package that PyTorch has not.
INNER = frozenset({
    "autodiff", "bench", "cli", "compiler", "composites", "data", "devices", "display", "exporter", "hosts",
    "inspector", "io", "ir", "kernels", "ops", "profiler", "runtime", "step_capture", "support", "tensor",
})  # fmt: skip
# What code reads of frames: variables of other calls.
FRAMES = frozenset({"tb_frame", "f_back", "f_locals", "f_globals", "gi_frame", "cr_frame", "ag_frame"})
# How large an object is, where it lies in memory, or where an exception was raised.
HIDDEN = frozenset({
    "__alloc__", "__array_interface__", "__sizeof__", "__traceback__", "may_share_memory", "shares_memory",
})  # fmt: skip
# What else decides arithmetic, by module.
CONTEXTS: dict[str, Callable[[], object]] = {
    "decimal": lambda: (repr(decimal.getcontext()), repr(decimal.DefaultContext)),
    "numpy": lambda: (
        *_numpy().geterr().values(),
        _numpy().geterrcall(),
        *warnings.filters,
        repr(_numpy().get_printoptions()),
        _numpy().getbufsize(),
    ),
}

# NumPy makes dates of texts by these types and functions, and reads the clock where the text is "now" or "today".
DATES = re.compile("M8|(?i:datetime64|busday)|^[<>=|]?M$")


def _numpy() -> Any:
    return sys.modules["numpy"]


def is_of_dates(value: object) -> bool:
    """Whether NumPy makes dates of texts by a value: an array, a type or a function of its own, or the name of one."""
    if type(value) is str:
        return DATES.search(value) is not None
    texts = getattr(value, "__name__", type(value).__name__), repr(getattr(value, "dtype", value))
    return any(map(DATES.search, texts))


# What an entry asks of names: it holds nothing of the walk, which has met everything.


def of_class(own: types.MappingProxyType[str, Any], names: frozenset[str] | None) -> Callable[[str], bool]:
    """Functions of a class may be called by Python itself, or by the package. names: those that are read; None: all."""
    return functools.partial(_counts, own, names, shared(frozenset(filter(functools.partial(_is_called, own), own))))


@functools.lru_cache(1024)
def shared(names: frozenset[str]) -> frozenset[str]:
    """The same set for all steps that see a class or a module."""
    return names


def _counts(
    own: types.MappingProxyType[str, Any], names: frozenset[str] | None, called: frozenset[str], name: str
) -> bool:
    """called: the names of functions when the walk met the class."""
    if name == "__slotnames__":  # Kept by `copy`.
        return False
    return names is None or name in names or name in called or name.startswith("__") or _is_called(own, name)


def _is_called(own: types.MappingProxyType[str, Any], name: str) -> bool:
    value = own.get(name)
    return callable(value) or hasattr(type(value), "__get__")


def limits() -> tuple[int, int]:
    """Of the interpreter: how many digits a text of a number has, and how deep calls go."""
    return sys.get_int_max_str_digits(), sys.getrecursionlimit()


def surface() -> list[tuple[str, dict[str, Any]]]:
    """The modules of this package that PyTorch has, too: what a program replaces there, the package calls."""
    loaded = [(name, module) for name, module in sys.modules.copy().items() if name.startswith("pywebgpu")]
    return [(name, vars(module)) for name, module in loaded if module and name.split(".")[1:2] and _is_shown(name)]


def _is_shown(name: str) -> bool:
    return name.split(".")[1] not in INNER


def is_own(value: object) -> bool:
    """Whether a function, as a class of this package has them, is not a program's."""
    if is_a(value, types.FunctionType):
        return watch.origin(value.__code__, value.__globals__)[0] is not watch.USER
    return type(value) in FUNCTIONS


def may_read(names: frozenset[str], name: str) -> bool:
    """Names in underscores belong to protocols, which code in C reads."""
    return name in names or name in OWN or name in PROTOCOLS or name.endswith("hooks") or name[:2] == "__" == name[-2:]


def wanted_of(names: Iterable[str], wanted: Callable[[str], bool] | None) -> tuple[str, ...]:
    return tuple(names if wanted is None else filter(wanted, names))


def is_among(key: object, *groups: Collection[str]) -> bool:
    return type(key) is str and any(key in group for group in groups)


def methods(kind: type) -> set[str]:
    return {name for base in mro(kind) for name, member in vars(base).items() if callable(member)}


@functools.lru_cache(1024)
def written_by(kind: type) -> frozenset[str]:
    """The attributes that methods of a class write, but for those that give an object its state."""
    own = [member for base in mro(kind) for member in vars(base).values() if is_a(member, types.FunctionType)]
    codes = [
        inspect.unwrap(member).__code__ for member in own if member.__name__ not in ("__init__", "load_state_dict")
    ]
    return frozenset(
        step.argval for code in codes for step in dis.get_instructions(code) if step.opname == "STORE_ATTR"
    )


def has_hidden_slots(kind: type) -> bool:
    """Whether a class has a slot of a name that one of its bases has a slot of, too: both hold something."""
    own = [name for name, member in vars(kind).items() if type(member) is types.MemberDescriptorType]
    bases = [vars(base).get(name) for base in mro(kind)[1:] for name in own]
    return any(type(member) is types.MemberDescriptorType for member in bases)


def of_modules(kind: type) -> frozenset[str]:
    """The methods of every module, which the package calls: an object may have others of these names."""
    bases = [base for base in mro(kind) if base.__name__ in BASES and base is not object]
    return frozenset(name for base in bases if kinds.origin_of(base) is watch.INTERNAL for name in vars(base))


def unknown(codes: Codes, already: set[tuple[int, int]]) -> Iterator[types.CodeType]:
    """Code that ran and is neither of a function that was met nor inside of other code that ran."""
    known = set(already)
    inner = [*codes.values()]
    while inner:
        outer, names = inner.pop()
        inside = [constant for constant in outer.co_consts if isinstance(constant, types.CodeType)]
        inner += [(code, names) for code in inside if (id(code), id(names)) not in known]
        known.update((id(code), id(names)) for code in inside)
    return (code for key, (code, names) in codes.items() if key not in known and not watch.is_of_tuple(code, names))


def handles_none() -> bool:
    return sys.exc_info()[1] is None


def error_handlers(names: list[str]) -> tuple[object, ...]:
    return tuple(map(_error_handler, names))


def _error_handler(name: str) -> object:
    try:
        return codecs.lookup_error(name)
    except LookupError:
        return None


def content(named: tuple[str, types.CellType]) -> tuple[str, Any]:
    name, cell = named
    return name, attribute(cell, "cell_contents")


def builtins_of(names: dict[str, Any]) -> dict[str, Any]:
    """What code with these globals finds where they have no such name."""
    own = names.get("__builtins__", builtins)
    return own if isinstance(own, dict) else vars(own)
