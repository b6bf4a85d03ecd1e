"""Where a call of the public surface asks classes and modes what they do with it: `__torch_function__`.

A public function asks `used.overrides`, which is None until a program has a class of tensors or a mode with rules of
its own; from then on methods of Tensor ask it too. Before, nothing is asked, and nothing costs.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from operator import attrgetter
from types import FunctionType
from typing import Any, ParamSpec, TypeVar

from pywebgpu.ir.graph import used
from pywebgpu.tensor.base import TensorBase

P = ParamSpec("P")
R = TypeVar("R")

# Methods of Python's that classes and modes see as those of Tensor.
OPERATORS = frozenset((
    *(f"__{form}{name}__" for form in ("", "i", "r") for name in (
        "add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and", "or", "xor", "lshift", "rshift",
    )),
    "__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__", "__neg__", "__pos__", "__abs__",
    "__invert__", "__getitem__", "__setitem__", "__len__", "__bool__", "__int__", "__float__", "__complex__",
    "__index__", "__contains__", "__iter__", "__reversed__",
))  # fmt: skip
# Those that they see by another name.
NAMES = {f"__{name}__": name for name in ("add", "sub", "mul", "ne", "lt", "le", "gt", "ge", "neg", "abs", "matmul")}
NAMES |= {"__radd__": "add", "__rmul__": "mul", "__truediv__": "div", "__mod__": "remainder", "__pos__": "positive"}
PROPERTIES = ("T", "mT", "H", "mH", "data", "real", "imag")  # those that give tensors
# Functions that ask modes alone: they make tensors, or are about any object.
OF_MODES = frozenset((
    "arange", "as_tensor", "asarray", "can_cast", "empty", "eye", "from_numpy", "frombuffer",
    "full", "get_rng_state", "initial_seed", "is_storage", "is_tensor", "linspace", "logspace", "manual_seed", "ones",
    "promote_types", "rand", "randint", "randn", "randperm", "range", "result_type", "scalar_tensor", "seed",
    "set_rng_state", "tensor", "tril_indices", "triu_indices", "zeros",
))  # fmt: skip
UNSEEN = frozenset({"as_subclass"})  # by which a class makes its own tensors


class Overrides(threading.local):
    """What a thread has: its modes, outermost first; how many blocks turn the rules of classes off, or all rules.

    operator_modes, n_plain: the same of rules for operators, `__torch_dispatch__`.
    """

    def __init__(self) -> None:
        self.modes: list[Any] = []
        self.operator_modes: list[Any] = []
        self.n_off = self.n_all_off = self.n_plain = 0


state = Overrides()
FAILED = "pywebgpu.tensor.no_tensors"  # imported once a call failed
operators: Any = None  # what asks rules for operators, once there were any (see wrapper.py)


class NoDispatch:
    """A block in which no class and no mode is asked what operators do."""

    def __enter__(self) -> None:
        state.n_plain += 1

    def __exit__(self, *error: object) -> None:
        state.n_plain -= 1


def disabled(func: Callable[..., Any], types: Iterable[type], args: Any = (), kwargs: Any = None) -> object:
    """The `__torch_function__` of a class of tensors without rules: its results are plain tensors."""
    state.n_off += 1
    try:
        return func(*args, **(kwargs or {}))
    finally:
        state.n_off -= 1


def public(function: Callable[P, R], module: str = "") -> Callable[P, R]:
    """A function of the surface. module: where pickles find it by its name; where it is defined, if none is given."""
    call = (_asks_modes if module and function.__name__ in OF_MODES else _asks_all)(function)
    if module:
        call.__module__ = module
    return call


def _asks_all(function: Callable[P, R]) -> Callable[P, R]:
    @functools.wraps(function)
    def call(*args: P.args, **options: P.kwargs) -> R:
        try:
            if used.overrides is None:
                try:
                    return function(*args, **options)
                except (TypeError, AttributeError):
                    if not overriding(args, options) or import_module(FAILED).is_asked_further_out():
                        raise  # No class of tensors announced itself.
                    start()
            return used.overrides(call, function, args, options)  # type: ignore[misc, no-any-return]
        except AttributeError as error:
            import_module(FAILED).refuse(error, function, args, options)
            raise

    return call


def _asks_modes(function: Callable[P, R]) -> Callable[P, R]:
    @functools.wraps(function)
    def call(*args: P.args, **options: P.kwargs) -> R:
        try:
            if used.overrides is None or not (state.modes or state.operator_modes) or state.n_all_off:
                return function(*args, **options)
            return used.overrides(call, function, args, options)  # type: ignore[no-any-return]
        except AttributeError as error:
            import_module(FAILED).refuse(error, function, args, options)
            raise

    return call


def all_public(names: Mapping[str, Any], module: str) -> dict[str, Any]:
    """The functions of a module for users, as those of the surface."""
    own = {
        name: value
        for name, value in names.items()
        if isinstance(value, FunctionType) and value.__module__ == module
        if not (name.startswith("_") or name in UNSEEN)
    }
    calls = {value: public(value) for value in own.values()}  # Two names of one function stay one.
    return {name: calls[value] for name, value in own.items()}


def start() -> None:
    """From now on calls ask; once more where a program put the methods of Tensor back as they were."""
    used.overrides, kind = ask, TensorBase._kind
    if not isinstance(kind.__dict__.get("__add__"), Method):
        for name in dir(kind):
            value = _inherited(kind, name)
            if isinstance(value, Method | Property):
                continue
            if name in PROPERTIES:
                setattr(kind, name, Property(value))
            elif isinstance(value, FunctionType) and (name in OPERATORS or not (name[0] == "_" or name in UNSEEN)):
                setattr(kind, name, Method(value, getattr(kind, NAMES.get(name, name))))


def _inherited(kind: type, name: str) -> object:
    return next((base.__dict__[name] for base in kind.__mro__ if name in base.__dict__), None)


def ask(name: Any, function: Callable[..., Any], args: tuple[Any, ...], options: Mapping[str, Any]) -> Any:
    """What modes and classes say to a call; else what the function gives. name: what they are told was called."""
    modes = state.modes if not state.n_all_off else []
    overriders = overriding(args, options) if not (state.n_off or state.n_all_off) else []
    if not (modes or overriders):
        if operators is not None and not state.n_plain:
            return operators(name, function, args, options)
        return function(*args, **options)
    return answered(name, modes, overriders, args, options)


def answered(
    name: Any, modes: list[Any], overriders: list[Any], args: tuple[Any, ...], options: Mapping[str, Any]
) -> Any:
    """What the innermost mode or one of the classes says. Raises TypeError where all of them give NotImplemented."""
    types = tuple(map(type, overriders))
    rule = attrgetter("__torch_function__")
    result = first_answer(modes, overriders, rule, rule, (name, types, args, options))
    if result is not NotImplemented:
        return result
    title = f"{getattr(name, '__module__', '')}.{getattr(name, '__name__', name)}".replace("pywebgpu", "torch")
    raise TypeError(f"no implementation found for '{title}' on types that implement __torch_function__: {[*types]}")


def first_answer(
    modes: list[Any], values: Iterable[Any], of_mode: Callable[[Any], Any], of_value: Callable[[Any], Any],
    call: tuple[Any, ...],
) -> Any:  # fmt: skip
    """What the rule of the innermost mode, which is off meanwhile, or of one of the values says; or NotImplemented."""
    if modes:
        mode = modes.pop()
        try:
            result = of_mode(mode)(*call)
        finally:
            modes.append(mode)
        if result is not NotImplemented:
            return result
    for value in values:
        result = of_value(value)(*call)
        if result is not NotImplemented:
            return result
    return NotImplemented


def overriding(args: Iterable[Any], options: Mapping[str, Any]) -> list[Any]:
    """The arguments whose classes have rules: one a class, subclasses before their bases."""
    overriders: list[Any] = []
    for value in (*args, *options.values()):
        for item in value if type(value) in (list, tuple) else (value,):
            if overrides(type(item)) and all(type(item) is not type(other) for other in overriders):
                bases = (index for index, other in enumerate(overriders) if isinstance(item, type(other)))
                overriders.insert(next(bases, len(overriders)), item)
    return overriders


def overrides(kind: type) -> bool:
    """Whether a class has rules of its own. Tensor has none, nor have PyTorch's classes any for what is called here."""
    rule = getattr(kind, "__torch_function__", None)
    if rule is None or rule is disabled or kind is TensorBase._kind:
        return False
    return issubclass(kind, TensorBase) or not kind.__module__.startswith("torch")


class Method:
    """A method of Tensor which asks. By the class it is the function itself, which is what it is known by."""

    __slots__ = ("function", "name")

    def __init__(self, function: FunctionType, name: FunctionType) -> None:
        self.function, self.name = function, name

    def __get__(self, tensor: TensorBase | None, kind: type | None = None) -> Callable[..., Any]:
        return self.function if tensor is None else functools.partial(_ask_of, self, tensor)


def _ask_of(method: Method, tensor: TensorBase, *args: Any, **options: Any) -> Any:
    return ask(method.name, method.function, (tensor, *args), options)


class Property:
    """A property of Tensor which asks."""

    __slots__ = ("property",)

    def __init__(self, own: Any) -> None:
        self.property = own

    def __get__(self, tensor: TensorBase | None, kind: type | None = None) -> Any:
        get = self.property.__get__
        return self.property if tensor is None else ask(get, get, (tensor,), {})

    def __set__(self, tensor: TensorBase, value: object) -> None:
        self.property.__set__(tensor, value)

    def __delete__(self, tensor: TensorBase) -> None:
        self.property.__delete__(tensor)
