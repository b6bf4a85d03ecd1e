"""What a call runs: code of which functions, and what of it no guard can speak for.

Python's profile hook reports each function that starts and each C function that is called. Of what code of this package
calls only files are reported on: it notes by itself what else it reads. Code of the standard library and of NumPy is
taken to be a function of its arguments where it is listed here; any other C function, and any other library that reads
the world (clocks, random states, files, the environment), makes the step one that is recorded at each call.
"""

from __future__ import annotations

import datetime
import decimal
import dis
import functools
import json
import math
import operator
import os
import re
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from types import (
    BuiltinFunctionType,
    ClassMethodDescriptorType,
    CodeType,
    FrameType,
    MethodDescriptorType,
    MethodWrapperType,
    TracebackType,
    WrapperDescriptorType,
)
from typing import Any, Self

from pywebgpu.errors import PACKAGE
from pywebgpu.step_capture.free_number import CORRECTED

WORKLOADS = os.path.join(PACKAGE, "bench", "")  # programs as users write them
STANDARD = str(Path(os.__file__).parent) + os.sep

# Modules whose functions give the same for the same arguments, or change nothing but these.
PURE = frozenset(
    [
        "_abc",
        "_bisect",
        "_collections",
        "_collections_abc",
        "_functools",
        "_heapq",
        "_json",
        "_operator",
        "_py_abc",
        "_sre",
        "_statistics",
        "_struct",
        "_typing",
        "_weakref",
        "_weakrefset",
        "abc",
        "ast",
        "base64",
        "binascii",
        "bisect",
        "builtins",
        "cmath",
        "codecs",
        "collections",
        "colorsys",
        "contextlib",
        "contextvars",
        "copy",
        "copyreg",
        "dataclasses",
        "decimal",
        "difflib",
        "enum",
        "fractions",
        "functools",
        "genericpath",
        "hashlib",
        "heapq",
        "importlib",
        "inspect",
        "itertools",
        "json",
        "keyword",
        "math",
        "numbers",
        "numpy",
        "operator",
        "posixpath",
        "pprint",
        "re",
        "reprlib",
        "statistics",
        "string",
        "struct",
        "textwrap",
        "types",
        "typing",
        "unicodedata",
        "weakref",
        "zipimport",
        "zlib",
    ]
)
# Of those, what reads or writes the world all the same, by module.
WORLD = {
    "builtins": {
        "print", "input", "open", "id", "exec", "eval", "compile", "globals", "locals", "breakpoint", "__import__",
    },
    "numpy": {"fromfile", "tofile", "dump"},
    "_weakref": {"getweakrefcount", "getweakrefs"},
}  # fmt: skip
# A method of one of these works on an object that guards look at, or that the call made.
VALUES = (
    bool, int, float, complex, str, bytes, bytearray, memoryview, tuple, list, dict, set, frozenset, range, slice, type,
)  # fmt: skip
# Names by which code reaches attributes or variables whose names do not stand in it.
DYNAMIC = frozenset(
    [
        "getattr",
        "hasattr",
        "setattr",
        "delattr",
        "__setattr__",
        "__delattr__",
        "vars",
        "__dict__",
        "dir",
        "attrgetter",
        "methodcaller",
        "__getattribute__",
        "__slots__",
        "format",
        "format_map",
        "Formatter",
        "__reduce_ex__",
    ]
)
# Modules of the standard library that read attributes of what the program gives them, or tell types apart.
LOOKING = frozenset(
    [
        "ast",
        "copy",
        "copyreg",
        "dataclasses",
        "decimal",
        "fractions",
        "inspect",
        "json",
        "numbers",
        "pprint",
        "reprlib",
        "statistics",
        "string",
        "typing",
    ]
)
# Names that a free number has and Python's own have not, and places of a format that take Python's own alone.
OF_FREE = frozenset({"__array__", "__array_ufunc__", "__copy__", "__deepcopy__", "__slots__"})
STARRED = re.compile(r"%[-+ #0]*(?:\*|\d*\.\*)")
# Code that calls one of these can tell a number that stands for several values from Python's own, or refuses it.
TELLING = frozenset(
    {"__class__", "deque", "dumps", "Decimal", "timedelta", "ldexp", "result_type", "can_cast", "min_scalar_type"}
)
NUMBERS = frozenset({"float", "int"})  # whose methods, called as functions, take their own objects alone
# What Python calls operators by: code that does so itself calls methods of numbers, which know no free one.
OPERATORS = {name for name in dir(int) if name.replace("__r", "__", 1) in vars(operator)} - {"__doc__"}
OPERATORS |= {"__divmod__", "__rdivmod__"}
TELLING_BUILTINS = frozenset({"type", "pow", "sum"} if CORRECTED else {"type", "pow"})  # pow(2, k, 5) asks 2 alone
TELLERS = frozenset(map(id, (type, json.dumps, decimal.Decimal, datetime.timedelta, math.ldexp, *((sum,) * CORRECTED))))
FILES = frozenset({"_io", "io", "posix", "nt", "mmap", "_socket", "_ssl"})
MADE_IN_C = BuiltinFunctionType, ClassMethodDescriptorType, MethodDescriptorType, staticmethod
CLASSES = frozenset({"__subclasses__"})  # methods that tell what a program did elsewhere
# What devices are made of: called by this package alone, or when memory goes back.
BACKENDS = frozenset({"wgpu", "cffi", "pycparser", "rendercanvas", "pyodide", "_pyodide"})

