"""One HTML file that shows an Explanation: kernels with ops and WGSL, what each reads, the life of every buffer."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from html import escape
from os.path import basename
from pathlib import Path
from typing import Any

from pywebgpu.inspector.explanation import explain
from pywebgpu.inspector.plans import Line, Plan, Step
from pywebgpu.support.formats import WORD
from pywebgpu.tensor.tensor import Tensor

TEMPLATE = Path(__file__).with_name("page.html")


class Page(type(Path())):  # type: ignore[misc]  # A path of this system.
    """The path of a page. A notebook shows the page itself."""

    def _repr_html_(self) -> str:
        text = escape(self.read_text(encoding="utf-8"))
        style = "width:100%;height:720px;border:1px solid #8888;border-radius:6px"
        return f'<iframe title="what was compiled" sandbox="allow-scripts" style="{style}" srcdoc="{text}"></iframe>'


Work = Tensor | Sequence[Tensor] | Callable[[], Any]


def visualize(what: Work | Mapping[str, Work], path: str | Path | None = None) -> Page:
    """Writes a page about what `explain(what)` finds, which needs nothing else to be looked at. Returns its path,
    which a notebook shows as that page.

    what: or two of it by their names, as {"before": step, "after": other}: the page says what differs. A function is
    called once, with each kernel timed where the device has a clock.
    path: where to; a new file among the system's temporary ones if None.
    """
    file = Page(_temporary() if path is None else path)
    named = what if isinstance(what, Mapping) else {"": what}
    file.write_text(
        as_html({name: explain(plans_of_name, times=True).programs for name, plans_of_name in named.items()}),
        encoding="utf-8",
    )
    return file


def _temporary() -> str:
    handle, name = tempfile.mkstemp(prefix="pywebgpu-", suffix=".html")
    os.close(handle)
    return name


def as_html(plans: Mapping[str, Sequence[Plan]]) -> str:
    """plans: by the name of what they were made for."""
    programs = [{"of": name, **_program(plan)} for name, index in plans.items() for plan in index]
    data = json.dumps(programs, separators=(",", ":")).replace("<", "\\u003c")
    return TEMPLATE.read_text(encoding="utf-8").replace("/*DATA*/", data)


def _program(plan: Plan) -> dict[str, Any]:
    program = plan.program
    kernels = {kernel: index for index, kernel in enumerate(program.kernels)}
    slots = [
        {
            "name": name, "dtype": slot.spec.dtype.name, "shape": list(slot.spec.shape), "buffer": slot.buffer,
            "start": slot.offset or 0, "bytes": max(WORD, slot.nbytes),
        }
        for slot, name in zip(program.slots, plan.names, strict=True)
    ]  # fmt: skip
    return {
        "steps": [_step(step, kernels.get(step.kernel) if step.kernel else None) for step in plan.steps],
        "micros": [round(1e6 * seconds, 3) for seconds in plan.seconds],
        "kernels": [{"wgsl": kernel.wgsl, "grid": list(kernel.grid)} for kernel in program.kernels],
        "slots": slots,
        "sizes": list(program.sizes),
        "inputs": list(program.inputs),
        "outputs": list(program.outputs),
        "peak": plan.peak_bytes,
        "bound": plan.lower_bound,
    }


def _step(step: Step, kernel: int | None) -> dict[str, Any]:
    origin = step.origin
    return {
        "name": step.name,
        "work": ", ".join(step.work),
        "phase": origin.phase,
        "module": origin.module,
        "label": origin.label,
        "line": basename(origin.line),
        "lines": [{"text": line.text(index), "short": _short(line)} for index, line in enumerate(step.lines)],
        "reads": list(step.reads),
        "writes": list(step.writes),
        "kernel": kernel,
    }


def _short(line: Line) -> str:
    return f"{line.op} [{','.join(map(str, line.spec.shape))}]"
