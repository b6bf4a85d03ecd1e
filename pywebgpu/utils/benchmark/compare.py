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
        for one in results:
            if not isinstance(one, Measurement):
                raise ValueError(f"Expected an instance of `Measurement`, got {type(one)} instead.")
            self._results.append(one)

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
        for one in Measurement.merge(self._results):
            groups.setdefault(one.task_spec.label, []).append(one)
        return "\n".join(self._table(label, found) for label, found in groups.items())

    def _table(self, label: str | None, found: list[Measurement]) -> str:
        unit, scale = select_unit(min(one.median for one in found))
        names = list(dict.fromkeys(one.task_spec.description for one in found))
        keys = sorted(dict.fromkeys(_key(one) for one in found), key=lambda key: key[:2])
        cells = {(_key(one), one.task_spec.description): one for one in found}
        columns = [[cells.get((key, name)) for key in keys] for name in names]
        envs = {key[1] for key in keys}
        room = 4 + (max(map(len, envs)) if len(envs) > 1 else 0)
        heads = []
        for at, (threads, env, name) in enumerate(keys):
            is_shown = len(envs) > 1 and (at == 0 or keys[at - 1][:2] != (threads, env))
            heads.append("  " + (f"({env})" if is_shown else "").ljust(room) + name)
        width = max(map(len, heads))
        texts = [self._column(name or "", column, scale) for name, column in zip(names, columns, strict=True)]
        top = "  |  ".join(
            [" " * width, *[(name or "").center(len(text[0])) for name, text in zip(names, texts, strict=True)]]
        )
        title = f" {label or ''} ".center(len(top) - 2, "-")
        lines, before = [f"[{title}]", top], -1
        for at, key in enumerate(keys):
            if key[0] != before:
                before = key[0]
                lines.append(f"{before} threads: ".ljust(len(top), "-"))
            row = [self._colored(text[at], columns, keys, at, to) for to, text in enumerate(texts)]
            lines.append("  |  ".join([heads[at].ljust(width), *row]))
        lines += ["", f"Times are in {unit_to_english(unit)}s ({unit}).", ""]
        if self._warns and any(one.has_warnings for one in found):
            lines[-1:] = ["(! XX%) Measurement has high variance, where XX is the IQR / median * 100.", ""]
        return "\n".join(lines)

    def _column(self, name: str, column: list[Measurement | None], scale: float) -> list[str]:
        """The numbers of a column, all of one width."""
        found = [(one, math.ceil(math.log10(one.median / scale))) for one in column if one is not None]
        decimals = min(max(one.significant_figures - digits, 0) for one, digits in found) if self._trims else 1
        width = max(digits for _, digits in found) + decimals + bool(decimals)
        warns = self._warns and any(one.has_warnings for one, _ in found)
        texts = []
        for one in column:
            value = "" if one is None else self._number(one, scale, decimals)
            spread = f" (! {one.iqr / one.median * 100:.0f}%)" if one and warns and one.has_warnings else ""
            texts.append(value.rjust(width) + spread.rjust(7 * warns))
        most = max(len(name), *map(len, texts))
        return [text.center(most) for text in texts]

    def _number(self, one: Measurement, scale: float, decimals: int) -> str:
        value = one.median / scale
        return f"{trim_sigfig(value, one.significant_figures) if self._trims else value:.{decimals}f}"

    def _colored(self, text: str, columns: list[list[Measurement | None]], keys: list[Key], at: int, to: int) -> str:
        one = columns[to][at]
        if self._colors is Colorize.NONE or one is None:
            return text
        if self._colors is Colorize.ROWWISE:
            rivals = [column[at] for column in columns]
        else:
            rivals = [other for other, key in zip(columns[to], keys, strict=True) if key[0] == keys[at][0]]
        best = min(other.median for other in rivals if other is not None)
        if one.median <= best * 1.01 or one.median <= best + 100e-9:
            return BEST + text + END
        color = GOOD if one.median <= best * 1.1 else WORST if one.median >= best * 5 else BAD
        return color + text + END if color is not BAD or one.median >= best * 2 else text


def _key(one: Measurement) -> Key:
    return one.task_spec.num_threads, one.task_spec.env or "", one.as_row_name
