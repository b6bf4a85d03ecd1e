"""Events summed by what they are for, and the table of the sums."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape

from pywebgpu.profiler.events import Event

_KEYS: dict[str, Callable[[Event], str]] = {
    "op": lambda event: event.op,
    "kernel": lambda event: event.name,
    "module": lambda event: event.origin.module or "(no module)",
    "phase": lambda event: event.origin.phase or "(unknown)",
    "label": lambda event: event.origin.label or "(no label)",
    "line": lambda event: event.origin.line or "(unknown)",
}
_SPANS = {"label": ("label", "step"), "module": ("module",), "phase": ("module", "backward", "optimizer", "compile")}
_OTHERS = ("label", "step", "optimizer", "backward", "compile")
ELSEWHERE = "(elsewhere)"  # the host's time that is in no phase
_HEADS = ("CPU total", "CPU avg", "device", "device avg", "device %", "Calls")
# torch.profiler's names of what a row has; its "cuda_", "xpu_" and "self_" forms mean the same here.
_COLUMNS = ("cpu_time_total", "device_time_total", "cpu_time", "device_time", "count")


@dataclass(slots=True)
class Average:
    """Events of one key. Times in microseconds. `count` kernels ran for `calls` spans of the host."""

    key: str
    count: int = 0
    calls: int = 0
    cpu_time_total: float = 0.0
    device_time_total: float = 0.0
    bytes: int = 0

    @property
    def cpu_time(self) -> float:
        return self.cpu_time_total / max(1, self.calls)

    @property
    def device_time(self) -> float:
        return self.device_time_total / max(1, self.count)

    @property
    def self_cpu_time_total(self) -> float:
        return self.cpu_time_total

    @property
    def self_device_time_total(self) -> float:
        return self.device_time_total


class Averages(list[Average]):
    """What `key_averages` gives: rows, which print as a table."""

    def __init__(
        self, rows: Sequence[Average], notes: Sequence[str] = (), cpu: float = 0.0, device: float = 0.0
    ) -> None:
        super().__init__(rows)
        self._notes, self._cpu, self._device = notes, cpu, device

    def table(
        self,
        sort_by: str | None = None,
        row_limit: int = 100,
        max_src_column_width: int = 75,
        max_name_column_width: int = 55,
        header: str | None = None,
        top_level_events_only: bool = False,
    ) -> str:
        """The rows as text, the largest first where `sort_by` names a column as torch does: "device_time_total".

        Raises: ValueError for a column that there is not.
        """
        rows: list[Average] = list(self)
        if sort_by is not None:
            column = column_of(sort_by)
            rows.sort(key=lambda row: getattr(row, column), reverse=True)
        hidden = len(rows) - row_limit if 0 <= row_limit < len(rows) else 0
        rows = rows[: len(rows) - hidden]
        names = [_shortened(row.key, max_name_column_width) for row in rows]
        width = max([len(name) for name in names] + [4])
        lines = [header] if header else []
        lines.append("Name".ljust(width) + "".join(head.rjust(12) for head in _HEADS))
        lines.append("-" * (width + 12 * len(_HEADS)))
        for name, row in zip(names, rows, strict=True):
            lines.append(name.ljust(width) + "".join(cell.rjust(12) for cell in self._cells(row)))
        lines.append("-" * (width + 12 * len(_HEADS)))
        if hidden:
            lines.append(f"{hidden} more rows")
        return "\n".join([*lines, *self._totals()])

    def _cells(self, row: Average) -> list[str]:
        share = f"{100 * row.device_time_total / self._device:.1f}%" if self._device else "-"
        times = (row.cpu_time_total, row.cpu_time, row.device_time_total, row.device_time)
        cells = [*(duration(time) if time else "-" for time in times), share if row.device_time_total else "-"]
        return [*cells, str(row.count or row.calls)]

    def _totals(self) -> list[str]:
        totals = [f"Self CPU time total: {duration(self._cpu)}", f"Self device time total: {duration(self._device)}"]
        return [*totals, *self._notes]

    def __str__(self) -> str:
        return self.table()

    def _repr_html_(self) -> str:
        """The same for notebooks: what takes the device longest first."""
        rows = sorted(self, key=lambda row: (row.device_time_total, row.cpu_time_total), reverse=True)
        lines = [f"<tr>{''.join(f'<th>{head}</th>' for head in ('Name', *_HEADS))}</tr>"]
        for row in rows[:100]:
            cells = "".join(f'<td style="text-align:right">{cell}</td>' for cell in self._cells(row))
            lines.append(f'<tr><td style="text-align:left">{escape(row.key)}</td>{cells}</tr>')
        notes = "".join(f"<div>{escape(note)}</div>" for note in self._totals())
        style = "font:13px/1.45 system-ui,sans-serif"
        return f'<div style="{style}"><table>{"".join(lines)}</table>{notes}</div>'


def average(events: Sequence[Event], group_by: str, notes: Sequence[str], wall: float) -> Averages:
    """Raises ValueError for what events cannot be grouped by."""
    if group_by not in _KEYS:
        raise ValueError(f"key_averages(): cannot group by {group_by!r}; there are {', '.join(_KEYS)}")
    key = _KEYS[group_by]
    rows: dict[str, Average] = {}
    for event in events:
        if event.device:
            row = rows.setdefault(key(event), Average(key(event)))
            row.device_time_total += event.time
            row.bytes += event.details.get("bytes", 0)
            row.count += 1
            continue
        name = _span_key(event, group_by)
        if name:
            row = rows.setdefault(name, Average(name))
            row.cpu_time_total += event.time
            row.calls += 1
    if group_by == "phase":
        rest = wall - sum(row.cpu_time_total for row in rows.values())
        rows[ELSEWHERE] = Average(ELSEWHERE, calls=1, cpu_time_total=max(0.0, rest))
    device = sum(event.time for event in events if event.device)
    return Averages(list(rows.values()), notes, wall, device)


def _span_key(event: Event, group_by: str) -> str:
    """The row that a span of the host counts for; "" for none."""
    if event.kind not in _SPANS.get(group_by, _OTHERS):
        return ""
    if group_by != "phase":
        return event.label
    if event.kind != "module":
        return event.kind
    return "forward" if event.origin.phase == "forward" and "." not in event.name else ""


def column_of(name: str) -> str:
    """A column by torch's names for it. Raises ValueError."""
    plain = name.removeprefix("self_").replace("cuda_", "device_").replace("xpu_", "device_")
    if plain not in _COLUMNS:
        raise ValueError(f"table(): there is no column {name!r} to sort by; there are {', '.join(_COLUMNS)}")
    return plain


def duration(microseconds: float) -> str:
    """As torch prints times: 12.000us, 3.400ms, 1.200s."""
    if microseconds >= 1e6:
        return f"{microseconds / 1e6:.3f}s"
    if microseconds >= 1e3:
        return f"{microseconds / 1e3:.3f}ms"
    return f"{microseconds:.3f}us"


def _shortened(name: str, width: int) -> str:
    return name if width < 0 or len(name) <= width else name[: width - 3] + "..."
