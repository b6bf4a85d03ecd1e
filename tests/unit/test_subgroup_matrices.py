"""Products on subgroup matrices. No software device has them, so here functions play them, which any device runs.

What matrices are in the text becomes where a tile has them, and their product is computed from the tiles.
"""

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import pywebgpu as torch
from pywebgpu import devices
from pywebgpu.compiler.passes import align_operands
from pywebgpu.kernels import wgsl
from pywebgpu.kernels.ir import Function
from pywebgpu.kernels.kernel import Checks, Kernel
from pywebgpu.kernels.launch import Case, Problem
from pywebgpu.kernels.target import F16, MATRICES, SUBGROUPS, Features, Target
from pywebgpu.kernels.templates import matmul_blocks
from pywebgpu.kernels.templates.matmul_subgroups import Block
from pywebgpu.runtime import program_cache, state
from tests.unit.compiled import leaf
from tests.unit.test_products import BLOCKS, H200, Always, compiled, names

FEATURES = Features((F16, SUBGROUPS, MATRICES), (32, 32), (matmul_blocks.MATRIX,), "nvidia", "", "tint", 132)
AMPERE = replace(H200, features=FEATURES)
PLAYED = """
fn half_of(word: u32, at: u32) -> f32 { return unpack2x16float(word >> (16u * (at & 1u))).x; }
fn in_m(at: u32) -> f32 { return half_of(tile_m[at / 8u][at % 8u / 2u], at); }
fn in_n(at: u32) -> f32 { return half_of(tile_n[at / 8u][at % 8u / 2u], at); }
fn multiplied(a: vec3u, b: vec3u, c: array<f32, 8>, lane: u32) -> array<f32, 8> {
  var found = c;
  for (var i = 0u; i < 8u; i++) {
    let row = (lane * 8u + i) / 16u;
    let column = (lane * 8u + i) % 16u;
    for (var k = 0u; k < 16u; k++) {
      let left = in_m(a.x * 8u + select(row * a.y * 8u + k, k * a.y * 8u + row, a.z == 1u));
      found[i] += left * in_n(b.x * 8u + select(k * b.y * 8u + column, column * b.y * 8u + k, b.z == 1u));
    }
  }
  return found;
}
fn put_m(at: u32, c: array<f32, 8>, pitch: u32, lane: u32) {
  for (var i = lane * 8u; i < lane * 8u + 8u; i++) {
    tile_m[at + i / 16u * pitch + i % 16u / 4u][i % 4u] = bitcast<u32>(c[i % 8u]);
  }
}
fn put_n(at: u32, c: array<f32, 8>, pitch: u32, lane: u32) {
  for (var i = lane * 8u; i < lane * 8u + 8u; i++) {
    tile_n[at + i / 16u * pitch + i % 16u / 4u][i % 4u] = bitcast<u32>(c[i % 8u]);
  }
}
@compute"""
PLAYING = (
    (r"^(enable|diagnostic).*\n", ""),
    (r"subgroup_matrix_result<f32, 16, 16>", "array<f32, 8>"),
    (r"subgroupMatrixLoad<subgroup_matrix_\w+<f16, 16, 16>, row_major>\(&tile_., (.*)\);", r"vec3u(\1, 0u);"),
    (r"subgroupMatrixLoad<subgroup_matrix_\w+<f16, 16, 16>, col_major>\(&tile_., (.*)\);", r"vec3u(\1, 1u);"),
    (r"subgroupMatrixMultiplyAccumulate\((.*)\);", r"multiplied(\1, lane % 32u);"),
    (r"subgroupMatrixStore<row_major>\(&tile_(.), (.*)\);", r"put_\1(\2, lane % 32u);"),
    (r"@compute", PLAYED),
)
# Small ones: every product of matrices becomes a loop. They have other rows than columns, and both ways to read a tile.
PLAYABLE = [Block(32, 16, 32, 1, 1, 32), Block(16, 64, 64, 1, 2, 32)]
SHAPES = [  # batches, m, n, k, parts of k, layout
    (1, 40, 72, 64, 1, "nn"),
    (2, 33, 36, 101, 1, "nt"),
    (1, 35, 67, 131, 1, "tn"),
    (1, 17, 40, 200, 2, "tt"),
    (1, 33, 40, 101, 1, "nn"),
    (1, 33, 36, 203, 2, "nt"),
]


def played(kernel: Kernel) -> Kernel:
    text = kernel.wgsl
    if MATRICES not in kernel.needs:
        return kernel
    for pattern, instead in PLAYING:
        text = re.sub(pattern, instead, text, flags=re.MULTILINE)
    return replace(kernel, wgsl=text, needs=())


def halves(rng: np.random.Generator, *shape: int) -> Any:
    return rng.standard_normal(shape).astype(np.float16)


def _sums(x: Any, y: Any, layout: str) -> list[Any]:
    """Those that are made on the way."""
    return [x.sum(-1) * 2] * (layout[0] == "t") + [y.sum(-2)] * (layout[1] == "n")


