"""One training step of a small network: its graph after each pass, its steps, and who shares memory with whom."""

from collections.abc import Callable
from typing import Any

import pywebgpu as torch
from pywebgpu.compiler import passes
from pywebgpu.compiler.passes import expand
from pywebgpu.compiler.program import Program
from pywebgpu.ir.graph import Node
from pywebgpu.ir.show import as_text
from pywebgpu.ir.walk import toposort
from pywebgpu.kernels.kernel import Limits
from pywebgpu.nn import functional as F
from tests.unit.compiled import check, for_limits, leaf, programs


def step() -> tuple[Any, ...]:
    """Forward, backward, update by SGD: 6-5-3, batches of 4."""
    x, target = leaf(4, 6), leaf(4, dtype=torch.int64)
    parameters = [leaf(5, 6, grad=True), leaf(5, grad=True), leaf(3, 5, grad=True), leaf(3, grad=True)]
    w1, b1, w2, b2 = parameters
    loss = F.cross_entropy(F.linear(F.linear(x, w1, b1).relu(), w2, b2), target)
    loss.backward()
    with torch.no_grad():
        for parameter in parameters:
            parameter -= 0.1 * parameter.grad
            parameter.grad = None
    return loss.detach(), *(parameter.detach() for parameter in parameters)


def graph() -> tuple[Node, ...]:
    return tuple(x._node for x in step())


def steps_of(program: Program) -> str:
    """One line a dispatch: its kernel, its grid, the slots that it binds; those that it writes have a star."""
    lines = []
    for one in program.steps:
        kernel = program.kernels[one.kernel]
        bound = [f"{slot}{'*' * written}" for slot, written in zip(one.slots, kernel.writes, strict=True)]
        lines.append(f"{kernel.name} {'x'.join(map(str, kernel.grid))}: {' '.join(bound)}")
    return "\n".join(lines)


def memory_of(program: Program) -> str:
    """One line a buffer: its bytes, and the slots which live in it, with the byte where they start."""
    lines = []
    for buffer, size in enumerate(program.sizes):
        inside = [(at, slot) for at, slot in enumerate(program.slots) if slot.buffer == buffer]
        slots = [f"{at}:{list(slot.spec.shape)}+{slot.offset or 0}" for at, slot in inside]
        kind = "scratch" if buffer in program.scratch else "own"
        lines.append(f"buffer {buffer}: {size} bytes, {kind}, slots {' '.join(slots)}")
    lines.append(f"inputs {program.inputs}, outputs {program.outputs}, written {program.written}")
    lines.append(f"{program.peak_bytes} bytes, {program.scratch_bytes} of them scratch, at least {program.lower_bound}")
    return "\n".join(lines)


def test_graph_after_passes_is_the_stored_one(golden: Callable[[str, str], None]) -> None:
    roots = graph()
    golden("programs/mlp_recorded.txt", as_text(roots) + "\n")
    roots = expand.expand(roots, toposort(roots), lambda node: False)
    for rule in passes.PASSES:
        roots = rule(roots, toposort(roots))
    golden("programs/mlp_rewritten.txt", as_text(roots) + "\n")


def test_plan_is_the_stored_one(golden: Callable[[str, str], None]) -> None:
    program = for_limits(Limits(), *graph())
    check(program, Limits())
    golden("programs/mlp_plan.txt", f"{steps_of(program)}\n\n{memory_of(program)}\n")


def test_parameters_are_updated_in_place() -> None:
    program = programs(step)[-1]
    assert len(program.written) == 4
    assert len(program.steps) <= 12
