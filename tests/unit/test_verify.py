"""The verifiers of graphs and Programs find what a faulty pass or plan would do."""

from collections.abc import Callable
from dataclasses import replace

import pytest

import pywebgpu as torch
from pywebgpu.compiler import pipeline, verify
from pywebgpu.compiler.pipeline import Graph, Pass, Property
from pywebgpu.compiler.program import Dispatch, Program
from pywebgpu.errors import CompileError
from pywebgpu.ir.graph import Node
from pywebgpu.kernels.kernel import Limits
from pywebgpu.kernels.target import Target
from pywebgpu.kernels.templates import Selection
from pywebgpu.nn import functional as F
from pywebgpu.ops import contraction
from tests.unit.compiled import for_limits, leaf

SELECTION = Selection(Target(wgsl=True, limits=Limits()))


def _other_shape(roots: tuple[Node, ...]) -> tuple[Node, ...]:
    return (leaf(3, 3)._node, *roots[1:])


def _wrong_spec(roots: tuple[Node, ...]) -> tuple[Node, ...]:
    """A product that claims the spec of the root."""
    product = contraction.matmul(leaf(1, 4, 5)._node, leaf(1, 5, 6)._node)
    return (Node(product.op, product.inputs, product.attrs, roots[0].spec),)


def _composite(roots: tuple[Node, ...]) -> tuple[Node, ...]:
    return (F.gelu(leaf(4, 4))._node,)


PASSES: dict[str, tuple[Callable[[tuple[Node, ...]], tuple[Node, ...]], tuple[Property, ...], str]] = {
    "other_shape": (_other_shape, (), "roots have other specs"),
    "wrong_spec": (_wrong_spec, (), "by the op's own rule"),
    "composite_left": (_composite, (Property.ONE_VALUE,), "a node has one value"),
    "root_is_a_leaf": (lambda roots: (leaf(4, 4)._node,), (Property.OWN_BUFFER,), "a buffer of its own"),
}


@pytest.mark.parametrize("name", PASSES)
def test_a_faulty_pass_is_named(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rewrite, establishes, rule = PASSES[name]
    faulty = Pass("faulty", "", lambda roots, order, selection: rewrite(roots), establishes=establishes)
    with pytest.raises(CompileError, match=rule) as error:
        pipeline.run([faulty], Graph(((leaf(4, 4) + 1)._node,)), SELECTION)
    assert "after faulty" in str(error.value)


def _program() -> Program:
    """Two products and an activation: three values that are computed, and their memory."""
    a, b = leaf(64, 64), leaf(64, 64)
    return for_limits(Limits(), ((a @ b).tanh() @ b).sum(1))


def _reversed(program: Program) -> Program:
    return replace(program, steps=program.steps[::-1])


def _without_first(program: Program) -> Program:
    return replace(program, steps=program.steps[1:])


def _one_buffer(program: Program) -> Program:
    """The second value that is computed lies where the first does, which is still to be read."""
    first, second = (step.slots[program.kernels[step.kernel].writes.index(True)] for step in _dispatches(program)[:2])
    slots = list(program.slots)
    slots[second] = replace(slots[second], buffer=slots[first].buffer, offset=slots[first].offset)
    return replace(program, slots=tuple(slots))


def _small_buffer(program: Program) -> Program:
    return replace(program, sizes=tuple(size // 2 for size in program.sizes))


def _dispatches(program: Program) -> list[Dispatch]:
    return [step for step in program.steps if isinstance(step, Dispatch)]


@pytest.mark.parametrize("spoil", [_reversed, _without_first, _one_buffer, _small_buffer])
def test_a_faulty_program_is_refused(spoil: Callable[[Program], Program]) -> None:
    program = _program()
    owning = range(len(program.slots))
    verify.check_program(program, owning, Limits())
    with pytest.raises(CompileError):
        verify.check_program(spoil(program), owning, Limits())


@pytest.mark.parametrize(
    "limits", [Limits(bindings=2), Limits(workgroup_size=16), Limits(workgroups=1), Limits(shared_bytes=64)]
)
def test_a_program_keeps_to_the_limits(limits: Limits) -> None:
    program = for_limits(Limits(), torch.softmax(leaf(700, 900), 1) @ leaf(900, 64))
    with pytest.raises(CompileError):
        verify.check_program(program, range(len(program.slots)), limits)