# Instructions whose lowest bit says that what they load is called next.
CALLED = ("LOAD_GLOBAL", "LOAD_ATTR", "LOAD_SUPER_ATTR") if sys.version_info >= (3, 12) else ("LOAD_GLOBAL",)
# Classes made in C of which each object reads the world: Python's hook does not report that a class is called.
READING_CLASSES = {"_io": {"FileIO"}, "_socket": {"socket"}, "mmap": {"mmap"}, "_random": {"Random"}}
# Methods of objects made in C that say what the time is, or call what is not known.
CLOCKS = frozenset({"now", "utcnow", "today", "__call__"})
OWN = frozenset({"pywebgpu", "torch", *BACKENDS})
LIBRARIES = sys.stdlib_module_names | {"builtins", "numpy"}
# Methods that a dataclass is given: they ask for the type of the object alone.
GENERATED = frozenset(
    {"__eq__", "__lt__", "__le__", "__gt__", "__ge__", "__init__", "__repr__", "__setattr__", "__delattr__"}
)

INTERNAL, LIBRARY, USER = "internal", "library", "user"
IMPORT = "<frozen importlib"  # how the names of the files begin that Python imports with


def origin(code: CodeType, names: dict[str, Any]) -> tuple[str, str]:
    """Whether code is of this package, of a library or of the user; and the library's module. names: its globals.

    A program may compile its own with any file's name: code of a module has that module's globals.
    """
    known = _origins.get(id(code))
    if known is not None and known[0] is names:
        return known[1]
    file_origin = _origin_of_file(code.co_filename)
    if file_origin[0] is USER or not _are_of_module(file_origin[0], names):
        return USER, ""
    _origins[id(code)] = names, file_origin
    return file_origin


# By id of code: its globals, and whose it is, where that is no program's. Other code of that id has other globals.
_origins: dict[int, tuple[dict[str, Any], tuple[str, str]]] = {}


def _are_of_module(kind: str, names: dict[str, Any]) -> bool:
    """Whether globals are those of a module of this package, or of a library's."""
    own = OWN if kind is INTERNAL else LIBRARIES
    for name in (names.get("__name__"), getattr(names.get("__spec__"), "name", None)):  # One may be an alias.
        if type(name) is str and getattr(sys.modules.get(name), "__dict__", None) is names:
            return name.partition(".")[0] in own
    return False


@functools.lru_cache(4096)
def _origin_of_file(file: str) -> tuple[str, str]:
    if file.startswith(PACKAGE):
        return (USER, "") if file.startswith(WORKLOADS) else (INTERNAL, "pywebgpu")
    if file.startswith("<frozen "):
        return LIBRARY, file[8:-1]
    start = file.find("site-packages" + os.sep)
    if start < 0 and file.startswith(STANDARD):
        return LIBRARY, _first(file[len(STANDARD) :])
    inside = file[start + 14 :] if start >= 0 else ""
    if _first(inside) in BACKENDS:
        return INTERNAL, "pywebgpu"
    if inside.startswith("numpy" + os.sep):
        return LIBRARY, "numpy.random" if inside.startswith(os.path.join("numpy", "random")) else "numpy"
    return USER, ""


