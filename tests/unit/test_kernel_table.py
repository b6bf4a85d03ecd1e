"""One text for equal groups: what a Program's kernels are does not depend on it, and their number not on the layers."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

import pywebgpu as torch
from pywebgpu import nn
from pywebgpu.bench import gpt, workloads
from pywebgpu.compiler import kernel_table
from pywebgpu.compiler.driver import compile_graph
from pywebgpu.compiler.program import Program
from pywebgpu.kernels.kernel import Limits
from pywebgpu.kernels.target import Target
from pywebgpu.utils import checkpoint
from tests.fuzz import steps
from tests.fuzz.test_graphs import build, node, side
from tests.unit.compiled import leaf, programs

FEW = hypothesis_settings(steps.PROFILE, max_examples=40)


def compiled(function: Callable[[], Any], *, alone: bool) -> list[Program]:
    """The Programs of a function. alone: each group's kernel is written, whatever was written before."""
    with pytest.MonkeyPatch.context() as patch:
        if alone:
            form = kernel_table.KernelTable._form
            patch.setattr(kernel_table.KernelTable, "_form", lambda *args: ((object(),), *form(*args)[1:]))
        return programs(function)


def same(function: Callable[[], Any]) -> None:
    for one, other in zip(compiled(function, alone=False), compiled(function, alone=True), strict=True):
        assert one.kernels == other.kernels
        assert one.steps == other.steps


@pytest.mark.parametrize("name", ["mlp", "gpt", "gpt1", "cnn"])
def test_a_shared_kernel_is_the_one_that_each_group_would_have(name: str) -> None:
    same(workloads.WORKLOADS[name].build(torch, "null"))


def test_each_kernel_is_told_once_as_it_is_written_and_the_longest_first() -> None:
    begun: list[Any] = []
    x = leaf(64, 64)
    roots = (x.exp()._node, (x.exp() @ x).sum()._node, (x - 1)._node, x.sin().sum(1)._node)
    program = compile_graph(roots, Target(wgsl=True, limits=Limits()), (), begun.append)
    assert tuple(begun) == program.kernels
    names = [kernel.name.partition("_")[0] for kernel in program.kernels]
    assert names[0] == "matmul"
    assert names == sorted(names, key=["matmul", "rows", "map"].index)


@given(side, side, st.lists(node, min_size=1, max_size=16))
@FEW
def test_kernels_of_random_graphs_are_those_of_each_group_alone(rows: int, columns: int, drawn: list[Any]) -> None:
    shapes = ((rows, columns), (rows, columns), (1, columns), (rows, 70))
    leaves = tuple(leaf(*shape) for shape in shapes)
    same(lambda: build(torch, leaves, drawn))


def test_draws_of_equal_shape_share_a_kernel() -> None:
    """Their seeds, bounds and places are host numbers, which a kernel knows by their order alone."""
    found = programs(lambda: [torch.rand(64, 32, device="null") * at for at in range(2, 6)])
    (program,) = (one for one in found if one.numbers)
    assert (len(program.steps), len(program.kernels)) == (4, 1)
    assert len({step.numbers for step in program.steps}) == 4
    assert program.blocks == tuple(step.numbers for step in program.steps)


def test_zeros_of_both_signs_are_two_kernels() -> None:
    one, other = leaf(8, 8), leaf(8, 8)
    (program,) = programs(lambda: [nn.functional.pad(x, (1, 1), value=v) for x, v in ((one, 0.0), (other, -0.0))])
    assert len(program.kernels) == len(program.steps)


def step(layers: int, kept: bool = True) -> Callable[[], Any]:
    if kept:
        return workloads.training_of(gpt.Shape(layers=layers, heads=2, width=8, block=8, batch=2)).build(torch, "null")
    parts = [nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 8)).to("null") for _ in range(layers)]
    x = leaf(4, 8)

    def run() -> Any:
        y = x
        for part in parts:
            y = y + checkpoint.checkpoint(part, y, use_reentrant=False)
        y.square().mean().backward()
        return [parameter.grad for part in parts for parameter in part.parameters()]

    return run


@pytest.mark.parametrize("kept", [True, False], ids=["gpt", "checkpoint"])
def test_twice_the_layers_write_no_more_kernels(kept: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[Any] = []
    write = kernel_table.KernelTable._write
    monkeypatch.setattr(kernel_table.KernelTable, "_write", lambda *args: written.append(args) or write(*args))
    counts = []
    for layers in (4, 8):
        written.clear()
        programs(step(layers, kept))
        counts.append(len(written))
    assert 0 < counts[1] <= counts[0]
