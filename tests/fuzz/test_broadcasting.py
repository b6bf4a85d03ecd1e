"""Pairs of shapes: those that fit together, and those that do not."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.cases.case import Case, bools, randn
from tests.fuzz import steps
from tests.oracle import oracle

OPS = {
    "add": lambda torch, a, b: a + b,
    "sub": lambda torch, a, b: a - b,
    "mul": lambda torch, a, b: a * b,
    "div": lambda torch, a, b: a / (b * b + 1),
    "maximum": lambda torch, a, b: torch.maximum(a, b),
    "chain": lambda torch, a, b: (a.sin() + b) * (a - b.exp()),
    "where": lambda torch, a, b: torch.where(a > b, a, b),
    "compare": lambda torch, a, b: (a < b, a == a, torch.logical_and(a > 0, b > 0)),
    "reduce": lambda torch, a, b: (a * b).sum(0) if (a * b).ndim else a * b,
    "expand": lambda torch, a, b: torch.broadcast_tensors(a, b),
    "lerp": lambda torch, a, b: torch.lerp(a, b, 0.3),
}
side = st.integers(1, 9)
fitting = st.lists(st.tuples(st.integers(0, 4), st.sampled_from(["both", "left", "right"])), max_size=4)


@given(fitting, steps.numbers, steps.numbers, st.sampled_from(sorted(OPS)))
@steps.PROFILE
def test_fitting_shapes_match_torch(device: str, dims: Any, drop_a: int, drop_b: int, op: str) -> None:
    a = tuple(1 if kept == "right" else size for size, kept in dims)
    b = tuple(1 if kept == "left" else size for size, kept in dims)
    # One side may lack leading dimensions.
    a, b = (a, b[drop_b % (len(b) + 1) :]) if drop_a % 2 else (a[drop_b % (len(a) + 1) :], b)
    oracle.agree(Case(op, OPS[op], (randn(*a), randn(*b)), tolerance="model"), device)


@given(steps.shapes, steps.shapes, st.sampled_from(sorted(OPS)))
@steps.PROFILE
def test_any_shapes_agree_or_fail(device: str, a: Any, b: Any, op: str) -> None:
    oracle.agree_or_fail(Case(op, OPS[op], (randn(*a), randn(*b)), tolerance="model"), device)


@given(steps.shapes, steps.shapes)
@steps.PROFILE
def test_matmul_of_any_shapes_agrees_or_fails(device: str, a: Any, b: Any) -> None:
    case = Case("matmul", lambda torch, a, b: a @ b, (randn(*a), randn(*b)), tolerance="contraction", terms=25)
    oracle.agree_or_fail(case, device)


@given(fitting, side, side, side)
@steps.PROFILE
def test_matmul_of_fitting_batches_matches_torch(device: str, dims: Any, rows: int, inner: int, columns: int) -> None:
    a = tuple(1 if kept == "right" else size for size, kept in dims)
    b = tuple(1 if kept == "left" else size for size, kept in dims)
    inputs = (randn(*a, rows, inner), randn(*b, inner, columns))
    oracle.agree(Case("matmul", lambda torch, a, b: a @ b, inputs, tolerance="contraction", terms=100), device)


@given(steps.solid_shapes, steps.numbers)
@steps.PROFILE
def test_in_place_broadcasts_the_other_side(device: str, shape: Any, drop: int) -> None:
    smaller = shape[drop % (len(shape) + 1) :]

    def program(torch: Any, a: Any, b: Any, mask: Any) -> Any:
        return (a * 1).add_(b), (a * 1).masked_fill_(mask, 0.5), (a * 1).copy_(b)

    case = Case("in_place", program, (randn(*shape), randn(*smaller), bools(*smaller)), tolerance="reduction")
    oracle.agree(case, device)
    grown = Case("grown", lambda torch, a, b: (b * 1).mul_(a), (randn(*shape), randn(*smaller)), tolerance="reduction")
    oracle.agree_or_fail(grown, device)