def is_library_file(file: str) -> bool:
    return _origin_of_file(file)[0] is LIBRARY


def tells_numbers_apart(code: CodeType) -> bool:
    """Whether code may see that a number is a free one. A name of a builtin may also be one of an attribute."""
    if code.co_filename == "<string>" and code.co_name in GENERATED:
        return False
    if not (TELLING | OPERATORS).isdisjoint(code.co_names) or any(
        before in NUMBERS for before, _ in loads_of(code).after
    ):
        return True
    texts = texts_of(code)
    if not OF_FREE.isdisjoint((*texts, *code.co_names)) or any(map(STARRED.search, texts)):
        return True
    return not (TELLING_BUILTINS.isdisjoint(code.co_names) or TELLING_BUILTINS.isdisjoint(globals_of(code)[0]))


def texts_of(code: CodeType) -> list[str]:
    """The texts that stand in code, also as items."""
    parts = [part for constant in code.co_consts for part in (constant if isinstance(constant, tuple) else (constant,))]
    return [text for text in parts if isinstance(text, str)]


# What code compares by identity without knowing a program's objects: `x is None`.
KNOWN = (type(None), bool, type(...), type(NotImplemented))


@functools.lru_cache(1024)
def asks_for_identity(code: CodeType) -> bool:
    """Whether code compares two values by `is` of which neither is a constant such as None."""
    if "is_" in code.co_names or "is_not" in code.co_names:
        return True
    steps = [*dis.get_instructions(code)]
    return any(
        step.opname == "IS_OP" and not (last.opname == "LOAD_CONST" and isinstance(last.argval, KNOWN))
        for last, step in pairwise(steps)
    )


Import = tuple[int, str, tuple[str, ...]]  # how many levels up, the module, what is taken from it


@dataclass(frozen=True, slots=True)
class Loads:
    """How code loads what it names.

    passed: names of what it takes as a value, and neither calls at once nor reads an attribute of: it may hand it to
    code in C, which calls it unseen.
    after: what stands before the name of an attribute, and that name.
    sees_handled: it may see an exception that its caller handles. makes_classes: it has a `class` statement.
    """

    passed: frozenset[str]
    after: frozenset[tuple[str, str]]
    sees_handled: bool
    makes_classes: bool


@functools.lru_cache(1024)
def loads_of(code: CodeType) -> Loads:
    passed, after = set(), set()
    sees_handled = "__context__" in code.co_names
    before, is_callee = "", False  # is_callee: what the chain of names that goes on here ends with is called
    steps = [*dis.get_instructions(code)]
    for step, following in zip(steps, [*steps[1:], None], strict=True):
        is_load = step.opname.startswith("LOAD_") and isinstance(step.argval, str)
        next_op = "" if following is None else following.opname
        goes_on = is_load and next_op in ("LOAD_ATTR", "LOAD_METHOD")
        is_callee |= step.opname in CALLED and bool(step.arg & 1)  # type: ignore[operator]
        is_called = is_callee or step.opname == "LOAD_METHOD" or next_op == "PUSH_NULL"
        if step.opname == "IMPORT_FROM" or (is_load and not (goes_on or is_called)):
            passed.add(step.argval)
        if before and step.opname in ("LOAD_ATTR", "LOAD_METHOD"):
            after.add((before, step.argval))
        before = step.argval if is_load else ""
        is_callee = step.opname == "PUSH_NULL" or (is_callee and goes_on)
        sees_handled |= step.opname == "RAISE_VARARGS" and step.arg == 0
    makes_classes = any(step.opname == "LOAD_BUILD_CLASS" for step in steps)
    return Loads(frozenset(passed), frozenset(after), sees_handled, makes_classes)


@functools.lru_cache(1024)
def globals_of(code: CodeType) -> tuple[frozenset[str], frozenset[Import]]:
    """The names that code looks up as variables of its module or builtins, and what it imports."""
    steps = [(step.opname, step.argval) for step in dis.get_instructions(code)]
    looked_up = {name for op, name in steps if "GLOBAL" in op or op.endswith("_NAME")}
    imports = [
        (int(steps[index - 2][1]), name, tuple(steps[index - 1][1] or ()))
        for index, (op, name) in enumerate(steps)
        if op == "IMPORT_NAME"
    ]
    return frozenset(looked_up), frozenset(imports)


