"""Attention as fused ops: the composite's values and gradients, without scores in memory."""

import re
from collections.abc import Callable
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np
import pytest

import pywebgpu as torch
from pywebgpu import devices
from pywebgpu.compiler.program import Program
from pywebgpu.composites import attention as composite
from pywebgpu.kernels.kernel import Limits
from pywebgpu.kernels.target import SUBGROUPS, Features, Target
from pywebgpu.kernels.templates import attention
from pywebgpu.nn import functional as F
from pywebgpu.tensor.apply import apply
from tests.cases.attention import CALLS, Call, bound, numbers, outcome
from tests.unit.compiled import NULL, leaf, only, programs, settle

CPU = Features(family="llvmpipe", kind="cpu")


@pytest.fixture(autouse=True)
def _claimed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attention, "STORED", 0)  # Adapters that are a CPU have kernels for it, too.


def close(found: list[Any], wanted: list[Any], call: Call) -> None:
    for one, other in zip(found, wanted, strict=True):
        expected = other.float().numpy(force=True)
        limit = bound(call) * max(np.nanmax(np.abs(expected), initial=0), 1)
        np.testing.assert_allclose(one.float().numpy(force=True), expected, rtol=0, atol=limit)


@pytest.mark.one_in(webgpu=3)
@pytest.mark.parametrize("name", CALLS)
def test_values_and_gradients_are_those_of_the_composite(name: str, device: str) -> None:
    call = CALLS[name]
    close(outcome(call, device, fused=True), outcome(call, "cpu", fused=False), call)


