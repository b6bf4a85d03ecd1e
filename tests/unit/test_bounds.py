"""What is known of row numbers before they are computed, and when a wrong one raises."""

import re
from collections.abc import Callable
from typing import Any

import pytest

import pywebgpu as torch
from pywebgpu.composites import bounds
from pywebgpu.errors import RangeError
from pywebgpu.ir import key, walk

KNOWN: dict[str, tuple[Callable[[], Any], tuple[int, int, bool]]] = {
    "list": (lambda: torch.tensor([3, 1, 2]), (1, 3, True)),
    "reshaped": (lambda: torch.tensor([[3, 1], [2, 9]]).t().reshape(4)[None].expand(2, 4), (1, 9, True)),
    "part": (lambda: torch.tensor([3, 1, 9])[:2], (1, 9, False)),
    "cast": (lambda: torch.tensor([3, 1], dtype=torch.int32).long(), (1, 3, True)),
    "arange": (lambda: torch.arange(5), (0, 4, True)),
    "arange_from": (lambda: torch.arange(2, 5), (2, 4, True)),
    "argmax": (lambda: torch.ones(3, 7).argmax(1), (0, 6, False)),
    "argsort": (lambda: torch.ones(3, 7).argsort(-1), (0, 6, True)),
    "randint": (lambda: torch.randint(-2, 5, (9,)), (-2, 4, False)),
    "stack": (lambda: torch.stack([torch.tensor([1, 2]), torch.tensor([4, 3])]), (1, 4, True)),
    "remainder": (lambda: torch.tensor([70, 80]) % 7, (0, 6, False)),
    "where": (lambda: torch.where(torch.ones(2) > 0, torch.arange(2), 5), (0, 5, False)),
    "taken": (lambda: torch.tensor([4, 5, 6])[torch.tensor([0, 1])], (4, 6, False)),
    "moved": (lambda: torch.tensor([3, 1]).to("cpu").to(torch.get_default_device()), (1, 3, True)),
}


@pytest.mark.parametrize("name", KNOWN)
def test_range_is_known(name: str) -> None:
    make, expected = KNOWN[name]
    found = bounds.known_range(make()._node)
    assert found is not None
    assert tuple(found) == expected


def test_range_of_floats_is_unknown() -> None:
    assert bounds.known_range(torch.tensor([1.5, 2.0]).long()._node) is None


def test_known_numbers_need_no_check_on_the_device() -> None:
    checked = bounds.checked(torch.arange(5)._node, 5)
    assert checked.op.name == "iota"


def test_known_and_wrong_raises_at_the_call() -> None:
    with pytest.raises(RangeError, match="index 9 is out of bounds for dimension 1 with size 3"):
        torch.ones(2, 3)[:, torch.tensor([0, 9])]


def test_a_part_that_is_right_raises_nothing() -> None:
    index = torch.tensor([0, 9])
    assert torch.ones(3)[index[:1]].tolist() == [1.0]


@pytest.mark.parametrize("value", [3.0, -4.0])
def test_unknown_and_wrong_raises_on_reading(value: float, device: str) -> None:
    index = torch.tensor([value], device=device).long()
    picked = torch.ones(3, device=device)[index]
    with pytest.raises(IndexError, match="out of bounds"):
        picked.tolist()
    del picked


def test_negative_numbers_are_refused_where_torch_refuses_them(device: str) -> None:
    index = torch.tensor([-1.0], device=device).long()
    picked = torch.ones(3, device=device).gather(0, index)
    with pytest.raises(RuntimeError, match="out of bounds"):
        picked.tolist()
    del picked


def test_graphs_that_differ_by_an_error_text_are_one_program() -> None:
    index = torch.tensor([1.0, 2.0]).long()._node
    nodes = [bounds.checked(index, 3, text=text) for text in ("no row {index}", "no column {index}")]
    assert len({key.structure(walk.toposort([node]), [node]) for node in nodes}) == 1


LATE = {
    "index 9 is out of bounds for dimension 1 with size 3": lambda at: torch.ones(2, 3)[:, at],
    "index out of range in self: 9 of 3 rows": lambda at: torch.nn.functional.embedding(at, torch.ones(3, 2)),
    "Target 9 is out of bounds: there are 3 classes.": lambda at: torch.nn.functional.nll_loss(torch.ones(2, 3), at),
    "invalid multinomial distribution": lambda at: (at.float() - 9).multinomial(1),
}


@pytest.mark.parametrize("text", LATE)
def test_what_is_found_wrong_late_is_told_in_the_words_of_its_call(text: str) -> None:
    picked = LATE[text](torch.tensor([0.0, 9.0]).long())
    for _ in range(2):
        with pytest.raises(RangeError, match=re.escape(text)):
            picked.tolist()


UNFIT = {
    "all elements of input should": lambda x: torch.nn.functional.binary_cross_entropy(x, torch.ones_like(x)),
    "all elements of target should": lambda x: torch.nn.functional.binary_cross_entropy(torch.ones_like(x), x),
    "invalid multinomial distribution": lambda x: (-x).multinomial(1),
    "Expected p_in": lambda x: x.bernoulli(),
}


@pytest.mark.parametrize("text", UNFIT)
def test_every_device_says_which_value_it_refuses(text: str, device: str) -> None:
    with pytest.raises(RuntimeError, match=text):
        UNFIT[text](torch.tensor([0.5, 1.5], device=device)).tolist()


def test_a_wrong_row_of_a_large_value_is_found_where_rows_are_added_in_place(device: str) -> None:
    x, updates = torch.zeros(3000, 64, device=device), torch.ones(70, 64, device=device)
    numbers = torch.arange(70).to(device) + 2950
    with pytest.raises(IndexError):
        x.index_add(0, numbers, updates).sum().item()
    with pytest.raises(IndexError):
        (x.index_add(0, numbers, updates) + x.index_add(0, numbers, -updates)).sum().item()
    weight = x.clone().requires_grad_()

    def gradient() -> float:
        torch.nn.functional.embedding(numbers, weight).sum().backward()
        assert weight.grad is not None
        return weight.grad.sum().item()

    with pytest.raises(IndexError):
        gradient()
