"""Random programs on int64: as in PyTorch, or an OverflowError, and never another number."""

from typing import Any

import torch as reference
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import pywebgpu
from tests import integers
from tests.fuzz import steps

SIZES = (1, 10, 1000, 40_000, 2**20, 2**30, 2**31 - 1)
elements = st.sampled_from(SIZES).flatmap(lambda size: st.lists(st.integers(-size, size), min_size=9, max_size=9))
programs = st.lists(
    st.tuples(st.sampled_from(integers.EXPRESSIONS), st.booleans(), st.integers(integers.LOW, integers.TOP)),
    min_size=1,
    max_size=5,
)
PROFILE = settings(steps.PROFILE, max_examples=40)


def values(torch: Any, data: list[list[int]], program: list[Any], device: str) -> Any:
    """What each step of a program makes; the next ones take what is as large as their operands."""
    x, y = (torch.tensor(part, dtype=torch.int64, device=device).reshape(3, 3) for part in data)
    results = []
    for expression, turned, number in program:
        result = integers.evaluated(torch, expression, *((y, x) if turned else (x, y)), number)
        results.append(result)
        if result.dtype == torch.int64 and result.shape == x.shape:
            x, y = result, x
    return [result.tolist() for result in results]


@given(elements, elements, programs)
@PROFILE
def test_integers_are_torchs_or_an_error(device: str, a: list[int], b: list[int], program: list[Any]) -> None:
    try:
        wanted = values(reference, [a, b], program, "cpu")
    except RuntimeError:
        assume(False)
    try:
        found = values(pywebgpu, [a, b], program, device)
    except OverflowError:
        assert device != "cpu", "64 bits hold every number"
        return
    assert found == wanted
