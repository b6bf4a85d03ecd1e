"""A statement, run again and again: what it records is computed each time, and devices are waited for."""

from __future__ import annotations

import enum
import textwrap
import time
import timeit
from collections.abc import Callable
from importlib import import_module
from typing import Any, NoReturn

from pywebgpu import devices
from pywebgpu.runtime import executor
from pywebgpu.utils.benchmark.measurement import Measurement, TaskSpec

Callback = Callable[[int, float], object]
MOST = 2**31 - 1


def timer() -> float:
    """Seconds, once devices have done what they were given."""
    for device in devices.opened():
        executor.submit(device, everyone=True)
        device.synchronize()
    return time.perf_counter()


class Language(enum.Enum):
    PYTHON = 0
    CPP = 1


class Timer:
    """Times a statement of Python. What it computes counts, though nobody may read it."""

    def __init__(
        self,
        stmt: str = "pass",
        setup: str = "pass",
        global_setup: str = "",
        timer: Callable[[], float] = timer,
        globals: dict[str, Any] | None = None,
        label: str | None = None,
        sub_label: str | None = None,
        description: str | None = None,
        env: str | None = None,
        num_threads: int = 1,
        language: Language | str = Language.PYTHON,
    ) -> None:
        if not isinstance(stmt, str):
            raise ValueError("Currently only a `str` stmt is supported.")
        if language not in (Language.PYTHON, "py", "python"):
            raise NotImplementedError("Timer: only statements of Python are timed here")
        if global_setup:
            raise ValueError(
                f"global_setup is C++ only, got `{global_setup}`. Most likely this code can simply be moved to `setup`."
            )
        stmt, setup = (textwrap.dedent(text).removeprefix("\n").rstrip() for text in (stmt, setup))
        names = {"torch": import_module("pywebgpu")} | (globals or {}) | {"_computed": _computed}
        self._timer = timeit.Timer(_whole(stmt), setup, timer, names)
        self._task_spec = TaskSpec(stmt, setup, "", label, sub_label, description, env, num_threads)

    def _timeit(self, number: int) -> float:
        return max(self._timer.timeit(number), 1e-9)

    def timeit(self, number: int = 1000000) -> Measurement:
        """One time, of so many runs."""
        self._timeit(max(number // 100, 2))
        return Measurement(number, [self._timeit(number)], self._task_spec)

    def repeat(self, repeat: int = -1, number: int = -1) -> NoReturn:
        raise NotImplementedError("See `Timer.blocked_autorange.`")

    def autorange(self, callback: Callback | None = None) -> NoReturn:
        raise NotImplementedError("See `Timer.blocked_autorange.`")

    def collect_callgrind(self, *args: object, **options: object) -> NoReturn:
        raise NotImplementedError("Timer.collect_callgrind: Valgrind sees nothing of what a device computes")

    def _block(self, min_run_time: float) -> int:
        """So many runs that the clock takes no part of their time."""
        overhead, number = sorted(self._timeit(0) for _ in range(5))[2], 1
        while True:
            taken = self._timeit(number)
            if (
                (overhead / taken <= 1e-4 and taken >= min_run_time / 1000)
                or taken > min_run_time
                or number * 10 > MOST
            ):
                return number
            number *= 10

    def blocked_autorange(self, callback: Callback | None = None, min_run_time: float = 0.2) -> Measurement:
        """Times of blocks of runs, for so many seconds at least."""
        return self._measured(min_run_time, None, callback, lambda measurement: True)

    def adaptive_autorange(
        self,
        threshold: float = 0.1,
        *,
        min_run_time: float = 0.01,
        max_run_time: float = 10.0,
        callback: Callback | None = None,
    ) -> Measurement:
        """The same until the times are near each other."""
        near = lambda measurement: len(measurement.raw_times) > 3 and measurement.meets_confidence(threshold)  # noqa: E731
        return self._measured(min_run_time, max_run_time, callback, near)

    def _measured(
        self, least: float, most: float | None, callback: Callback | None, enough: Callable[[Measurement], bool]
    ) -> Measurement:
        measurement = Measurement(self._block(least), [], self._task_spec)
        while sum(measurement.raw_times) < least or not enough(measurement):
            measurement.raw_times.append(self._timeit(measurement.number_per_run))
            if callback is not None:
                callback(measurement.number_per_run, measurement.raw_times[-1])
            if most is not None and sum(measurement.raw_times) > most:
                break
        return measurement


def _whole(stmt: str) -> str:
    """The statement, with what it made computed before it is forgotten."""
    try:
        compile(stmt, "<timeit>", "eval")
    except SyntaxError:
        return f"{stmt}\n_computed()"
    return f"_value = (\n{stmt}\n)\n_computed()"


def _computed() -> None:
    for device in devices.opened():
        executor.submit(device)
