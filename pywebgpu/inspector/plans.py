"""What the steps of Programs are for, as data: ops, values, and the parts of the user's program they come from.

A Program is shared by all graphs of one structure and knows nothing of where they were made, so this is kept beside it:
taken down when a Program is compiled while somebody watches, or, for one that is known already, by compiling once more.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from pywebgpu.compiler import wire
from pywebgpu.compiler.driver import compile_graph
from pywebgpu.compiler.program import Dispatch, Program
from pywebgpu.devices.base import Device
from pywebgpu.ir.graph import HOST, Custom, Fused, Node, Pointwise, Reduction, Spec, Structural, is_view, thread_state
from pywebgpu.ir.origin import Origin, Watcher
from pywebgpu.kernels.kernel import Kernel
from pywebgpu.kernels.target import Target
from pywebgpu.runtime.storage import Storage

if TYPE_CHECKING:
    from pywebgpu.compiler.program import Written


@dataclass(frozen=True, slots=True)
class Line:
    """One op inside a step. `inputs` are numbers of earlier lines of the step, or slots as "v3"."""

    op: str
    inputs: tuple[str, ...]
    attrs: str
    spec: Spec
    origin: Origin
    slot: int | None  # where it is stored, if it is
    works: bool  # it computes, and does not only say where to read

    def text(self, number: int) -> str:
        """As `%3 = mul(%1, v0) : float32[4,3] -> v7`."""
        args = ", ".join([*self.inputs, *([self.attrs] if self.attrs else [])])
        shape = ",".join(map(str, self.spec.shape))
        stored = "" if self.slot is None else f" -> v{self.slot}"
        return f"%{number} = {self.op}({args}) : {self.spec.dtype.name}[{shape}]{stored}"


@dataclass(frozen=True)
class Step:
    """One dispatch: its kernel (None on device cpu), the slots that it binds, the ops that it computes.

    op: the one that its kind of kernel is made for.  origin: where that one comes from.
    """

    number: int
    name: str
    op: str
    origin: Origin
    lines: tuple[Line, ...]
    reads: tuple[int, ...]
    writes: tuple[int, ...]
    kernel: Kernel | None

    @property
    def wgsl(self) -> str:
        return "" if self.kernel is None else self.kernel.wgsl

    @property
    def ops(self) -> tuple[str, ...]:
        return tuple(line.op for line in self.lines)

    @property
    def work(self) -> tuple[str, ...]:
        """Each kind of op that it computes, once."""
        return tuple(dict.fromkeys(line.op for line in self.lines if line.works))

    @property
    def origins(self) -> tuple[Origin, ...]:
        """Every part of the program that it computes something for."""
        return tuple(dict.fromkeys(line.origin for line in self.lines))

    @cached_property
    def text(self) -> str:
        return "\n".join(line.text(entry) for entry, line in enumerate(self.lines))


@dataclass(frozen=True)
class Plan:
    """A Program and its steps. `names` says what each slot holds: an input, or the op that made it.

    seconds: of each step on the device, summed over its runs, where they were timed.
    """

    program: Program
    steps: tuple[Step, ...] = field(repr=False)
    names: tuple[str, ...] = field(repr=False)
    seconds: tuple[float, ...] = field(default=(), repr=False)

    @property
    def peak_bytes(self) -> int:
        return self.program.peak_bytes

    @property
    def lower_bound(self) -> int:
        return self.program.lower_bound


class Plans(Watcher[Storage, Program, Device]):
    """The plans of all Programs that ran while it watched. `target`: what to compile for instead of the device."""

    def __init__(self, target: Target | None = None, *, lines: bool = False) -> None:
        self.lines = lines
        self._target = target
        self._last: Plan | None = None
        self._found: dict[int, tuple[Program, Plan]] = {}

    def __iter__(self) -> Iterator[Plan]:
        """In the order in which they first ran."""
        return iter([plan for _, plan in self._found.values()])

    def of(self, program: Program) -> Plan | None:
        index = self._found.get(id(program))
        return None if index is None else index[1]

    def compiled(self, program: Program, values: Sequence[Node], steps: Sequence[Sequence[Node]]) -> None:
        self._last = _plan(program, values, steps)

    def loading(self, device: Device, program: Program, roots: Sequence[Node], written: Written) -> None:
        if id(program) not in self._found:
            self._found[id(program)] = program, self._plan_of(device, program, roots, written)
        self.runs_on(device)

    def _plan_of(self, device: Device, program: Program, roots: Sequence[Node], written: Written) -> Plan:
        target = device.target if self._target is None or device.target.wgsl else self._target
        if self._last is None or self._last.program is not program or target is not device.target:
            with thread_state.span("compile", "compile for the profiler"):
                compile_graph(tuple(roots), target, written)
        plan = self._last
        assert plan is not None, "compiling tells of the plan"
        # A Program that came from a file numbers its slots in another way; a plan speaks of its own Program's.
        if plan.program is not program and target is device.target and target.wgsl:
            plan = plan if _steps_of(plan.program) == _steps_of(program) else bare(program)
        return plan

    def again(self, device: Device, program: Program) -> None:
        self._found.setdefault(id(program), (program, bare(program)))
        self.runs_on(device)

    def runs_on(self, device: Device) -> None:
        """A Program is about to run there."""

    def compile(self, roots: Sequence[Node], target: Target) -> Plan:
        """The plan of a graph that does not run."""
        compile_graph(tuple(roots), target)
        assert self._last is not None, "compiling tells of the plan"
        self._found[id(self._last.program)] = self._last.program, self._last
        return self._last


def _steps_of(program: Program) -> list[tuple[object, list[int]]]:
    """The dispatches of a Program: each kernel, and what it binds. Kernels are numbered as they were begun."""
    data = wire.as_data(program)
    return [(data["kernels"][kernel], bound) for kernel, *bound in data["steps"]]


def bare(program: Program) -> Plan:
    """What is known of a Program that nobody saw being recorded: its kernels, and no more."""
    steps: list[Step] = []
    for index, step in enumerate(program.steps):
        if isinstance(step, Dispatch):
            kernel = program.kernels[step.kernel]
            reads, writes = _bound(step, kernel)
            steps.append(Step(index, kernel.name, kernel.name, Origin(phase=""), (), reads, writes, kernel))
        else:
            name = step.op.name
            steps.append(Step(index, name, name, Origin(phase=""), (), step.slots[:-1], step.slots[-1:], None))
    return Plan(program, tuple(steps), ("value",) * len(program.slots))


def _bound(step: Dispatch, kernel: Kernel) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The slots that a dispatch reads, and those that it writes."""
    bound = list(zip(step.slots, kernel.writes, strict=True))
    return tuple(slot for slot, writes in bound if not writes), tuple(slot for slot, writes in bound if writes)


