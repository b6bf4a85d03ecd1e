"""Random programs of views and writes: whatever aliases what, every handle shows the same values as PyTorch's."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cases.case import Case, uniform
from tests.fuzz import aliases, steps
from tests.oracle import oracle

instruction = st.tuples(
    st.sampled_from(["view", "view", "write", "write", "write", "new", "read"]), steps.numbers, steps.step
)


def write(torch: Any, x: Any, other: Any, drawn: tuple[int, int, int, int]) -> None:
    """Numbers stay small, so that a thousand steps stay exact in float32."""
    choice, a, b, _ = drawn
    match choice % 8:
        case 0:
            x.add_(1.0)
        case 1:
            x.mul_(0.5)
        case 2:
            x.neg_()
        case 3:
            x.fill_(float(a))
        case 4:
            x[...] = float(b)
        case 5 if x.ndim and x.numel():
            x[a % x.shape[0]] = 3.0
        case 6 if x.ndim and x.numel():
            x[b % x.shape[0] :] += 0.25
        case 7 if other.shape == x.shape:
            x.copy_(other.clone())
        case _:
            x.clamp_(-4.0, 4.0)


def play(torch: Any, base: Any, program: list[Any]) -> list[Any]:
    tensors = [base]
    reads = []
    for kind, which, drawn in program:
        x, other = tensors[which % len(tensors)], tensors[drawn[1] % len(tensors)]
        if kind == "view":
            tensors.append(steps.apply(steps.VIEWS, torch, x, drawn))
        elif kind == "write":
            write(torch, x, other, drawn)
        elif kind == "new":
            tensors.append(x * 0.5 + 1.0)
        else:
            reads.append(x.sum().item())
    return [*tensors, *reads]


@given(steps.solid_shapes, st.lists(instruction, min_size=1, max_size=14))
@steps.PROFILE
def test_programs_of_views_and_writes_match_torch(device: str, shape: Any, program: list[Any]) -> None:
    def fn(torch: Any) -> Any:
        base = torch.arange(steps.count(shape), dtype=torch.float32).reshape(shape)
        return play(torch, base, program)

    oracle.agree(Case("program", fn, grad=False), device)


@given(steps.solid_shapes, st.lists(instruction, min_size=1, max_size=10))
@steps.PROFILE
def test_gradients_through_writes_match_torch(device: str, shape: Any, program: list[Any]) -> None:
    """The base is no leaf, so it may be written; what a formula saved and lost is an error in both."""

    def fn(torch: Any, x: Any) -> Any:
        found = play(torch, x * 2, [step for step in program if step[0] != "read"])
        return [tensor * tensor for tensor in found]

    oracle.agree_or_fail(Case("program", fn, (uniform(*shape),), tolerance="model"), device)


@given(st.integers(1, 40), st.lists(st.tuples(steps.numbers, steps.numbers, steps.numbers), max_size=12))
@steps.PROFILE
def test_small_dtypes_written_by_ranges_match_torch(device: str, size: int, ranges: list[Any]) -> None:
    """Elements smaller than a word share one: a write may not touch its neighbours."""

    def fn(torch: Any) -> Any:
        found = []
        for dtype in (torch.uint8, torch.int8, torch.float16, torch.bfloat16, torch.bool):
            x = torch.zeros(size, dtype=dtype)
            for start, length, value in ranges:
                x[start : start + length] = value % 2 if dtype is torch.bool else value
                x[start::3] = value // 2 if dtype is not torch.bool else bool(value)
            found.append(x)
        return found

    oracle.agree(Case("ranges", fn, grad=False, tolerance="exact"), device)


aliasing = st.builds(
    aliases.Instruction, st.sampled_from(aliases.NAMES), *[st.integers(0, n - 1) for n in aliases.RANGES]
)


@pytest.mark.parametrize("kind", aliases.KINDS)
@given(program=st.lists(aliasing, min_size=3, max_size=16))
@steps.PROFILE
def test_programs_of_aliases_match_torch(device: str, kind: str, program: list[Any]) -> None:
    """Views, `x.data = y`, changes of shape in place, detach, parameters and copies: values, facts and gradients."""
    aliases.agree(kind, program, device)
