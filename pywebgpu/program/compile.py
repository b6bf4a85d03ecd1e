"""Graph -> Program: the one driver. Each stage is a pure function; only this file calls them and only it prints."""

from collections.abc import Sequence
from math import prod

from pywebgpu.errors import CompileError
from pywebgpu.graph.ir import HOST, Node, recording
from pywebgpu.graph.show import as_text
from pywebgpu.graph.walk import toposort
from pywebgpu.kernels import select
from pywebgpu.kernels.kernel import Kernel, Limits
from pywebgpu.ops import pointwise
from pywebgpu.program import memory, packing
from pywebgpu.program.program import Dispatch, HostCall, Program, Slot, Target
from pywebgpu.program.reads import is_free, is_view
from pywebgpu.program.schedule import Schedule
from pywebgpu.rewrite import PASSES, simplify
from pywebgpu.settings import settings

Written = tuple[tuple[int, int], ...]


def leaves(order: Sequence[Node]) -> tuple[list[Node], list[Node]]:
    """The data leaves and the host numbers of a toposorted graph: what a run must give."""
    data = [node for node in order if node.buffer is not None and node.op is not HOST]
    return data, [node for node in order if node.op is HOST]


def compile_graph(roots: tuple[Node, ...], target: Target, written: Written = ()) -> Program:
    """roots: the values wanted. written: pairs (root, data leaf) where the root may take the leaf's buffer over."""
    _watch("recorded", roots)
    # What the passes make ends list by list, users before inputs: thousands of nodes that end one inside another
    # overflow the stack of a browser.
    alive: list[list[Node]] = []
    return _device_program(roots, target.limits, written, alive) if target.wgsl else _host_program(roots, written)


def _device_program(roots: tuple[Node, ...], limits: Limits, written: Written, alive: list[list[Node]]) -> Program:
    data, numbers = leaves(toposort(roots))
    for rewrite in PASSES:
        roots = rewrite(roots)
        alive.append(toposort(roots))
        _watch(f"after {rewrite.__name__}", roots)
    roots = _stored(roots)
    alive.append(toposort(roots))
    placed, schedule = _scheduled(roots, limits, [(i, data[j]) for i, j in written], alive)
    roots = placed.roots
    stored = {id(node) for group in schedule.groups for node in group.outputs}
    number = {id(node): at for at, node in enumerate(numbers)}
    computed = [node for group in schedule.groups for node in group.outputs if id(node) not in placed.inside]
    owners = [*data, *computed]  # Those with a buffer to themselves; the others lie in one of theirs.
    nodes = [*owners, *placed.parts, *placed.windows]
    slot = {id(node): at for at, node in enumerate(nodes)}
    places = [(slot[id(whole)], 4 * start) for whole, start in (placed.inside[id(n)] for n in nodes[len(owners) :])]
    kernels: list[Kernel] = []
    found: dict[Kernel, int] = {}
    steps: list[Dispatch] = []
    served: list[list[Node]] = []  # the nodes of each step
    for group in schedule.groups:
        if not any(prod(node.spec.shape) for node in group.outputs) or packing.is_done(group.nodes[0]):
            continue
        rows = (group.geometry, group.levels)
        kernel, bound = select.generate(
            group.kind, group.nodes, group.outputs, rows, stored, number, schedule.alias, limits
        )
        if kernel not in found:
            found[kernel] = len(kernels)
            kernels.append(kernel)
        steps.append(Dispatch(found[kernel], tuple(slot[id(node)] for node in bound)))
        served.append(group.nodes)
    sizes = [_bytes(node, limits) for node in owners]
    outputs = tuple(slot[id(root)] for root in roots)
    owner = {slot[id(node)]: slot[id(leaf)] for node, leaf in ((n, schedule.alias.get(id(n))) for n in nodes) if leaf}
    pinned = {at: at for at in range(len(data))} | {at: owner.get(at, at) for at in outputs}
    late = {at for at in outputs if at not in owner and at >= len(data)}
    owning = [*range(len(owners)), *(whole for whole, _ in places)]
    layout = memory.plan([[owning[at] for at in step.slots] for step in steps], sizes, pinned, late)
    buffers, offsets = layout.buffers, layout.offsets
    fixed = {buffers[at] for at in pinned}
    within = zip(nodes[len(owners) :], places, strict=True)
    inside = [Slot(node.spec, buffers[whole], offsets[whole] + at) for node, (whole, at) in within]
    accepted = tuple((i, j) for i, j in written if owner.get(outputs[i]) == j)
    program = Program(
        kernels=tuple(kernels),
        steps=tuple(steps),
        slots=(*(Slot(node.spec, buffers[at], offsets[at] or None) for at, node in enumerate(owners)), *inside),
        inputs=tuple(range(len(data))),
        numbers=tuple(node.spec.dtype for node in numbers),
        outputs=outputs,
        written=accepted,
        sizes=tuple(layout.sizes),
        scratch=tuple(b for b in range(len(layout.sizes)) if b not in fixed),
        lower_bound=layout.least,
    )
    _report(program, nodes, served)
    return program


