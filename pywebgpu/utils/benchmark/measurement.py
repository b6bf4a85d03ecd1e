"""What a timed statement was, and how long it took."""

from __future__ import annotations

import math
import statistics
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

MOST_FIGURES = 4
LEAST_INTERVAL = 25e-9  # seconds: a clock's noise
GROSS, NOTABLE = 0.25, 0.1  # spread over the median from which a measurement warns
UNITS = {"ns": (1e-9, "nanosecond"), "us": (1e-6, "microsecond"), "ms": (1e-3, "millisecond"), "s": (1.0, "second")}


@dataclass(frozen=True)
class TaskSpec:
    """What was timed, under which names."""

    stmt: str
    setup: str
    global_setup: str = ""
    label: str | None = None
    sub_label: str | None = None
    description: str | None = None
    env: str | None = None
    num_threads: int = 1

    @property
    def title(self) -> str:
        if self.label is None and "\n" in self.stmt:
            below = f" ({self.sub_label})" if self.sub_label else ""
            return f"stmt:{below}\n{textwrap.indent(self.stmt, '  ')}"
        return (self.stmt if self.label is None else self.label) + (f": {self.sub_label}" if self.sub_label else "")

    def setup_str(self) -> str:
        """How it was set up, as text; "" where that says nothing."""
        if self.setup in ("pass", ""):
            return ""
        return f"setup:\n{textwrap.indent(self.setup, '  ')}" if "\n" in self.setup else f"setup: {self.setup}"

    def summarize(self) -> str:
        """Its part of a measurement's text."""
        parts = (self.title, self.description or "", self.setup_str())
        return "\n".join(f"{part}\n" if "\n" in part else part for part in parts if part)


@dataclass(repr=False)
class Measurement:
    """Times of a statement: each of `raw_times` is that of `number_per_run` runs."""

    number_per_run: int
    raw_times: list[float]
    task_spec: TaskSpec
    metadata: dict[Any, Any] | None = None

    def __getattr__(self, name: str) -> str | int | None:
        if name in TaskSpec.__dataclass_fields__:
            value: str | int | None = getattr(self.task_spec, name)
            return value
        raise AttributeError(f"'Measurement' object has no attribute {name!r}")

    @property
    def times(self) -> list[float]:
        return [time / self.number_per_run for time in self.raw_times]

    @property
    def median(self) -> float:
        return _quantile(self.times, 0.5)

    @property
    def mean(self) -> float:
        return statistics.fmean(self.times)

    @property
    def iqr(self) -> float:
        return _quantile(self.times, 0.75) - _quantile(self.times, 0.25)

    @property
    def significant_figures(self) -> int:
        """About how many digits of the median mean something."""
        ordered = sorted(self.times)
        inner = ordered[len(ordered) // 4 : math.ceil(3 * len(ordered) / 4)]
        interval = max(1.645 * statistics.pstdev(inner) / math.sqrt(len(inner)), LEAST_INTERVAL)
        return min(max(math.floor(math.log10(self.median / interval)), 1), MOST_FIGURES)

    @property
    def has_warnings(self) -> bool:
        return not self.meets_confidence()

    def meets_confidence(self, threshold: float = NOTABLE) -> bool:
        """Whether the middle half of the times lies near the median."""
        return self.iqr / self.median < threshold

    @property
    def title(self) -> str:
        return self.task_spec.title

    @property
    def as_row_name(self) -> str:
        return self.task_spec.sub_label or self.task_spec.stmt or "[Unknown]"

    def __repr__(self) -> str:
        count, runs, threads = len(self.raw_times), self.number_per_run, self.task_spec.num_threads
        unit, scale = select_unit(self.median)
        low, high = (_quantile(self.times, q) / scale for q in (0.25, 0.75))
        lines = [object.__repr__(self), self.task_spec.summarize()]
        lines.append(f"  {'Median: ' if count > 1 else ''}{self.median / scale:.2f} {unit}")
        if count >= 4:
            lines.append(f"  IQR:    {self.iqr / scale:.2f} {unit} ({low:.2f} to {high:.2f})")
        lines.append(
            f"  {count} measurement{'s' * (count > 1)}, {runs} runs {'per measurement,' if count > 1 else ','} "
            f"{threads} thread{'s' * (threads > 1)}"
        )
        if self.has_warnings:
            gross = not self.meets_confidence(GROSS)
            lines.append(
                f"  WARNING: Interquartile range is {self.iqr / self.median * 100:.1f}% of the median measurement.\n"
                f"           This {'suggests significant environmental influence' if gross else 'could indicate'}"
                f"{'' if gross else ' system fluctuation'}."
            )
        return "\n".join(lines)

    @staticmethod
    def merge(measurements: Iterable[Measurement]) -> list[Measurement]:
        """One measurement of each statement, with the times of all."""
        groups: dict[TaskSpec, list[float]] = {}
        for measurement in measurements:
            groups.setdefault(measurement.task_spec, []).extend(measurement.times)
        return [Measurement(1, times, task) for task, times in groups.items()]


def _quantile(times: Sequence[float], share: float) -> float:
    ordered, position = sorted(times), share * (len(times) - 1)
    low, high = ordered[math.floor(position)], ordered[math.ceil(position)]
    return low + (high - low) * (position - math.floor(position))


def select_unit(t: float) -> tuple[str, float]:
    """The unit in which a time has few digits, and its seconds."""
    unit = {-3: "ns", -2: "us", -1: "ms"}.get(int(math.log10(t) // 3), "s")
    return unit, UNITS[unit][0]


def unit_to_english(u: str) -> str:
    return UNITS[u][1]


def trim_sigfig(x: float, n: int) -> float:
    """x, rounded to n digits: 3.14159, 2 -> 3.1"""
    scale = 10 ** (math.ceil(math.log10(abs(x))) - n)
    return float(round(x / scale) * scale)
