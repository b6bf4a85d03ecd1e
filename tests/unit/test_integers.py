"""int64 stored in 32 bits: what does not fit raises, at the call where it is known, else at the next read."""

from collections.abc import Callable
from typing import Any

import pytest

import pywebgpu as torch
from pywebgpu import devices
from pywebgpu.errors import IntegerOverflowError
from pywebgpu.runtime import executor
from tests import integers
from tests.unit.replays import audited

TOP = 2**31 - 1
Made = Callable[[Any], Any]  # makes a tensor of a list

# What is checked always: a case that does not fit, and one that does though something on the way to it would not.
SUMS: dict[str, tuple[Callable[[Made], Any], Callable[[Made], Any]]] = {
    "sum": (lambda t: t([TOP, 1]).sum(), lambda t: t([TOP, 1, -5]).sum()),
    "least sum": (lambda t: t([-TOP, -2]).sum(), lambda t: t([-TOP, -1]).sum()),
    "sum of rows": (lambda t: t([[1, 2], [TOP, 1]]).sum(1), lambda t: t([[TOP, TOP], [-TOP, 0]]).sum(0)),
    "long sum": (lambda t: t([22000]).expand(100_000).sum(), lambda t: t([TOP, -TOP, 3]).expand(40_000, 3).sum()),
    "running sum": (lambda t: t([1, TOP, -5]).cumsum(0), lambda t: t([TOP, -TOP, TOP]).cumsum(0)),
    "long running sum": (
        lambda t: t([30_000]).expand(100_000).cumsum(0)[-1],
        lambda t: t([2]).expand(9999).cumsum(0)[-1],
    ),
    "product": (lambda t: t([65536, 32768]).prod(), lambda t: t([65536, 65536, 0]).prod()),
    "running product": (lambda t: t([65536, 65536, 0]).cumprod(0), lambda t: t([65536, 32767, 0, 9]).cumprod(0)),
    "matrix product": (lambda t: t([[50_000]]) @ t([[50_000]]), lambda t: t([[40_000, 3]]) @ t([[50_000], [-7]])),
    "updates": (
        lambda t: t([TOP, 0]).index_add(0, t([0, 1]), t([1, 1])),
        lambda t: t([TOP, 0]).index_add(0, t([0, 1]), t([-1, 1])),
    ),
    "row numbers": (
        lambda t: t([5, 6, 7])[t([2**20]) * t([2**12]) + 1],
        lambda t: t([5, 6, 7])[t([2**10]) * t([2]) - 2046],
    ),
}
# What is checked with PYWEBGPU_CHECK_INTEGERS.
ARITHMETIC: dict[str, tuple[Callable[[Made], Any], Callable[[Made], Any]]] = {
    "add": (lambda t: t([TOP]) + t([1]), lambda t: t([TOP]) + t([-1])),
    "sub": (lambda t: t([-TOP]) - t([2]), lambda t: t([-TOP]) - t([1])),
    "mul": (lambda t: t([65536]) * t([32768]), lambda t: t([65536]) * t([-32768])),
    "neg": (lambda t: -t([-TOP - 1]), lambda t: -t([-TOP])),
    "abs": (lambda t: t([-TOP - 1]).abs(), lambda t: t([-TOP]).abs()),
    "pow": (lambda t: t([2]) ** 31, lambda t: t([-2]) ** 31),
    "shift": (lambda t: t([3]) << 30, lambda t: t([-2]) << 30),
    "div": (lambda t: t([-TOP - 1]) // -1, lambda t: t([-TOP - 1]) // 1),
    "cast": (lambda t: (t([1]) * 3e9).long(), lambda t: (t([1]) * 2e9).long()),
}
WIDE: dict[str, Callable[[Any, str], Any]] = {
    "add": lambda x, device: x + 10**10,
    "on the left": lambda x, device: 10**10 - x,
    "mask": lambda x, device: x & 0xFFFFFFFF,
    "where": lambda x, device: torch.where(x > 0, x, 2**31),
    "clamp": lambda x, device: x.clamp(min=2**31),
    "fill": lambda x, device: x.fill_(-(2**31) - 1),
    "assign": lambda x, device: x.__setitem__(0, 2**40),
    "masked_fill": lambda x, device: x.masked_fill(x > 0, 2**40),
    "index_fill": lambda x, device: x.index_fill(0, torch.tensor([0], device=device), 2**40),
    "pad": lambda x, device: torch.nn.functional.pad(x, (1, 1), value=2**31),
    "full": lambda x, device: torch.full((2,), 2**31, device=device),
    "new_full": lambda x, device: x.new_full((2,), 2**31),
    "tensor": lambda x, device: torch.tensor([2**31], device=device),
    "scalar": lambda x, device: torch.tensor(2**31, device=device),
    "arange": lambda x, device: torch.arange(0, 2**33, 2**31, device=device),
    "randint": lambda x, device: torch.randint(0, 2**33, (2,), device=device),
}
KNOWN: dict[str, Callable[[Any], Any]] = {
    "eq": lambda x: x == 10**10,
    "ne": lambda x: x != -(10**10),
    "lt": lambda x: x < 10**10,
    "le": lambda x: x <= -(10**10),
    "gt": lambda x: x > 10**10,
    "ge": lambda x: x >= -(10**10),
    "left": lambda x: torch.lt(x, 10**10),
    "clamp": lambda x: x.clamp(-(10**10), 10**10),
}
UNCHECKED: dict[str, Callable[[Any], Any]] = {
    "sum of bools": lambda x: (x > 1).sum(),
    "mean of hits": lambda x: (x.argmax(1) == x.argmin(1)).sum(),
    "sum of small numbers": lambda x: x.to(torch.int8).sum(),
    "running count": lambda x: (x > 1).cumsum(0),
    "count": lambda x: torch.arange(9, device=x.device).sum(),
    "row numbers": lambda x: x[x.argmax(0), x.argmin(0)],
}


def maker(device: str) -> Made:
    return lambda data: torch.tensor(data, device=device)


@pytest.mark.parametrize("name", SUMS)
def test_a_sum_that_does_not_fit_raises_at_the_read(name: str, device: str) -> None:
    wrong, right = SUMS[name]
    found = right(maker(device))
    exact = wrong(maker("cpu")) if name != "row numbers" else None
    assert found.tolist() == right(maker("cpu")).tolist()
    if device == "cpu":
        assert exact is None or max(abs(n) for n in exact.flatten().tolist()) > TOP
        return
    large = wrong(maker(device))
    with pytest.raises(IntegerOverflowError, match="webgpu stores int64 as int32"):
        large.tolist()
    assert (torch.ones(2, device=device) + 1).tolist() == [2.0, 2.0]


@pytest.mark.parametrize("name", ARITHMETIC)
def test_all_arithmetic_is_checked_on_demand(name: str, device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    wrong, right = ARITHMETIC[name]
    with integers.checked(monkeypatch):
        assert right(maker(device)).tolist() == right(maker("cpu")).tolist()
        large = wrong(maker(device))
        if device == "cpu":
            assert abs(large.item()) > TOP
            return
        with pytest.raises(OverflowError, match=f"{name}: a result does not fit"):
            large.tolist()


@pytest.mark.parametrize("name", WIDE)
def test_a_number_of_more_than_32_bits_is_refused_at_the_call(name: str, device: str) -> None:
    x = torch.tensor([1, 2, 3], device=device)
    if device == "cpu":
        WIDE[name](x, device)
        return
    with pytest.raises(IntegerOverflowError, match=r"\d{10,} is out of range: webgpu stores int64 as int32"):
        WIDE[name](x, device)
    assert (x + 0).tolist() == [1, 2, 3]


@pytest.mark.parametrize("name", KNOWN)
def test_a_comparison_with_such_a_number_is_known(name: str, device: str) -> None:
    x, exact = (torch.tensor([TOP, 0, -TOP - 1], device=where) for where in (device, "cpu"))
    assert KNOWN[name](x).tolist() == KNOWN[name](exact).tolist()


@pytest.mark.parametrize("name", UNCHECKED)
def test_what_is_known_to_fit_is_not_checked(name: str) -> None:
    made = UNCHECKED[name](torch.ones(3, 3, device="null"))
    ran = executor.submit_now(devices.open_device("null"))
    assert made is not None
    assert ran is not None
    assert not any(kernel.faults for kernel in ran.program.kernels)


def test_a_check_costs_no_dispatch() -> None:
    made = torch.zeros(50, 60, dtype=torch.int64, device="null").add(1).sum(1)
    ran = executor.submit_now(devices.open_device("null"))
    assert made.shape == (50,)
    assert ran is not None
    assert [kernel.faults for kernel in ran.program.kernels] == [True]
    assert len(ran.program.steps) == 1


def test_int32_wraps_as_in_torch(device: str) -> None:
    x = torch.tensor([TOP], dtype=torch.int32, device=device)
    assert (x + 1).tolist() == [-TOP - 1]
    assert (x + 10**10).tolist() == [-737418241]


def test_a_number_of_a_compiled_step_is_held_in_each_run(device: str) -> None:
    step = torch.compile(lambda x, k: x * k)
    x = torch.tensor([1.0, -2.0], device=device)
    with audited("0"):  # An ordinary call has another constant for an infinity.
        for k in (2.0, 3.0, 1e39, 4.0):
            assert step(x, k).tolist() == (torch.tensor([1.0, -2.0], device="cpu") * k).tolist()


def test_a_whole_number_of_a_compiled_step_is_held_in_each_run(device: str) -> None:
    step = torch.compile(lambda x, k: x + k)
    x = torch.tensor([1], device=device)
    for k in (2, 3, 2**31, 4):
        if k == 2**31 and device != "cpu":
            with pytest.raises(IntegerOverflowError, match="2147483648 is out of range"):
                step(x, k)
        else:
            assert step(x, k).tolist() == [1 + k]
