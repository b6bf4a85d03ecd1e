"""Which nodes share a kernel: dispatches of known programs, and what every Program keeps to."""

import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

import pywebgpu as torch
from pywebgpu import devices
from pywebgpu.compiler import fusion, inlining
from pywebgpu.compiler.driver import compile_graph
from pywebgpu.compiler.program import Dispatch
from pywebgpu.errors import CompileError
from pywebgpu.kernels.kernel import Limits
from pywebgpu.kernels.target import Features, Target
from pywebgpu.nn import functional as F
from pywebgpu.ops import indexing
from pywebgpu.runtime import program_cache
from pywebgpu.settings import settings
from pywebgpu.tensor.apply import apply
from tests.fuzz import steps
from tests.fuzz.test_graphs import build, node, side
from tests.unit.compiled import for_limits, leaf, only, programs, settle

DEFAULT = Limits()
FEW = hypothesis_settings(steps.PROFILE, max_examples=30)


def dispatches(*wanted: Any, limits: Limits = DEFAULT) -> int:
    program = for_limits(limits, *wanted)
    return len(program.steps)


# Known programs


def test_chain_of_ten_is_one() -> None:
    x = leaf(64, 128)
    assert dispatches(((((x.sin() * 2 + 1).exp() - 3).tanh().abs().sqrt() * x).cos() / 3).relu()) == 1


def test_a_long_chain_is_kernels_of_bounded_length() -> None:
    """Also where it is made of numbers, which are computed where they are used. Translators take a text's square."""
    for x in (leaf(1000), torch.full((1000,), 0.3, device="null")):
        for _ in range(600):
            x = x * 0.999 + 0.0001
        program = for_limits(DEFAULT, x)
        assert len(program.steps) > 1
        assert max(len(kernel.wgsl) for kernel in program.kernels) < 200 * fusion.LONGEST


@pytest.mark.parametrize("dim", [0, 1, 2])
def test_softmax_is_one(dim: int) -> None:
    assert dispatches(leaf(20, 30, 40).softmax(dim).sum(dim)) == 1


def test_softmax_that_is_stored_is_one() -> None:
    assert dispatches(leaf(64, 128).softmax(-1)) == 1
    assert dispatches(leaf(64, 128).log_softmax(-1)) == 1


def test_draws_of_few_are_not_known_to_be_the_same_in_all_lanes() -> None:
    """Of what a draw at a fixed position is made of, the compiler of llvmpipe would reason for ten seconds and more."""
    program = only(lambda: torch.rand(3, device="null").amax())
    assert program.kernels[0].wgsl.count("p_philox(2u + lane / 65536u") == 1


def test_a_loss_and_its_gradient_are_found_on_one_visit_of_the_rows() -> None:
    """Also where only the device knows how many rows count."""
    x, weight, target = leaf(64, 32), leaf(128, 32, grad=True), leaf(64, dtype=torch.int64)

    def step() -> Any:
        loss = F.cross_entropy(x @ weight.t(), target)
        loss.backward()
        return loss, weight.grad

    (program,) = programs(step)
    names = [program.kernels[one.kernel].name.split("_")[0] for one in program.steps if isinstance(one, Dispatch)]
    assert sorted(names) == ["matmul", "matmul", "rows", "rows", "scan"], "the products, the rows, their mean, a count"


def test_a_loss_in_parts_has_scores_of_one_part_in_memory() -> None:
    x, weight, target = leaf(512, 64, grad=True), leaf(9000, 64, grad=True), leaf(512, dtype=torch.int64)

    def peak(options: Any) -> int:
        def step() -> Any:
            F.linear_cross_entropy(x, weight, target, options=options).backward()
            found = x.grad, weight.grad
            x.grad = weight.grad = None
            return found

        (program,) = programs(step)
        return program.scratch_bytes

    whole, parts = peak(None), peak(torch.nn.LinearCrossEntropyOptions(batch_chunk_size=64))
    scores = 512 * 9000 * 4
    assert whole >= scores
    assert parts < scores / 8 + 2 * 9000 * 64 * 4


def test_cross_entropy_is_one_for_the_rows_and_one_for_the_mean() -> None:
    x, target = leaf(64, 128), leaf(64, dtype=torch.int64)
    assert dispatches(F.cross_entropy(x, target)) == 2
    assert dispatches(F.nll_loss(x.log_softmax(-1), target)) == 2


