"""What the compiler promises of its graphs, schedules and Programs, checked: after each pass with PYWEBGPU_VERIFY=1.

A promise that does not hold is a fault of the compiler, whatever the program computes: CompileError names the stage,
the rule and the node.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import pairwise
from math import inf, prod

from pywebgpu.compiler.memory_plan import ALIGNMENT
from pywebgpu.compiler.pipeline import Graph, Pass, Property
from pywebgpu.compiler.program import Dispatch, Program, Slot
from pywebgpu.compiler.schedule import Schedule
from pywebgpu.compiler.suballocation import Suballocation
from pywebgpu.composites.attention import PACKED
from pywebgpu.errors import CompileError, PywebgpuError
from pywebgpu.ir.graph import (
    OUTPUT,
    WHICH,
    Composite,
    Custom,
    Fused,
    Movement,
    Node,
    Pointwise,
    Reduction,
    Reinterpretation,
    Spec,
    Structural,
)
from pywebgpu.ir.walk import base, toposort
from pywebgpu.kernels import windows
from pywebgpu.kernels.access import is_free, is_view
from pywebgpu.kernels.kernel import Kernel, Limits
from pywebgpu.kernels.templates import Selection
from pywebgpu.ops import complex_parts, pointwise

_COMPLEX_ENDS = (complex_parts.complex_, complex_parts.real, complex_parts.imag)
_SHARED = re.compile(r"var<workgroup> \w+: (?:array<)+(?:vec(\d)<|atomic<)?\w+>?((?:, \d+>)+);")


class GraphVerifier:
    """Checks a graph after each pass: its order, its specs, the specs of its roots, what earlier passes established."""

    def __init__(self, graph: Graph, selection: Selection) -> None:
        self._graph, self._selection = graph, selection
        self._specs = [root.spec for root in graph.roots]
        self._holds: set[Property] = set()
        self._check("recording")

    def check(self, last: Pass) -> None:
        self._holds |= set(last.establishes)
        self._check(last.name)

    def _check(self, stage: str) -> None:
        graph = self._graph
        if [root.spec for root in graph.roots] != self._specs:
            raise CompileError(f"after {stage}: roots have other specs: {self._specs}, now {graph.roots}")
        if set(graph.order) != set(toposort(graph.roots)):
            raise CompileError(f"after {stage}: the order does not list the graph")
        seen: set[Node] = set()
        for node in graph.order:
            if not node.is_source and not seen.issuperset(node.inputs):
                raise CompileError(f"after {stage}: {node} comes before one of its inputs")
            seen.add(node)
            if not node.is_source and (spec := _inferred(node)) is not None and spec != node.spec:
                raise CompileError(f"after {stage}: {node} of {list(node.inputs)} is {spec} by the op's own rule")
        for rule in self._holds:
            for node in self._breaking(rule):
                raise CompileError(f"after {stage}: {rule.value}: {node}")

    def _breaking(self, rule: Property) -> Iterable[Node]:
        """The nodes of which it does not hold."""
        nodes = [node for node in self._graph.order if not node.is_source]
        if rule is Property.ONE_VALUE:
            return [node for node in nodes if not self._has_one_value(node)]
        if rule is Property.REAL:
            return [node for node in nodes if _is_complex_inside(node)]
        if rule is Property.HAS_KERNEL:
            return [node for node in nodes if not is_view(node) and self._selection.of(node) is None]
        roots = self._graph.roots
        return [root for i, root in enumerate(roots) if root.buffer is not None or is_view(root) or root in roots[:i]]

    def _has_one_value(self, node: Node) -> bool:
        if isinstance(node.op, Fused):
            return WHICH in node.attrs and self._selection.is_computed(node)
        return not isinstance(node.op, Composite) and node.op is not OUTPUT


def _is_complex_inside(node: Node) -> bool:
    if node.op in _COMPLEX_ENDS or node.op is pointwise.copy:  # A root that is a leaf, or wanted twice, is copied.
        return False
    return node.spec.dtype.part is not None or any(source.spec.dtype.part is not None for source in node.inputs)


def _inferred(node: Node) -> Spec | None:
    """The spec that an op's own rule gives; None where it has none. Raises CompileError where the rule refuses."""
    op, specs = node.op, [source.spec for source in node.inputs]
    attrs = {name: value for name, value in node.attrs.items() if name != WHICH}
    try:
        if isinstance(op, Reinterpretation):
            return Spec(op.infer(specs[0].shape), op.dtype(specs[0].dtype))
        if isinstance(op, Movement):
            return Spec(op.infer(specs[0].shape, **attrs), specs[0].dtype)
        if isinstance(op, Reduction):
            folded = tuple(1 if axis in attrs["axes"] else n for axis, n in enumerate(specs[0].shape))
            return Spec(folded, op.result(specs[0].dtype) if op.result else specs[0].dtype)
        if isinstance(op, Structural):
            return op.infer(*specs, **attrs)
        if isinstance(op, Fused) and PACKED in attrs:
            return None  # One value with all gradients, laid out as whoever reads it wants.
        if isinstance(op, Fused):
            return op.infer(*specs, **attrs)[node.attrs.get(WHICH, 0)]
        if isinstance(op, Custom):
            return specs[0]
        if isinstance(op, Pointwise):
            shape = next((spec.shape for spec in reversed(specs) if spec.shape), ())
            if any(spec.shape not in (shape, ()) for spec in specs):
                raise CompileError(f"{node}: inputs of several shapes: {specs}")
            return Spec(shape, op.result(*[spec.dtype for spec in specs], **attrs) if op.result else specs[-1].dtype)
    except (PywebgpuError, LookupError, TypeError, ValueError) as error:
        raise CompileError(f"{node} of {list(node.inputs)}: the op's own rule refuses it: {error}") from error
    return None


