"""Random programs on int64, checked: as in PyTorch, or an OverflowError, and never another number."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch as reference
from hypothesis import given
from hypothesis import strategies as st

import pywebgpu
from tests import integers
from tests.fuzz import steps

OPS: list[Callable[[Any, Any, Any, int], Any]] = [
    lambda torch, x, y, n: x + y,
    lambda torch, x, y, n: x - y,
    lambda torch, x, y, n: x * y,
    lambda torch, x, y, n: x + n,
    lambda torch, x, y, n: x * (n % 7 - 3),
    lambda torch, x, y, n: n - x,
    lambda torch, x, y, n: -x,
    lambda torch, x, y, n: x.abs(),
    lambda torch, x, y, n: x // (n % 5 + 1),
    lambda torch, x, y, n: x // -1,
    lambda torch, x, y, n: x % (n % 1000 + 1),
    lambda torch, x, y, n: x << (n % 40),
    lambda torch, x, y, n: x >> (n % 40),
    lambda torch, x, y, n: x ** (n % 6),
    lambda torch, x, y, n: x & y,
    lambda torch, x, y, n: x.clamp(-(10**10), abs(n)),
    lambda torch, x, y, n: torch.where(x > n * 3, x, y),
    lambda torch, x, y, n: torch.where(x == 10**10 + n, x, y),
    lambda torch, x, y, n: x.cumsum(n % 2),
    lambda torch, x, y, n: x.cumprod(n % 2),
    lambda torch, x, y, n: x.sum(n % 2, keepdim=True) + y * 0,
    lambda torch, x, y, n: x.prod(n % 2, keepdim=True) + y * 0,
    lambda torch, x, y, n: x.sum() + y * 0,
    lambda torch, x, y, n: x @ y,
    lambda torch, x, y, n: x.index_add(0, y[:, 0] % 3, y),
    lambda torch, x, y, n: x.scatter_reduce(1, y % 3, y, "prod"),
    lambda torch, x, y, n: x.scatter_add(0, y % 3, y),
    lambda torch, x, y, n: (x > y).sum(n % 2, keepdim=True) + y,
    lambda torch, x, y, n: x.flatten()[(x % 3) * 3 + y % 3],
    lambda torch, x, y, n: torch.addcmul(x, x, y, value=n % 4),
    lambda torch, x, y, n: x.square(),
    lambda torch, x, y, n: torch.cat([y[:1], x.diff(dim=0)]),
    lambda torch, x, y, n: x.amax(0, keepdim=True) + y,
    lambda torch, x, y, n: x.sort(1)[0] + n,
    lambda torch, x, y, n: torch.outer(x[0], y[0]),
]
SIZES = (1, 10, 1000, 40_000, 2**20, 2**30, 2**31 - 1)
elements = st.sampled_from(SIZES).flatmap(lambda size: st.lists(st.integers(-size, size), min_size=9, max_size=9))
programs = st.lists(
    st.tuples(st.integers(0, len(OPS) - 1), st.booleans(), st.integers(-(2**31), 2**31 - 1)), min_size=1, max_size=5
)


@pytest.fixture(autouse=True)
def checked(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with integers.checked(monkeypatch):
        yield


def values(torch: Any, data: list[list[int]], program: list[Any], device: str) -> Any:
    x, y = (torch.tensor(part, dtype=torch.int64, device=device).reshape(3, 3) for part in data)
    for which, turned, number in program:
        made = OPS[which](torch, *((y, x) if turned else (x, y)), number)
        x, y = made, x
    return x.tolist()


@given(elements, elements, programs)
@steps.PROFILE
def test_integers_are_torchs_or_an_error(device: str, a: list[int], b: list[int], program: list[Any]) -> None:
    wanted = values(reference, [a, b], program, "cpu")
    try:
        found = values(pywebgpu, [a, b], program, device)
    except OverflowError:
        assert device != "cpu", "64 bits hold every number"
        return
    assert found == wanted
