"""int64 stored in 32 bits: what does not fit raises, at the call where it is known, else at the next read."""

from collections.abc import Callable
from typing import Any

import pytest

import pywebgpu as torch
from pywebgpu import devices
from pywebgpu.errors import IntegerOverflowError
from pywebgpu.runtime import executor
from tests.unit.replays import audited

TOP = 2**31 - 1
Made = Callable[[Any], Any]  # makes a tensor of a list

# By the name that the error has: a case that does not fit, and one that does though something on the way may not.
CASES: dict[str, tuple[Callable[[Made], Any], Callable[[Made], Any]]] = {
    "add": (lambda t: t([TOP]) + t([1]), lambda t: t([TOP]) + t([-1])),
    "sub": (lambda t: t([-TOP]) - t([2]), lambda t: t([-TOP]) - t([1])),
    "mul": (lambda t: t([65536]) * t([32768]), lambda t: t([65536]) * t([-32768])),
    "neg": (lambda t: -t([-TOP - 1]), lambda t: -t([-TOP])),
    "abs": (lambda t: t([-TOP - 1]).abs(), lambda t: t([-TOP]).abs()),
    "pow": (lambda t: t([2]) ** 31, lambda t: t([-2]) ** 31),
    "shift": (lambda t: t([3]) << 30, lambda t: t([-2]) << 30),
    "div": (lambda t: t([-TOP - 1]) // -1, lambda t: t([-TOP - 1]) // 1),
    "cast": (lambda t: (t([1]) * 3e9).long(), lambda t: (t([1]) * 2e9).long()),
    "cast of an infinity": (
        lambda t: (t([1]) * -3e9).long(),
        lambda t: torch.where(t([0]) > 0, t([0]).float().log().long(), t([3])),
    ),
    "sum": (lambda t: t([[1, 2], [TOP, 1]]).sum(1), lambda t: t([[TOP, TOP], [-TOP, 0]]).sum(0)),
    "sum of many": (lambda t: t([22000]).expand(100_000).sum(), lambda t: t([TOP, -TOP, 3]).expand(40_000, 3).sum()),
    "running sum of many": (
        lambda t: t([30_000]).expand(100_000).cumsum(0)[-1],
        lambda t: t([2]).expand(9999).cumsum(0)[-1],
    ),
    "matmul": (lambda t: t([[50_000]]) @ t([[50_000]]), lambda t: t([[40_000, 3]]) @ t([[50_000], [-7]])),
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
    "positions": lambda x: torch.arange(3, 9, 2, device=x.device),
    "small products": lambda x: x.argmax(1) * torch.arange(3, device=x.device) - x.to(torch.uint8).long().abs(),
    "int32": lambda x: (x.int() * 3 + 1) << 2,
    "bits": lambda x: ~(x > 1).sum() & 255,
}


def maker(device: str) -> Made:
    return lambda data: torch.tensor(data, device=device)


@pytest.mark.parametrize("name", CASES)
def test_a_result_that_does_not_fit_raises_at_the_read(name: str, device: str) -> None:
    wrong, right = CASES[name]
    assert right(maker(device)).tolist() == right(maker("cpu")).tolist()
    large = wrong(maker(device))
    if device == "cpu":
        assert max(abs(n) for n in large.flatten().tolist()) > TOP
        return
    said = "" if "many" in name else f"{name.split()[0]}: "
    with pytest.raises(IntegerOverflowError, match=f"{said}a result does not fit, since webgpu stores int64 as int32"):
        large.tolist()
    assert (torch.ones(2, device=device) + 1).tolist() == [2.0, 2.0]


def test_a_row_number_that_does_not_fit_raises_at_the_read(device: str) -> None:
    table = torch.tensor([5, 6, 7], device=device)
    far, near = (torch.tensor([n], device=device) for n in (2**20, 2**10))
    assert table[near * 2 - 2046].tolist() == [7]
    with pytest.raises(OverflowError if device != "cpu" else IndexError):
        table[far * 2**12 + 1].tolist()


@pytest.mark.parametrize("number", [-(2**31), -2.1e9, float("nan")])
def test_a_row_number_far_below_all_is_out_of_bounds(number: float, device: str) -> None:
    index = torch.tensor([number, 0.0], device=device).long()
    with pytest.raises((IndexError, OverflowError), match=r"out of bounds|does not fit"):
        torch.arange(3, device=device)[index].tolist()


def test_a_compiled_step_raises_in_the_run_that_does_not_fit(device: str) -> None:
    step = torch.compile(lambda x: (x * x + 1, x.float().sum()))
    for data in ([3, 4], [5, -6], [2**16, 1], [-7, 8]):
        squares, total = step(torch.tensor(data, device=device))
        if data[0] == 2**16 and device != "cpu":
            with pytest.raises(OverflowError, match="mul: a result does not fit"):
                squares.tolist()
        else:
            assert squares.tolist() == [n * n + 1 for n in data]
        assert total.item() == sum(data)


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
