"""Graph -> Program. Each stage is a pure function; only this file calls them, in order, and prints what is asked."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from math import prod

from pywebgpu import dtypes
from pywebgpu.compiler import memory_plan, packed_stores, pipeline, suballocation
from pywebgpu.compiler.fusion_group import FusionGroup
from pywebgpu.compiler.kernel_table import KernelTable
from pywebgpu.compiler.program import Dispatch, HostCall, Program, Slot, Written
from pywebgpu.compiler.schedule import Schedule, scheduled
from pywebgpu.errors import CompileError
from pywebgpu.ir import walk
from pywebgpu.ir.graph import Node, Spec, thread_state
from pywebgpu.ir.show import as_text
from pywebgpu.ir.walk import leaves, toposort
from pywebgpu.kernels import windows
from pywebgpu.kernels.access import is_view
from pywebgpu.kernels.kernel import Kernel, Limits, too_large
from pywebgpu.kernels.target import Target
from pywebgpu.kernels.templates import Selection
from pywebgpu.kernels.wgsl import LARGEST
from pywebgpu.ops import pointwise
from pywebgpu.settings import settings
from pywebgpu.support.formats import WIDE, WORD, Format
from pywebgpu.support.numbers import unsupported


def compile_graph(
    roots: tuple[Node, ...], target: Target, written: Written = (), on_kernel: Callable[[Kernel], None] = lambda _: None
) -> Program:
    """The Program that computes `roots`.

    written: pairs (root, data leaf) where the root may take over the leaf's buffer.
    on_kernel: called with each kernel as soon as it is generated, slowest to compile first.
    """
    if settings.debug >= 4:
        print(f"--- recorded\n{as_text(roots)}")
    graph = pipeline.Graph(roots)
    data, numbers = leaves(graph.order)
    for leaf in data if target.wgsl else ():
        if leaf.spec.dtype.compute is None:  # Held by the host where there is no NumPy, which never computes with it.
            raise unsupported(leaf.spec.dtype, "webgpu")
    pipeline.run(pipeline.DEVICE if target.wgsl else pipeline.HOST, graph, selection := Selection(target))
    if not target.wgsl:
        return _host_program(graph, data, numbers, written)
    return _device_program(graph, data, numbers, selection, written, on_kernel)


def _device_program(
    graph: pipeline.Graph,
    data: list[Node],
    numbers: list[Node],
    selection: Selection,
    written: Written,
    on_kernel: Callable[[Kernel], None],
) -> Program:
    target = selection.target
    _check_counts(graph.order)
    placed, schedule = _grouped(graph, selection, [(i, data[j]) for i, j in written])
    slots = _Slots.of(data, schedule, placed)
    kernels, steps, computed = _dispatches(schedule, slots, numbers, target, placed, on_kernel)
    outputs = tuple(slots.number[id(root)] for root in placed.roots)
    owner = {slots.number[result]: slots.number[id(leaf)] for result, leaf in schedule.alias.items()}
    layout = _laid_out(steps, slots, outputs, owner, target.limits)
    external = {layout.buffers[slot] for slot in (*range(len(data)), *outputs)}
    program = Program(
        kernels=tuple(kernels),
        steps=tuple(steps),
        slots=slots.with_layout(layout, target.limits),
        inputs=tuple(range(len(data))),
        numbers=tuple(node.spec.dtype for node in numbers),
        outputs=outputs,
        written=tuple((i, j) for i, j in written if owner.get(outputs[i]) == j),
        sizes=tuple(layout.sizes),
        scratch=tuple(buffer for buffer in range(len(layout.sizes)) if buffer not in external),
        lower_bound=layout.least,
    )
    if settings.verify:
        import_module("pywebgpu.compiler.verify").check_program(program, slots.owning(), target.limits)
    _report(program, slots.nodes(), computed)
    return program


@dataclass(frozen=True, slots=True)
class _Slots:
    """The values of a Program: those with a buffer of their own, then those inside the buffer of one of these.

    number: by id, the slot of a value; owners come first, the data leaves before all.
    ranges: for each value inside another, the slot of that, and the byte where it starts there.
    formats: by id, how those lie in memory that do not lie as their dtypes say.
    windows: by slot of a value and number of its window, the slot of that; they come last.
    """

    owners: list[Node]
    inside: list[Node]
    number: dict[int, int]
    ranges: list[tuple[int, int]]
    formats: dict[int, Format]
    windows: dict[tuple[int, int], int] = field(default_factory=dict)

    @staticmethod
    def of(data: list[Node], schedule: Schedule, placed: suballocation.Suballocation) -> "_Slots":
        computed = [node for group in schedule.groups for node in group.outputs if id(node) not in placed.inside]
        owners, inside = [*data, *computed], [*placed.parts, *placed.windows]
        number = {id(node): slot for slot, node in enumerate((*owners, *inside))}
        places = (placed.inside[id(node)] for node in inside)
        ranges = [(number[id(owner)], start * owner.spec.dtype.format.itemsize) for owner, start in places]
        unpacked = packed_stores.unpacked(schedule.groups)
        formats = {id(node): WIDE[str(node.spec.dtype.compute)] for node in computed if id(node) in unpacked}
        return _Slots(owners, inside, number, ranges, formats)

    def find(self, node: Node, window: int | None) -> int:
        """The slot of a value, or of a window of it."""
        slot = self.number[id(node)]
        if window is None:
            return slot
        return self.windows.setdefault((slot, window), len(self.number) + len(self.windows))

    def nodes(self) -> list[Node]:
        """The node of each slot."""
        nodes = [*self.owners, *self.inside]
        return [*nodes, *(nodes[slot] for slot, _ in self.windows)]

    def owning(self) -> list[int]:
        """For each slot, the slot that owns its buffer."""
        owners = [*range(len(self.owners)), *(owner for owner, _ in self.ranges)]
        return [*owners, *(owners[slot] for slot, _ in self.windows)]

    def with_layout(self, layout: memory_plan.Layout, limits: Limits) -> tuple[Slot, ...]:
        """Each slot with its buffer and offset. A buffer that one binding can reach is bound as a whole."""
        buffers, offsets = layout.buffers, layout.offsets
        alone = [None if size <= limits.binding_bytes else 0 for size in layout.sizes]
        own = [
            Slot(node.spec, buffers[i], offsets[i] or alone[buffers[i]], self.formats.get(id(node)))
            for i, node in enumerate(self.owners)
        ]
        within = zip(self.inside, self.ranges, strict=True)
        slots = [*own, *[Slot(node.spec, buffers[owner], offsets[owner] + start) for node, (owner, start) in within]]
        return (*slots, *[_window(slots[i], window, limits) for i, window in self.windows])


def _window(value: Slot, window: int, limits: Limits) -> Slot:
    """A window of a value, as words."""
    start = window * windows.nbytes(limits)
    size = min(windows.nbytes(limits), value.nbytes - start)
    return Slot(Spec((size // WORD,), dtypes.uint32), value.buffer, (value.offset or 0) + start)


def _dispatches(
    schedule: Schedule,
    slots: _Slots,
    numbers: list[Node],
    target: Target,
    placed: suballocation.Suballocation,
    on_kernel: Callable[[Kernel], None],
) -> tuple[list[Kernel], list[Dispatch], list[list[Node]]]:
    """The kernels, the dispatches that run them, and the nodes that each dispatch computes."""
    stored = {id(node) for group in schedule.groups for node in group.outputs}
    indices = {id(node): i for i, node in enumerate(numbers)}
    over = {result: schedule.alias.get(id(first), first) for result, first in placed.written_over.items()}
    table = KernelTable(stored, indices, {**schedule.alias, **over}, target, {*slots.formats}, on_kernel)
    groups = [
        group
        for group in schedule.groups
        if any(prod(node.spec.shape) for node in group.outputs) and not _is_done(group, schedule)
    ]
    run = {id(group): table.find(group) for group in sorted(groups, key=lambda group: -group.template.effort)}
    steps: list[Dispatch] = []
    computed: list[list[Node]] = []
    for group in groups:
        for kernel, bound, own in run[id(group)]:
            steps.append(Dispatch(kernel, tuple([slots.find(node, window) for node, window in bound]), own))
            computed.append(group.nodes)
    return table.kernels, steps, computed


def _is_done(group: FusionGroup, schedule: Schedule) -> bool:
    """Whether nothing is left to do: for a pack whose parts are there, for a copy of a value onto itself."""
    first = group.nodes[0]
    if len(group.nodes) == 1 and first.op is pointwise.copy and id(first) in schedule.alias:
        return walk.base(first.inputs[0]) is schedule.alias[id(first)]
    return suballocation.is_done(first)


def _laid_out(
    steps: Sequence[Dispatch], slots: _Slots, outputs: Sequence[int], owner: Mapping[int, int], limits: Limits
) -> memory_plan.Layout:
    """owner: the slot of a value that takes over a data leaf's buffer -> the leaf's slot."""
    sizes = [_bytes(node, slots.formats.get(id(node)) or node.spec.dtype.format, limits) for node in slots.owners]
    data = [slot for slot, node in enumerate(slots.owners) if node.buffer is not None]
    pinned = {slot: slot for slot in data} | {slot: owner.get(slot, slot) for slot in outputs}
    late = {slot for slot in outputs if slot not in owner and slot not in data}
    owning = slots.owning()
    return memory_plan.plan([[owning[slot] for slot in step.slots] for step in steps], sizes, pinned, late)


def _grouped(
    graph: pipeline.Graph, selection: Selection, written: list[tuple[int, Node]]
) -> tuple[suballocation.Suballocation, Schedule]:
    """Parts of packs that would clash get a buffer of their own, until none does."""
    before, packed_apart = suballocation.windows(graph.roots, graph.order), set[int]()
    graph.replace(before.roots)
    while True:
        placed = suballocation.suballocate(before, graph.order, selection, packed_apart)
        nodes = graph.order if placed.roots is before.roots else toposort(placed.roots)
        graph.superseded.append(nodes)
        schedule = scheduled(placed, nodes, selection, [(placed.roots[i], leaf) for i, leaf in written])
        clashes = suballocation.clashes(schedule, placed)
        if all(suballocation.may_move(part, placed) for part in clashes):
            for part in clashes:
                schedule.copy_after(part, suballocation.move(part, placed))
            placed.reuse(schedule.reused(placed))
            if settings.verify:
                import_module("pywebgpu.compiler.verify").check_schedule(schedule, placed)
            return placed, schedule
        packed_apart |= {placed.origin[id(part)] for part in clashes}


def _check_counts(order: Sequence[Node]) -> None:
    """Raises CompileError for a value of more elements than a kernel counts, though none of them may be stored."""
    for node in order:
        if not is_view(node) and prod(node.spec.shape) > LARGEST:
            raise CompileError(
                f"{node.op.name}: {list(node.spec.shape)} has more elements than {LARGEST}; use smaller tensors"
            )


def _bytes(node: Node, format_: Format, limits: Limits) -> int:
    size = format_.room(prod(node.spec.shape))
    trouble = too_large(node.spec, size, limits)
    if trouble:
        raise CompileError(f"{node.op.name}: {trouble}")
    return size


def _host_program(graph: pipeline.Graph, data: list[Node], numbers: list[Node], written: Written) -> Program:
    """One HostCall a node: the cpu device folds nothing into another."""
    inner = [node for node in graph.order if node.buffer is None]
    nodes = [*data, *numbers, *inner]
    slot = {id(node): i for i, node in enumerate(nodes)}
    steps = tuple(
        HostCall(node.op, node.attrs, (*(slot[id(source)] for source in node.inputs), slot[id(node)])) for node in inner
    )
    program = Program(
        kernels=(),
        steps=steps,
        slots=tuple(Slot(node.spec, i) for i, node in enumerate(nodes)),
        inputs=tuple(slot[id(node)] for node in data),
        numbers=tuple(node.spec.dtype for node in numbers),
        outputs=tuple(slot[id(root)] for root in graph.roots),
        written=written,
        sizes=(),
        scratch=(),
    )
    _report(program, nodes, [[node] for node in inner])
    return program


def _report(program: Program, values: Sequence[Node], steps: Sequence[Sequence[Node]]) -> None:
    """Prints what was asked for, and notifies an observer: the node of each slot, the nodes that each step computes."""
    if settings.debug >= 1:
        print(describe(program, settings.debug, [", ".join(node.op.name for node in group) for group in steps]))
    if thread_state.origins is not None:
        thread_state.origins.compiled(program, values, steps)


def describe(program: Program, level: int, purposes: Sequence[str] = ()) -> str:
    """A Program as text: 1 a line, 2 a line a step as well, 3 the WGSL of each. `purposes`: what each step is for."""
    total, least, inside = program.peak_bytes, program.lower_bound, program.scratch_bytes
    memory = f", {total} bytes, {inside} of them inside, at least {least}" if program.kernels else ""
    lines = [f"program: {len(program.steps)} steps, {len(program.slots)} values{memory}"]
    seen: set[int] = set()
    for i, step in enumerate(program.steps if level >= 2 else ()):
        purpose = purposes[i] if purposes else ""
        if not isinstance(step, Dispatch):
            lines.append(f"  {i}: {step.op.name} {_buffers(program, step.slots[:-1])} -> v{step.slots[-1]}")
            continue
        kernel = program.kernels[step.kernel]
        reads = [slot for slot, writes in zip(step.slots, kernel.writes, strict=True) if not writes]
        writes = [slot for slot, writes in zip(step.slots, kernel.writes, strict=True) if writes]
        moved = sum(program.slots[slot].nbytes for slot in step.slots)
        where = f"{_buffers(program, reads)} -> {_buffers(program, writes)}".strip()
        lines.append(f"  {i}: {kernel.name} grid={kernel.grid} {where} {moved} bytes  {purpose}".rstrip())
        if level >= 3 and step.kernel not in seen:
            lines.append(kernel.wgsl)
        seen.add(step.kernel)
    return "\n".join(lines)


def _buffers(program: Program, slots: Sequence[int]) -> str:
    """Slots and the buffers that hold them, as "v3@1 v4@0"."""
    return " ".join(f"v{slot}@{program.slots[slot].buffer}" for slot in slots)
