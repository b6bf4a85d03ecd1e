"""Products by blocks, and by parts of k: against float64 for every block, and what a large GPU takes unmeasured."""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import pywebgpu as torch
from pywebgpu import devices
from pywebgpu.compiler.driver import compile_graph
from pywebgpu.compiler.program import Program
from pywebgpu.kernels import wgsl
from pywebgpu.kernels.kernel import Limits
from pywebgpu.kernels.launch import Case, Launch, Problem
from pywebgpu.kernels.target import Features, Target
from pywebgpu.kernels.templates import matmul, matmul_blocks
from pywebgpu.kernels.templates.matmul_blocks import Block
from pywebgpu.nn import functional
from pywebgpu.runtime import program_cache, state
from tests.unit.compiled import leaf

BIG = 1 << 33  # bytes
H200 = Target(
    True,
    Limits(bindings=16, binding_bytes=BIG, buffer_bytes=BIG, shared_bytes=48 << 10),
    Features((), (32, 32), (), "nvidia", "discrete", "naga", 132),
)
ALL = [Block(*one) for one in matmul_blocks.BLOCKS]
SLICED = Block(64, 48, 32, 8, 12, 1, 4)  # one that software devices can run; they take long to translate others
BLOCKS = [*(block for block in ALL if block.slices == 1), SLICED]
SHAPES = [  # batches, m, n, k, parts of k, layout
    (1, 130, 72, 40, 1, "nn"),
    (2, 33, 257, 101, 1, "nt"),
    (1, 65, 34, 203, 3, "nn"),
    (2, 36, 68, 132, 2, "tt"),
    (1, 130, 65, 260, 4, "tn"),
]


class Always(Mapping[Case, Launch]):
    """A tuning that has one launch for every product."""

    def __init__(self, launch: Launch) -> None:
        self._launch = launch

    def get(self, case: Any, default: Any = None) -> Any:
        return self._launch if case.template == "matmul" else default

    def __getitem__(self, case: Case) -> Launch:
        return self._launch

    def __iter__(self) -> Any:
        return iter([Case("matmul", (), (), "")])

    def __len__(self) -> int:
        return 1


def operand(rng: np.random.Generator, batches: int, rows: int, columns: int, letter: str, device: str) -> Any:
    """A matrix each batch, as it is or as the transpose of what lies in memory; its values, and the tensor."""
    shape = (batches, rows, columns) if letter == "n" else (batches, columns, rows)
    values = rng.standard_normal(shape, dtype=np.float32)
    x = torch.tensor(values, device=device)
    return (values, x) if letter == "n" else (values.transpose(0, 2, 1), x.transpose(1, 2))


