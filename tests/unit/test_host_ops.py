"""What device cpu computes of a fused op by itself is what the op's fallback computes. test_recurrence.py has more."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import pywebgpu as torch
from pywebgpu import dtypes
from pywebgpu.composites import quasi_newton
from pywebgpu.ir.graph import Fused, Node, host
from pywebgpu.ops import indexing
from pywebgpu.tensor.apply import apply


def values(op: Fused, given: list[Any], *others: Node, **attrs: Any) -> Any:
    """The only value of an op of tensors, then of nodes."""
    return apply(lambda *nodes: op(*nodes, *others, **attrs)[0], *given).numpy()


@pytest.mark.parametrize("steps", [1, 2, 5])
def test_a_direction_is_that_of_the_recorded_passes(steps: int) -> None:
    draw = np.random.default_rng(steps)
    shapes = [(7,), (), *[(7,)] * (2 * steps), *[()] * steps]
    with torch.device("cpu"):
        given = [torch.tensor(draw.standard_normal(shape).tolist(), dtype=torch.float64) for shape in shapes]
    op = quasi_newton.direction
    np.testing.assert_allclose(values(op, given), values(replace(op, host=None), given), rtol=1e-12)


@pytest.mark.parametrize("shape", [(20,), (20, 3)])
def test_a_batch_of_slices_is_their_stack(shape: tuple[int, ...]) -> None:
    with torch.device("cpu"):
        x = torch.tensor(np.arange(np.prod(shape)).reshape(shape).tolist())
    starts = [0, 5, 5, 13]
    batch = torch.stack([x[at : at + 7] for at in starts])
    assert batch._node.inputs[0].op is indexing.stacked_slices
    nodes = [host(at, dtypes.int32) for at in starts]
    for op in (indexing.stacked_slices, replace(indexing.stacked_slices, host=None)):
        np.testing.assert_array_equal(values(op, [x], *nodes, size=7), batch.numpy())
    np.testing.assert_array_equal(batch.numpy(), np.stack([x.numpy()[at : at + 7] for at in starts]))


@pytest.mark.parametrize("position", [(0, 0, 0), (1, 0, 3), (3, 1, 2)])
def test_programs_that_write_one_element_here_or_there_are_one(position: tuple[int, int, int]) -> None:
    before = None
    for at in ((2, 1, 0), position):
        with torch.device("cpu"):
            x = torch.zeros(4, 2, 5)
        x.transpose(0, 1)[at[1]][at[0]][at[2]] = 3
        wanted = np.zeros((4, 2, 5), "float32")
        wanted[at] = 3
        np.testing.assert_array_equal(x.numpy(), wanted)
        misses = torch.memory.stats("cpu")["program_misses"]
        assert before is None or misses == before
        before = misses
