"""The memory plan: values share buffers where their lives or their bytes do not overlap, and nowhere else."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import pywebgpu as torch
from pywebgpu import nn
from pywebgpu.autograd import grad
from pywebgpu.compiler import memory_plan
from pywebgpu.kernels.kernel import Limits
from pywebgpu.utils import checkpoint
from tests.fuzz.steps import PROFILE
from tests.unit import naive_memory_plan
from tests.unit.compiled import for_limits, leaf, only

slot = st.integers(0, 15)
plans = st.tuples(
    st.lists(st.lists(slot, min_size=1, max_size=4), max_size=30),  # slots that each step touches
    st.lists(st.integers(1, 640).map(lambda n: 4 * n), min_size=16, max_size=16),  # sizes
    st.sets(slot, max_size=5),  # pinned
    st.sets(slot, max_size=5),  # late, where pinned
)


def lives(steps: list[list[int]]) -> dict[int, tuple[int, int]]:
    """First and last step of each slot."""
    found: dict[int, tuple[int, int]] = {}
    for at, slots in enumerate(steps):
        for one in slots:
            found[one] = (found.get(one, (at, at))[0], at)
    return found


def planned(plan: Any) -> memory_plan.Layout:
    steps, sizes, pinned, late = plan
    return memory_plan.plan(steps, sizes, {one: one for one in pinned}, pinned & late)


@given(plans)
@PROFILE
def test_lives_never_overlap_on_one_byte(plan: Any) -> None:
    steps, sizes, _, _ = plan
    layout = planned(plan)
    life = lives(steps)
    for one, (first, last) in life.items():
        for other, (start, end) in life.items():
            if one < other and layout.buffers[one] == layout.buffers[other] and first <= end and start <= last:
                low, high = sorted((one, other), key=lambda at: layout.offsets[at])
                assert layout.offsets[low] + sizes[low] <= layout.offsets[high], (one, other)
    for one, size in enumerate(sizes):
        assert layout.offsets[one] + size <= layout.sizes[layout.buffers[one]]
        assert layout.offsets[one] % memory_plan.ALIGNMENT == 0


@given(plans)
@PROFILE
def test_a_step_binds_no_buffer_twice(plan: Any) -> None:
    """Not even two ranges of it: a dispatch may not read and write one buffer."""
    layout = planned(plan)
    for slots in plan[0]:
        different = set(slots)
        assert len({layout.buffers[one] for one in different}) == len(different)


@given(plans)
@PROFILE
def test_what_is_pinned_keeps_its_memory(plan: Any) -> None:
    """Inputs are somebody else's memory: no temporary goes there. A late output's is free until its first step."""
    steps, sizes, pinned, late = plan
    layout = planned(plan)
    life = lives(steps)
    for one in pinned:
        assert (layout.sizes[layout.buffers[one]], layout.offsets[one]) == (sizes[one], 0)
        for other in range(16):
            if other != one and layout.buffers[other] == layout.buffers[one]:
                assert one in late, (one, other)
                assert other not in pinned, (one, other)
                assert life[other][1] < life[one][0], (one, other)


@given(plans)
@PROFILE
def test_no_plan_takes_less_than_the_bound(plan: Any) -> None:
    layout = planned(plan)
    assert sum(layout.sizes) >= layout.least


@given(plans)
@PROFILE
def test_a_plan_is_what_looking_at_every_gap_finds(plan: Any) -> None:
    steps, sizes, pinned, late = plan
    owners = {one: one for one in pinned}
    assert memory_plan.plan(steps, sizes, owners, pinned & late) == naive_memory_plan.plan(
        steps, sizes, owners, pinned & late
    )


def layers(count: int) -> tuple[list[list[int]], list[int]]:
    """Forward and backward through layers that each keep a wide and a small value: slots by step, and sizes."""
    kept = [(2 * at, 2 * at + 1) for at in range(count)]
    gradients = [2 * count + at for at in range(count)]
    forward = [[*kept[at], *kept[at - 1][: at > 0]] for at in range(count)]
    backward = [[*kept[at], gradients[at], *gradients[at + 1 : at + 2]] for at in reversed(range(count))]
    return forward + backward, [4096, 516] * count + [2048] * count


def test_a_deep_models_plan_looks_at_few_gaps(monkeypatch: pytest.MonkeyPatch) -> None:
    looked = []
    gap = memory_plan._Buffer.gap
    monkeypatch.setattr(memory_plan._Buffer, "gap", lambda *args: looked.append(args) or gap(*args))
    steps, sizes = layers(200)
    layout = memory_plan.plan(steps, sizes, {})
    assert layout == naive_memory_plan.plan(steps, sizes, {}, ())
    assert len(looked) <= 2 * len(sizes)


def test_an_output_in_place_has_the_inputs_buffer() -> None:
    layout = memory_plan.plan([[0, 1], [1, 2]], [8, 8, 8], {0: 0, 2: 0})
    assert layout.buffers[2] == layout.buffers[0] != layout.buffers[1]
    assert len(layout.sizes) == 2


def test_a_chain_of_a_hundred_products_takes_two_buffers() -> None:
    """A product reads one and writes the other; the last one is the result, whose memory serves until then."""
    x, w = leaf(64, 64), leaf(64, 64)
    for _ in range(100):
        x = (x @ w).relu()
    program = for_limits(Limits(), x)
    assert len(program.steps) == 100
    assert len(program.scratch) == 1
    assert program.peak_bytes == program.lower_bound == 4 * 64 * 64 * 4


def test_skipping_connections_take_three_buffers() -> None:
    x, w = leaf(64, 64), leaf(64, 64)
    for _ in range(50):
        x = (x @ w).relu() @ w + x
    assert len(for_limits(Limits(), x).scratch) <= 2


def test_a_small_value_goes_where_a_large_one_was() -> None:
    assert memory_plan.plan([[0], [1], [2]], [4, 16, 64], {}).sizes == [64]


def test_small_values_lie_side_by_side_in_a_buffer_for_a_large_one() -> None:
    """Steps 0 to 3 make four values, step 4 the large one that needs none of them, 5 to 8 read those of the others."""
    layout = memory_plan.plan([[0], [1], [2], [0, 1], [3]], [256, 256, 256, 1024], {})
    assert sum(layout.sizes) == 1024 + 256  # Two that one step touches lie in two buffers.


def test_a_training_step_stays_near_the_bound() -> None:
    layers = [(leaf(64, 64, grad=True), leaf(64, grad=True)) for _ in range(12)]
    x = leaf(32, 64)
    for weight, bias in layers:
        x = (x @ weight + bias).tanh()
    found = grad(x.square().mean(), [part for layer in layers for part in layer])
    program = for_limits(Limits(), *found)
    assert program.peak_bytes <= 1.1 * program.lower_bound


def test_checkpoints_change_no_bit_of_a_gradient(device: str) -> None:
    def gradients(*, kept: bool) -> list[object]:
        torch.manual_seed(1)
        part = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Dropout(0.3), nn.Linear(16, 8)).to(device)
        x = torch.rand(4, 8, device=device)
        y = part(x) if kept else checkpoint.checkpoint(part, x, use_reentrant=False)
        y.square().mean().backward()
        return [p.grad.tolist() for p in part.parameters()]

    assert gradients(kept=True) == gradients(kept=False)


@pytest.mark.parametrize("layers", [8])
def test_checkpoints_lower_the_peak(layers: int) -> None:
    """Eight layers of width 32 on 512 rows: kept, each leaves its wide value; recomputed, one does at a time."""
    peaks = {}
    for kept in (True, False):
        parts = [nn.Sequential(nn.Linear(32, 256), nn.GELU(), nn.Linear(256, 32)).to("null") for _ in range(layers)]
        x = leaf(512, 32)

        def step(parts: Any = parts, x: Any = x, kept: bool = kept) -> Any:
            for part in parts:
                x = x + (part(x) if kept else checkpoint.checkpoint(part, x, use_reentrant=False))
            return grad(x.square().mean(), [p for part in parts for p in part.parameters()])

        peaks[kept] = only(step)
    wide = 512 * 256 * 4
    assert peaks[True].lower_bound - peaks[False].lower_bound > (layers - 2) * wide
    assert peaks[False].peak_bytes < 0.5 * peaks[True].peak_bytes