def test_layer_norm_is_one_and_its_gradient_two() -> None:
    x, weight, bias = leaf(64, 128, grad=True), leaf(128, grad=True), leaf(128, grad=True)
    out = F.layer_norm(x, (128,), weight, bias)
    assert dispatches(out) == 1
    settle()
    grads = torch.autograd.grad(out, (x, weight, bias), leaf(64, 128))
    assert dispatches(*grads) == 2
    program = for_limits(DEFAULT, *grads)
    assert (64, 1) in [program.slots[at].spec.shape for at in program.inputs], "the statistics of rows were kept"


def test_bias_and_activation_belong_to_the_product() -> None:
    x, weight, bias = leaf(64, 128), leaf(32, 128), leaf(32)
    assert dispatches(F.gelu(F.linear(x, weight, bias))) == 1
    assert dispatches(F.linear(x, weight, bias).relu().to(torch.float16)) == 1


def test_gradient_of_the_bias_belongs_to_that_of_the_weight() -> None:
    """Linear, and convolution, whose bias is one a channel: the sum over k of what the weight's gradient reads."""
    x, weight, bias, g = leaf(64, 128), leaf(32, 128, grad=True), leaf(32, grad=True), leaf(64, 32)
    assert dispatches(*torch.autograd.grad(F.linear(x, weight, bias), (weight, bias), g)) == 1
    image, weight, bias = leaf(4, 3, 10, 10), leaf(8, 3, 3, 3, grad=True), leaf(8, grad=True)
    out = F.conv2d(image, weight, bias)
    assert dispatches(*torch.autograd.grad(out, (weight, bias), leaf(*out.shape))) == 1


def test_halves_that_products_read_are_stored_where_they_are_computed() -> None:
    """The norm and the activation write float16, which both products of each read; a weight is cast on load."""
    x, w, v = leaf(16, 32, grad=True), leaf(32, 32, grad=True), leaf(32, 32, grad=True)

    def step() -> Any:
        with torch.autocast("null", dtype=torch.float16):
            h = torch.nn.functional.gelu(torch.nn.functional.layer_norm(x, (32,)) @ w, approximate="tanh") @ v
        return torch.autograd.grad(h.float().sum(), (x, w, v))

    program = only(step)
    inner = [slot for slot in program.slots if slot.buffer not in {program.slots[at].buffer for at in program.inputs}]
    large = [slot.spec.dtype for slot in inner if slot.spec.shape == (16, 32)]
    assert large.count(torch.float16) >= 3
    assert large.count(torch.float32) == 1, "the gradient of x alone"
    assert len(program.steps) <= 8, [kernel.name for kernel in program.kernels]


@pytest.mark.parametrize(("rows", "is_stored"), [(512, True), (32, False)])
def test_a_large_weights_halves_are_stored_where_many_rows_are_multiplied(rows: int, is_stored: bool) -> None:
    x, w = leaf(rows, 512, grad=True), leaf(512, 512, grad=True)

    def step() -> Any:
        with torch.autocast("null", dtype=torch.float16):
            out = x @ w
        return torch.autograd.grad(out.float().square().sum(), x)

    program = only(step)
    assert any(kernel.name == "map_cast" for kernel in program.kernels) == is_stored


@pytest.mark.parametrize("stride", [1, 2])
def test_a_convolutions_gradient_of_its_input_is_a_product_that_reads_through_views(stride: int) -> None:
    x, weight = leaf(4, 8, 12, 12, grad=True), leaf(8, 8, 3, 3)
    out = F.conv2d(x, weight, stride=stride, padding=1)
    (gradient,) = torch.autograd.grad(out, x, leaf(*out.shape))
    program = for_limits(Limits(), gradient)
    largest = max(math.prod(slot.spec.shape) for slot in program.slots)
    assert len(program.steps) == (2 if stride == 1 else 4), "the last one copies it into its order"
    assert largest == math.prod(x.shape) or stride == 2, "columns were stored"


def test_a_batch_norms_gradient_walks_over_its_channels_once() -> None:
    """And then by element: nothing of it depends on a sum of what the first sums gave."""
    x, g = leaf(4, 8, 12, 12, grad=True), leaf(4, 8, 12, 12)
    out = F.batch_norm(x, None, None, training=True)
    program = for_limits(Limits(), *torch.autograd.grad(out, x, g))
    assert [kernel.name.split("_")[0] for kernel in program.kernels] == ["rows", "map"]


