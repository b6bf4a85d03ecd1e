"""Graph -> Program: the one driver. Each stage is a pure function; only this file calls them and only it prints."""

from collections import Counter
from collections.abc import Sequence
from math import prod

from pywebgpu.errors import CompileError
from pywebgpu.graph.ir import HOST, Node
from pywebgpu.graph.show import as_text
from pywebgpu.graph.walk import toposort
from pywebgpu.kernels import select
from pywebgpu.kernels.kernel import Kernel, Limits
from pywebgpu.ops import pointwise
from pywebgpu.program import memory
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
    program = _device_program(roots, target.limits, written, alive) if target.wgsl else _host_program(roots, written)
    _report(program)
    return program


def _device_program(roots: tuple[Node, ...], limits: Limits, written: Written, alive: list[list[Node]]) -> Program:
    data, numbers = leaves(toposort(roots))
    for rewrite in PASSES:
        roots = rewrite(roots)
        alive.append(toposort(roots))
        _watch(f"after {rewrite.__name__}", roots)
    roots = tuple(_stored(root) for root in roots)
    alive.append(toposort(roots))
    times = Counter(id(root) for root in roots)  # What is wanted twice has two owners, and goes to a buffer of its own.
    schedule = Schedule(roots, limits, [(roots[i], data[j]) for i, j in written if times[id(roots[i])] == 1])
    stored = {id(node) for group in schedule.groups for node in group.outputs}
    number = {id(node): at for at, node in enumerate(numbers)}
    nodes = [*data, *(node for group in schedule.groups for node in group.outputs)]
    slot = {id(node): at for at, node in enumerate(nodes)}
    kernels: list[Kernel] = []
    found: dict[Kernel, int] = {}
    steps: list[Dispatch] = []
    for group in schedule.groups:
        if not any(prod(node.spec.shape) for node in group.outputs):
            continue
        rows = (group.geometry, group.levels)
        kernel, bound = select.generate(
            group.kind, group.nodes, group.outputs, rows, stored, number, schedule.alias, limits
        )
        if kernel not in found:
            found[kernel] = len(kernels)
            kernels.append(kernel)
        steps.append(Dispatch(found[kernel], tuple(slot[id(node)] for node in bound)))
    sizes = [_bytes(node, limits) for node in nodes]
    outputs = tuple(slot[id(root)] for root in roots)
    owner = {slot[id(node)]: slot[id(leaf)] for node, leaf in ((n, schedule.alias.get(id(n))) for n in nodes) if leaf}
    pinned = {at: at for at in range(len(data))} | {at: owner.get(at, at) for at in outputs}
    buffers, bytes_of, least = memory.plan([step.slots for step in steps], sizes, pinned)
    fixed = {buffers[at] for at in pinned}
    accepted = tuple((i, j) for i, j in written if owner.get(outputs[i]) == j)
    return Program(
        kernels=tuple(kernels),
        steps=tuple(steps),
        slots=tuple(Slot(node.spec, buffers[at]) for at, node in enumerate(nodes)),
        inputs=tuple(range(len(data))),
        numbers=tuple(node.spec.dtype for node in numbers),
        outputs=outputs,
        written=accepted,
        sizes=tuple(bytes_of),
        scratch=tuple(b for b in range(len(bytes_of)) if b not in fixed),
        lower_bound=least,
    )


def _stored(root: Node) -> Node:
    """A root must have a place of its own: a view, a leaf or a constant is copied into one."""
    return pointwise.copy(root) if root.buffer is not None or is_view(root) or is_free(root) else root


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
    return Program(
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


def _watch(stage: str, roots: tuple[Node, ...]) -> None:
    if settings.debug >= 4:
        print(f"--- {stage}\n{as_text(roots)}")


def _report(program: Program) -> None:
    if settings.debug >= 1:
        print(
            f"program: {len(program.steps)} steps, {len(program.slots)} values, {program.scratch_bytes} scratch bytes"
        )
    for kernel in program.kernels if settings.debug >= 2 else ():
        print(f"  kernel {kernel.name} grid={kernel.grid}" + (f"\n{kernel.wgsl}" if settings.debug >= 3 else ""))