def _plan(program: Program, values: Sequence[Node], groups: Sequence[Sequence[Node]]) -> Plan:
    slot = {id(node): index for index, node in enumerate(values)}
    steps = tuple(_step(program, origin, group, slot) for origin, group in enumerate(groups))
    names = tuple("number" if n.op is HOST else "input" if n.buffer is not None else n.op.name for n in values)
    return Plan(program, steps, names)


def _step(program: Program, number: int, group: Sequence[Node], slot: dict[int, int]) -> Step:
    step = program.steps[number]
    lines = _lines(group, slot)
    main = _main(group)
    origin = thread_state.origins.find(main)
    if not isinstance(step, Dispatch):
        return Step(number, step.op.name, main.op.name, origin, lines, step.slots[:-1], step.slots[-1:], None)
    kernel = program.kernels[step.kernel]
    return Step(number, kernel.name, main.op.name, origin, lines, *_bound(step, kernel), kernel)


def _lines(group: Sequence[Node], slot: dict[int, int]) -> tuple[Line, ...]:
    """The ops of a step, inputs before users, with those that are computed where they are used."""
    own = {id(node) for node in group}
    number: dict[int, int] = {}
    lines: list[Line] = []
    stack: list[tuple[Node, bool]] = [(node, False) for node in reversed(group)]
    while stack:
        node, ready = stack.pop()
        if id(node) in number or (id(node) in slot and id(node) not in own):
            continue
        if not ready:
            stack.append((node, True))
            stack.extend((source, False) for source in reversed(() if node.buffer is not None else node.inputs))
            continue
        number[id(node)] = len(lines)
        inputs = () if node.buffer is not None else node.inputs
        names = tuple(f"%{number[id(n)]}" if id(n) in number else f"v{slot[id(n)]}" for n in inputs)
        stored = slot.get(id(node)) if id(node) in own else None
        works = isinstance(node.op, Pointwise | Reduction | Structural | Fused) and not is_view(node.op)
        watcher = thread_state.origins.find(node)
        lines.append(Line(node.op.name, names, _attrs(node), node.spec, watcher, stored, works))
    return tuple(lines)


def _attrs(node: Node) -> str:
    if node.buffer is not None or isinstance(node.op, Custom):
        return ""
    return ", ".join(f"{name}={value}" for name, value in node.attrs.items())


def _main(group: Sequence[Node]) -> Node:
    """The op for which a step is there: the last of the dearest kind."""

    def weight(node: Node) -> int:
        match node.op:
            case Structural() | Fused():
                return 2000
            case Reduction():
                return 1000
            case Pointwise(cost=cost):
                return cost
            case _:
                return 0

    return max(reversed(group), key=weight)