def test_where_barriers_are_dear_a_product_has_none() -> None:
    x, weight = leaf(64, 128), leaf(32, 128)
    for emulated in (False, True):
        (kernel,) = for_limits(Limits(emulated=emulated), F.linear(x, weight)).kernels
        assert ("workgroupBarrier" in kernel.wgsl) is not emulated


def test_residual_belongs_to_the_product_on_either_side() -> None:
    x, w, residual, bias = leaf(64, 128), leaf(128, 32), leaf(64, 32), leaf(32)
    assert dispatches(x @ w + residual) == 1
    assert dispatches(residual + x @ w) == 1
    assert dispatches(residual + (x @ w + bias)) == 1


ACTIVATIONS = {name: getattr(F, name, None) or getattr(torch, name) for name in (
    "relu", "sigmoid", "tanh", "exp", "log", "sqrt", "rsqrt", "neg", "abs", "gelu", "silu", "round", "sin", "cos",
    "tan", "atan", "softplus", "mish",
)} | {"gelu_tanh": lambda x: F.gelu(x, approximate="tanh")}  # fmt: skip


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_any_activation_belongs_to_the_product(name: str, device: str) -> None:
    function = ACTIVATIONS[name]
    assert dispatches(function(F.linear(leaf(64, 128), leaf(32, 128), leaf(32)))) == 1
    torch.manual_seed(0)
    x, weight, bias = (torch.rand(*shape, device=device) / 4 for shape in ((9, 33), (5, 33), (5,)))
    product = F.linear(x, weight, bias)
    product.tolist()  # The next product is computed again, with its activation.
    found = function(F.linear(x, weight, bias)).tolist()
    for row, other in zip(found, function(product).tolist(), strict=True):
        assert row == pytest.approx(other, rel=1e-5, abs=1e-5)


def test_a_view_between_product_and_sum_costs_nothing() -> None:
    x, w, residual = leaf(1, 64, 128), leaf(128, 32), leaf(64, 32)
    assert dispatches((x @ w).reshape(64, 32) + residual) == 1
    assert dispatches((x @ w).squeeze(0) + residual) == 1


def test_a_residual_belongs_to_the_norm() -> None:
    """Also where the sum itself is wanted."""
    x, residual, bias, weight = leaf(64, 128), leaf(64, 128), leaf(128), leaf(128)
    for total in (x + residual, x + residual + bias):
        for normed in (F.layer_norm(total, (128,), weight, bias), F.rms_norm(total, (128,), weight)):
            assert dispatches(normed) == 1
            assert dispatches(normed, total) == 1


def test_packed_heads_are_read_where_they_lie() -> None:
    """Attention over the three parts of one product takes no more kernels than over three tensors."""
    x, weight, bias, parts = leaf(2, 16, 96), leaf(288, 96), leaf(288), [leaf(2, 16, 96) for _ in range(3)]

    def attend(q: Any, k: Any, v: Any) -> Any:
        return F.scaled_dot_product_attention(*(part.reshape(2, 16, 4, 24).transpose(1, 2) for part in (q, k, v)))

    assert dispatches(attend(*F.linear(x, weight, bias).chunk(3, -1))) == 1 + dispatches(attend(*parts))


def test_a_tied_weight_has_no_sum_of_its_own() -> None:
    """The gradient as a table of rows and that as a matrix: one is added where the other is made."""
    table, index = leaf(1000, 64, grad=True), leaf(32, dtype=torch.int64)
    logits = table[index].relu() @ table.t()
    (grad,) = torch.autograd.grad(F.cross_entropy(logits, index), table)
    program = for_limits(DEFAULT, grad)
    whole = [program.kernels[step.kernel].name for step in program.steps if writes_shape(program, step, (1000, 64))]
    assert sorted(name.split("_")[0] for name in whole) == ["matmul", "scatter"]


def writes_shape(program: Any, step: Any, shape: tuple[int, ...]) -> bool:
    writes = program.kernels[step.kernel].writes
    return any(
        is_written and program.slots[slot].spec.shape == shape
        for slot, is_written in zip(step.slots, writes, strict=True)
    )


