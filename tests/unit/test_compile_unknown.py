"""What a compiled step cannot know is not replayed: state in unlikely places changes between two calls."""

import datetime as dt
import decimal
import functools
import logging
import os
import sys
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pywebgpu
from pywebgpu import nn
from pywebgpu.ir import observer
from pywebgpu.tensor.dispatch import Method, Property
from tests.cases import unknown_state
from tests.cases.unknown_state import PRELUDE, Case
from tests.unit.replays import audited, plain

CALLS = 3  # before the change, and after it


Asking = Method | Property  # what methods of Tensor become once a program has a class with rules of its own


def undo(home: Any) -> Callable[[], None]:
    """What puts back a table or a switch of the package."""
    if isinstance(home, list):
        return functools.partial(home.__setitem__, slice(None), [*home])
    table = home if isinstance(home, dict) else vars(home)
    was = {key: dict(value) if isinstance(value, dict) else value for key, value in table.items()}

    def put_back() -> None:
        table.clear()
        table.update(was)

    return put_back


@contextmanager
def patching() -> Iterator[Any]:
    """What a program changes in the package, or in Python's own modules, is put back."""
    classes = [(kind, {*vars(kind)}) for kind in (pywebgpu.Tensor, nn.Module, nn.Linear, pywebgpu.optim.SGD)]
    import_module("pywebgpu.io.torchfile")  # What is shared there is put back, too.
    undone = [undo(home) for home in observer.shared.values()]
    modules, folder, depth = dict(sys.modules), os.getcwd(), sys.getrecursionlimit()
    with (
        pytest.MonkeyPatch.context() as patch,
        decimal.localcontext(),
        np.errstate(),
        np.printoptions(),
        pywebgpu.random.fork_rng(),
    ):
        patch.setattr(os, "environ", dict(os.environ))
        yield patch.setattr
    for kind, names in classes:
        for name in {*vars(kind)} - names:
            if not isinstance(vars(kind)[name], Asking):
                delattr(kind, name)
    for name in {*sys.modules} - {*modules}:
        if "__file__" not in vars(sys.modules[name]):  # A program made it.
            del sys.modules[name]
    os.chdir(folder)
    sys.setrecursionlimit(depth)
    pywebgpu.set_printoptions(profile="default")
    logging.disable(0)
    pywebgpu.set_grad_enabled(True)
    pywebgpu.set_autocast_cache_enabled(True)
    for put_back in undone:
        put_back()
    pywebgpu.distributions.Distribution.set_default_validate_args(True)
    pywebgpu.set_float32_matmul_precision("highest")


def run(case: Case, patch: Any, folder: str, *, compiled: bool) -> tuple[list[str], Any, list[int]]:
    """What each call gives, the step, and how many replays there were when the change came and at the end."""
    module = types.ModuleType(f"program_{case.name}")
    sys.modules[module.__name__] = module
    space = vars(module)
    file = f"{case.name}.program"
    space.update(patch=patch, folder=folder)
    exec(compile(PRELUDE + case.setup, file, "exec"), space)
    step = space["step"]
    if compiled:
        step = space["step"] = pywebgpu.compile(step)
    results, replays = [], []
    call, change = compile(case.call, file, "eval"), compile(case.change, file, "exec")
    for at in range(2 * CALLS):
        if at == CALLS:
            replays.append(step.counters["replays"] if compiled else 0)
            exec(change, space)
        try:
            results.append(repr(plain(eval(call, space))))
        except Exception as error:
            results.append(f"{type(error).__name__}: {error}")
    del sys.modules[module.__name__]
    return results, step, replays


@pytest.mark.one_in(webgpu=3)
@pytest.mark.usefixtures("default_device")
@pytest.mark.filterwarnings("ignore:.*captured anew:UserWarning", "ignore:.*cannot be replayed:UserWarning")
@pytest.mark.parametrize("case", unknown_state.ALL, ids=lambda case: case.name)
def test_a_replay_gives_what_python_gives(case: Case, tmp_path: Path) -> None:
    with patching() as patch:
        wanted, _, _ = run(case, patch, str(tmp_path), compiled=False)
    with patching() as patch, audited(case.audit):
        results, step, replays = run(case, patch, str(tmp_path), compiled=True)
    assert results == wanted, step.reasons
    assert replays[0] >= case.replays, step.reasons
    assert step.reasons or not step.counters["recompiles"], "a step that is recorded again says why"


DAY = "2000-01-01"
DATES = np.array([DAY], "M8[s]")
FIELDS = np.dtype([("a", "M8[s]")])
NAMED = {"dtype": "datetime64[s]"}
# What NumPy makes dates of texts by. A text that says "now" or "today" is read from the clock.
MAKING_DATES = {
    "a class": lambda x: x * int(np.datetime64(*[DAY, "s"]).astype(int) % 9),
    "a text in code": lambda x: x * int(np.array([DAY], "M8[s]").astype(int)[0] % 9),
    "a letter": lambda x: x * np.zeros(2, "M").size,
    "an array": lambda x: x * int(np.full_like(DATES, DAY).astype(int)[0] % 9),
    "a type": lambda x: x * int(np.array([DAY], DATES.dtype).astype(int)[0] % 9),
    "a type of fields": lambda x: x * np.zeros(2, FIELDS).size,
    "a text that is passed": lambda x: x * int(np.array([DAY], **NAMED).astype(int)[0] % 9),
    "a calendar": lambda x: x * int(np.is_busday(dt.date(2000, 1, 1))),
}


@pytest.mark.parametrize("way", MAKING_DATES)
def test_dates_of_texts(way: str) -> None:
    step = pywebgpu.compile(MAKING_DATES[way])
    for _ in range(CALLS):
        step(pywebgpu.ones(2))
    assert not step.counters["replays"]
    assert "NumPy makes dates" in step.reasons[-1]


@pytest.mark.parametrize("array", [DATES, np.ones(3)], ids=["dates", "numbers"])
def test_dates_that_are_passed(array: Any) -> None:
    step = pywebgpu.compile(lambda x, array: x * array.size)
    for _ in range(2 * CALLS):
        step(pywebgpu.ones(2), array)
    assert bool(step.counters["replays"]) == (array is not DATES), step.reasons
    assert any("NumPy makes dates" in reason for reason in step.reasons) == (array is DATES)
