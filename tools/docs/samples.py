"""Calls of the tables of tests/cases, for the reference: shapes and dtypes in and out, and what is refused."""

import functools
import types
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import pywebgpu
from tests.cases.case import Case, arrays
from tests.cases.run import default_device, send
from tests.cases.tables import TABLES
from tools.docs import refusals
from tools.docs.described import called, described, told

ELEMENTS = 5_000  # of an input: larger ones take time, and show nothing more
WIDTH = 140  # characters of a call
SHOWN, REFUSED = 3, 2  # calls and errors that are shown of a name


@dataclass(slots=True)
class Found:
    """Of one name: calls by how they look, those that are refused, and the dtypes that were given to it."""

    calls: dict[tuple[object, ...], str] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)
    dtypes: set[str] = field(default_factory=set)


class Recorder:
    """Takes note of calls of the library that no other call of it made."""

    def __init__(self) -> None:
        self.found: dict[str, Found] = defaultdict(Found)
        self.seen: dict[str, refusals.Call] = {}
        self._depth = 0

    def wrap(self, name: str, function: Callable[..., Any], shown: str) -> Callable[..., Any]:
        @functools.wraps(function)
        def call(*args: Any, **options: Any) -> Any:
            if self._depth:
                return function(*args, **options)
            text = shown + called(args, options)
            kinds = tuple(described(value) for value in args if not isinstance(value, pywebgpu.Tensor))
            before = [str(x.dtype).removeprefix("torch.") for x in args if isinstance(x, pywebgpu.Tensor)]
            self._depth += 1
            try:
                result = function(*args, **options)
            except Exception as error:
                self.found[name].errors.setdefault(told(error), text)
                raise
            finally:
                self._depth -= 1
            self.found[name].dtypes.update(before)
            self.seen.setdefault(name, refusals.Call(function, args, options, shown))
            line = f"{text} -> {described(result)}"
            if len(line) <= WIDTH:
                self.found[name].calls.setdefault((len(args), tuple(options), kinds, *before), line)
            return result

        return call


class Spy:
    """A module of the library whose functions tell the recorder of their calls."""

    def __init__(self, module: types.ModuleType, path: str, recorder: Recorder) -> None:
        self._module, self._path, self._recorder = module, path, recorder
        self.__name__ = "pywebgpu"

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._module, name)
        path = f"{self._path}.{name}".removeprefix(".")
        if isinstance(value, types.ModuleType):
            value = Spy(value, path, self._recorder)
        elif callable(value) and not isinstance(value, type):
            value = self._recorder.wrap(path, value, path)
        setattr(self, name, value)
        return value


@contextmanager
def methods(recorder: Recorder) -> Iterator[None]:
    """Has methods of tensors, and calls of modules, recorded as well."""
    kept = {}
    for name in dir(pywebgpu.Tensor):
        value = getattr(pywebgpu.Tensor, name)
        if not name.startswith("_") and callable(value) and not isinstance(value, type):
            kept[name] = pywebgpu.Tensor.__dict__.get(name)
            setattr(pywebgpu.Tensor, name, recorder.wrap(f"Tensor.{name}", value, f"Tensor.{name}"))
    module, plain = pywebgpu.nn.Module, pywebgpu.nn.Module.__call__

    def forward(self: Any, *args: Any, **options: Any) -> Any:
        shown = repr(self)
        name = f"nn.{type(self).__name__}"
        is_plain = "\n" not in shown and hasattr(pywebgpu.nn, type(self).__name__)
        return (
            recorder.wrap(name, functools.partial(plain, self), shown) if is_plain else functools.partial(plain, self)
        )(*args, **options)

    module.__call__ = forward
    try:
        yield
    finally:
        module.__call__ = plain
        for name, value in kept.items():
            if value is None:
                delattr(pywebgpu.Tensor, name)
            else:
                setattr(pywebgpu.Tensor, name, value)


def collect(tables: Mapping[str, Sequence[Case]] = TABLES) -> dict[str, Found]:
    """Every name that a case calls on device cpu, with what it was given and gave."""
    recorder = Recorder()
    spy = Spy(pywebgpu, "", recorder)
    with warnings.catch_warnings(), methods(recorder), default_device(pywebgpu, "cpu"):
        warnings.simplefilter("ignore")
        for case in (case for cases in tables.values() for case in cases):
            run(case, spy)
    with warnings.catch_warnings(), default_device(pywebgpu, "cpu"):
        warnings.simplefilter("ignore")
        for name, call in recorder.seen.items():
            if not recorder.found[name].errors:
                recorder.found[name].errors |= refusals.of(call)
    return dict(recorder.found)


def run(case: Case, spy: Spy) -> None:
    """Calls the case; its values are not read unless it reads them itself."""
    if "cpu" not in case.devices or any(functools.reduce(int.__mul__, one.shape, 1) > ELEMENTS for one in case.inputs):
        return
    depth, spy._recorder._depth = spy._recorder._depth, 1
    tensors = [send(pywebgpu, array, item.dtype, "cpu") for array, item in zip(arrays(case), case.inputs, strict=True)]
    spy._recorder._depth = depth
    with suppress(Exception):  # Whether it should is another test's matter.
        case.fn(spy, *tensors)


def few(found: Found) -> tuple[list[str], list[tuple[str, str]]]:
    """The calls to show, as unlike each other as there are, and errors with the calls that they answer."""
    calls: dict[tuple[object, ...], str] = {}
    simplest = sorted(found.calls.items(), key=lambda item: ("out" in str(item[0][1]), len(str(item[0][1]))))
    for look, line in simplest:
        calls.setdefault(look[:2], line)
    chosen = list(dict.fromkeys([*calls.values(), *(line for _, line in simplest)]))
    return chosen[:SHOWN], [(text, error) for error, text in found.errors.items()][:REFUSED]