def check_schedule(schedule: Schedule, placed: Suballocation) -> None:
    """Raises CompileError where a group reads what no earlier one stored, or a buffer that was taken over before."""
    stored: set[Node] = set()
    taken: dict[Node, Node] = {}  # data whose buffer a result took over -> the result
    for group in schedule.groups:
        for node in schedule.reads(group):
            if node.buffer is None and not node.is_source and node not in stored and not is_free(node):
                raise CompileError(f"scheduling: {group.nodes} reads {node}, which no earlier group stores")
            if (result := taken.get(node)) is not None and result not in group.nodes:
                raise CompileError(f"scheduling: {group.nodes} reads {node}, whose buffer {result} took over")
        stored |= set(group.outputs)
        taken |= {schedule.alias[id(node)]: node for node in group.outputs if id(node) in schedule.alias}
    for root in placed.roots:
        if root not in stored and base(root) not in stored and 0 not in root.spec.shape:
            raise CompileError(f"scheduling: no group stores the root {root}")


def check_program(program: Program, owning: Sequence[int], limits: Limits) -> None:
    """Raises CompileError where a dispatch keeps to no device's rules, or reads bytes that are another value's.

    owning: by slot, the one that has its memory: of parts of a value, and of windows, the whole one.
    """
    memory = _Memory(program, owning, min(ALIGNMENT, windows.nbytes(limits)))
    for number, step in enumerate(program.steps):
        assert isinstance(step, Dispatch)
        kernel = program.kernels[step.kernel]
        name = f"step {number}, {kernel.name}"
        _require(len(step.slots) == len(kernel.writes), f"{name}: one slot a binding")
        _check_kernel(name, kernel, limits)
        bound = list(zip(step.slots, kernel.writes, strict=True))
        _check_bound(name, [(program.slots[slot], writes) for slot, writes in bound])
        for slot, writes in bound:
            if not writes:
                memory.read(name, slot)
        for slot, writes in bound:
            if writes:
                memory.write(slot)
    updated = {program.outputs[i] for i, _ in program.written}
    for slot in program.outputs:
        if 0 not in program.slots[slot].spec.shape and slot not in updated:
            memory.read("the end", slot)


def _require(holds: bool, rule: str) -> None:
    if not holds:
        raise CompileError(rule)


