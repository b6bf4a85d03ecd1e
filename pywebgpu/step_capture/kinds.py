"""Of what kind an object is: whose class it has, and whether all of its state can be looked at."""

from __future__ import annotations

import abc
import functools
import operator
import re
import sys
import types
from enum import Enum

from pywebgpu.step_capture import signature, watch
from pywebgpu.step_capture.free_number import FREE
from pywebgpu.step_capture.surroundings import EXACT, HEAP, is_a, mro
from pywebgpu.step_capture.watch import INTERNAL, LIBRARY, USER

IMMUTABLE = 1 << 8  # the flag of classes that C code made, and nobody can change
# What has no state of its own.
STATELESS = (
    types.BuiltinFunctionType, types.MethodDescriptorType, types.WrapperDescriptorType, types.MethodWrapperType,
    types.GetSetDescriptorType, types.MemberDescriptorType, types.ClassMethodDescriptorType, types.CodeType,
)  # fmt: skip
# Made in C, with nothing but what they hold.
HOLDERS = (
    property, staticmethod, classmethod, functools.partial, slice, super, types.GenericAlias, types.UnionType,
    operator.attrgetter, operator.itemgetter, operator.methodcaller, BaseException,
)  # fmt: skip
# Classes made in C whose objects never change, by module.
CONSTANT = {
    "builtins": {"object", "bool", "int", "float", "complex", "str", "bytes", "range", "tuple"},
    "_collections": {"_tuplegetter"},
    "re": {"Pattern", "Match"},
    "decimal": {"Decimal"},
    "datetime": {"date", "datetime", "time", "timedelta", "timezone", "tzinfo"},
    "types": {"SimpleNamespace"},
    "numpy": {"ufunc", "dtype", "_ArrayFunctionDispatcher"},
}


def hides_its_class(value: object) -> bool:
    """Whether a class, or the class of an object, says itself what its attributes are."""
    meta = type(value) if is_a(value, type) else type(type(value))
    read: object = meta.__getattribute__
    return read is not type.__getattribute__


def module_of(kind: type) -> str:
    """The name of the module that a class is of, whatever its metaclass says; "" of none."""
    name = type.__getattribute__(kind, "__module__")
    return name if type(name) is str else ""


def origin_of(kind: type) -> str:
    """Whose class it is: a program's own may say that it is of any module."""
    name = module_of(kind)
    if name == "builtins" and not kind.__flags__ & HEAP:
        return LIBRARY
    module = sys.modules.get(name)
    if module is None:
        return USER
    origin = origin_of_module(module)
    is_made_by_code = kind.__flags__ & (HEAP | IMMUTABLE) == HEAP
    return origin if origin is USER or not is_made_by_code or _is_of(kind, module) else USER


def _is_of(kind: type, module: types.ModuleType) -> bool:
    """Whether a module has the class by its name, or made it in a function."""
    names = kind.__qualname__.split(".")
    if "<locals>" in names:
        own = [member.__globals__ for member in vars(kind).values() if isinstance(member, types.FunctionType)]
        return all(space is vars(module) for space in own)
    part: object = module
    for name in names:
        part = vars(part).get(name) if hasattr(part, "__dict__") else None
    return part is kind


def origin_of_module(module: types.ModuleType) -> str:
    """Whose module it is: a program's own may have any name."""
    first, file = name_of(module).partition(".")[0], vars(module).get("__file__")
    if first in ("pywebgpu", "torch"):
        return INTERNAL
    if first not in watch.LIBRARIES:
        return USER
    if isinstance(file, str):
        return LIBRARY if watch.is_library_file(file) else USER
    return LIBRARY if getattr(vars(module).get("__spec__"), "origin", None) in ("built-in", "frozen") else USER


def name_of(module: types.ModuleType) -> str:
    """ "" where a program took it away, or put something else there."""
    name = module.__dict__.get("__name__")
    return name if type(name) is str else ""


def is_of_library(kind: type) -> bool:
    """Whether a class is made in Python by the standard library or by NumPy."""
    return origin_of(kind) is LIBRARY and bool(kind.__flags__ & HEAP) and kind not in (abc.ABC, abc.ABCMeta)


def is_opaque(kind: type) -> bool:
    """Whether objects of a class, which is made in C, have a state that is not in their attributes."""
    if kind.__name__ in CONSTANT.get(kind.__module__, ()) or issubclass(kind, BaseException):
        return False
    if kind.__module__ in ("typing", "types", "abc", "_abc", "enum"):
        return False
    methods = [
        method
        for method in vars(kind).values()
        if isinstance(method, types.MethodDescriptorType | types.WrapperDescriptorType)
    ]
    return any(method.__objclass__ is kind for method in methods)  # Enums take over those of their base.


def fields_in_c(kind: type) -> list[str]:
    """The names of what objects of a class keep in the memory of C, and not as objects."""
    made_in_c = [base for base in mro(kind) if not base.__flags__ & HEAP]
    parts = [(name, part) for base in made_in_c for name, part in vars(base).items() if not name.startswith("__")]
    return [name for name, part in parts if type(part) in (types.MemberDescriptorType, types.GetSetDescriptorType)]


def is_plain(value: object) -> bool:
    """Whether an object of a constant class holds nothing that may change."""
    if type(value).__module__ == "numpy" and type(value).__name__ in ("ufunc", "_ArrayFunctionDispatcher"):
        home = sys.modules.get(getattr(value, "__module__", "numpy"))
        return home is not None and vars(home).get(value.__name__) is value  # type: ignore[attr-defined]
    if is_a(value, re.Match):
        return type(value.string) in EXACT
    return not (type(value).__module__ == "numpy.dtypes" and value.metadata)  # type: ignore[attr-defined]


def hides(kind: type) -> bool:
    """Whether a class of containers has ways of its own to go through them, which may leave something out."""
    own = [base for base in mro(kind) if origin_of(base) is USER]
    return any(name in vars(base) for base in own for name in ("__iter__", "__len__", "keys", "values", "items"))


def is_constant(value: object) -> bool:
    """Whether an object can be handed out again and again: nobody can change it, and it was not made by a call."""
    kind = type(value)
    if kind is slice:
        return all(map(is_constant, (value.start, value.stop, value.step)))  # type: ignore[attr-defined]
    if is_a(value, type):
        return origin_of(value) is not USER
    if is_a(value, types.ModuleType):
        return sys.modules.get(name_of(value)) is value
    if is_a(value, (types.BuiltinFunctionType, types.MethodWrapperType)):
        return value.__self__ is None or is_a(value.__self__, types.ModuleType)
    if kind in EXACT or kind in FREE or is_a(value, STATELESS):
        return True
    if is_a(value, Enum):
        return origin_of(kind) is not USER
    if origin_of(kind) is INTERNAL:
        return not (hasattr(value, "__dict__") or signature.slots(kind)) or is_frozen(kind)
    return kind.__name__ in CONSTANT.get(kind.__module__, ()) and kind.__name__ not in ("object", "SimpleNamespace")


def is_frozen(kind: type) -> bool:
    params = getattr(kind, "__dataclass_params__", None)
    return params is not None and params.frozen
