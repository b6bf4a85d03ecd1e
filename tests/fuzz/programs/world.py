"""Runs a program in one world, and says where two runs differ."""

from __future__ import annotations

import builtins
import collections
import contextlib
import decimal
import functools
import gc
import importlib
import io
import linecache
import logging
import operator
import os
import random
import shutil
import signal
import string
import sys
import tempfile
import textwrap
import threading
import types
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import pywebgpu
from pywebgpu.errors import CaptureError, CaptureWarning, DTypeError
from pywebgpu.nn import module as owner
from pywebgpu.tensor.dispatch import Method, Property
from tests.fuzz.programs.observed import Eye, Seen, difference
from tests.fuzz.programs.program import PRELUDE, Program, source

Asking = Method | Property  # what methods of Tensor become once a program has a class with rules of its own
AT_ONCE, LATE, AT_THE_END = "at once", "late", "at the end"  # when the values that a call left are read
EXACT, NEAR = 1e-6, 1e-4
OWN_MODULES = ("program", "fuzz_new")  # how the names of modules that programs make begin
IN_MEMORY = "/dev/shm" if os.path.isdir("/dev/shm") else None  # for the files of programs


@dataclass(slots=True)
class Run:
    """What could be seen after each call, and the compiled steps."""

    calls: list[Seen] = field(default_factory=list)
    steps: list[Any] = field(default_factory=list)

    def counted(self, name: str) -> int:
        return sum(step.counters[name] for step in self.steps if hasattr(step, "counters"))

    def reasons(self) -> list[str]:
        return [reason for step in self.steps for reason in getattr(step, "reasons", ())]


def run(
    program: Program,
    scope: str,
    torch: Any,
    device: str,
    *,
    compiled: bool,
    reading: str = AT_ONCE,
    nudge: float = 0.0,
) -> Run:
    """All calls of a program. An error of a call is what is seen of that call.

    nudge: by how much, relatively, all data is off.
    """
    result = Run()

    def wrap(function: Any = None, **options: Any) -> Any:
        if function is None:
            return functools.partial(wrap, **options)
        if not compiled:
            return function
        result.steps.append(torch.compile(function, **options))
        return result.steps[-1]

    with surroundings(torch, device if torch is pywebgpu else "cpu", program) as printed:
        names = module(program, scope, {"torch": torch, "compile": wrap, "NUDGE": nudge})
        eye = Eye(torch, _at_once if reading == AT_ONCE else _late, result.steps)
        kept = []
        for n in range(1, program.calls + 1):
            if n in program.changes:
                change(names, n)
            out = called(names, n)
            kept.append(out)
            if reading != AT_THE_END or n == program.calls:
                result.calls.append(_look(eye, torch, out, names, printed))
        with torch.no_grad():
            result.calls.append(eye.look(kept))
        for seen in result.calls:
            _settle(seen)
    return result


def change(names: dict[str, Any], n: int) -> None:
    """An error of a change is what the program is given as its last result."""
    try:
        names[f"change_{n}"]()
    except MemoryError:
        raise
    except Exception as error:
        names["keep"](raised(error))


def called(names: dict[str, Any], n: int) -> Any:
    try:
        out = names["call"](n)
    except (Exception, KeyboardInterrupt) as error:  # Whatever it is, the other worlds must raise it too.
        if isinstance(error, CaptureError | CaptureWarning | MemoryError):
            raise
        return raised(error)
    names["keep"](out)
    return out


@dataclass
class Raised:
    """An error as data: Python's own class that it is of, and its class and text where the program made it."""

    kind: str
    own: str
    text: str


def raised(error: BaseException) -> Raised:
    builtin = [one.__name__ for one in type(error).__mro__ if one.__module__ == "builtins"]
    kind = "RuntimeError" if isinstance(error, DTypeError) else builtin[0]  # which PyTorch raises of dtypes, mostly
    own = type(error).__name__ if type(error).__module__ == "program" else ""
    return Raised(kind, own, str(error) if error.args[:1] == ("user",) else "")


def _look(eye: Eye, torch: Any, out: Any, names: dict[str, Any], printed: io.StringIO) -> Seen:
    with torch.no_grad():
        seen = eye.look({"out": out, **names["names"]()})
        seen.inner["last"] = eye.look(names["_result"]())
    seen.parts["printed"] = Seen("str", printed.getvalue())
    seen.parts["random"] = Seen("int", hash((random.getstate(), np.random.get_state()[1].tobytes())))  # type: ignore[index,union-attr]
    if torch is pywebgpu:
        seen.inner["draws"] = Seen("list", torch.get_rng_state().tolist())
    return seen


