"""The walk that finds what stands around a call: all that the code which ran can see.

From the functions that ran, their globals, closures and defaults, and from the objects that were passed, it goes on
through attributes that the code names, classes, modules with their children, and containers by content. What it meets
is understood whole and becomes a guard: exact types by their value, any other object by its class, its attributes, its
slots, and the dictionaries of its class's bases. What has a state that nobody can look at (an iterator, a file, a
random generator) is a reason why the call cannot be replayed. Code names attributes in its bytecode, in patterns of
`match`, and through objects that read them (`attrgetter`); where it makes names up, all attributes count.
"""

from __future__ import annotations

import abc
import datetime
import functools
import itertools
import operator
import sys
import types
import warnings
import weakref
from collections import defaultdict, deque
from collections.abc import Callable, Collection, Set
from importlib import import_module
from typing import Any

from pywebgpu.step_capture import counting, kinds, signature, watch
from pywebgpu.step_capture.capture import Capture
from pywebgpu.step_capture.surroundings import (
    EXACT,
    MISSING,
    Attributes,
    Class,
    Entry,
    Facts,
    Inside,
    Lookup,
    Mapping,
    OfClass,
    OwnClass,
    OwnModule,
    Place,
    Sequence,
    Surroundings,
    attribute,
    is_a,
    mro,
    path,
)  # fmt: skip
from pywebgpu.step_capture.watch import INTERNAL, LIBRARY, USER, Watch
from pywebgpu.tensor.base import TensorBase

CONTAINERS = (*signature.CONTAINERS, set, frozenset, deque, types.MappingProxyType)
LARGEST = 1000  # items of a container that are looked at
BYTES = 1 << 16  # of an array that are looked at
MOST = 50_000  # entries in all
META = "a metaclass"
OF_NUMPY = frozenset({"numpy", "__array__"})  # methods that give arrays
READS_CLOCK = "NumPy makes dates of texts in it, which may say what the time is"


def survey(roots: list[tuple[str, Any]], watched: Watch, capture: Capture, call: signature.Call) -> Surroundings:
    """What the code that ran can see from the roots and from its own globals. call: its arguments."""
    views = [("_base", "a tensor")] * any(tensor._base is not None for tensor in call.tensors)
    views += [("base", "an array")] * call.has_array_views
    values = [value for value in signature.values_in(call) if type(value) is str or signature.is_array(value)]
    codes = [code for code, _ in watched.codes.values()]
    names = frozenset().union(*(watch.names_of(code) for code in codes), *(code.co_names for code in watched.library))
    is_dynamic = not names.isdisjoint(watch.DYNAMIC)
    while True:
        walk = _Walk(watched, capture, names, views, values, is_dynamic=is_dynamic)
        surroundings = walk.run(roots)
        if walk.more <= names and walk.is_dynamic == is_dynamic:
            return surroundings
        names, is_dynamic = names | walk.more, walk.is_dynamic


