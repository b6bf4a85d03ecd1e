"""flex_attention: masks that are windows are kernels without a mask, and steps with them are captured."""

from typing import Any

import numpy as np
import pytest

import pywebgpu as torch
from pywebgpu.nn.attention import flex_attention as flex
from tests.cases.flex_attention import MASKS
from tests.unit.compiled import leaf, only, programs


@pytest.mark.parametrize("name", MASKS)
def test_a_mask_is_read_as_the_window_that_it_keeps_to(name: str) -> None:
    made, window, is_whole = MASKS[name]
    block = flex.create_block_mask(made(torch, flex, "cpu"), None, 3, 30, 30, device="cpu")
    assert (block.window, block.seen is None) == (window, is_whole)


def test_a_window_binds_no_mask() -> None:
    x = leaf(1, 2, 64, 8, grad=True)
    block = flex.create_block_mask(lambda b, h, q, k: (q >= k) & (q - k < 16), None, None, 64, 64, device="null")
    found = programs(lambda: torch.autograd.grad(flex.flex_attention(x, x, x, block_mask=block).sum(), x))
    assert all(slot.spec.dtype is not torch.bool for program in found for slot in program.slots)
    assert "attention_backward" in [kernel.name for kernel in found[-1].kernels]


def test_a_mask_beside_a_window_is_read_by_the_kernel() -> None:
    x = leaf(1, 2, 64, 8)
    numbers = torch.arange(64, device="null") // 20
    made = flex.and_masks(lambda b, h, q, k: numbers[q] == numbers[k], lambda b, h, q, k: q >= k)
    block = flex.create_block_mask(made, None, None, 64, 64, device="null")
    program = only(lambda: flex.flex_attention(x, x, x, block_mask=block))
    assert "attention" in [kernel.name for kernel in program.kernels]


def test_a_captured_step_uses_it(device: str) -> None:
    x = torch.arange(2 * 9 * 8, device=device).reshape(1, 2, 9, 8).remainder(7).float() / 7
    block = flex.create_block_mask(lambda b, h, q, k: (q >= k) & (q - k <= 2) & (k != 1), None, None, 9, 9, device)

    def step(x: Any) -> Any:
        return flex.flex_attention(x, x, x, block_mask=block)

    captured = torch.compile(step)
    for factor in (1, 2, 3):
        np.testing.assert_allclose(captured(x * factor).numpy(), step(x * factor).numpy(), rtol=1e-5, atol=1e-6)


def test_a_function_of_scores_is_called_once_while_a_step_is_captured(device: str) -> None:
    calls: list[int] = []

    def doubled(score: Any, b: Any, h: Any, q: Any, k: Any) -> Any:
        calls.append(1)
        return score * 2

    x = torch.ones(1, 2, 9, 8, device=device)
    torch.compile(lambda x: flex.flex_attention(x, x, x, doubled))(x)
    assert len(calls) == 1
