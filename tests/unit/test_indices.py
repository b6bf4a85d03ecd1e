"""Kernels that run without checks never leave their arrays: each of their indices is watched while they run."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pywebgpu as torch
from pywebgpu import devices
from pywebgpu.compiler import serialization, wire
from pywebgpu.compiler.program import Program
from pywebgpu.devices import native_shader
from pywebgpu.kernels import wgsl
from pywebgpu.kernels.ir import Function
from pywebgpu.kernels.kernel import Checks, Kernel
from pywebgpu.kernels.templates import attention, matmul_blocks
from pywebgpu.runtime import program_cache, state
from tests.cases.attention import CALLS, outcome
from tests.unit.compiled import leaf, only
from tests.unit.test_attention import close
from tests.unit.test_products import BLOCKS, H200, SHAPES, Always, compiled, operand

SEEN = (  # of the calls of attention: edges of tiles, windows, masks, groups, halves
    "causal_wide", "causal_high", "window", "window_before", "window_causal_groups_dropout", "bool_mask", "odd_widths",
    "many_queries", "batch_broadcast", "half_odd",
)  # fmt: skip
STRANGE = 77777  # what every result of a kernel becomes that has left an array
INSIDE = """
var<private> outside: bool;
fn inside(i: u32, n: u32) -> u32 {{ if (i >= n) {{ outside = true; }} return min(i, n - 1u); }}
fn tell() {{ if (outside) {{ {} }} }}
"""


def watched(kernel: Kernel, function: Function) -> Kernel:
    """The kernel, with each index of an array held against its end."""
    text = kernel.wgsl
    sizes = {array.name: (array.planes, array.rows, array.length) for array in function.shared}
    sizes |= {array.name: (array.size,) for array in function.bindings}
    for name, found in sizes.items():
        text = _held(text, name, [size for size in found if size])
    written = [array for array, one in zip(function.bindings, kernel.writes, strict=True) if one]
    spoiled = [f"for (var i = 0u; i < {a.size}u; i++) {{ {a.name}[i] = {a.type}({STRANGE}); }}" for a in written]
    head, body = text.split("@compute", 1)
    body = body.rstrip().removesuffix("}").replace("return;", "tell(); return;") + "  tell();\n}\n"
    return replace(kernel, wgsl=f"{head}{INSIDE.format(' '.join(spoiled))}@compute{body}")


def _held(text: str, name: str, sizes: list[int]) -> str:
    """The text with the indices of an array held against its sizes, from the last place where it is used on."""
    for found in reversed([*re.finditer(rf"\b{name}(?=\[)", text)]):
        at = found.end()
        for size in sizes:
            depth, end = 1, at + 1
            while depth:
                depth += {"[": 1, "]": -1}.get(text[end], 0)
                end += 1
            held = f"[inside({text[at + 1 : end - 1]}, {size}u)]"
            text = text[:at] + held + text[end:]
            at += len(held)
    return text


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch, device: str) -> Any:
    """The names of the kernels that are watched."""
    if device == "cpu":
        pytest.skip("device cpu has no kernels")
    found: list[str] = []
    printed = wgsl.kernel

    def watch(function: Function, checks: Checks) -> Kernel:
        kernel = printed(function, checks)
        if checks is not Checks.NONE:
            return kernel
        found.append(kernel.name)
        return watched(kernel, function)

    monkeypatch.setattr(wgsl, "kernel", watch)
    monkeypatch.setattr(state.default, "is_stored", False)
    monkeypatch.setattr(attention, "STORED", 0)
    program_cache.clear()
    yield found
    program_cache.clear()


@pytest.mark.one_in(webgpu=16)
@pytest.mark.parametrize("block", BLOCKS, ids=str)
def test_products_stay_inside(block: Any, device: str, seen: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    gpu: Any = devices.open_device(device)
    rng = np.random.default_rng(0)
    for batches, m, n, k, parts, layout in SHAPES[:: 4 if block.rows * block.columns > 8192 else 2]:
        if block not in matmul_blocks.fitting(layout, gpu.target.limits):
            continue
        tuning = Always(replace(block, parts=parts).launch)
        monkeypatch.setattr(gpu, "target", replace(gpu.target, tuning=tuning))
        program_cache.clear()
        left, x = operand(rng, batches, m, k, layout[0], device)
        right, y = operand(rng, batches, k, n, layout[1], device)
        row = torch.arange(n, device=device).float()
        product, summed = torch.compile(lambda x, y, row: ((x @ y + row), y.sum(-2)))(x, y, row)
        wanted = left.astype(np.float64) @ right.astype(np.float64) + np.arange(n)
        np.testing.assert_allclose(product.numpy(), wanted, atol=1e-6 * k, rtol=1e-6)
        np.testing.assert_allclose(summed.numpy(), right.sum(-2, dtype=np.float64), atol=1e-6 * k)
        assert any("staged" in name for name in seen), seen
        seen.clear()


@pytest.mark.one_in(webgpu=3)
@pytest.mark.parametrize("name", SEEN)
def test_attention_stays_inside(name: str, device: str, seen: list[str]) -> None:
    call = CALLS[name]
    close(outcome(call, device, fused=True), outcome(call, "cpu", fused=False), call)
    assert any("attention" in name for name in seen)


def test_an_index_outside_is_found(device: str, seen: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    gpu: Any = devices.open_device(device)
    monkeypatch.setattr(gpu, "target", replace(gpu.target, tuning=Always(BLOCKS[-1].launch)))
    printed = wgsl.kernel

    def off_by_one(function: Function, checks: Checks) -> Kernel:
        kernel = printed(function, checks)
        return replace(kernel, wgsl=kernel.wgsl.replace("b0[inside(", "b0[inside(4u + "))

    monkeypatch.setattr(wgsl, "kernel", off_by_one)
    x = torch.ones(64, 64, device=device)
    assert STRANGE in (x @ x).numpy()
    assert seen


# Which kernels that are


def product(*, taken: bool) -> Kernel:
    """A product of rows as they are, or of those that values choose."""
    x, at = leaf(64, 64), leaf(64, dtype=torch.int32)
    target = replace(H200, tuning=Always(BLOCKS[5].launch))
    kernels = compiled((x.index_select(0, at) if taken else x) @ leaf(64, 64), target=target).kernels
    return next(kernel for kernel in kernels if "staged" in kernel.name)


def test_indices_that_follow_from_values_are_checked() -> None:
    assert product(taken=False).checks is Checks.NONE
    taken = product(taken=True)
    assert taken.checks is Checks.BOUNDS or not re.search(r"\[[^]]*\bi\d", taken.wgsl)


def test_what_is_read_from_a_file_is_checked(tmp_path: Path) -> None:
    x = leaf(64, 64)
    program: Program = only(lambda: (x @ x).relu())
    serialization.save(program, tmp_path / "program.json")
    loaded = serialization.load(tmp_path / "program.json")
    assert {kernel.checks for kernel in loaded.kernels} == {Checks.ALL}
    serialization.save_sealed(program, tmp_path / "kept.json")
    kept = serialization.load_sealed(tmp_path / "kept.json")
    assert {kernel.checks for kernel in kept.kernels} == {Checks.BOUNDS}


def test_the_driver_is_told(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    gpu: Any = devices.open_device(device)
    if gpu.target.features.translator != "naga":
        pytest.skip("only Naga can be told")
    given: list[int] = []
    create = native_shader._create

    def spy(own: Any, descriptor: Any, checks: int) -> Any:
        given.append(checks)
        return create(own, descriptor, checks)

    programs: list[Program] = []
    load = gpu.load
    monkeypatch.setattr(gpu, "load", lambda program: programs.append(program) or load(program))
    monkeypatch.setattr(native_shader, "_create", spy)
    monkeypatch.setattr(gpu, "target", replace(gpu.target, tuning=Always(BLOCKS[-1].launch)))
    monkeypatch.setattr(state.default, "is_stored", False)
    program_cache.clear()
    x = torch.arange(97.0 * 53, device=device).reshape(97, 53)
    torch.webgpu.synchronize()
    programs.clear()
    given.clear()
    (x @ x.t() * 0.8125).cos().numpy()
    assert sorted(given) == sorted(kernel.checks.value for kernel in programs[0].kernels)
    assert {*given} == {Checks.NONE.value, Checks.BOUNDS.value}
    made, told = gpu.counters["pipelines_created"], len(given)
    gpu.load(serialization.from_json(wire.to_json(programs[0])))  # Its text is the same, its pipelines are its own.
    assert gpu.counters["pipelines_created"] == made + len(programs[0].kernels)
    assert len(given) == told
    program_cache.clear()


@pytest.mark.parametrize("count", [1, 2, 300])
def test_numbers_are_searched_before_nans(count: int, device: str) -> None:
    nan = float("nan")
    edges = torch.tensor([1.0, 2.0, 3.0] + [nan] * count, device=device)
    wanted = torch.tensor([nan, 2.5, 3.0, 0.0, float("inf")], device=device)
    assert torch.searchsorted(edges, wanted).tolist() == [3 + count, 2, 2, 0, 3]
    assert torch.searchsorted(edges, wanted, right=True).tolist() == [3 + count, 2, 3, 0, 3]
    assert torch.bucketize(wanted, edges).tolist() == [3 + count, 2, 2, 0, 3]