@pytest.mark.one_in(webgpu=16)
@pytest.mark.parametrize("block", BLOCKS, ids=str)
def test_every_block_multiplies(block: Block, device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if device == "cpu":
        pytest.skip("device cpu has no kernels")
    gpu: Any = devices.open_device(device)
    rng = np.random.default_rng(0)
    for batches, m, n, k, parts, layout in SHAPES[:: 4 if block.rows * block.columns > 8192 else 1]:
        if block not in matmul_blocks.fitting(layout, gpu.target.limits):
            continue
        chosen = replace(block, parts=parts).launch
        monkeypatch.setattr(gpu, "target", replace(gpu.target, tuning=Always(chosen)))
        program_cache.clear()
        left, x = operand(rng, batches, m, k, layout[0], device)
        right, y = operand(rng, batches, k, n, layout[1], device)
        bias = torch.arange(n, device=device).float()
        wanted = left.astype(np.float64) @ right.astype(np.float64)
        np.testing.assert_allclose((x @ y).numpy(), wanted, atol=1e-6 * k)
        np.testing.assert_allclose((x @ y + bias).relu().numpy(), np.maximum(wanted + np.arange(n), 0), atol=1e-6 * k)
        long = torch.compile(lambda x, y, bias: ((z := x @ y) * 0.5 + bias) * z - (z * 1.5 - 2.0) * (z + 1.0))
        exact = (wanted * 0.5 + np.arange(n)) * wanted - (wanted * 1.5 - 2) * (wanted + 1)
        np.testing.assert_allclose(long(x, y, bias).numpy(), exact, rtol=1e-5, atol=1e-4 * k)
    program_cache.clear()


@pytest.mark.one_in(webgpu=8)
@pytest.mark.parametrize("block", BLOCKS[::2], ids=str)
def test_blocks_add_up_their_operands(block: Block, device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if device == "cpu":
        pytest.skip("device cpu has no kernels")
    gpu: Any = devices.open_device(device)
    seen: list[str] = []
    printed = wgsl.kernel

    def print_kernel(function: Any, checks: Any) -> Any:
        seen.append(function.name)
        return printed(function, checks)

    monkeypatch.setattr(wgsl, "kernel", print_kernel)
    monkeypatch.setattr(state.default, "is_stored", False)
    monkeypatch.setattr(gpu, "target", replace(gpu.target, tuning=Always(block.launch)))
    rng = np.random.default_rng(0)
    for m, n, k, layout in ((130, 68, 40, "tn"), (67, 129, 132, "nt"), (65, 36, 101, "nt")):
        if block not in matmul_blocks.fitting(layout, gpu.target.limits):
            continue
        left, x = operand(rng, 1, m, k, layout[0], device)
        right, y = operand(rng, 1, k, n, layout[1], device)
        program_cache.clear()
        seen.clear()
        product, rows, columns = torch.compile(lambda x, y: (x @ y, x.sum(-1), y.sum(-2)))(x, y)
        assert [name for name in seen if name.count("sum") == 2], seen
        np.testing.assert_allclose(product.numpy(), left.astype(np.float64) @ right.astype(np.float64), atol=1e-6 * k)
        np.testing.assert_allclose(rows.numpy(), left.sum(-1, dtype=np.float64), atol=1e-6 * k)
        np.testing.assert_allclose(columns.numpy(), right.sum(-2, dtype=np.float64), atol=1e-6 * k)
    program_cache.clear()


@pytest.mark.parametrize("unrolls", [(), ("products",)])
def test_a_nan_stays_in_its_row(unrolls: tuple[str, ...], device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What lies beyond an edge is never added, were it not a number."""
    if device == "cpu":
        pytest.skip("device cpu has no kernels")
    gpu: Any = devices.open_device(device)
    limits = replace(gpu.target.limits, unrolls=unrolls)
    tuning = Always(Block(32, 64, 16, 4, 8, 2).launch)
    monkeypatch.setattr(gpu, "target", replace(gpu.target, limits=limits, tuning=tuning))
    program_cache.clear()
    values = np.ones((33, 130), dtype=np.float32)
    values[5, 129] = np.nan
    found = (torch.tensor(values, device=device) @ torch.ones(130, 67, device=device)).numpy()
    program_cache.clear()
    assert np.isnan(found[5]).all()
    assert (np.delete(found, 5, axis=0) == 130).all()


def compiled(*wanted: Any, target: Target = H200) -> Program:
    return compile_graph(tuple(one._node for one in wanted), target)


def names(program: Program) -> list[str]:
    return [program.kernels[step.kernel].name for step in program.steps]


def test_parts_are_added_by_whoever_reads_the_product() -> None:
    x, weight, row = leaf(31, 3072), leaf(768, 3072), leaf(768)
    hidden = leaf(31, 768) + functional.linear(x, weight, row)
    product, joined = names(compiled(functional.layer_norm(hidden, (768,), row, row), hidden))
    assert product.endswith("_part")
    assert joined.startswith("rows")


def test_a_sum_on_the_way_is_worth_more_than_parts() -> None:
    x, g = leaf(1024, 64), leaf(1024, 64)
    (name,) = names(compiled(x.t() @ g, g.sum(0)))
    assert name.endswith("_sum")
    assert len(names(compiled(x.t() @ g))) == 2


def test_parts_of_a_long_product_are_worth_more_than_a_sum_on_the_way() -> None:
    """As of a small convolution's weights, which one workgroup would walk alone."""
    x, g = leaf(25088, 9), leaf(25088, 16)
    assert any(name.endswith("_part") for name in names(compiled(g.t() @ x, g.sum(0))))


def test_halves_share_words_where_rows_end_early(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The last block has fewer rows, and whole words of columns."""
    if device == "cpu":
        pytest.skip("device cpu has no kernels")
    gpu: Any = devices.open_device(device)
    monkeypatch.setattr(gpu, "target", replace(gpu.target, tuning=Always(Block(32, 64, 16, 4, 8).launch)))
    program_cache.clear()
    x = (np.arange(33 * 20) % 7).reshape(33, 20).astype(np.float16)
    y = (np.arange(20 * 64) % 5).reshape(20, 64).astype(np.float16)
    found = (torch.tensor(x, device=device) @ torch.tensor(y, device=device)).numpy()
    program_cache.clear()
    np.testing.assert_array_equal(found, x @ y)


def test_rows_that_end_early_are_stored_in_vectors() -> None:
    (kernel,) = compiled(leaf(33, 64) @ leaf(64, 64), target=replace(H200, tuning=Always(BLOCKS[5].launch))).kernels
    assert "b2: array<vec4<f32>>" in kernel.wgsl


def test_a_step_of_k_is_written_once_where_drivers_write_it_out() -> None:
    target = replace(H200, limits=replace(H200.limits, unrolls=("products",)), tuning=Always(SLICED.launch))
    (kernel,) = compiled(leaf(64, 64) @ leaf(64, 48), target=target).kernels
    assert kernel.wgsl.count("= fma(") == SLICED.high * SLICED.wide // 4


def test_an_epilogue_computes_neighbours_as_vectors() -> None:
    x = leaf(64, 64)
    (kernel,) = compiled(
        functional.silu(x @ x + x) * 3.0, target=replace(H200, tuning=Always(BLOCKS[5].launch))
    ).kernels
    assert re.search(r"vec4<f32>\(p_sigmoid\((v\d+)\.x\), .*p_sigmoid\(\1\.w\)\)", kernel.wgsl)
    assert not re.search(r"let v\d+ = \w+\.[xyzw];", kernel.wgsl)


def test_neighbours_of_all_kinds_meet_in_an_epilogue(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What differs along a row, down a column, in both, in neither, what lies apart, and what is no float."""
    if device == "cpu":
        pytest.skip("device cpu has no kernels")
    gpu: Any = devices.open_device(device)
    monkeypatch.setattr(gpu, "target", replace(gpu.target, tuning=Always(Block(32, 64, 16, 4, 8).launch)))
    program_cache.clear()
    x, turned, column = [
        np.sin(np.arange(n * m)).reshape(n, m).astype(np.float32) for n, m in ((33, 64), (64, 33), (33, 1))
    ]
    row = np.arange(64) % 5

    def step(xp: Any, x: Any, turned: Any, column: Any, row: Any) -> Any:
        z = (x @ x.T) @ x
        chosen = xp.where((z > turned.T) & (row > 1), z * column, row - z)
        return (chosen - row * column) / (xp.abs(turned.T) + 2.0)

    tensors = [torch.tensor(one, device=device) for one in (x, turned, column, row)]
    found = torch.compile(lambda *args: step(torch, *args))(*tensors).numpy()
    program_cache.clear()
    np.testing.assert_allclose(
        found, step(np, *[one.astype(np.float64) for one in (x, turned, column, row)]), atol=1e-4
    )


def test_results_are_read_through_views_that_cut_rows() -> None:
    """Every launch: fours of columns are no part of such a shape, nor are whole rows."""
    for shape in ((24, 16, 3, 3), (18, 192)):
        product = (leaf(24, 196) @ leaf(196, 144)).reshape(shape).sin()
        for target in (H200, replace(H200, features=Features())):
            assert len(names(compiled(product, target=target))) <= 2


@pytest.mark.parametrize("sizes", [(1, 768), (768, 1), (3, 768)])
def test_vectors_take_no_large_blocks(sizes: tuple[int, int]) -> None:
    (name,) = names(compiled(leaf(sizes[0], 64) @ leaf(64, sizes[1])))
    assert "staged" not in name


def test_parts_take_little_memory() -> None:
    """Whatever a rule or a tuning says."""
    x, y = leaf(4096, 4096), leaf(4096, 4096)
    tuned = replace(H200, tuning=Always(replace(BLOCKS[0], parts=8).launch))
    assert not any(name.endswith("_part") for name in names(compiled(x @ y, target=tuned)))


SMALL = {
    "llvmpipe": Features((), (4, 4), (), "llvmpipe", "cpu", "naga"),
    "integrated": Features((), (8, 32), (), "intel", "integrated", "naga"),
    "unknown": Features(),
}


@pytest.mark.parametrize("features", SMALL.values(), ids=SMALL.keys())
def test_other_adapters_keep_the_rule_of_small_tiles(features: Features) -> None:
    for m, n, k in ((4096, 4096, 4096), (31, 768, 3072)):
        (name,) = names(compiled(leaf(m, k) @ leaf(k, n), target=replace(H200, features=features)))
        assert not name.endswith(("_staged", "_part"))


@pytest.mark.parametrize("family", ["llvmpipe", "warp", ""])
def test_a_cpu_copies_nothing_to_workgroup_memory(family: str) -> None:
    """There it is the same memory behind the same caches, and a barrier ends what runs of a workgroup."""
    target = replace(H200, features=Features((), (0, 0), (), family, "cpu", "naga"))
    for sizes in ((1, 2048, 64, 64), (1, 64, 64, 6144), (12, 512, 64, 512), (1, 4096, 4096, 4096), (1, 1, 1, 1)):
        first = matmul.MatmulTemplate().launches(Problem(sizes, ("float32",), "nn"), target)[0]
        assert not first.variant
        assert first.tile[2] == 0


@pytest.mark.parametrize("cores", [0, 24, 132])
@pytest.mark.parametrize("shared", [16 << 10, 48 << 10])
def test_large_gpus_take_blocks_that_they_can_run(cores: int, shared: int) -> None:
    limits = replace(H200.limits, shared_bytes=shared)
    for layout in ("nn", "nt", "tn", "tt"):
        for sizes in ((1, 4096, 4096, 4096), (1, 31, 768, 3072), (12, 512, 64, 512), (1, 1, 1, 1), (1, 1, 768, 1)):
            blocks = matmul_blocks.fitting(layout, limits)
            block = matmul_blocks.choose(blocks, Problem(sizes, ("float32",), layout), cores or matmul_blocks.WIDTH)
            assert block is not None
            assert replace(block, parts=1) in blocks
            assert block.parts == 1 or sizes[3] >= block.parts * matmul_blocks.LEAST


@pytest.mark.parametrize(
    ("rows", "columns", "start"), [(1, 64, "rows"), (3, 64, "rows"), (64, 2, "rows"), (4, 64, "m")]
)
def test_few_rows_are_added_up(rows: int, columns: int, start: str) -> None:
    """A tile has rows for many more, which would wait."""
    (name,) = names(compiled(functional.linear(leaf(rows, 96), leaf(columns, 96))))
    assert name.startswith(start)