def _check_kernel(name: str, kernel: Kernel, limits: Limits) -> None:
    _require(len(kernel.writes) + kernel.faults <= limits.bindings, f"{name}: {len(kernel.writes)} bindings")
    _require(any(kernel.writes), f"{name}: it writes nothing")
    _require(all(1 <= n <= limits.workgroups for n in kernel.grid), f"{name}: grid {kernel.grid}")
    _require(workgroup_bytes(kernel) <= limits.shared_bytes, f"{name}: {workgroup_bytes(kernel)} bytes are shared")
    _require(lanes(kernel) <= limits.workgroup_size, f"{name}: {lanes(kernel)} invocations")


def _check_bound(name: str, bound: list[tuple[Slot, bool]]) -> None:
    """A dispatch reads a buffer or writes it, and the ranges that it writes lie apart."""
    read = {slot.buffer for slot, writes in bound if not writes}
    written = sorted((slot.buffer, slot.offset or 0, slot) for slot, writes in bound if writes)
    clash = read & {buffer for buffer, _, _ in written}
    _require(not clash, f"{name}: buffers {clash} are bound for reading and for writing")
    for (buffer, start, slot), (other, after, _) in pairwise(written):
        end = inf if slot.offset is None else start + slot.nbytes
        _require(buffer != other or end <= after, f"{name}: buffer {buffer} is bound twice for writing")


class _Memory:
    """Which value's bytes lie in each range of each buffer, as the steps run."""

    def __init__(self, program: Program, owning: Sequence[int], alignment: int) -> None:
        self._program, self._owning, self._alignment = program, owning, alignment
        self._ranges: list[list[tuple[int, int, int]]] = [[] for _ in program.sizes]  # start, end, owner; apart
        self._parts: dict[int, list[int]] = {}  # of an owner
        for slot, owner in enumerate(owning):
            if slot != owner:
                self._parts.setdefault(owner, []).append(slot)
        for slot in program.inputs:
            self.write(slot)

    def write(self, slot: int) -> None:
        buffer, start, end = self._place(slot)
        kept: list[tuple[int, int, int]] = []
        for low, high, owner in self._ranges[buffer]:
            kept += [(*part, owner) for part in ((low, min(high, start)), (max(low, end), high)) if part[0] < part[1]]
        self._ranges[buffer] = [*kept, (start, end, self._owner(slot))]

    def read(self, name: str, slot: int) -> None:
        """Raises CompileError where not all of its bytes are its own. Between its parts anything may lie."""
        own = self._owner(slot)
        for part in self._parts.get(slot, [slot]):
            buffer, start, end = self._place(part)
            missing = end - start
            for low, high, owner in self._ranges[buffer]:
                if low < end and start < high:
                    spec, other = self._program.slots[part].spec, self._program.slots[owner].spec
                    _require(owner == own, f"{name}: reads v{part} {spec}, where {other} of v{owner} lies")
                    missing -= min(high, end) - max(low, start)
            _require(missing <= 0, f"{name}: reads v{part}, of which {missing} bytes were never written")

    def _owner(self, slot: int) -> int:
        return self._owning[slot]

    def _place(self, slot: int) -> tuple[int, int, int]:
        place = self._program.slots[slot]
        start = place.offset or 0
        _require(start % self._alignment == 0, f"v{slot} cannot be bound at byte {start}")
        fits = start + place.nbytes <= self._program.sizes[place.buffer]
        _require(fits, f"v{slot} of {place.nbytes} bytes at {start} is larger than its buffer")
        return place.buffer, start, start + place.nbytes


def workgroup_bytes(kernel: Kernel) -> int:
    """Bytes of the memory that a workgroup shares."""
    arrays = _SHARED.findall(kernel.wgsl)
    _require(len(arrays) == kernel.wgsl.count("var<workgroup>"), f"{kernel.name}: shared memory of an unknown form")
    return sum(4 * int(width or 1) * prod(map(int, re.findall(r"\d+", extents))) for width, extents in arrays)


def lanes(kernel: Kernel) -> int:
    """Invocations of a workgroup."""
    size = re.search(r"@workgroup_size\((\d+)\)", kernel.wgsl)
    _require(size is not None, f"{kernel.name}: no size of a workgroup")
    assert size is not None
    return int(size[1])