def _at_once(tensor: Any) -> Any:
    return tensor.detach().tolist()


def _late(tensor: Any) -> Any:
    return tensor.detach().clone().tolist


def _settle(seen: Seen) -> None:
    """Reads what was left to be read."""
    if callable(seen.value):
        seen.value = seen.value()
    for part in (*seen.parts.values(), *seen.inner.values()):
        _settle(part)


def module(program: Program, scope: str, given: dict[str, Any]) -> dict[str, Any]:
    """The program's module, executed, with what it is given. Its lines can be shown in a traceback."""
    folder = f"/programs/{program.name}"
    for name, text in program.modules.items():
        _execute(name, f"{folder}/{name}.py", text, given)
    others = {name: sys.modules[name] for name in program.modules}
    text = source(program, scope)
    names = _execute("program", f"{folder}/program.py", text, given | others)
    if "weak" in text.lower():
        gc.collect()  # Else it is chance how long a class lives that has weak references alone: captures collect.
    return names


def _execute(name: str, path: str, text: str, given: dict[str, Any]) -> dict[str, Any]:
    module = types.ModuleType(name)
    module.__file__ = path
    sys.modules[name] = module
    names: dict[str, Any] = vars(module)
    names.update(given)
    exec(_prelude(), names)
    linecache.cache[path] = len(text), None, text.splitlines(keepends=True), path
    exec(_code(text, path), names)
    return names


@functools.lru_cache(maxsize=8)
def _code(text: str, path: str) -> Any:
    return compile(text, path, "exec")


@functools.cache
def _prelude() -> Any:
    return compile(PRELUDE, "/programs/prelude.py", "exec")


@contextlib.contextmanager
def surroundings(torch: Any, device: str, program: Program) -> Iterator[io.StringIO]:
    """The world as it is when a program starts; what programs change of it is put back."""
    printed, put_back = io.StringIO(), _put_back(torch, program)
    random.seed(0)
    np.random.seed(0)
    torch.manual_seed(0)
    torch.set_default_device(device)
    try:
        with torch.enable_grad(), warnings.catch_warnings(), contextlib.redirect_stdout(printed):
            warnings.simplefilter("ignore")
            yield printed
    finally:
        put_back()


def _put_back(torch: Any, program: Program) -> Callable[[], None]:
    environment, folder, limit, collects = dict(os.environ), os.getcwd(), sys.getrecursionlimit(), gc.isenabled()
    device, dtype, scratch = torch.get_default_device(), torch.get_default_dtype(), tempfile.tempdir
    uses_files = "tempfile" in program.setup
    if uses_files:
        tempfile.tempdir = tempfile.mkdtemp(prefix="program", dir=IN_MEMORY)
    settings = _settings() if torch is pywebgpu else []
    names = [(thing, dict(vars(thing))) for thing in _edited(torch)]
    modules, loggers = frozenset(sys.modules), logging.root.manager.loggerDict

    def put_back() -> None:
        torch.set_default_device(device)
        torch.set_default_dtype(dtype)
        torch.autograd.set_detect_anomaly(False)
        for hooks in _hooks_of_optimizers(torch):
            hooks.clear()
        os.chdir(folder)
        sys.setrecursionlimit(limit)
        (gc.enable if collects else gc.disable)()
        if uses_files:
            shutil.rmtree(str(tempfile.tempdir), ignore_errors=True)
        tempfile.tempdir = scratch
        if os.environ != environment:
            os.environ.clear()
            os.environ.update(environment)
        for name in [one for one in sys.modules.keys() - modules if one.startswith((*OWN_MODULES, *program.modules))]:
            sys.modules.pop(name)
        for name in [one for one in loggers if one.startswith("fuzz")]:
            del loggers[name]
        for path in [one for one in linecache.cache if one.startswith("/programs/")]:
            del linecache.cache[path]
        for put in settings:
            put()
        for thing, before in names:
            _restore(thing, before)

    return put_back


def _hooks_of_optimizers(torch: Any) -> list[dict[int, Any]]:
    """Those that all optimizers of a library call."""
    module = importlib.import_module(f"{torch.__name__}.optim.optimizer")
    if torch is pywebgpu:
        return [*module.everywhere.values()]
    return [module._global_optimizer_pre_hooks, module._global_optimizer_post_hooks]