def modules_of(imports: Iterable[Import], package: str) -> set[str]:
    """The names by which code in a package finds modules that it imports, their packages among them."""
    names = set()
    for level, name, taken in imports:
        above = package.rsplit(".", level - 1)[0] if level else ""
        module = ".".join(filter(None, (above, name)))
        parts = module.split(".")
        names |= {".".join(parts[:count]) for count in range(1, len(parts) + 1)}
        names |= {f"{module}.{item}" for item in taken}
    return names


@functools.lru_cache(1024)
def names_of(code: CodeType) -> frozenset[str]:
    """The names of attributes that code may read: those in its bytecode, and in patterns of `match`."""
    if not any(step.opname == "MATCH_CLASS" for step in dis.get_instructions(code)):
        return frozenset(code.co_names)
    patterns = [constant for constant in code.co_consts if isinstance(constant, tuple)]
    named = {name for pattern in patterns for name in pattern if isinstance(name, str)}
    return frozenset({*code.co_names, *named, "__match_args__"})


def is_of_tuple(code: CodeType, names: dict[str, Any]) -> bool:
    """Whether code was made for a named tuple: for one of this package, too."""
    is_of_tuple = code.co_filename.startswith("<string") and str(names.get("__name__")).startswith("namedtuple_")
    return is_of_tuple and code.co_names == ("_tuple_new",)


def _is_generated(frame: FrameType) -> bool:
    """Whether code without a file was made for a dataclass of this package."""
    return frame.f_code.co_filename == "<string>" and _are_of_module(INTERNAL, frame.f_globals)


def _is_importing(frame: FrameType | None) -> bool:
    """Whether code runs because this package imports a part of itself, or is a hook that finds modules."""
    while frame is not None:
        asked_by_import = frame.f_back is not None and frame.f_back.f_code.co_filename.startswith(IMPORT)
        if asked_by_import and frame.f_code.co_name == "find_spec":
            return True
        if frame.f_code.co_filename.startswith(IMPORT) and not asked_by_import and _is_internal(frame):
            return True
        frame = frame.f_back
    return False


def _first(inside: str) -> str:
    return inside.partition(os.sep)[0].removesuffix(".py")


class Watch:
    """Use as a context manager around a call.

    codes: the user's code that ran, with the globals that it saw, by the ids of both.
    library: code of the standard library that the user's code called and that looks into what it is given.
    library_codes: all code of it that was called so, as in `codes`.
    reasons: why guards cannot speak for all that the call did; empty where they can.
    """

    def __init__(self, is_paused: Callable[[], bool], tells: Callable[[], None]) -> None:
        """is_paused: what runs now is run again in each replay. tells: called before code runs that can tell a number
        which stands for several values from Python's own."""
        self.codes: dict[tuple[int, int], tuple[CodeType, dict[str, Any]]] = {}
        self.library: set[CodeType] = set()
        self.library_codes: dict[tuple[int, int], tuple[CodeType, dict[str, Any]]] = {}
        self.reasons: list[str] = []
        self._is_paused, self._tells = is_paused, tells
        self._before: Any = None

    def __enter__(self) -> Self:
        self._before = sys.getprofile()
        if self._before is not None and not callable(self._before):
            self.reasons.append("a profiler is at work, which keeps the call from being watched")
        else:
            sys.setprofile(self._hook if self._before is None else self._both)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._before is None or callable(self._before):
            sys.setprofile(self._before)

    def has_named(self, name: str) -> bool:
        """Whether code that ran up to now may read attributes of this name."""
        names = DYNAMIC | {name}
        return not all(names.isdisjoint(code.co_names) for code, _ in self.codes.values())

    def _both(self, frame: FrameType, event: str, arg: object) -> None:
        self._before(frame, event, arg)
        self._hook(frame, event, arg)

    def _hook(self, frame: FrameType, event: str, arg: object) -> None:
        if event == "c_call":
            if is_pure(arg) or (_is_internal(frame) and not _is_of_files(arg)):
                return
            if not (self._is_paused() or _is_importing(frame)):
                self._note(f"it calls {_title(arg)}")
        elif event == "call":
            code, names = frame.f_code, frame.f_globals
            kind, module = origin(code, names)
            if kind is INTERNAL:
                return
            key = id(code), id(names)
            if key in self.codes:
                return
            if kind is USER:
                if not (self._is_paused() or _is_generated(frame) or _is_importing(frame)):
                    self.codes[key] = code, names
                    if tells_numbers_apart(code) or _names_telling(code, names):
                        self._tells()
            elif not (_is_internal(frame.f_back) or self._is_paused() or _is_importing(frame)):
                if not _is_pure_module(module):
                    self._note(f"it runs {module}.{name_of(code)}")
                else:
                    self.library_codes[key] = code, names
                    if module.partition(".")[0] in LOOKING:
                        self._look(code)

    def _look(self, code: CodeType) -> None:
        if code not in self.library:
            self.library.add(code)
            if tells_numbers_apart(code):
                self._tells()

    def _note(self, what: str) -> None:
        reason = f"{what}, which may say or do something else the next time"
        if reason not in self.reasons:
            self.reasons.append(reason)


