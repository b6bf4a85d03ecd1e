"""What tensors or a function were compiled to, as an object for tests and as the text that PYWEBGPU_DEBUG prints."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from html import escape
from os.path import basename
from typing import Any

from pywebgpu import devices
from pywebgpu.compiler.driver import describe
from pywebgpu.devices import null
from pywebgpu.inspector.plans import Plan, Plans, Step
from pywebgpu.inspector.times import TimedPlans, is_timed
from pywebgpu.ir import origin
from pywebgpu.kernels.kernel import Limits
from pywebgpu.kernels.target import Target
from pywebgpu.runtime import executor
from pywebgpu.tensor.tensor import Tensor

DESKTOP = Target(
    wgsl=True, limits=Limits(binding_bytes=null.DESKTOP_BINDING, buffer_bytes=null.DESKTOP_BINDING)
)  # what device cpu is explained for


@dataclass(frozen=True)
class Explanation:
    """The Programs of a piece of work, in the order in which they ran first."""

    programs: tuple[Plan, ...]

    @property
    def kernels(self) -> tuple[Step, ...]:
        """Every dispatch of every Program: name, wgsl, ops, origin."""
        return tuple(step for plan in self.programs for step in plan.steps)

    @property
    def peak_bytes(self) -> int:
        """The most that one of the Programs takes: inputs, outputs and scratch."""
        return max((plan.peak_bytes for plan in self.programs), default=0)

    @property
    def lower_bound(self) -> int:
        """The least that any memory plan of that Program could take."""
        return max(((plan.peak_bytes, plan.lower_bound) for plan in self.programs), default=(0, 0))[1]

    def text(self, level: int = 2) -> str:
        """As PYWEBGPU_DEBUG of this level prints: 1 a line a program, 2 a line a kernel with its ops, 3 its WGSL."""
        return "\n".join(
            describe(plan.program, level, [_purpose(step) for step in plan.steps]) for plan in self.programs
        )

    def summary(self) -> str:
        """How many ops there are, how many of them share a kernel, what kinds of kernels there are, and their memory.

        An op that is computed in two kernels counts in both.
        """
        sizes = [sum(line.works for line in step.lines) for step in self.kernels]
        shared = [size for size in sizes if size > 1]
        kinds = Counter(step.op for step in self.kernels).most_common()
        parts = f"{sum(shared)} share {len(shared)}, {len(sizes) - len(shared)} are alone"
        names = ", ".join(f"{count} {kind}" for kind, count in kinds)
        memory = f"{self.peak_bytes:,} bytes at most, {self.lower_bound:,} at least"
        return f"{sum(sizes)} ops in {len(sizes)} kernels: {parts}\n{names}\n{memory}"

    def __str__(self) -> str:
        return self.text()

    def _repr_html_(self) -> str:
        """A table of the kernels, each with what it is for and its WGSL."""
        programs, dispatches = len(self.programs), len(self.kernels)
        total = f"{programs} program{'s' * (programs != 1)}, {dispatches} dispatch{'es' * (dispatches != 1)}"
        total += f", {self.peak_bytes:,} bytes at most"
        rows = []
        for step in self.kernels:
            grid = "" if step.kernel is None else "\u00a0x\u00a0".join(map(str, step.kernel.grid))
            name = escape(step.name)
            title = f'<summary style="white-space:nowrap">{name}</summary>'
            code = f"<details>{title}<pre>{escape(step.wgsl)}</pre></details>" if step.wgsl else name
            cells = (code, escape(", ".join(step.work)), escape(grid), *map(escape, _place(step)))
            rows.append("".join(f'<td style="text-align:left;vertical-align:top">{cell}</td>' for cell in cells))
        heads = "".join(f'<th style="text-align:left">{name}</th>' for name in ("kernel", "ops", "grid", "for", "line"))
        body = "".join(f"<tr>{row}</tr>" for row in rows)
        style = "font:13px/1.45 system-ui,sans-serif"
        return f'<div style="{style}">{total}<table><tr>{heads}</tr>{body}</table></div>'


def explain(what: Tensor | Sequence[Tensor] | Callable[[], Any], *, times: bool = False) -> Explanation:
    """What computing a pending tensor takes, or what calling a function without arguments runs.

    A tensor is not computed by this. A function is called, and what its tensors wait for is submitted; modules and
    phases are known then, and the lines of the program. For device cpu it is what a desktop GPU would run.
    times: each step of a function's Programs is timed as well, a pass for itself, where the device has a clock.

    Raises: TypeError for anything else.
    """
    if callable(what) and not isinstance(what, Tensor):
        return _explain_call(what, times=times and not is_timed())
    tensors = [what] if isinstance(what, Tensor) else list(what)
    if not all(isinstance(tensor, Tensor) for tensor in tensors):
        raise TypeError("explain(): needs a Tensor, several, or a function without arguments")
    roots = [tensor._node for tensor in tensors if tensor._node.buffer is None]
    targets = [tensor._storage.device.target for tensor in tensors]
    with watching(Plans()) as plans:
        if roots:
            plans.compile(roots, targets[0] if targets[0].wgsl else DESKTOP)
        return Explanation(tuple(plans))


def _explain_call(function: Callable[[], Any], *, times: bool) -> Explanation:
    for device in devices.opened():
        executor.submit(device)  # What waits from before is not the function's.
    timed = TimedPlans(DESKTOP, lines=True) if times else None
    try:
        with watching(timed or Plans(DESKTOP, lines=True)) as plans:
            result = function()
            for device in devices.opened():
                executor.submit(device)
            del result
        return Explanation(tuple(plans) if timed is None else timed.with_seconds())
    finally:
        for device in () if timed is None else timed.timed:
            device.time(False)


@contextmanager
def watching(plans: Plans) -> Iterator[Plans]:
    origin.watch(plans)
    try:
        yield plans
    finally:
        origin.unwatch(plans)


def _place(step: Step) -> tuple[str, str]:
    """As "forward GPT.blocks.0" and "train.py:12"."""
    return f"{step.origin.phase} {step.origin.module}".strip(), basename(step.origin.line)


def _purpose(step: Step) -> str:
    """As "mul, add, tanh  forward GPT.blocks.0  train.py:12"."""
    return "  ".join(part for part in (", ".join(step.work), *_place(step)) if part)