def _settings() -> list[Callable[[], object]]:
    """What puts back what programs may set."""
    torch, thread, cudnn = pywebgpu, threading.current_thread(), pywebgpu.backends.cudnn
    matmul = torch.backends.cuda.matmul
    return [
        functools.partial(decimal.setcontext, decimal.getcontext().copy()),
        functools.partial(np.seterr, **np.geterr()),
        functools.partial(np.set_printoptions, precision=np.get_printoptions()["precision"]),
        functools.partial(_enable_logging, logging.root.manager.disable),
        functools.partial(setattr, thread, "name", thread.name),
        functools.partial(signal.signal, signal.SIGUSR1, signal.getsignal(signal.SIGUSR1)),
        functools.partial(sys.argv.__setitem__, slice(None), sys.argv[:]),
        functools.partial(sys.path.__setitem__, slice(None), sys.path[:]),
        functools.partial(sys.set_int_max_str_digits, sys.get_int_max_str_digits()),
        functools.partial(torch.set_float32_matmul_precision, torch.get_float32_matmul_precision()),
        functools.partial(torch.use_deterministic_algorithms, torch.are_deterministic_algorithms_enabled()),
        functools.partial(torch.set_num_threads, torch.get_num_threads()),
        functools.partial(setattr, cudnn, "benchmark", cudnn.benchmark),
        functools.partial(setattr, matmul, "allow_tf32", matmul.allow_tf32),
        functools.partial(torch.distributions.Distribution.set_default_validate_args, True),
        owner.everywhere.clear,
    ]


def _enable_logging(disabled: int) -> None:
    if logging.root.manager.disable != disabled:  # Each call of `disable` walks over all loggers.
        logging.disable(disabled)


def _edited(torch: Any) -> tuple[Any, ...]:
    """What programs may give other attributes."""
    nn = torch.nn
    classes = torch.Tensor, nn.Parameter, nn.Module, nn.Linear, nn.Tanh, torch.optim.SGD, torch.distributions.Normal
    libraries = textwrap.TextWrapper, contextlib.nullcontext, string.Template
    containers = collections.Counter, collections.ChainMap, collections.UserDict
    return builtins, torch, nn.functional, *classes, *libraries, *containers


def _restore(thing: Any, before: dict[str, Any]) -> None:
    names = vars(thing)
    if len(names) == len(before) and all(map(operator.is_, names.values(), before.values())):
        return  # as nearly always, and PyTorch has thousands of names
    now = dict(names)
    for name, value in before.items():
        if now.get(name) is not value and not name.startswith("__doc") and not isinstance(now.get(name), Asking):
            setattr(thing, name, value)
    for name in now.keys() - before.keys():
        is_own = isinstance(thing, type) and not isinstance(now[name], Asking)
        if is_own or name.startswith("user"):  # Modules import some of their names when they are asked.
            delattr(thing, name)


def trial(torch: Any, setup: str, read: str, change: str = "") -> tuple[object, object]:
    """What an expression is after these statements, and what it is after a change as well: an error is one's value."""
    with surroundings(torch, "cpu", Program("trial", f"{setup}{read}{change}")):
        names = _execute("program", "/programs/trial.py", setup, {"torch": torch, "compile": lambda f: f, "NUDGE": 0.0})
        value = _evaluated(read, names)
        if change:
            exec(change, names)
        return value, _evaluated(read, names) if change else value


def trials(torch: Any, setup: str, reads: list[str]) -> list[object]:
    """What expressions are after these statements: errors where the statements raise."""
    with surroundings(torch, "cpu", Program("trial", "\n".join((setup, *reads)))):
        try:
            names = _execute(
                "program", "/programs/trial.py", setup, {"torch": torch, "compile": lambda f: f, "NUDGE": 0.0}
            )
        except Exception as error:
            return [error] * len(reads)
        return [_evaluated(read, names) for read in reads]


def _evaluated(read: str, names: dict[str, Any]) -> object:
    try:
        return eval(read, names)
    except Exception as error:
        return error


def compared(one: Run, other: Run, tolerance: float, *, same_library: bool) -> str | None:
    """Where two runs of a program differ first."""
    last = len(one.calls) - 1
    for at, (seen, also) in enumerate(zip(one.calls, other.calls, strict=True)):
        found = difference(seen, also, tolerance, same_library=same_library)
        if found is not None:
            return ("what the calls returned, at the end" if at == last else f"call {at + 1}: ") + found
    return None