@pytest.mark.one_in(webgpu=3)
@pytest.mark.parametrize(
    ("block", "least"), [*((block, align_operands.LARGE) for block in PLAYABLE), (PLAYABLE[1], 1)], ids=str
)
def test_blocks_of_matrices_multiply(block: Block, least: int, device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if device == "cpu":
        pytest.skip("device cpu has no kernels")
    gpu: Any = devices.open_device(device)
    seen: list[str] = []
    printed = wgsl.kernel

    def play(function: Function, checks: Checks) -> Kernel:
        made = printed(function, checks)
        seen.extend([made.name] if made.needs else [])
        return played(made)

    monkeypatch.setattr(wgsl, "kernel", play)
    monkeypatch.setattr(state.default, "is_stored", False)
    monkeypatch.setattr(align_operands, "LARGE", least)
    monkeypatch.setattr(align_operands, "REREAD", 1)
    rng = np.random.default_rng(0)
    monkeypatch.setattr(matmul_blocks, "MATRICES", [(block.rows, block.columns, block.depth, block.high, block.wide)])
    monkeypatch.setitem(matmul_blocks.OF_MATRICES, (block.rows, block.columns), 1.0)
    for batches, m, n, k, parts, layout in SHAPES:
        chosen = replace(block, parts=parts).launch
        monkeypatch.setattr(gpu, "target", Target(True, gpu.target.limits, FEATURES, Always(chosen)))
        program_cache.clear()
        left = halves(rng, *((batches, m, k) if layout[0] == "n" else (batches, k, m)))
        right = halves(rng, *((batches, k, n) if layout[1] == "n" else (batches, n, k)))
        x, y = torch.tensor(left, device=device), torch.tensor(right, device=device)
        x, y = x if layout[0] == "n" else x.transpose(1, 2), y if layout[1] == "n" else y.transpose(1, 2)
        a, b = left if layout[0] == "n" else left.swapaxes(1, 2), right if layout[1] == "n" else right.swapaxes(1, 2)
        wanted = a.astype(np.float64) @ b.astype(np.float64)
        before = len(seen)
        np.testing.assert_allclose((x @ y).numpy(), wanted, rtol=1e-3, atol=1e-3)
        found = ((x * 2) @ y).float() + 1  # Halves that are computed on the way, and a result that is none.
        np.testing.assert_allclose(found.numpy(), 2 * wanted + 1, rtol=1e-3, atol=5e-3)
        assert len(seen) >= before + 2, "no matrices were multiplied"
        if least > 1 and parts == 1 and layout != "nt":  # Other kernels that sum know other subgroups than these.
            sums = torch.compile(lambda x, y, layout=layout: (x @ y, *_sums(x, y, layout)))(x, y)[1:]
            for found, one in zip(sums, _sums(a.astype(np.float64), b.astype(np.float64), layout), strict=True):
                np.testing.assert_allclose(found.float().numpy(), one, rtol=1e-3, atol=1e-2)
            assert seen[-1].endswith("sum")
    program_cache.clear()


def test_halves_are_multiplied_by_matrices_where_a_device_has_them() -> None:
    x, weight = leaf(512, 768, dtype=torch.float16), leaf(768, 768, dtype=torch.float16)
    assert names(compiled(x @ weight.t(), target=AMPERE))[0].count("subgroup") == 1
    case = Case("matmul", (1, 512, 1024, 1024), ("float32",), "nt")
    tuned = replace(AMPERE, tuning={case: BLOCKS[0].launch})
    assert names(compiled(x @ weight.t(), target=tuned))[0].count("subgroup") == 1, (
        "float32 was measured, and is slower"
    )
    without = replace(AMPERE, features=replace(FEATURES, matrices=()))
    assert names(compiled(x @ weight.t(), target=without))[0].count("subgroup") == 0


def test_rows_of_halves_that_begin_anywhere_are_copied_to_rows_of_whole_vectors() -> None:
    scores, weight = leaf(512, 2051, dtype=torch.float16), leaf(768, 2051, dtype=torch.float16)
    hidden = leaf(512, 768, dtype=torch.float16)
    program = compiled(scores @ weight.t(), (scores * 2).t() @ hidden, target=AMPERE)
    aligned = [slot.spec.shape for slot in program.slots if slot.spec.shape[-1:] == (2056,)]
    assert sorted(aligned) == [(1, 512, 2056), (1, 512, 2056), (1, 768, 2056)]
    whole = leaf(512, 2048, dtype=torch.float16) @ leaf(2048, 768, dtype=torch.float16)
    assert "map_copy" not in names(compiled(whole, target=AMPERE))


def test_what_matrices_need_is_enabled() -> None:
    program = compiled(leaf(64, 64, dtype=torch.float16) @ leaf(64, 64, dtype=torch.float16), target=AMPERE)
    kernel = program.kernels[0]
    assert kernel.needs == (F16, SUBGROUPS, MATRICES)
    assert kernel.wgsl.startswith("enable f16;\nenable subgroups;\nenable chromium_experimental_subgroup_matrix;\ndiag")


def test_matrices_sum_on_their_way_what_does_not_lie_along_k() -> None:
    x, g = leaf(512, 64, dtype=torch.float16), leaf(512, 64, dtype=torch.float16)
    assert [name.split("_")[-1] for name in names(compiled(x.t() @ g, g.sum(0), target=AMPERE))] == ["sum"]
    apart = names(compiled(x @ g.t(), g.sum(1), target=AMPERE))
    assert not any(name.startswith("matmul") and name.endswith("sum") for name in apart)


def test_subgroups_of_several_sizes_multiply_no_matrices() -> None:
    problem = Problem((1, 64, 64, 64), ("float16",), "nn")
    assert matmul_blocks.matrices(problem, AMPERE)
    assert not matmul_blocks.matrices(problem, replace(AMPERE, features=replace(FEATURES, subgroup_sizes=(16, 32))))
    assert not matmul_blocks.matrices(problem._replace(formats=("float32",)), AMPERE)
