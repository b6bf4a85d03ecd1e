"""What device cpu computes of a fused op by itself is what the op's fallback computes. test_recurrence.py has more."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import pywebgpu as torch
from pywebgpu import dtypes
from pywebgpu.composites import quasi_newton, sliding_on_host, sliding_products
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


# name -> (n, c, *s), (o, c / groups, *kernel), step, apart, groups, zeros before and after; fewer than 0 cut
SLIDING: dict[str, Any] = {
    "rows": ((3, 4, 9, 9), (6, 4, 3, 3), (1, 1), (1, 1), 1, (1, 1), (1, 1)),
    "short rows": ((3, 4, 5, 5), (6, 4, 4, 4), (1, 1), (1, 1), 1, (0, 0), (0, 0)),
    "apart": ((2, 4, 9, 12), (6, 2, 3, 2), (1, 1), (2, 3), 2, (2, 1), (2, 2)),
    "steps": ((2, 3, 9, 8), (5, 3, 3, 2), (2, 3), (1, 1), 1, (1, 0), (0, 1)),
    "cut": ((2, 3, 9, 9), (5, 3, 2, 2), (1, 1), (1, 1), 1, (-1, 2), (1, -2)),
    "one element": ((2, 3, 9, 9), (5, 3, 1, 1), (1, 1), (1, 1), 1, (0, 0), (0, 0)),
    "depthwise": ((3, 4, 9, 9), (8, 1, 3, 3), (1, 1), (1, 1), 4, (1, 1), (1, 1)),
    "depthwise steps": ((3, 4, 9, 9), (4, 1, 3, 3), (2, 2), (1, 1), 4, (1, 1), (1, 1)),
    "a line": ((2, 4, 9), (6, 4, 3), (2,), (1,), 1, (1,), (1,)),
    "a volume": ((2, 2, 4, 5, 6), (3, 2, 2, 2, 3), (1, 1, 1), (1, 1, 1), 1, (1, 0, 1), (0, 0, 1)),
}


@pytest.mark.parametrize("bytes_at_a_time", [1, sliding_on_host.BYTES])
@pytest.mark.parametrize("name", SLIDING)
def test_what_slides_over_some_samples_at_a_time_is_what_it_means(
    name: str, bytes_at_a_time: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The product, its kernel's gradient, and the product the other way."""
    monkeypatch.setattr(sliding_on_host, "BYTES", bytes_at_a_time)
    shape, kernel, step, dilation, groups, before, after = SLIDING[name]
    how = {"step": step, "dilation": dilation, "groups": groups, "before": before, "after": after}
    draw = np.random.default_rng(1)
    with torch.device("cpu"):
        x, weight = (torch.tensor(draw.standard_normal(one).tolist(), dtype=torch.float64) for one in (shape, kernel))
        found = apply(lambda *nodes: sliding_products.sliding_product(*nodes, **how)[0], x, weight)
        g = torch.tensor(draw.standard_normal(tuple(found.shape)).tolist(), dtype=torch.float64)
    reach = zip(found.shape[2:], step, dilation, kernel[2:], strict=True)
    back = {"step": step, "dilation": dilation, "groups": groups}
    back["lengths"] = tuple((n - 1) * s + d * (k - 1) + 2 for n, s, d, k in reach)
    cases = (
        (sliding_products.sliding_product, [x, weight], how),
        (sliding_products.kernel_product, [g, x], {**how, "shape": kernel}),
        (sliding_products.spread_product, [g, weight], back),
    )
    for op, given, attrs in cases:
        wanted = values(replace(op, host=None), given, **attrs)
        np.testing.assert_allclose(values(op, given, **attrs), wanted, rtol=1e-12, atol=1e-12)


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
