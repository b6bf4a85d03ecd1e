"""Adapters that nobody has measured: rules for whose they are, which keep to what such a device can run."""

from dataclasses import replace
from typing import Any

import pytest

import pywebgpu as torch
from pywebgpu.devices import features
from pywebgpu.kernels import families, launch, templates
from pywebgpu.kernels.kernel import Limits
from pywebgpu.kernels.launch import Problem
from pywebgpu.kernels.target import SUBGROUPS, Features, Target
from pywebgpu.kernels.templates import attention_tiles, matmul_blocks
from pywebgpu.nn import functional
from tests.unit.compiled import NULL, leaf, programs

# As Dawn tells them: vendor and architecture, then the sizes of subgroups.
ADAPTERS = {
    "nvidia ampere": (32, 32),
    "amd rdna-3": (32, 64),
    "apple metal-3": (32, 32),
    "intel xe-lpg": (8, 32),
    "qualcomm adreno-7xx": (64, 128),
    "arm valhall": (16, 16),
}
LIMITS = {
    "default": Limits(),
    "32 KiB": replace(Limits(), shared_bytes=32 << 10),
    "64 KiB": replace(Limits(), shared_bytes=64 << 10),
}


def target(adapter: str, limits: Limits, kind: str = "") -> Target:
    profile = Features((SUBGROUPS,), ADAPTERS[adapter], family=features.family(adapter), kind=kind, translator="tint")
    return Target(True, limits, profile)


def trained() -> Any:
    """A product, attention and norms, with their gradients."""
    x, weight = leaf(2, 96, 64, grad=True), leaf(64, 192, grad=True)
    query, key, value = (part.unflatten(-1, (2, 32)).transpose(1, 2) for part in (x @ weight).split(64, -1))
    out = functional.scaled_dot_product_attention(query, key, value, is_causal=True).transpose(1, 2).flatten(2)
    return torch.autograd.grad(functional.layer_norm(out, (64,)).square().mean(), (x, weight))


@pytest.mark.parametrize("limits", LIMITS.values(), ids=LIMITS.keys())
@pytest.mark.parametrize("adapter", ADAPTERS)
def test_kernels_keep_to_the_limits_of_each_family(
    adapter: str, limits: Limits, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(NULL, "target", target(adapter, limits))
    programs(trained)


@pytest.mark.parametrize("adapter", ADAPTERS)
@pytest.mark.parametrize("kind", ["discrete", ""])
def test_results_leave_registers_for_what_they_are_made_of(adapter: str, kind: str) -> None:
    device = target(adapter, replace(Limits(), shared_bytes=64 << 10), kind)
    registers = families.of(device.features).registers
    matmul, attention = (
        next(one for one in templates.load_all() if one.name == name) for name in ("matmul", "attention")
    )
    for m, n, k in ((1024, 1024, 1024), (512, 3072, 768), (37, 70, 4096), (512, 50257, 768)):
        found = launch.choose(matmul, Problem((1, m, n, k), ("float32",), "nn"), device)
        high, wide = found.each
        assert 2 * high * wide <= registers + 1
    for width in (32, 64, 128):
        found = launch.choose(attention, Problem((12 * 512, 512, 512, width, width), ("float32",), "causal"), device)
        assert 2 * attention_tiles.Tile.of(found).high * width // attention_tiles.LANES <= registers + 1


def test_products_use_no_workgroup_memory_where_that_is_no_faster_than_the_caches() -> None:
    matmul = next(one for one in templates.load_all() if one.name == "matmul")
    for size in (16, 70, 1024):
        found = launch.choose(matmul, Problem((1, size, size, 64), ("float32",), "nn"), target("arm valhall", Limits()))
        assert found.variant != matmul_blocks.WAY
        assert found.tile[2] == 0


def test_names_of_adapters_are_known() -> None:
    assert {features.family(adapter) for adapter in ADAPTERS} == {*families.FAMILIES}