def _scheduled(
    roots: tuple[Node, ...], limits: Limits, written: list[tuple[int, Node]], alive: list[list[Node]]
) -> tuple[packing.Placed, Schedule]:
    """Parts of packs that would clash get a buffer of their own, until none does."""
    found, apart = packing.windows(roots), set[int]()
    alive.append(toposort(found.roots))
    while True:
        placed = packing.place(found, limits.bindings, apart)
        alive.append(toposort(placed.roots))
        pairs = [(placed.roots[i], leaf) for i, leaf in written]
        schedule = Schedule(placed.roots, limits, pairs, placed)
        clashes = packing.clashes(schedule, placed)
        if not clashes:
            return placed, schedule
        apart |= clashes


def _stored(roots: tuple[Node, ...]) -> tuple[Node, ...]:
    """Each root has a place of its own: a view, a leaf, a constant and what is wanted twice are copied into one."""
    seen: set[int] = set()
    found: list[Node] = []
    for root in roots:
        shared = root.buffer is not None or is_view(root) or is_free(root) or id(root) in seen
        seen.add(id(root))
        found.append(pointwise.copy(root) if shared else root)
    return tuple(found)


def _bytes(node: Node, limits: Limits) -> int:
    size = max(4, 4 * prod(node.spec.shape))
    if size > limits.binding_bytes:
        raise CompileError(
            f"{node.op.name}: a value of {node.spec.dtype.name}{list(node.spec.shape)} takes {size} bytes, more than "
            f"the {limits.binding_bytes} that this device can bind at once"
        )
    return size


def _host_program(roots: tuple[Node, ...], written: Written) -> Program:
    """One HostCall a node: the cpu device folds nothing into another."""
    data, numbers = leaves(toposort(roots))
    roots = simplify.simplify(roots)
    order = toposort(roots)
    inner = [node for node in order if node.buffer is None]
    nodes = [*data, *numbers, *inner]
    slot = {id(node): at for at, node in enumerate(nodes)}
    steps = tuple(
        HostCall(node.op, node.attrs, (*(slot[id(source)] for source in node.inputs), slot[id(node)])) for node in inner
    )
    program = Program(
        kernels=(),
        steps=steps,
        slots=tuple(Slot(node.spec, at) for at, node in enumerate(nodes)),
        inputs=tuple(slot[id(node)] for node in data),
        numbers=tuple(node.spec.dtype for node in numbers),
        outputs=tuple(slot[id(root)] for root in roots),
        written=written,
        sizes=(),
        scratch=(),
    )
    _report(program, nodes, [[node] for node in inner])
    return program


def _watch(stage: str, roots: tuple[Node, ...]) -> None:
    if settings.debug >= 4:
        print(f"--- {stage}\n{as_text(roots)}")


def _report(program: Program, values: Sequence[Node], steps: Sequence[Sequence[Node]]) -> None:
    """Prints what was asked for, and tells who watches: the node of each slot, the nodes that each step computes."""
    if settings.debug >= 1:
        print(describe(program, settings.debug, [", ".join(node.op.name for node in group) for group in steps]))
    if recording.trace is not None:
        recording.trace.compiled(program, values, steps)


def describe(program: Program, level: int, purposes: Sequence[str] = ()) -> str:
    """A Program as text: 1 a line, 2 a line a step as well, 3 the WGSL of each. `purposes`: what each step is for."""
    total, least, inside = program.peak_bytes, program.lower_bound, program.scratch_bytes
    memory = f", {total} bytes, {inside} of them inside, at least {least}" if program.kernels else ""
    lines = [f"program: {len(program.steps)} steps, {len(program.slots)} values{memory}"]
    seen: set[int] = set()
    for at, step in enumerate(program.steps if level >= 2 else ()):
        purpose = purposes[at] if purposes else ""
        if not isinstance(step, Dispatch):
            lines.append(f"  {at}: {step.op.name} {_places(program, step.slots[:-1])} -> v{step.slots[-1]}")
            continue
        kernel = program.kernels[step.kernel]
        reads = [slot for slot, writes in zip(step.slots, kernel.writes, strict=True) if not writes]
        writes = [slot for slot, writes in zip(step.slots, kernel.writes, strict=True) if writes]
        moved = sum(4 * prod(program.slots[slot].spec.shape) for slot in step.slots)
        where = f"{_places(program, reads)} -> {_places(program, writes)}".strip()
        lines.append(f"  {at}: {kernel.name} grid={kernel.grid} {where} {moved} bytes  {purpose}".rstrip())
        if level >= 3 and step.kernel not in seen:
            lines.append(kernel.wgsl)
        seen.add(step.kernel)
    return "\n".join(lines)


def _places(program: Program, slots: Sequence[int]) -> str:
    """Slots and the buffers that hold them, as "v3@1 v4@0"."""
    return " ".join(f"v{slot}@{program.slots[slot].buffer}" for slot in slots)
