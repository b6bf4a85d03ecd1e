"""Random subscripts, read and written: integers, slices, None, Ellipsis, lists, tensors and masks in any mix."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.cases.case import Case, randn
from tests.fuzz import steps
from tests.oracle import oracle

BASIC = ("int", "slice", "none", "ellipsis", "whole")
ADVANCED = (*BASIC, "list", "tensor", "matrix", "mask")


def subscripts(kinds: tuple[str, ...]) -> Any:
    return st.lists(st.tuples(st.sampled_from(kinds), steps.numbers, steps.numbers, steps.numbers), max_size=4)


def build(torch: Any, shape: tuple[int, ...], parts: list[Any]) -> tuple[Any, ...]:
    """A subscript for `shape`: numbers are taken modulo the dimension that they meet."""
    index: list[Any] = []
    dim = 0
    # Behind an Ellipsis dimensions count from the end.
    behind = [0 if kind == "none" else 1 for kind, *_ in parts]
    for position, (kind, a, b, c) in enumerate(parts):
        size = shape[dim] if dim < len(shape) else 0
        if kind == "none":
            index.append(None)
            continue
        if kind == "ellipsis":
            if Ellipsis in [part for part in index if part is Ellipsis]:
                continue
            index.append(Ellipsis)
            dim = max(dim, len(shape) - sum(behind[position + 1 :]))
            continue
        if size == 0:
            break
        if kind == "int":
            index.append(a % size - (size if b % 2 else 0))
        elif kind == "slice":
            index.append(slice(a % size - (size if c % 2 else 0), b % (size + 2), 1 + c % 3))
        elif kind == "whole":
            index.append(slice(None))
        elif kind == "list":
            index.append([a % size, b % size - size, c % size])
        elif kind == "tensor":
            index.append(torch.tensor([a % size, b % size, c % size - size]))
        elif kind == "matrix":
            index.append(torch.tensor([[a % size], [b % size]]))
        else:
            index.append(torch.tensor([(a + n * b) % 3 != 0 for n in range(size)]))
        dim += 1
    return tuple(index)


@given(steps.shapes, subscripts(BASIC))
@steps.PROFILE
def test_basic_subscripts_match_torch(device: str, shape: Any, parts: list[Any]) -> None:
    program = lambda torch, x: x[build(torch, shape, parts)]  # noqa: E731
    oracle.agree_or_fail(Case("basic", program, (randn(*shape),)), device)


@given(steps.solid_shapes, subscripts(ADVANCED))
@steps.PROFILE
def test_advanced_subscripts_match_torch(device: str, shape: Any, parts: list[Any]) -> None:
    program = lambda torch, x: x[build(torch, shape, parts)] * 2  # noqa: E731
    oracle.agree_or_fail(Case("advanced", program, (randn(*shape),), tolerance="reduction"), device)


@given(steps.solid_shapes, subscripts(BASIC), st.sampled_from(["number", "tensor", "row", "add", "scale"]))
@steps.PROFILE
def test_basic_assignment_matches_torch(device: str, shape: Any, parts: list[Any], kind: str) -> None:
    def program(torch: Any, x: Any, v: Any) -> Any:
        x = x * 1
        index = build(torch, shape, parts)
        place = x[index]
        if kind == "number":
            x[index] = 2.5
        elif kind == "tensor":
            x[index] = (v[: place.numel()] * 2).reshape(place.shape)
        elif kind == "row":
            x[index] = v[: place.shape[-1] if place.ndim else 1].sin()
        elif kind == "add":
            x[index] += v[0]
        else:
            x[index] *= x[index].detach()
        return x, place * 1

    case = Case("assign", program, (randn(*shape), randn(max(steps.count(shape), 8))))
    oracle.agree_or_fail(case, device)


@given(steps.solid_shapes, subscripts(ADVANCED), st.sampled_from(["number", "zero_dim", "mask", "add"]))
@steps.PROFILE
def test_advanced_assignment_matches_torch(device: str, shape: Any, parts: list[Any], kind: str) -> None:
    """One value for all places, since a place may be met twice."""

    def program(torch: Any, x: Any, v: Any) -> Any:
        x = x * 1
        index = build(torch, shape, parts)
        if kind == "number":
            x[index] = 2.5
        elif kind == "zero_dim":
            x[index] = v
        elif kind == "mask":
            x[x > v] = v * 2
        else:
            x[index] += 1.0
        return x

    oracle.agree_or_fail(Case("assign", program, (randn(*shape), randn()), tolerance="reduction"), device)


@given(st.integers(1, 5), st.integers(1, 70), st.lists(steps.numbers, min_size=1, max_size=70), st.booleans())
@steps.PROFILE
def test_gather_and_scatter_match_torch(device: str, rows: int, columns: int, drawn: list[int], add: bool) -> None:
    def program(torch: Any, x: Any) -> Any:
        index = torch.tensor([[(n * (row + 1)) % columns for n in drawn] for row in range(rows)])
        taken = x.gather(1, index)
        if not add:
            return taken
        return torch.zeros(rows, columns).scatter_add(1, index, taken.sin()), x.index_select(1, index[0])

    oracle.agree(Case("gather", program, (randn(rows, columns),), tolerance="reduction"), device)
