"""Measurements as a table: a row a statement, a column a description."""

from __future__ import annotations

import enum
import math
from collections.abc import Iterable

from pywebgpu.utils.benchmark.measurement import Measurement, select_unit, trim_sigfig, unit_to_english

BOLD, END = "\033[1m", "\033[0m\033[0m"
BEST, GOOD, BAD, WORST = "\033[92m" + BOLD, "\033[34m" + BOLD, "\033[2m\033[91m", "\033[31m" + BOLD
Key = tuple[int, str, str]  # threads, environment, name


class Colorize(enum.Enum):
    NONE = "none"
    COLUMNWISE = "columnwise"
    ROWWISE = "rowwise"


class Compare:
    """Tables of measurements, one for each label."""

    def __init__(self, results: list[Measurement]) -> None:
        self._results: list[Measurement] = []
        self._trims, self._warns, self._colors = False, False, Colorize.NONE
        self.extend_results(results)

    def extend_results(self, results: Iterable[Measurement]) -> None:
        """Adds measurements."""
        for measurement in results:
            if not isinstance(measurement, Measurement):
                raise ValueError(f"Expected an instance of `Measurement`, got {type(measurement)} instead.")
            self._results.append(measurement)

    def trim_significant_figures(self) -> None:
        """Shows the digits that mean something."""
        self._trims = True

    def colorize(self, rowwise: bool = False) -> None:
        """Shows in colours which times are good."""
        self._colors = Colorize.ROWWISE if rowwise else Colorize.COLUMNWISE

    def highlight_warnings(self) -> None:
        """Shows which times vary."""
        self._warns = True

    def print(self) -> None:
        """Prints the tables."""
        print(str(self))

    def __str__(self) -> str:
        groups: dict[str | None, list[Measurement]] = {}
        for measurement in Measurement.merge(self._results):
            groups.setdefault(measurement.task_spec.label, []).append(measurement)
        return "\n".join(self._table(label, measurements) for label, measurements in groups.items())

    def _table(self, label: str | None, measurements: list[Measurement]) -> str:
        unit, scale = select_unit(min(measurement.median for measurement in measurements))
        names = list(dict.fromkeys(measurement.task_spec.description for measurement in measurements))
        keys = sorted(dict.fromkeys(_key(measurement) for measurement in measurements), key=lambda key: key[:2])
        cells = {(_key(measurement), measurement.task_spec.description): measurement for measurement in measurements}
        columns = [[cells.get((key, name)) for key in keys] for name in names]
        envs = {key[1] for key in keys}
        room = 4 + (max(map(len, envs)) if len(envs) > 1 else 0)
        heads = []
        for row_index, (threads, env, name) in enumerate(keys):
            is_shown = len(envs) > 1 and (row_index == 0 or keys[row_index - 1][:2] != (threads, env))
            heads.append("  " + (f"({env})" if is_shown else "").ljust(room) + name)
        width = max(map(len, heads))
        texts = [self._column(name or "", column, scale) for name, column in zip(names, columns, strict=True)]
        top = "  |  ".join(
            [" " * width, *[(name or "").center(len(text[0])) for name, text in zip(names, texts, strict=True)]]
        )
        title = f" {label or ''} ".center(len(top) - 2, "-")
        lines, before = [f"[{title}]", top], -1
        for row_index, key in enumerate(keys):
            if key[0] != before:
                before = key[0]
                lines.append(f"{before} threads: ".ljust(len(top), "-"))
            row = [self._colored(text[row_index], columns, keys, row_index, to) for to, text in enumerate(texts)]
            lines.append("  |  ".join([heads[row_index].ljust(width), *row]))
        lines += ["", f"Times are in {unit_to_english(unit)}s ({unit}).", ""]
        if self._warns and any(measurement.has_warnings for measurement in measurements):
            lines[-1:] = ["(! XX%) Measurement has high variance, where XX is the IQR / median * 100.", ""]
        return "\n".join(lines)

    def _column(self, name: str, column: list[Measurement | None], scale: float) -> list[str]:
        """The numbers of a column, all of one width."""
        with_digits = [
            (measurement, math.ceil(math.log10(measurement.median / scale)))
            for measurement in column
            if measurement is not None
        ]
        decimals = (
            min(max(measurement.significant_figures - digits, 0) for measurement, digits in with_digits)
            if self._trims
            else 1
        )
        width = max(digits for _, digits in with_digits) + decimals + bool(decimals)
        warns = self._warns and any(measurement.has_warnings for measurement, _ in with_digits)
        texts = []
        for measurement in column:
            value = "" if measurement is None else self._number(measurement, scale, decimals)
            spread = (
                f" (! {measurement.iqr / measurement.median * 100:.0f}%)"
                if measurement and warns and measurement.has_warnings
                else ""
            )
            texts.append(value.rjust(width) + spread.rjust(7 * warns))
        most = max(len(name), *map(len, texts))
        return [text.center(most) for text in texts]

    def _number(self, measurement: Measurement, scale: float, decimals: int) -> str:
        value = measurement.median / scale
        return f"{trim_sigfig(value, measurement.significant_figures) if self._trims else value:.{decimals}f}"

    def _colored(
        self, text: str, columns: list[list[Measurement | None]], keys: list[Key], row_index: int, to: int
    ) -> str:
        measurement = columns[to][row_index]
        if self._colors is Colorize.NONE or measurement is None:
            return text
        if self._colors is Colorize.ROWWISE:
            rivals = [column[row_index] for column in columns]
        else:
            rivals = [other for other, key in zip(columns[to], keys, strict=True) if key[0] == keys[row_index][0]]
        best = min(other.median for other in rivals if other is not None)
        if measurement.median <= best * 1.01 or measurement.median <= best + 100e-9:
            return BEST + text + END
        color = GOOD if measurement.median <= best * 1.1 else WORST if measurement.median >= best * 5 else BAD
        return color + text + END if color is not BAD or measurement.median >= best * 2 else text


def _key(measurement: Measurement) -> Key:
    return measurement.task_spec.num_threads, measurement.task_spec.env or "", measurement.as_row_name
