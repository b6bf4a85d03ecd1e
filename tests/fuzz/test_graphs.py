"""Random graphs of pointwise ops, folds, products and views: however they are fused, PyTorch's values and gradients."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.cases.case import Case, randn
from tests.fuzz import steps
from tests.oracle import oracle

side = st.integers(1, 5)
node = st.tuples(st.integers(0, 99), steps.numbers, steps.numbers, steps.numbers)

UNARY = ("sin", "cos", "tanh", "sigmoid", "neg", "square", "abs", "relu", "exp")


def pointwise(torch: Any, nodes: list[Any], a: Any, b: Any, drawn: tuple[int, int, int, int]) -> Any:
    choice, number, _, _ = drawn
    match choice % 9:
        case 0:
            return a + b
        case 1:
            return a * b
        case 2:
            return a - b * 0.5
        case 3:
            return torch.maximum(a, b)
        case 4:
            return a / (b * b + 1)
        case 5:
            return torch.where(a > b, a, b * 0.5)
        case 6:
            return a * (number / 100) - 1  # No step makes an error larger: what differs then is wrong.
        case 7:
            return a.clamp(-1.0, 1.0)
        case _:
            # sin keeps every value near 1, so that no order of rounding matters.
            return getattr(a.sin(), UNARY[number % len(UNARY)])()


def structural(torch: Any, nodes: list[Any], a: Any, b: Any, drawn: tuple[int, int, int, int]) -> Any:
    """One op on 2-d values, whose sides are 1 to 5 and 70."""
    choice, number, more, _ = drawn
    dim = number % 2
    match choice % 10:
        case 0:
            return (a.sum(dim, keepdim=True) / a.shape[dim]).sin()
        case 1:
            return a.mean(dim, keepdim=True)
        case 2:
            return a.amax(dim, keepdim=True)
        case 3:
            return a.softmax(dim)
        case 4:
            return a.t()
        case 5:
            return a.flip(dim)
        case 6:
            return (a.cumsum(dim) / a.shape[dim]).sin()
        case 7:
            return torch.cat([a, a.sin()], dim)[:70, :70]
        case 8:
            return (a @ b.t() / a.shape[1]).sin() if a.shape[1] == b.shape[1] else a.logsumexp(dim, keepdim=True)
        case _:
            return a[number % a.shape[0] :, more % a.shape[1] :]


def fits(a: Any, b: Any) -> bool:
    return all(m == n or 1 in (m, n) for m, n in zip(a.shape, b.shape, strict=True))


def build(torch: Any, leaves: tuple[Any, ...], drawn: list[Any], read: int | None = None) -> list[Any]:
    """Up to four results; `read` forces one value in the middle."""
    nodes = list(leaves)
    for number, (choice, i, j, k) in enumerate(drawn):
        a = nodes[i % len(nodes)]
        partners = [x for x in nodes if fits(a, x)]
        b = partners[j % len(partners)]
        make = pointwise if choice % 3 else structural
        nodes.append(make(torch, nodes, a, b, (choice // 3, j, k, i)))
        if number == read:
            nodes[-1].sum().item()
    return nodes[len(leaves) :][-4:]


@given(side, side, st.lists(node, min_size=1, max_size=24))
@steps.PROFILE
def test_random_graphs_match_torch(device: str, rows: int, columns: int, drawn: list[Any]) -> None:
    leaves = (randn(rows, columns), randn(rows, columns), randn(1, columns), randn(rows, 70))
    case = Case("graph", lambda torch, *x: build(torch, x, drawn), leaves, tolerance="model")
    oracle.agree(case, device)


@given(side, st.lists(node, min_size=2, max_size=12), steps.numbers)
@steps.PROFILE
def test_reading_a_value_changes_nothing(device: str, rows: int, drawn: list[Any], read: int) -> None:
    leaves = (randn(rows, 4), randn(1, 4))
    case = Case("graph", lambda torch, *x: build(torch, x, drawn, read % len(drawn)), leaves, tolerance="model")
    oracle.agree(case, device)


@given(st.integers(1, 300), st.lists(node, min_size=1, max_size=30))
@steps.PROFILE
def test_long_pointwise_chains_match_torch(device: str, size: int, drawn: list[Any]) -> None:
    def program(torch: Any, *leaves: Any) -> Any:
        nodes = list(leaves)
        for choice, i, j, k in drawn:
            nodes.append(pointwise(torch, nodes, nodes[i % len(nodes)], nodes[j % len(nodes)].sin(), (choice, j, k, i)))
        return nodes[-2:]

    oracle.agree(Case("chain", program, (randn(size), randn(size), randn(1)), tolerance="model"), device)


@given(st.integers(2, 6), st.lists(st.floats(0.01, 0.5), min_size=3, max_size=5))
@steps.PROFILE
def test_training_with_changing_numbers_matches_torch(device: str, width: int, rates: list[float]) -> None:
    """A cached program may not keep the rate of the step that made it."""

    def program(torch: Any, x: Any, w: Any) -> Any:
        w = w.detach().clone().requires_grad_()
        losses = []
        for number, rate in enumerate(rates):
            loss = ((x.detach() @ w).tanh() - number).square().mean()
            loss.backward()
            losses.append(loss.item())
            with torch.no_grad():
                w -= rate * w.grad
            w.grad = None
        return losses, w

    case = Case("training", program, (randn(7, width), randn(width, 3)), grad=False, tolerance="model")
    oracle.agree(case, device)