class _Walk:
    """One walk, for code that reads attributes of these names. more: names that objects on the way read.

    views: by what name the code would see of what an argument is a view, and what that is.
    values: the texts and arrays among the arguments.
    """

    def __init__(
        self,
        watched: Watch,
        capture: Capture,
        names: frozenset[str],
        views: list[tuple[str, str]],
        values: list[Any],
        *,
        is_dynamic: bool,
    ) -> None:
        self.capture, self.views = capture, views
        self.codes, self.library = watched.codes, watched.library
        self.library_codes = watched.library_codes
        self.by_identity = any(watch.asks_for_identity(code) for code, _ in watched.codes.values())
        self.names, self.is_dynamic = names, is_dynamic
        # Names that code of libraries reads as well: of what it was given.
        self.read = names.union(*(code.co_names for code, _ in watched.library_codes.values()))
        self.more: set[str] = set()
        self.of_modules: frozenset[str] = frozenset()
        self.kept: list[Place] = []  # of numbers that stand for several values
        self.tells = False  # what tells a free number from Python's own is met
        codes = [code for code, _ in watched.codes.values()]
        texts = itertools.chain(names - {"M"}, values, *map(watch.texts_of, codes))
        self.names_dates = any(map(counting.is_of_dates, texts))  # one may stand for a type of NumPy's dates
        self.gets_arrays = not names.isdisjoint(OF_NUMPY) or any(map(signature.is_array, values))
        loads = [*map(watch.loads_of, codes)]
        self.passed = frozenset().union(*(load.passed for load in loads))
        self.after: dict[str, set[str]] = defaultdict(set)  # by name of what is read: the attributes that code names
        for before, name in itertools.chain.from_iterable(load.after for load in loads):
            self.after[before].add(name)
        self.sees_handled = any(load.sees_handled for load in loads)
        constants = [constant for code in codes for constant in code.co_consts]
        self.texts = {text for text in constants if isinstance(text, str) and text.isidentifier()}
        self.reasons = list(watched.reasons)
        saves = self.is_dynamic or any("state_dict" in name for name in self.names)  # It may register hooks of these.
        self.ignored = frozenset() if saves else counting.STATE_DICT
        self.read |= counting.STATE_DICT if saves else frozenset()
        self.entries: list[Entry] = []
        self.met: dict[int, Any] = {}
        self.of_libraries: set[type] = set()  # classes that code of libraries finds by name
        self.met_whole: set[int] = set()  # ids of classes of which all attributes count
        self.tensors: set[int] = set()
        self.found: set[tuple[int, int]] = set()  # ids of the code and of the globals of functions that were met
        self.waiting: deque[tuple[str, Any]] = deque()
        self.size = 0

    def run(self, roots: list[tuple[str, Any]]) -> Surroundings:
        self.waiting.extend(roots)
        for code, names in self.codes.values():
            self._globals(code, names)
        for code, names in self.library_codes.values():
            self._library_globals(code, names)
        for name, space in counting.surface():
            self.entries.append(Entry(name, OwnModule(space), wanted=counting.shared(frozenset(space)).__contains__))
        self._interpreter()
        self._memory()
        while self.waiting and self.size <= MOST:
            title, value = self.waiting.popleft()
            self.tells |= watch.tells_apart(value) and title != META
            self.names_dates |= type(value) is str and counting.is_of_dates(value)
            if type(value) not in EXACT and id(value) not in self.met:
                self.met[id(value)] = value
                self._meet(title, value)
        if self.names_dates and (self.gets_arrays or id(counting.CONTEXTS["numpy"]) in self.met):
            self._refuse(READS_CLOCK)
        if self.size > MOST:
            self._refuse(f"the code that ran can see more than {MOST} things")
        for code in counting.unknown(self.codes, self.found):
            self._refuse(f"where it finds {watch.name_of(code)} is not known")
        return self._result()

    def _result(self) -> Surroundings:
        containers = frozenset(
            identity
            for identity, container in self.met.items()
            if signature.is_container(container) or type(container) in signature.MUTABLE
        )
        met = frozenset(self.met)
        return Surroundings(
            self.entries,
            self.reasons,
            self.tensors,
            containers,
            met,
            self.codes,
            library=self.library,
            library_codes=self.library_codes,
            tells=self.tells,
            by_identity=self.by_identity,
            kept=self.kept,
        )

    def _interpreter(self) -> None:
        """What code can see without a name for it: the interpreter's settings, its caller, clocks, other calls."""
        self._note("warnings", Facts("its filters", lambda: tuple(warnings.filters)))  # Code in C warns unseen.
        if self.sees_handled:
            self._note("its caller", Facts("the exception that it handles", counting.handles_none))
            if not counting.handles_none():
                self._refuse("it can see the exception that its caller handles")
        if not self.passed.isdisjoint(watch.CLOCKS):
            self._refuse("it hands on a method of a class made in C, which may say what the time is")
        if "RecursionError" in self.names:
            self._refuse("it can see how deep its caller is")
        self._note("the interpreter", Facts("its settings", counting.limits))
        if not self.names.isdisjoint({"decode", "encode"}):
            self._note(
                "codecs", Facts("what handles errors", functools.partial(counting.error_handlers, sorted(self.texts)))
            )
        if not self.names.isdisjoint(counting.FRAMES):
            self._refuse("it reads variables of other calls")

    def _memory(self) -> None:
        """What code can see of how objects lie in memory."""
        for name in sorted(self.names & counting.HIDDEN):
            self._refuse(f"it reads {name}, which cannot be looked at")
        for name, what in self.views:
            if name in self.names | self.texts:
                self._refuse(f"it reads the base of {what} that it is given")
        if "as_strided" in self.names and any(code.co_name == "as_strided" for code, _ in self.library_codes.values()):
            self._refuse("it reads what lies beside an array in memory")

    def _refuse(self, reason: str) -> None:
        if reason not in self.reasons:
            self.reasons.append(reason)

    def _sees(self, name: object) -> bool:
        return self.is_dynamic or name in self.names

    def _note(
        self, title: str, look: Callable[[], tuple[list[Any], list[Any]]], wanted: Callable[[Any], bool] | None = None
    ) -> Entry:
        entry = Entry(title, look, wanted=wanted, by_identity=self.by_identity)
        if any(map(signature.holds_free, (*entry.keys, *entry.values))):
            self.kept += _kept_numbers().put_back(entry, self._refuse)
        self.entries.append(entry)
        self.size += len(entry.values)
        return entry

    def _globals(self, code: types.CodeType, names: dict[str, Any]) -> None:
        self.met[id(code)] = code
        wanted, imported = watch.globals_of(code)
        self._look_up("", names, wanted)
        self._look_up("", counting.builtins_of(names), [name for name in wanted if name not in names])
        unnamed = {"__import__"} if imported else set()
        if watch.loads_of(code).makes_classes:
            unnamed.add("__build_class__")
        self._note("", Lookup(counting.builtins_of(names).get, sorted(unnamed)))
        if imported:
            package = names.get("__package__") or ""
            self._look_up("sys.modules", sys.modules, watch.modules_of(imported, package))

    def _library_globals(self, code: types.CodeType, names: dict[str, Any]) -> None:
        """What code of a library finds by name, and what is in its own classes there."""
        known = sorted(watch.globals_of(code)[0] & names.keys())
        entry = self._note(str(names.get("__name__")), Lookup(names.get, known))
        classes = {base for value in entry.values if is_a(value, type) for base in mro(value)} - self.of_libraries
        self.of_libraries |= classes
        for kind in filter(kinds.is_of_library, classes):
            own = type.__getattribute__(kind, "__dict__")
            self._note(kind.__name__, OwnClass(own), counting.of_class(own, None))

    def _look_up(self, title: str, mapping: dict[str, Any], names: Collection[str]) -> None:
        names = set(names) - self.capture.reads_anew(mapping)
        if names:
            self._go_on(self._note(title, Lookup(mapping.get, sorted(names), mapping)), are_named=True)

    # What is met

    def _meet(self, title: str, value: object) -> None:
        if kinds.hides_its_class(value):
            self._refuse(f"{title} has a class which says itself what its attributes are")
            return
        self._context_of(value)
        if is_a(value, TensorBase):
            self._tensor(title, value)
        elif is_a(value, types.FunctionType):
            self._function(title, value)
        elif is_a(value, type):
            self._class(value)
        elif is_a(value, types.ModuleType):
            self._module(title, value)
        elif is_a(value, types.CellType):
            if not self.capture.reads_anew(value):
                self._attributes(title, value, ["cell_contents"])
        elif is_a(value, types.MethodType):
            self._hands_on(title, value.__func__)
            self.waiting += [(title, value.__func__), (title, value.__self__)]
        elif is_a(value, kinds.HOLDERS):
            self._holder(title, value)
        elif is_a(value, CONTAINERS):
            self._container(title, value)
        elif signature.is_array(value):
            self._array(title, value)
        elif is_a(value, functools.cached_property):
            self._attributes(title, value, ["func", "attrname"])  # And a lock.
        elif is_a(value, functools._lru_cache_wrapper):
            self._refuse(f"{title} keeps what it returned before, which cannot be looked at")
            self.waiting.append((title, value.__wrapped__))
        elif is_a(value, kinds.STATELESS):
            owner = getattr(value, "__self__", None)
            is_format = is_a(owner, str) and value.__name__ in counting.FORMATTING
            self.is_dynamic |= is_format or id(value) in counting.READING
            if is_a(value, types.MemberDescriptorType):
                self.more.add(value.__name__)
            self.waiting.append((title, owner))
        else:
            self._object(title, value)

    def _context_of(self, value: object) -> None:
        """Arithmetic that a context decides is only as it was where the context is."""
        name = kinds.name_of(value) if is_a(value, types.ModuleType) else type(value).__module__
        name = value.__module__ if is_a(value, (type, types.BuiltinFunctionType)) else name
        package = name.partition(".")[0] if isinstance(name, str) else ""
        if package == "numpy" and counting.is_of_dates(value):
            self._refuse(READS_CLOCK)
        look = counting.CONTEXTS.get(package)
        if look is not None and id(look) not in self.met:
            self.met[id(look)] = look
            self._note(name, Facts("its context", look))

    def _tensor(self, title: str, tensor: TensorBase) -> None:
        if signature.hides_attributes(type(tensor)):
            self._refuse(f"{title} is a {type(tensor).__name__}, which says itself what its attributes are")
            self._parts_of(title, tensor)
            return
        self.tensors.add(id(tensor))
        self.capture.see(tensor)
        own = object.__getattribute__(tensor, "__dict__")
        if own or self.is_dynamic:
            self._attributes(title, tensor, ["__dict__"])
        self._names_of(title, own)
        self._slots_of(title, tensor, ignored=signature.OWN)
        self.waiting.append((type(tensor).__name__, type(tensor)))
        self._note(title, Class(tensor))
        for name, other in (("_base", tensor._base), ("grad", tensor._grad)):
            if other is not None and self._sees(name) and id(other) not in self.met:
                self._names_of(f"{title}.{name}", other.__dict__)
        if tensor._accumulator is not None:
            hooks = [*tensor._accumulator.hooks.values(), *tensor._accumulator.after.values()]
            self.waiting.extend((f"a hook of {title}", hook) for hook in hooks)

    def _function(self, title: str, function: types.FunctionType) -> None:
        code = function.__code__
        origin, _ = watch.origin(code, function.__globals__)
        seen = ["__qualname__", *filter(self._sees, counting.ABOUT), *filter(self.names.__contains__, counting.SPACES)]
        if origin is USER:
            self._attributes(title, function, seen)
        cells = [(name, cell) for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True)]
        inside = [*map(counting.content, cells), *enumerate(function.__defaults__ or ())]
        inside += (function.__kwdefaults__ or {}).items()
        if any(signature.holds_free(value) for _, value in inside):
            _kept_numbers().put_back_in(function)
            self._refuse(f"it keeps a number in {title}")
        key = id(code), id(function.__globals__)
        if key in self.codes:
            self.found.add(key)
            self._attributes(title, function, ["__code__", "__defaults__", "__kwdefaults__"])
            self.waiting.extend(cells)
        else:  # It may be around a function that ran, as a decorator of the package's or of a library's is.
            held = [*map(counting.content, cells), ("", getattr(function, "__wrapped__", None))]
            self.waiting.extend((title, member) for _, member in held if callable(member) and not is_a(member, type))
            if origin is LIBRARY:
                self.waiting.extend(cells)
            if origin is INTERNAL:
                self._state_of(function)
            if origin is INTERNAL or key in self.library_codes:
                self._attributes(title, function, ["__code__", "__defaults__", "__kwdefaults__"])
        if origin is USER or function.__dict__:
            if function.__dict__ or self.is_dynamic:
                self._attributes(title, function, ["__dict__"])
            self._names_of(title, function.__dict__)

    def _state_of(self, function: types.FunctionType) -> None:
        """What a function of the package keeps in its module: switches and tables."""
        space = function.__globals__
        names = [name for name in function.__code__.co_names if type(space.get(name)) in (list, dict, set)]
        self._look_up(function.__module__, space, names)

    def _class(self, kind: type) -> None:
        self.is_dynamic |= id(kind) in counting.READING
        if is_a(kind, abc.ABCMeta):  # Which other classes it stands for.
            self._note(kind.__name__, Facts("its registered classes", abc.get_cache_token))
        names = None if self.is_dynamic or _is_read_elsewhere(kind) else self.read
        for base in mro(kind):
            if base is not kind and id(base) in (self.met if names is not None else self.met_whole):
                continue
            self.met[id(base)] = base
            if names is None:
                self.met_whole.add(id(base))
            if base.__name__ in watch.READING_CLASSES.get(base.__module__, ()):
                self._refuse(f"it can make objects of class {base.__name__}, which read the world")
            where = kinds.origin_of(base)
            if where is USER:
                if counting.has_hidden_slots(base):
                    self._refuse(f"{base.__name__} has a slot that hides one of its bases")
                self._attributes(base.__name__, base, ["__mro__", "__name__", "__qualname__"])  # Its texts have both.
                if type(base) is not type:  # That is the class of a class for good.
                    self._note(base.__name__, Class(base))
                self.waiting.append((META, type(base)))
                own = type.__getattribute__(base, "__dict__")
                self._go_on(self._of_class(base, own, counting.of_class(own, names)), are_named=True)
                if "__match_args__" in own and "__match_args__" in self.names:
                    self.more.update(own["__match_args__"])
            elif where is INTERNAL or kinds.is_of_library(base):
                own = type.__getattribute__(base, "__dict__")
                read = None if where is INTERNAL else names  # Its code reads what stands there.
                entry = self._note(base.__name__, OwnClass(own), counting.of_class(own, read))
                is_of_tensors = issubclass(base, TensorBase)  # What its own functions see is not looked at.
                for name, value in zip(entry.keys, entry.values, strict=True):
                    if self._is_read(name) and not (is_of_tensors and counting.is_own(value)):
                        self.waiting.append((path(base.__name__, name), value))

    def _of_class(self, kind: type, own: types.MappingProxyType[str, Any], wanted: Callable[[str], bool]) -> Entry:
        anew = self.capture.reads_anew(kind)
        if not anew:
            return self._note(kind.__name__, OfClass(own, kind), wanted)
        self._note(kind.__name__, Facts("its attributes", functools.partial(counting.wanted_of, own, wanted)))
        names = [name for name in counting.wanted_of(own, wanted) if name not in anew]
        return self._note(kind.__name__, Lookup(own.get, names))

    def _is_read(self, name: str) -> bool:
        return self.is_dynamic or name in counting.OWN or name in self.read

    def _module(self, title: str, module: types.ModuleType) -> None:
        name = kinds.name_of(module)
        if name in ("random", "numpy.random", "secrets"):
            self._refuse(f"it can see {name}, which says something else each time")
            return
        is_own = kinds.origin_of_module(module) is USER
        here = self.after.get(title.rpartition(".")[2], ())
        names = {name for name in self.names if is_own or name in module.__dict__ or name in here}
        if self.is_dynamic:  # By a name that stands in the code as text, or that is made up of others.
            if is_own:
                self._names_of(title, module.__dict__)
            names |= self.texts
        self._look_up(title, module.__dict__, names)
        self._note(title, Class(module))
        if not is_own and "__getattr__" in module.__dict__:  # It finds the names that code reads there.
            late = [name for name in here if name not in module.__dict__]
            values = {name: getattr(module, name, None) for name in late}
            self.waiting += [(path(title, name), value) for name, value in values.items()]
            asked = [name for name, value in values.items() if type(value) in EXACT and value is not None]
            if asked:
                self._note(
                    title, Facts("its attributes", lambda: tuple([getattr(module, name, None) for name in asked]))
                )
        if type(module) is not types.ModuleType:
            self._parts_of(title, module)

    def _hands_on(self, title: str, value: object) -> None:
        """Code in C may call it, of which Python's hook says nothing."""
        if type(value) is types.BuiltinFunctionType and not watch.is_pure(value):
            self._refuse(f"it can hand on {title}, which may say or do something else the next time")

    def _holder(self, title: str, value: object) -> None:
        self._go_on(self._note(title, Inside(value)))
        if is_a(value, BaseException):
            self._attributes(title, value, ["__suppress_context__", *kinds.fields_in_c(type(value))])
        if type(value) in (operator.attrgetter, operator.methodcaller):
            names = value.__reduce__()[1]
            self.more.update(part for text in names if isinstance(text, str) for part in text.split("."))
        if kinds.origin_of(type(value)) is USER:
            self._parts_of(title, value)

    def _container(self, title: str, value: Any) -> None:
        if kinds.hides(type(value)):
            self._refuse(f"{title} is a {type(value).__name__}, which says itself what it holds")
        elif len(value) > LARGEST:
            self._refuse(f"{title} has {len(value)} items, and more than {LARGEST} are not looked at")
        elif is_a(value, (dict, types.MappingProxyType)):
            self.waiting.extend((f"a key of {title}", key) for key in value)
            anew = self.capture.reads_anew(value)
            if anew:
                self._note(title, Facts("its names", lambda: tuple([(type(key), key) for key in value])))
                names = [name for name in value if name not in anew]
                self._go_on(self._note(title, Lookup(functools.partial(dict.get, value), names)))
            else:
                self._go_on(self._note(title, Mapping(value)))
        else:
            self._go_on(self._note(title, Sequence(value)))
        if is_a(value, defaultdict):
            self._attributes(title, value, ["default_factory"])
        if kinds.origin_of(type(value)) is USER:
            self._parts_of(title, value)
        elif kinds.is_of_library(type(value)):
            self.waiting.append((type(value).__name__, type(value)))

    def _array(self, title: str, array: Any) -> None:
        if array.nbytes > BYTES:
            self._refuse(f"{title} is an array of {array.nbytes} bytes, and more than {BYTES} are not looked at")
        else:
            self._note(title, Facts("data", lambda: signature.of_array(array)))
        if array.base is not None and self._sees("base"):
            self.waiting.append((f"{title}.base", array.base))

    def _object(self, title: str, value: object) -> None:
        kind = type(value)
        if kinds.origin_of(kind) is INTERNAL:
            self._object_of_the_package(title, value)
        elif is_a(value, weakref.ref):
            self._refuse(f"{title} is a weak reference, which a guard would keep from ending")
        elif is_a(value, weakref.finalize):
            self._refuse(f"{title} is a finalizer, which ends with its object")
        elif any(map(kinds.is_opaque, mro(kind))) or not kinds.is_plain(value):
            self._refuse(f"{title} is a {kind.__name__}, whose state cannot be looked at")
        else:
            if is_a(value, (datetime.datetime, datetime.time)):
                self._attributes(title, value, ["tzinfo"])
            if kind.__module__ == "numpy.dtypes" and value.names is not None:  # type: ignore[attr-defined]
                self._note(title, Facts("its fields", functools.partial(repr, value)))
            self._parts_of(title, value)

    def _parts_of(self, title: str, value: object) -> None:
        """An object of a program's own class: its class, its attributes, its slots."""
        kind = type(value)
        names: Any = attribute(value, "__dict__")
        if names is not MISSING and "__array_interface__" in names:
            self._refuse(f"{title} says where an array lies in memory")
        self._note(title, Class(value))
        if names is not MISSING:
            self._attributes(title, value, ["__dict__"])
        self.waiting.append((kind.__name__, kind))
        if names is not MISSING:
            is_read_here = any(
                kinds.origin_of(base) is not USER and base.__name__ not in counting.BASES for base in mro(kind)
            )
            ignored = {name for name in counting.MANAGED if "param_groups" in names and not self._sees(name)}
            if "_modules" in names and not self.of_modules:
                self.of_modules = counting.of_modules(kind)
            also = self.of_modules if "_modules" in names else frozenset()
            self._names_of(title, names, are_all_wanted=is_read_here, ignored=ignored, also=also)
        self._slots_of(title, value)

    def _slots_of(self, title: str, value: object, ignored: Collection[str] = ()) -> None:
        names = [name for name in signature.slots(type(value)) if self._is_read(name) and name not in ignored]
        if names:
            self._attributes(title, value, names)

    def _object_of_the_package(self, title: str, value: Any) -> None:
        kind = type(value)
        if hasattr(value, "_parameters") and hasattr(value, "_modules"):
            self._parts_of(title, value)
            return
        if kind.__name__ == "Compiled":
            self._attributes(title, value, ["function"])
            self._names_of(title, value.__dict__, ignored=value.__dict__.keys() - self.names)
            return
        if kinds.is_frozen(kind) and not hasattr(value, "__dict__"):
            return
        own = getattr(value, "__dict__", {})
        read = self._read_of(title, kind, own)
        anew = self.capture.reads_anew(own)
        wanted = None if self.is_dynamic else frozenset({*read, *self.names}).__contains__
        if read == own.keys() and not anew:
            self._go_on(self._note(title, Mapping(own), wanted))
        else:
            self._note(title, Facts("its attributes", functools.partial(counting.wanted_of, own, wanted)))
            names = {*read, *self.names & counting.methods(kind)} - anew
            self._go_on(self._note(title, Lookup(own.get, sorted(names))))  # `optimizer.step = ...`
        self._note(title, Class(value))
        self.waiting.append((kind.__name__, kind))
        if "param_groups" in own:
            self._note(title, Lookup(own.get, ["param_groups", "state"]))  # Plain values in them guard themselves.
            held = [item for group in value.param_groups for item in dict.items(group) if item[0] != "params"]
            self.waiting.extend((f"{name} of {title}", member) for name, member in held if not is_a(member, TensorBase))
            hooks = [hook for hooks in value._hooks.values() for hook in hooks.values()]
            self.waiting.extend((f"a hook of {title}", hook) for hook in hooks)
        elif kind.__module__.startswith("pywebgpu.data"):
            self._refuse(f"{title} is a {kind.__name__}, whose state cannot be looked at")

    def _read_of(self, title: str, kind: type, own: dict[str, Any]) -> Collection[str]:
        """Which attributes of an object of the package decide what it does."""
        before = self.capture.before.get(id(own))
        if before is not None:  # Each run does again what changes it.
            named, written = self._named() & before.keys(), counting.written_by(kind)
            for name in sorted(named & written):
                if type(before[name]) in (int, float):
                    self._refuse(f"it reads {path(title, name)}, which each run changes")
                self.waiting.append((path(title, name), before[name]))
            return named - written
        if "param_groups" in own:
            return own.keys() - (counting.MANAGED - self.names)
        if "get_last_lr" in counting.methods(kind):  # A capture reads the rates of schedules anew.
            return own.keys() & self._named()
        return own.keys()

    def _named(self) -> Set[str]:
        """The names by which code may reach attributes: those in texts, too, if it reads attributes by such."""
        return self.names | self.texts if self.is_dynamic else self.names

    def _attributes(self, title: str, thing: object, names: list[str]) -> None:
        entry = self._note(title, Attributes(thing, names))
        for name, value in zip(names, entry.values, strict=True):
            if name not in self.names:
                self._hands_on(f"{title}.{name}", value)
            if value is not MISSING and name not in ("__dict__", "__code__"):
                inner = name == "cell_contents" or name.startswith("__")
                self.waiting.append((title if inner else f"{title}.{name}", value))

    def _names_of(
        self,
        title: str,
        names: dict[str, Any],
        *,
        are_all_wanted: bool = False,
        ignored: Collection[str] = (),
        also: frozenset[str] = frozenset(),
    ) -> None:
        """The attributes of an object, of which those count that code can name."""
        self.met[id(names)] = names
        wanted = None if self.is_dynamic or are_all_wanted else functools.partial(counting.may_read, self.read | also)
        anew = self.capture.reads_anew(names)
        if anew:  # All that counts but numbers which each run reads and writes.
            self._note(title, Facts("its attributes", functools.partial(counting.wanted_of, names, wanted)))
            kept = [name for name in counting.wanted_of(names, wanted) if name not in anew]
            entry = self._note(title, Lookup(names.get, kept, names))
        else:
            entry = self._note(title, Mapping(names), wanted)
        self._go_on(entry, ignored, are_named=not are_all_wanted)

    def _go_on(self, entry: Entry, ignored: Collection[str] = (), *, are_named: bool = False) -> None:
        """are_named: code calls what is there by its name, so that what it calls is seen."""
        for key, value in zip(entry.keys, entry.values, strict=True):
            if (entry.wanted is None or entry.wanted(key)) and not counting.is_among(key, self.ignored, ignored):
                title = path(entry.title, key)
                if not are_named or type(key) is not str or key in self.passed or key.startswith("__"):
                    self._hands_on(title, value)
                self.waiting.append((title, value))


def _kept_numbers() -> types.ModuleType:
    return import_module("pywebgpu.step_capture.kept_numbers")


def _is_read_elsewhere(kind: type) -> bool:
    """Whether code of this package or of a library reads attributes of a class: of its own subclasses, or, as a
    metaclass does, what it likes."""
    bases = [base for base in mro(kind) if base.__name__ not in counting.BASES]
    is_of_the_package = any(kinds.origin_of(base) is INTERNAL for base in bases)
    return is_of_the_package or any(map(kinds.is_of_library, (*bases, *mro(type(kind)))))