@pytest.mark.parametrize("name", ["causal", "bool_mask", "groups_causal_dropout"])
def test_values_are_the_same_where_drivers_write_loops_out(
    name: str, device: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if device == "cpu":
        pytest.skip("device cpu has no kernels")
    opened: Any = devices.open_device(device)
    monkeypatch.setattr(
        opened, "target", replace(opened.target, limits=replace(opened.target.limits, unrolls=("attention",)))
    )
    call = CALLS[name]
    close(outcome(call, device, fused=True), outcome(call, "cpu", fused=False), call)


@pytest.mark.parametrize("name", ["causal", "bool_mask", "groups_causal_dropout"])
def test_second_derivatives_are_those_of_the_composite(name: str, device: str) -> None:
    call = CALLS[name]
    found = outcome(call, device, fused=True, again=True)
    close(found, outcome(call, "cpu", fused=False, again=True), call)


WINDOWS = {name: call for name, call in CALLS.items() if "window" in call.options and not call.mask}


@pytest.mark.parametrize("name", WINDOWS)
def test_a_window_hides_what_a_mask_hides(name: str, device: str) -> None:
    call = WINDOWS[name]
    (left, right), (length, span) = call.options["window"], (shape[-2] for shape in call.shapes[:2])

    def mask(on: str) -> Any:
        distance = torch.arange(span, device=on) - torch.arange(length, device=on).unsqueeze(1)
        after = distance <= (span if right is None else right)
        return after & (distance >= (-length if left is None else -left))

    other = replace(call, mask=mask, options={one: value for one, value in call.options.items() if one != "window"})
    close(outcome(call, device, fused=True), outcome(other, "cpu", fused=False), call)


def test_blocks_outside_of_a_window_are_not_visited() -> None:
    """Loops begin and end at the window: an unrolled text would tell less."""
    x = leaf(1, 2, 512, 8, grad=True)

    def step() -> Any:
        out = apply(composite.scaled_dot_product_attention, x, x, x, window=(40, 24), fused=True)
        return torch.autograd.grad(out.sum(), x)

    texts = [kernel.wgsl for program in programs(step) for kernel in program.kernels if "attention" in kernel.name]
    assert sum(len(re.findall(r"for \(var start = \w+; start < end\w*;", text)) for text in texts) == 3


@pytest.mark.parametrize("which", [0, 1, 2])
def test_a_nan_reaches_what_sees_it(which: int, device: str) -> None:
    operands = [numbers(1, 1, 6, 8, step=37 + 6 * at) for at in range(3)]
    operands[which][0, 0, 2, 3] = float("nan")
    out = F.scaled_dot_product_attention(*[x.to(device) for x in operands], is_causal=True)
    broken = out.isnan().any(-1).tolist()[0][0]
    assert broken[2] is True
    assert broken[:2] == [False, False] or which == 2  # Times a weight of 0 it is NaN, too.
    assert broken[3:] == [which > 0] * 3


@pytest.mark.parametrize("shape", [(2, 1, 1, 9), (2, 1, 7, 9), (2, 4, 7, 9)])
def test_a_mask_is_read_as_it_is_given(shape: tuple[int, ...]) -> None:
    """Whatever the number of heads: no mask of them all is made."""
    q, k, mask = leaf(2, 4, 7, 8), leaf(2, 4, 9, 8), leaf(*shape, dtype=torch.bool)
    for program in programs(lambda: F.scaled_dot_product_attention(q, k, k, mask)):
        made = [slot.spec.shape for at, slot in enumerate(program.slots) if at not in program.inputs]
        assert all(prod(one) <= max(prod(q.shape), prod(k.shape)) for one in made)


def test_a_mask_that_learns_has_its_gradient(device: str) -> None:
    def grad(on: str) -> Any:
        q, mask = numbers(1, 2, 5, 8).to(on), numbers(5, 5).to(on).requires_grad_()
        F.scaled_dot_product_attention(q, q, q, mask).square().sum().backward()
        return mask.grad.numpy(force=True)

    np.testing.assert_allclose(grad(device), grad("cpu"), rtol=1e-4, atol=1e-5)


# What is compiled


def names(program: Program) -> list[str]:
    return [program.kernels[step.kernel].name for step in program.steps]  # type: ignore[union-attr]


def heads(x: Any, count: int) -> list[Any]:
    """Query, key and value of one product."""
    width = x.shape[-1] // 3
    return [part.unflatten(-1, (count, width // count)).transpose(1, 2) for part in x.split(width, -1)]


def layer(x: Any, count: int = 4) -> Any:
    out = F.scaled_dot_product_attention(*heads(x, count), is_causal=True)
    return out.transpose(1, 2).flatten(2)


def test_operands_are_read_where_they_lie_and_results_written_where_products_read_them() -> None:
    x, weight = leaf(2, 64, 3 * 32), leaf(32, 32)
    program = only(lambda: layer(x) @ weight)
    assert [name.split("_")[0] for name in names(program)] == ["attention", "matmul"]
    assert "vec4<f32>>;" in program.kernels[0].wgsl


def split(x: Any) -> list[Any]:
    """(b, l, 3 h e): the usual slices of one product."""
    return heads(x, 2)


PACKS: dict[str, Callable[[Any], list[Any]]] = {
    "slices": split,
    "parts_before_heads": lambda x: [*x.unflatten(-1, (3, 2, 8)).permute(2, 0, 3, 1, 4)],
    "heads_before_parts": lambda x: [*x.unflatten(-1, (2, 3, 8)).permute(3, 0, 2, 1, 4)],
    "length_first": lambda x: [part.unflatten(-1, (2, 8)).permute(1, 2, 0, 3) for part in x.chunk(3, -1)],
    "value_first": lambda x: [split(x)[at] for at in (1, 2, 0)],
}


@pytest.mark.parametrize("name", PACKS)
def test_gradients_of_slices_of_one_value_are_that_values_gradient(name: str, device: str) -> None:
    def gradient(on: str) -> Any:
        x = numbers(3, 9, 48).to(on).requires_grad_()
        out = F.scaled_dot_product_attention(*PACKS[name](x), is_causal=True)
        return torch.autograd.grad(out, x, numbers(*out.shape, step=43).to(on))[0].numpy(force=True)

    np.testing.assert_allclose(gradient(device), gradient("cpu"), rtol=1e-4, atol=1e-5)
    x, weight = leaf(3, 9, 48, grad=True), leaf(48, 48)
    seed = leaf(*F.scaled_dot_product_attention(*PACKS[name](x)).shape)
    found = programs(lambda: torch.autograd.grad(F.scaled_dot_product_attention(*PACKS[name](x)), x, seed)[0] @ weight)
    assert names(found[-1])[-2:] == ["attention_backward", "matmul_16x16"]


def test_gradients_of_slices_that_are_read_beside_stay_apart(device: str) -> None:
    def gradients(on: str) -> list[Any]:
        x = numbers(2, 9, 48).to(on).requires_grad_()
        query, key, value = split(x)
        out = F.scaled_dot_product_attention(query, key, value)
        return [one.numpy(force=True) for one in torch.autograd.grad(out.square().sum(), [x, key])]

    for one, other in zip(gradients(device), gradients("cpu"), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


def test_no_value_is_as_large_as_the_scores() -> None:
    x = leaf(1, 300, 3 * 32, grad=True)
    for program in programs(lambda: torch.autograd.grad(layer(x).sum(), x)):
        assert max(prod(slot.spec.shape) for slot in program.slots) < 4 * 300 * 300
    assert "attention_backward" in names(program)


def test_a_loss_that_is_read_before_backward_saves_no_scores() -> None:
    x = leaf(1, 300, 3 * 32, grad=True)

    def step() -> Any:
        loss = layer(x).sum()
        settle()
        return torch.autograd.grad(loss, x)

    found = programs(step)
    assert len(found) == 2
    for program in found:
        assert max(prod(slot.spec.shape) for slot in program.slots) < 4 * 300 * 300


@pytest.mark.parametrize(("rows", "keys", "is_fused"), [(1, 64, True), (1, 65, False), (7, 900, False), (8, 900, True)])
def test_few_rows_that_see_many_keys_have_the_fallback(rows: int, keys: int, is_fused: bool) -> None:
    x, y = leaf(1, 2, rows, 8), leaf(1, 2, keys, 8)
    assert ("attention" in names(only(lambda: F.scaled_dot_product_attention(x, y, y)))) is is_fused


SMALLEST = Limits(workgroup_size=128, shared_bytes=16 << 10)


@pytest.mark.parametrize(("width", "is_fused"), [(8, True), (64, True), (128, True), (1000, False)])
def test_heads_that_do_not_fit_into_workgroup_memory_have_the_fallback(
    width: int, is_fused: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(NULL, "target", Target(True, SMALLEST))
    x = leaf(1, 2, 40, width, grad=True)
    found = programs(lambda: torch.autograd.grad(F.scaled_dot_product_attention(x, x, x).sum(), x))
    assert ("attention" in names(found[-1])) is is_fused


@pytest.mark.parametrize(
    ("target", "is_fused"),
    [
        (Target(True, Limits()), True),
        (Target(True, replace(Limits(), emulated=True)), False),
        (Target(True, Limits(), CPU), False),
        (Target(True, replace(Limits(), buffer_bytes=1 << 20), CPU), True),  # The scores take 2 MiB.
    ],
    ids=["gpu", "emulated", "cpu", "too_large_for_it"],
)
def test_a_cpu_stores_the_scores_while_they_fit(
    target: Target, is_fused: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attention, "STORED", 1)
    x = leaf(1, 2, 512, 8)
    monkeypatch.setattr(NULL, "target", target)
    assert ("attention" in names(only(lambda: F.scaled_dot_product_attention(x, x, x)))) is is_fused


TARGETS: dict[str, tuple[Features, bool]] = {
    "nvidia": (Features((SUBGROUPS,), (32, 32), family="nvidia"), True),
    "narrow": (Features((SUBGROUPS,), (4, 128), family="intel"), False),
    "unknown": (Features((SUBGROUPS,), (32, 32), family="adreno"), False),
    "none": (Features(family="nvidia"), False),
}


@pytest.mark.parametrize(("features", "shuffles"), TARGETS.values(), ids=TARGETS.keys())
def test_rows_are_folded_by_shuffles_where_their_lanes_surely_share_a_subgroup(
    features: Features, shuffles: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(NULL, "target", Target(True, Limits(), features))
    x = leaf(1, 2, 64, 16)
    kernel = only(lambda: F.scaled_dot_product_attention(x, x, x)).kernels[0]
    assert ("subgroupShuffleXor" in kernel.wgsl) is shuffles
    assert kernel.needs == ((SUBGROUPS,) if shuffles else ())


MODULES: dict[str, Callable[[Any], Any]] = {
    "MultiheadAttention": lambda nn: (
        lambda x: nn.MultiheadAttention(16, 2, device="null")(x, x, x, need_weights=False)[0]
    ),
    "TransformerEncoderLayer": lambda nn: nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, device="null"),
    "TransformerDecoderLayer": lambda nn: lambda x: nn.TransformerDecoderLayer(16, 2, 32, device="null")(x, x),
}


@pytest.mark.parametrize("name", MODULES)
def test_modules_use_it(name: str) -> None:
    module, x = MODULES[name](torch.nn), leaf(40, 2, 16)
    assert any("attention" in names(program) for program in programs(lambda: module(x)))


def test_a_summand_that_does_not_learn_is_read_by_the_kernel() -> None:
    x, mask = leaf(1, 2, 40, 8, grad=True), leaf(40, 40)
    program = only(lambda: torch.autograd.grad(F.scaled_dot_product_attention(x, x, x, mask).sum(), x))
    assert {"attention", "attention_backward"} <= {*names(program)}