def test_a_larger_image_is_made_with_its_activation() -> None:
    assert dispatches(F.interpolate(leaf(2, 3, 8, 8), scale_factor=2).relu()) == 1


def test_an_element_is_read_once() -> None:
    x = leaf(64)
    (kernel,) = for_limits(DEFAULT, x * x + x.sin()).kernels
    assert kernel.wgsl.count("b0[") == 1


def test_tiles_fit_the_shape_of_the_product() -> None:
    names = {}
    for m, n in ((8, 64), (512, 512), (2048, 2048), (1, 4096)):
        x, y = leaf(m, 512), leaf(512, n)
        (names[m, n],) = (kernel.name for kernel in torch.explain(x @ y).kernels)
    assert len(set(names.values())) == 4, names


def test_transposed_operands_are_read_where_they_lie() -> None:
    assert dispatches(leaf(128, 64).t() @ leaf(32, 128).t()) == 1


def test_several_outputs_share_a_kernel() -> None:
    x = leaf(64, 128)
    program = for_limits(DEFAULT, x.sin(), x.cos(), x * 2)
    assert len(program.steps) == 1
    assert sum(program.kernels[0].writes) == 3


def test_reductions_of_the_same_rows_share_a_kernel() -> None:
    x = leaf(64, 128)
    assert dispatches(x.sum(1), x.amax(1), (x * x).mean(1)) == 1


def test_sums_of_columns_that_leave_a_device_idle_share_a_kernel() -> None:
    x, y, z = leaf(512, 768), leaf(512, 768), leaf(512, 768)
    assert dispatches((x * 2).sum(0), y.sin().sum(0)) == 1
    assert dispatches(x.sum(0), y.sum(0), z.sum(0), limits=replace(DEFAULT, bindings=4)) == 2
    assert dispatches(x.sum(0), y.sum(0), limits=replace(DEFAULT, emulated=True)) == 2
    first = x.sum(0)
    assert dispatches(first, (y * first.sin().sum()).sum(0)) == 3, "the one waits for the other"


def test_tiny_rows_that_have_nothing_in_common_share_a_kernel() -> None:
    x, y = leaf(31, 29), leaf(31, 29)
    assert dispatches(x.sum(1), y.amax(1)) == 1
    assert dispatches(x.sum(1), y.sum(1), limits=replace(DEFAULT, emulated=True)) == 2
    assert dispatches(x.sum(1), leaf(29, 31).sum(1)) == 2, "their rows differ"
    assert dispatches(x.sum(1), (y * x.sum(1, keepdim=True).sin()).sum(1)) == 1
    assert dispatches(leaf(512, 768).sum(1), leaf(512, 768).sum(1)) == 2, "each keeps a device busy"


def test_mixed_shapes_broadcast_in_one() -> None:
    assert dispatches((leaf(3, 1, 5) + leaf(4, 1)) * leaf(5) + 1) == 1


def test_views_are_read_and_not_copied() -> None:
    x = leaf(64, 128)
    for viewed in (x.t(), x.flip(1), x[::2, 3:], x.reshape(128, 64).t(), x.unfold(1, 4, 2), x.expand(3, 64, 128)):
        program = for_limits(DEFAULT, viewed.relu())
        assert len(program.steps) == 1
        assert not program.scratch


def test_equal_subgraphs_are_computed_once() -> None:
    x, w = leaf(64, 128), leaf(128, 32)
    assert dispatches((x @ w).relu(), (x @ w).sin()) == 1


# Limits


