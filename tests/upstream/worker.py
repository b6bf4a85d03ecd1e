"""One process that runs tests of one file: `python -m tests.upstream.worker FOLDER LIBRARY FILE DEVICE`.

Writes a line of JSON for all tests of the file, or for why it cannot be imported; then reads a line with the tests to
run, and writes one before each and one after it. What tests print goes nowhere.
"""

from __future__ import annotations

import functools
import importlib.util
import itertools
import json
import os
import resource
import sys
import time
import traceback
import unittest
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any

from tests.upstream import graft

Error = tuple[type[BaseException], BaseException, TracebackType]
FRAMES = 12  # the last ones of a failure
MEMORY = 12 << 30  # bytes of addresses that a worker may use
LONGEST = 2000  # characters of a message


class Outcome(unittest.TestResult):
    """What became of the one test that ran last: of its parts, the worst."""

    def __init__(self) -> None:
        super().__init__()
        self._testRunEntered = True  # unittest's: a class is set up once for all of its tests.
        self.state: dict[str, Any] = {}

    def addSuccess(self, test: unittest.TestCase) -> None:
        self.state = self.state or {"status": "passed"}

    def addExpectedFailure(self, test: unittest.TestCase, err: Any) -> None:
        self.addSuccess(test)

    def addUnexpectedSuccess(self, test: unittest.TestCase) -> None:
        """Of a test that PyTorch itself fails, as the file says: a failure, as unittest counts it."""
        self.state = {
            "status": "failed",
            "type": "UnexpectedSuccess",
            "message": "the file expects a failure",
            "frames": [],
        }

    def addSkip(self, test: unittest.TestCase, reason: str) -> None:
        self.state = self.state or {"status": "skipped", "message": reason}

    def addFailure(self, test: unittest.TestCase, err: Any) -> None:
        self._failed(err)

    def addError(self, test: unittest.TestCase, err: Any) -> None:
        self._failed(err)

    def addSubTest(self, test: unittest.TestCase, subtest: unittest.TestCase, err: Any) -> None:
        if err is not None:
            self._failed(err)

    def _failed(self, err: Error) -> None:
        if self.state.get("status") != "failed":
            self.state = {"status": "failed", **described(err[1])}


def described(error: BaseException) -> dict[str, Any]:
    """An error as data, with the innermost frames of the one that it came from."""
    frames = traceback.extract_tb(error.__traceback__)[-FRAMES:]
    places = [f"{frame.filename}:{frame.lineno} {frame.name}: {(frame.line or '')[:120]}" for frame in frames]
    return {"type": type(error).__name__, "message": str(error)[:LONGEST], "frames": places}


def load(folder: Path, file: str) -> dict[str, unittest.TestCase]:
    """The tests of a file by their names, `Class.method`, in the order in which they run."""
    path = folder / "test" / file
    sys.path[:0] = [str(path.parent), str(folder / "test")]
    sys.argv = [str(path)]
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module  # Tests pickle classes of theirs.
    spec.loader.exec_module(module)
    loader = unittest.TestLoader()
    classes = [value for value in vars(module).values() if isinstance(value, type)]
    cases = [value for value in classes if issubclass(value, unittest.TestCase) and value.__module__ == path.stem]
    suites = [loader.loadTestsFromTestCase(case) for case in cases]
    tests = {f"{type(test).__name__}.{test._testMethodName}": test for suite in suites for test in _flat(suite)}
    functions = {name: value for name, value in vars(module).items() if name.startswith("test_") and callable(value)}
    for name, function in functions.items():
        tests |= {key: unittest.FunctionTestCase(call) for key, call in _calls(name, function)}
    return tests


def _calls(name: str, function: Callable[..., None]) -> Iterator[tuple[str, Callable[[], None]]]:
    """A function that pytest would run, with each of the values that its marks name."""
    marks = [mark for mark in getattr(function, "pytestmark", ()) if mark.name == "parametrize"]
    tables = []
    for mark in marks:
        names = mark.args[0].replace(" ", "").split(",") if isinstance(mark.args[0], str) else list(mark.args[0])
        rows = [getattr(row, "values", row) if len(names) > 1 else [row] for row in mark.args[1]]
        tables.append([dict(zip(names, row, strict=True)) for row in rows])
    for number, choice in enumerate(itertools.product(*tables)):
        options = {key: value for row in choice for key, value in row.items()}
        yield f"{name}[{number}]" if tables else name, functools.partial(function, **options)


def _flat(suite: unittest.TestSuite) -> Iterator[unittest.TestCase]:
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from _flat(test)
        else:
            yield test


def main(folder: str, library: str, file: str, device: str) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    lines, orders = os.fdopen(os.dup(1), "w"), sys.stdin
    sys.stdin = open(os.devnull)  # noqa: SIM115 - it stays open
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)

    def say(**data: Any) -> None:
        lines.write(json.dumps(data) + "\n")
        lines.flush()

    warnings.simplefilter("ignore")
    try:
        graft.install(Path(folder), library)
        tests = load(Path(folder), file)
    except BaseException as error:
        say(cannot=described(error))
        return
    warnings.resetwarnings()
    say(tests=list(tests))
    outcome = Outcome()
    for name in json.loads(orders.readline() or "[]"):
        say(begin=name)
        start = time.monotonic()
        outcome.state = {}
        if name in tests:
            try:
                unittest.TestSuite([tests[name]]).run(outcome)
            except Exception as error:  # Of what surrounds the test.
                outcome.state = {"status": "failed", **described(error)}
            state = outcome.state or {"status": "failed", "type": "NoResult", "message": "", "frames": []}
        else:
            state = {"status": "failed", "type": "NoTest", "message": "the file makes no such test", "frames": []}
        say(end=name, seconds=round(time.monotonic() - start, 2), **state)


if __name__ == "__main__":
    main(*sys.argv[1:])
    os._exit(0)  # Threads and processes that a test left may not hold it up.
