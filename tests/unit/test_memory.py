"""The memory plan: values share buffers where their lives do not overlap, and nowhere else."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from pywebgpu.autograd import grad
from pywebgpu.kernels.kernel import Limits
from pywebgpu.program import memory
from tests.fuzz.steps import PROFILE
from tests.unit.compiled import for_limits, leaf

slot = st.integers(0, 15)
plans = st.tuples(
    st.lists(st.lists(slot, min_size=1, max_size=4), max_size=30),  # slots that each step touches
    st.lists(st.integers(1, 64).map(lambda n: 4 * n), min_size=16, max_size=16),  # sizes
    st.sets(slot, max_size=5),  # pinned
)


def lives(steps: list[list[int]]) -> dict[int, tuple[int, int]]:
    """First and last step of each slot."""
    found: dict[int, tuple[int, int]] = {}
    for at, slots in enumerate(steps):
        for one in slots:
            found[one] = (found.get(one, (at, at))[0], at)
    return found


@given(plans)
@PROFILE
def test_lives_in_one_buffer_never_overlap(plan: Any) -> None:
    steps, sizes, pinned = plan
    buffers, bytes_of, _ = memory.plan(steps, sizes, {one: one for one in pinned})
    life = lives(steps)
    for one, (first, last) in life.items():
        for other, (start, end) in life.items():
            if one < other and first <= end and start <= last:
                assert buffers[one] != buffers[other], (one, other)
    assert all(bytes_of[buffers[one]] >= size for one, size in enumerate(sizes))


@given(plans)
@PROFILE
def test_pinned_slots_share_with_nobody(plan: Any) -> None:
    """Inputs and outputs are somebody else's memory: no temporary goes there, before or after."""
    steps, sizes, pinned = plan
    buffers, bytes_of, _ = memory.plan(steps, sizes, {one: one for one in pinned})
    for one in pinned:
        assert [other for other in range(16) if buffers[other] == buffers[one]] == [one]
        assert bytes_of[buffers[one]] == sizes[one]


@given(plans)
@PROFILE
def test_temporaries_take_at_least_the_lower_bound(plan: Any) -> None:
    steps, sizes, pinned = plan
    buffers, bytes_of, least = memory.plan(steps, sizes, {one: one for one in pinned})
    used = {one for slots in steps for one in slots} - pinned
    assert sum(bytes_of[buffer] for buffer in {buffers[one] for one in used}) >= least


def test_an_output_in_place_has_the_inputs_buffer() -> None:
    buffers, bytes_of, _ = memory.plan([[0, 1], [1, 2]], [8, 8, 8], {0: 0, 2: 0})
    assert buffers[2] == buffers[0] != buffers[1]
    assert len(bytes_of) == 2


def test_a_chain_of_a_hundred_products_takes_two_buffers() -> None:
    """A product reads one and writes the other."""
    x, w = leaf(64, 64), leaf(64, 64)
    for _ in range(100):
        x = (x @ w).relu()
    program = for_limits(Limits(), x)
    assert len(program.steps) == 100
    assert len(program.scratch) == 2
    assert program.scratch_bytes == program.lower_bound == 2 * 64 * 64 * 4


def test_skipping_connections_take_three_buffers() -> None:
    x, w = leaf(64, 64), leaf(64, 64)
    for _ in range(50):
        x = (x @ w).relu() @ w + x
    assert len(for_limits(Limits(), x).scratch) <= 3


def test_a_small_buffer_grows_rather_than_lies_idle() -> None:
    _, bytes_of, _ = memory.plan([[0], [1], [2]], [4, 16, 64], {})
    assert bytes_of == [64]


def test_temporaries_of_a_training_step_stay_near_the_lower_bound() -> None:
    layers = [(leaf(64, 64, grad=True), leaf(64, grad=True)) for _ in range(12)]
    x = leaf(32, 64)
    for weight, bias in layers:
        x = (x @ weight + bias).tanh()
    found = grad(x.square().mean(), [part for layer in layers for part in layer])
    program = for_limits(Limits(), *found)
    assert program.scratch_bytes <= 1.25 * program.lower_bound
