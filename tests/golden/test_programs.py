"""One training step of a small network: its graph after each pass, its steps, and who shares memory with whom."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import pywebgpu as torch
from pywebgpu.compiler import pipeline
from pywebgpu.compiler.program import Program
from pywebgpu.ir.graph import Node
from pywebgpu.ir.show import as_text
from pywebgpu.ir.walk import toposort
from pywebgpu.kernels.kernel import Limits
from pywebgpu.kernels.target import Target
from pywebgpu.kernels.templates import Selection
from pywebgpu.nn import functional as F
from tests.unit.compiled import for_limits, leaf, programs

MAP = Path(__file__).parents[2] / "docs" / "architecture.md"
BEGIN = "<!-- passes: written by `python -m tests golden --update` -->"
END = "<!-- /passes -->"


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
    selection = Selection(Target(wgsl=True, limits=Limits()))
    for each in pipeline.DEVICE[: [one.name for one in pipeline.DEVICE].index("pack") + 1]:
        roots = each.run(roots, toposort(roots), selection)
    golden("programs/mlp_rewritten.txt", as_text(roots) + "\n")


def test_plan_is_the_stored_one(golden: Callable[[str, str], None]) -> None:
    program = for_limits(Limits(), *graph())
    golden("programs/mlp_plan.txt", f"{steps_of(program)}\n\n{memory_of(program)}\n")


def test_parameters_are_updated_in_place() -> None:
    program = programs(step)[-1]
    assert len(program.written) == 4
    assert len(program.steps) <= 12


def test_the_map_lists_the_passes(request: pytest.FixtureRequest) -> None:
    """docs/architecture.md has a line a pass, between two marks."""
    tables = (("On devices with WGSL", pipeline.DEVICE), ("On device cpu", pipeline.HOST))
    lines: list[str] = []
    for title, passes in tables:
        lines += [f"{title}:", "", "| pass | purpose | establishes |", "|---|---|---|"]
        for each in passes:
            lines.append(f"| {each.name} | {each.purpose} | {'; '.join(rule.value for rule in each.establishes)} |")
        lines.append("")
    before, mark, rest = MAP.read_text("utf-8").partition(BEGIN)
    _, end, after = rest.partition(END)
    text = "".join((before, mark, "\n", "\n".join(lines), end, after))
    if request.config.getoption("--update-golden"):
        MAP.write_text(text, encoding="utf-8", newline="\n")
    assert MAP.read_text("utf-8") == text, "docs/architecture.md: python -m tests golden --update, then read the diff"