@pytest.mark.parametrize("bindings", [4, 6, 8, 16])
def test_many_inputs_are_spread_over_kernels(bindings: int) -> None:
    limits = replace(DEFAULT, bindings=bindings)
    parts = [leaf(3, 4) for _ in range(20)]
    assert dispatches(sum(parts), limits=limits) <= -(-20 // (bindings - 2)) + 3


@pytest.mark.parametrize("bindings", [8, 16])
def test_twenty_parts_are_joined_a_few_at_a_time(bindings: int) -> None:
    parts = [leaf(3, 4) for _ in range(20)]
    assert dispatches(torch.cat(parts), limits=replace(DEFAULT, bindings=bindings)) <= 5
    assert dispatches(torch.stack(parts).sin(), limits=replace(DEFAULT, bindings=bindings)) <= 6


def test_many_reductions_keep_to_the_workgroups_memory() -> None:
    x = leaf(40, 300)
    assert dispatches(sum((x + k).sin().sum(1) for k in range(30))) <= 3
    assert dispatches(sum(((x + k).sin().argmax(1) for k in range(30)), torch.zeros(40, device="null"))) <= 6


@given(
    side,
    side,
    st.lists(node, min_size=1, max_size=24),
    st.sampled_from([4, 6, 8]),
    st.sampled_from([32, 96, 128, 256]),
    st.booleans(),
)
@FEW
def test_random_graphs_keep_to_the_limits(
    rows: int, columns: int, drawn: list[Any], bindings: int, size: int, backward: bool
) -> None:
    shapes = ((rows, columns), (rows, columns), (1, columns), (rows, 70))
    leaves = tuple(leaf(*shape, grad=backward) for shape in shapes)
    results = build(torch, leaves, drawn)
    if backward:
        total = sum(x.sum() for x in results)
        results += torch.autograd.grad(total, leaves, allow_unused=True) if total.requires_grad else ()
    limits = replace(DEFAULT, bindings=bindings, workgroup_size=size)
    for_limits(limits, *(x for x in results if x is not None))


@pytest.mark.parametrize("size", [32, 128])
def test_small_workgroups_compute_the_same(size: int, device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if device == "cpu":
        pytest.skip("device cpu has no workgroups")
    opened = devices.open_device(device)
    torch.manual_seed(0)
    x, y = torch.randn(70, 300, device=device), torch.randn(300, 90, device=device)
    rows = torch.randint(0, 70, (500,), device=device)
    torch.webgpu.synchronize(device)

    def work() -> list[Any]:
        parts = [x @ y, x.softmax(1), x.sum(0), x.sort(1)[0], x.cumsum(1), x.exp() + 1, F.layer_norm(x, (300,))]
        parts.append(torch.zeros(70, 300, device=device).index_add(0, rows, x[rows]))
        return [part.numpy() for part in parts]

    wanted = work()
    program_cache.clear()
    smaller = replace(opened.target, limits=replace(opened.target.limits, workgroup_size=size))
    monkeypatch.setattr(opened, "target", smaller)
    for one, other in zip(work(), wanted, strict=True):
        assert abs(one - other).max() <= 1e-5 * abs(other).max()
    program_cache.clear()


@pytest.mark.parametrize(
    "function", [lambda x: x + 1, lambda x: x.cumsum(1), lambda x: x.sort(1)[0], lambda x: x.sum(1)]
)
def test_large_grids_have_two_dimensions(function: Any) -> None:
    limits = replace(DEFAULT, workgroups=800)
    program = for_limits(limits, function(leaf(70_001, 12)))
    assert any(found.grid[1] > 1 for found in program.kernels)


def test_groups_past_the_end_of_a_grid_do_nothing() -> None:
    """65,537 workgroups are 32,769 x 2: one of them has no work, and may not write."""
    x = leaf(65_537, 8)
    for result in (x.cumsum(1), x.reshape(65_537, 4, 2) @ x.reshape(65_537, 2, 4)):
        (found,) = for_limits(DEFAULT, result).kernels
        assert found.grid == (32_769, 2, 1)
        assert "if (group >= 65537u) { return; }" in found.wgsl


def test_a_value_larger_than_a_buffer_is_an_error() -> None:
    text = r"copy: a value of float32\[300\] takes 1200 bytes, more than the 1024 of this device's largest buffer"
    with pytest.raises(CompileError, match=text):
        for_limits(replace(DEFAULT, binding_bytes=1 << 10, buffer_bytes=1 << 10), leaf(300).t())


def test_a_value_of_two_windows_is_computed_by_one_dispatch() -> None:
    """What lies in one window for all invocations is read there; else a function finds the window."""
    limits = replace(DEFAULT, binding_bytes=1 << 10)
    program = for_limits(limits, leaf(300).flip(0) * 2)
    (found,) = program.kernels
    assert [program.slots[slot].offset for slot in program.steps[0].slots] == [0, 1024, 0, 1024]
    assert [program.slots[slot].nbytes for slot in program.steps[0].slots] == [1024, 176, 1024, 176]
    assert (
        "fn b0_0_to_b0_1(i: u32) -> f32 {\n  if (i < 256u) { return b0_0[i]; }\n  return b0_1[i - 256u];" in found.wgsl
    )


def test_a_kernel_that_would_bind_too_much_runs_in_parts() -> None:
    """Each part reads and writes its own windows, and looks for none."""
    limits = replace(DEFAULT, binding_bytes=1 << 10)
    program = for_limits(limits, leaf(2000) + leaf(2000))
    assert [len(step.slots) for step in program.steps] == [3] * 8
    assert all("fn b" not in kernel.wgsl for kernel in program.kernels)


def test_a_kernel_that_reaches_too_many_windows_is_an_error() -> None:
    with pytest.raises(CompileError, match=r"rows_sum: .*float32\[3000\] all over, which takes more bindings of 1024"):
        for_limits(replace(DEFAULT, binding_bytes=1 << 10), leaf(3000).sum())


def test_an_op_without_a_kernel_is_named_by_the_compiler() -> None:
    unknown = replace(indexing.scan, name="unknown")
    x = apply(lambda node: unknown(node, mode="add"), leaf(3, 4))
    with pytest.raises(CompileError, match="unknown: no kernel"):
        for_limits(DEFAULT, x)


# Writes in place


def test_an_update_goes_into_the_same_buffer() -> None:
    x = leaf(8, 8)
    program = only(lambda: x.add_(1))
    assert program.written == ((0, 0),)
    assert len({program.slots[at].buffer for at in (*program.inputs, *program.outputs)}) == 1


def test_a_product_is_added_in_place() -> None:
    x, a, b = leaf(64, 32), leaf(64, 128), leaf(128, 32)
    program = only(lambda: x.add_(a @ b))
    assert len(program.steps) == len(program.written) == 1


def test_a_row_is_written_by_the_lanes_that_read_it() -> None:
    x = leaf(16, 16)
    assert only(lambda: x.copy_(x.softmax(1))).written == ((0, 0),)


def test_a_large_result_lies_where_its_operand_lay_that_nobody_reads_any_more() -> None:
    a, b, row = leaf(2048, 8), leaf(8, 2048), leaf(2048)
    for result in ((a @ b).softmax(-1), F.layer_norm(a @ b, (2048,), row, row), (a @ b).cumsum(-1).sin()):
        program = for_limits(DEFAULT, result)
        large = {
            program.slots[at].buffer
            for step in program.steps
            for at in step.slots
            if program.slots[at].nbytes > 1 << 22
        }
        assert len(large) == (2 if "scan_add" in {kernel.name for kernel in program.kernels} else 1)
    product = a @ b
    later = for_limits(DEFAULT, product.softmax(-1), product.sum(0))
    assert len({slot.buffer for slot in later.slots if slot.nbytes > 1 << 22}) == 2, "it is read afterwards"
    other = for_limits(DEFAULT, product.softmax(-1) + product.flip(0))
    assert len({slot.buffer for slot in other.slots if slot.nbytes > 1 << 22}) > 1, "another row is read"


@pytest.mark.parametrize(
    ("bindings", "kernels"), [(12, ["rows_sum_sum_rows", "rows_sum"]), (8, ["rows_sum", "rows_sum"])]
)
def test_gradients_of_a_norms_weights_are_begun_where_its_rows_are_walked(bindings: int, kernels: list[str]) -> None:
    """The second kernel reads what each few rows add up to: memory is read once, unless bindings are few."""
    x, weight, bias = (leaf(*shape).requires_grad_() for shape in ((512, 768), (768,), (768,)))
    found = torch.autograd.grad(F.layer_norm(x, (768,), weight, bias), (x, weight, bias), leaf(512, 768))
    target = Target(True, Limits(bindings=bindings), Features(family="nvidia", cores=8))
    program = compile_graph(tuple(one._node for one in found), target)
    assert [kernel.name for kernel in program.kernels] == kernels
    read = sum(program.slots[at].nbytes for at in program.steps[1].slots)
    assert (read < program.slots[0].nbytes) == (bindings == 12)


def test_other_readers_run_before_the_write() -> None:
    x, keep = leaf(16, 16), []

    def function() -> None:
        keep.append(x.t() @ x)
        x.add_(1)

    program = only(function)
    assert len(program.written) == 1
    assert [program.kernels[step.kernel].name[:6] for step in program.steps] == ["matmul", "map_ad"]


def test_a_write_that_reads_other_elements_needs_a_new_buffer() -> None:
    for function in (
        lambda x: x.copy_(x.flip(0)),
        lambda x: x.copy_(x.t() * 2),
        lambda x: x.copy_(x @ x),
        lambda x: x.copy_(x.softmax(1).flip(1)),
        lambda x: x.copy_(x.cumsum(1)),
    ):
        x = leaf(16, 16)
        assert only(lambda: function(x)).written == ()  # noqa: B023 - called at once


def test_a_later_reader_of_the_old_value_forbids_the_write() -> None:
    """y depends on the new x, and reads the old one."""
    x, keep = leaf(16, 16), []

    def function() -> None:
        old = x.t()
        before = old @ torch.eye(16, device="null")
        x.add_(1)
        keep.append(before)
        keep.append((x @ x) * 1)

    assert len(only(function).written) == 1  # `before` can run first

    def mixed() -> None:
        old = x * 1
        x.mul_(2)
        keep.append((x @ x) + old.t())  # Needs the new x and the old x in one epilogue.

    settle()
    programs(mixed)


def test_a_row_is_not_written_while_other_lanes_read_it() -> None:
    """All lanes of a row read m; the rows that are stored come after the first lane stored m."""
    x, m, keep = leaf(300, 1000), leaf(300, 1), []

    def function() -> None:
        m.add_(x.sum(1, keepdim=True))
        keep.append(x / m)

    program = only(function)
    assert len(program.steps) > 1 or program.written == ()


def test_a_value_wanted_twice_is_stored_for_each_owner() -> None:
    b, keep = leaf(16), []

    def function() -> None:
        keep.append(b.abs())
        b.abs_()

    program = only(function)
    assert len(program.steps) == 1
    assert len({program.slots[slot].buffer for slot in program.outputs}) == 2
    assert program.written == ((1, 0),)


def test_a_buffer_written_in_place_is_one_binding() -> None:
    """Seven values that are read and written, and one that is read: as many as a kernel may bind."""
    values, by = [leaf(16) for _ in range(7)], leaf(16)

    def function() -> None:
        for value in values:
            value.add_(by)

    program = only(function)
    assert len(program.written) == 7
    assert len(program.steps) == 1


# Without fusion


@given(side, side, st.lists(node, min_size=1, max_size=10))
@hypothesis_settings(steps.PROFILE, max_examples=8)
def test_values_do_not_depend_on_fusion(device: str, rows: int, columns: int, drawn: list[Any]) -> None:
    def run() -> list[Any]:
        torch.manual_seed(1)
        shapes = ((rows, columns), (rows, columns), (1, columns), (rows, 70))
        # Drawn on the device, they are drawn again in each kernel that reads them, which takes its compiler seconds.
        leaves = tuple(torch.randn(*shape, device="cpu").to(device) for shape in shapes)
        return [x.numpy() for x in build(torch, leaves, drawn)]

    program_cache.clear()
    fused = run()
    with pytest.MonkeyPatch.context() as patch:
        for module in (inlining, fusion):
            patch.setattr(module, "settings", replace(settings, fuse=False))
        program_cache.clear()
        alone = run()
    program_cache.clear()
    for one, other in zip(fused, alone, strict=True):
        assert one.shape == other.shape
        assert abs(one - other).max(initial=0.0) <= 1e-5 * max(1.0, abs(one).max(initial=0.0))


def test_without_fusion_every_node_has_a_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (inlining, fusion):
        monkeypatch.setattr(module, "settings", replace(settings, fuse=False))
    assert dispatches((leaf(8, 8).sin().exp() + 1).softmax(1)) > 4


def test_small_values_that_have_nothing_in_common_share_a_kernel() -> None:
    """As the steps that each batch norm counts, in place."""
    counts = [leaf(1, dtype=torch.int64) for _ in range(3)]
    program = only(lambda: [count.add_(1) for count in counts])
    assert (len(program.steps), len(program.written)) == (1, 3)


def test_what_is_stored_after_all_may_share_a_kernel() -> None:
    """Its reader had no binding left for what it reads; in the end none has enough of them."""
    with pytest.raises(CompileError, match="more bindings"):
        for_limits(replace(DEFAULT, binding_bytes=256), torch.rand(1 << 20, device="null"))