def _is_internal(frame: FrameType | None) -> bool:
    """Whether this package, and not the user, called what runs in the frame."""
    while frame is not None:
        kind, _ = origin(frame.f_code, frame.f_globals)
        if kind is not LIBRARY:
            return kind is INTERNAL
        frame = frame.f_back
    return False


def _names_telling(code: CodeType, names: dict[str, Any]) -> bool:
    """Whether code names, by whatever name, what tells a free number from Python's own or refuses it."""
    return any(tells_apart(names.get(name)) for name in code.co_names)


def tells_apart(function: object) -> bool:
    """Whether a C function tells a free number from Python's own, or refuses it, as `(1).__add__` does."""
    if type(function) is MethodWrapperType:
        return type(function.__self__) in (int, float) and function.__name__ in OPERATORS
    if type(function) is WrapperDescriptorType:
        return function.__objclass__ in (int, float) and function.__name__ in OPERATORS
    return id(function) in TELLERS


def _is_of_files(function: object) -> bool:
    """Whether a C function reads or writes the world outside of the process: this package does it for the program."""
    module = getattr(function, "__module__", None) or type(getattr(function, "__self__", None)).__module__
    return module in FILES or (module == "builtins" and getattr(function, "__name__", "") == "open")


def is_pure(function: object) -> bool:
    """Whether a C function gives the same for the same arguments, or changes nothing but these."""
    if getattr(function, "__name__", "") in CLASSES:
        return False
    owner = getattr(function, "__self__", None)
    module = getattr(function, "__module__", None)
    if module is None:
        if issubclass(type(owner), type):
            module = _home_of(owner, function.__name__)  # type: ignore[arg-type,attr-defined]
            return module.partition(".")[0] in PURE
        if issubclass(type(owner), VALUES):
            return True
        module = type(owner).__module__
        if module == "builtins":
            return type(owner).__name__ not in ("generator", "coroutine", "async_generator")
    first = module.partition(".")[0]
    if getattr(function, "__name__", "") in WORLD.get(first, ()):
        return False
    return first in PURE and not module.startswith("numpy.random")


def _home_of(owner: type, name: str) -> str:
    """The module of the class that gave a class a method made in C, which may be a base of it or of its metaclass."""
    for base in (*type.mro(owner), *type.mro(type(owner))):
        if isinstance(type.__getattribute__(base, "__dict__").get(name), MADE_IN_C):
            return str(type.__getattribute__(base, "__module__"))
    return ""


def _is_pure_module(module: str) -> bool:
    """`import` in a function is pure where the module is there; a module that code names by a text is not seen."""
    return module.partition(".")[0] in PURE and module not in ("importlib", "numpy.random")


def name_of(code: CodeType) -> str:
    return getattr(code, "co_qualname", code.co_name)


def _title(function: object) -> str:
    owner, module = getattr(function, "__self__", None), getattr(function, "__module__", None)
    name = getattr(function, "__qualname__", getattr(function, "__name__", repr(function)))
    if module is None:
        module = type(owner).__module__ if not isinstance(owner, type) else owner.__module__
    return name if module == "builtins" else f"{module}.{name}"
