"""Fused ops: several values of one node. Subject: the example of CONTRIBUTING.md, a row kernel with two outputs."""

import gc
import re
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pywebgpu as torch
from pywebgpu import autograd
from pywebgpu.compiler.program import Program
from pywebgpu.ir.graph import Fused, FusedNode, Node
from pywebgpu.kernels import templates
from pywebgpu.kernels.template import FusedTemplate
from pywebgpu.ops import pointwise
from pywebgpu.runtime import program_cache, state
from pywebgpu.tensor.apply import apply
from pywebgpu.utils import checkpoint
from tests.unit.compiled import leaf, only, programs, settle

PAGE = Path(__file__).parents[2] / "CONTRIBUTING.md"
EPS = 1e-5


def example() -> dict[str, Any]:
    """What the page's code defines."""
    found: dict[str, Any] = {}
    code = re.search(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert code is not None
    exec(code[1], found)
    return found


EXAMPLE = example()
RMS: Fused = EXAMPLE["rms"]
TEMPLATE: FusedTemplate = EXAMPLE["RmsTemplate"]()


@contextmanager
def registered(*, claimed: bool = True) -> Iterator[None]:
    """With the template in the registry, or with the fallback alone."""
    with pytest.MonkeyPatch.context() as patch:
        entries = templates.ENTRIES
        patch.setattr(templates, "ENTRIES", (templates.Entry(lambda: TEMPLATE), *entries) if claimed else entries)
        patch.setattr(state.default, "is_stored", False)
        program_cache.clear()
        yield
        program_cache.clear()


@pytest.fixture(autouse=True)
def _registered() -> Iterator[None]:
    with registered():
        yield


def rms(x: Any, op: Fused = RMS) -> Any:
    return apply(op, x, eps=EPS)


def plain(x: Any) -> Any:
    """The same of ordinary ops."""
    return apply(RMS.fallback, x, eps=EPS)


def data(device: str, rows: int = 5, columns: int = 37, grad: bool = False) -> Any:
    x = (torch.arange(rows * columns) * 37 % 101).to(torch.float32) / 50 - 1
    return x.reshape(rows, columns).to(device).requires_grad_(grad)


def same(found: Any, wanted: Any) -> None:
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one.numpy(force=True), other.numpy(force=True), rtol=2e-5, atol=2e-6)


def names(program: Program) -> list[str]:
    return [program.kernels[step.kernel].name for step in program.steps]  # type: ignore[union-attr]


SHAPES = [(1, 1), (3, 5), (5, 37), (2, 64), (7, 200)]

# Values


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("claimed", [True, False], ids=["template", "fallback"])
def test_values_are_those_of_the_fallback(shape: tuple[int, int], claimed: bool, device: str) -> None:
    with registered(claimed=claimed):
        same(rms(data(device, *shape) * 2), plain(data("cpu", *shape) * 2))


def test_both_values_and_what_they_read_are_one_kernel() -> None:
    x = leaf(5, 37)
    program = only(lambda: rms((x * 2 + 1).t().contiguous().t() * 3))
    assert names(program) == ["rms"]


@pytest.mark.parametrize("which", [0, 1])
def test_a_value_that_nobody_reads_is_not_stored(which: int, device: str) -> None:
    x = leaf(5, 37)
    program = only(lambda: rms(x)[which])
    assert names(program) == ["rms"]
    assert sum(program.kernels[0].writes) == 1
    same([rms(data(device))[which]], [plain(data("cpu"))[which]])


def test_equal_calls_are_one_and_others_are_not() -> None:
    x, y = leaf(5, 37), leaf(5, 37)
    assert len(only(lambda: [rms(x), rms(x)]).steps) == 3  # Two values are wanted twice, and copied by one kernel each.
    assert len(only(lambda: [rms(x), rms(y)]).steps) == 2
    assert len(only(lambda: [rms(x), apply(RMS, x, eps=0.5)]).steps) == 2


# Gradients


def grads_of(function: Any, x: Any, seeds: list[Any | None]) -> Any:
    """The gradient of x where gradients come to some of the values."""
    pairs = [(value, seed) for value, seed in zip(function(x), seeds, strict=True) if seed is not None]
    return autograd.grad([value for value, _ in pairs], x, [seed for _, seed in pairs], create_graph=True)


@pytest.mark.parametrize("which", [(0,), (1,), (0, 1)], ids=str)
@pytest.mark.parametrize("claimed", [True, False], ids=["template", "fallback"])
def test_gradients_are_those_of_the_fallback(which: tuple[int, ...], claimed: bool, device: str) -> None:
    def found(function: Any, on: str) -> Any:
        x = data(on, grad=True)
        seeds = [data(on, 5, columns) if at in which else None for at, columns in enumerate((37, 1))]
        first = grads_of(function, x, seeds)
        second = autograd.grad(first[0].square().sum(), x)
        return *first, *second

    with registered(claimed=claimed):
        for one, other in zip(found(rms, device), found(plain, "cpu"), strict=True):
            np.testing.assert_allclose(one.numpy(force=True), other.numpy(force=True), rtol=1e-3, atol=1e-4)


def test_the_rule_is_asked_where_only_its_own_values_have_a_gradient() -> None:
    asked: list[Any] = []

    def rule(grads: Any, outs: Any, *inputs: Node, **attrs: Any) -> Any:
        asked.append(grads)
        return RMS.vjp(grads, outs, *inputs, **attrs)  # type: ignore[misc]

    op = Fused("watched", RMS.infer, RMS.fallback, rule)
    for which in ((0,), (1,), (0, 1)):
        x = leaf(5, 37, grad=True)
        values = rms(x, op)
        asked.clear()
        autograd.grad([values[at].sum() for at in which], x)
        assert len([grads for grads in asked if grads[0] is not None]) == (which == (0,)) + (1 if which == (0,) else 0)


def test_without_a_rule_the_gradient_is_that_of_the_fallback(device: str) -> None:
    op = Fused("without_rule", RMS.infer, RMS.fallback)
    x, y = data(device, grad=True), data("cpu", grad=True)
    same(autograd.grad(rms(x, op)[0].sin().sum(), x), torch.autograd.grad(plain(y)[0].sin().sum(), y))


def test_one_node_as_two_inputs_gets_both_gradients(device: str) -> None:
    product = Fused("product", lambda a, b: (a, a), lambda a, b: (pointwise.mul(a, b), pointwise.add(a, b)))
    x = data(device, grad=True)
    first, second = apply(product, x, x)
    (grad,) = autograd.grad((first + second).sum(), x)
    same([grad], [2 * data("cpu") + 2])


def test_values_that_the_rule_reads_are_stored_with_the_first_read(device: str) -> None:
    x = data(device, grad=True)
    out, factor = rms(x)
    total = (out * 3).sum()
    del out, factor  # Nobody but the history knows of them.
    total.item()
    with torch.no_grad():
        x.zero_()  # The rule would read other values if it computed them again.
    total.backward()
    other = data("cpu", grad=True)
    (plain(other)[0] * 3).sum().backward()
    same([x.grad], [other.grad])


def test_the_backward_of_a_loss_that_was_read_computes_no_value_again() -> None:
    x = leaf(5, 37, grad=True)
    total = rms(x * 2)[0].sum()
    settle()
    (program,) = programs(lambda: autograd.grad(total, x))
    assert "rms" not in names(program)
    assert [5, 1] in [list(program.slots[at].spec.shape) for at in program.inputs], "the factor was kept"


@pytest.mark.parametrize("which", [0, 1])
@pytest.mark.parametrize("is_read", [True, False], ids=["read", "pending"])
def test_a_value_that_the_rule_reads_may_not_be_overwritten(which: int, is_read: bool, device: str) -> None:
    x = data(device, grad=True)
    values = rms(x)
    total = (values[0] * 3).sum()
    if is_read:
        total.item()
    with torch.no_grad():
        values[which].detach().add_(1)
    del values
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        total.backward()


def test_history_is_let_go_after_backward(device: str) -> None:
    x = data(device, grad=True)
    out, _ = rms(x)
    out.sum().backward(retain_graph=True)
    first = x.grad.clone()
    out.sum().backward()
    same([x.grad], [2 * first])
    with pytest.raises(RuntimeError, match="a second time"):
        out.sum().backward()


def test_no_cycle_keeps_values(device: str) -> None:
    """What nobody differentiates ends with the last tensor, without a garbage collection."""
    gc.collect()
    gc.disable()
    try:
        x = data(device, grad=True)
        out, factor = rms(x)
        out.sum().item()
        whole = weakref.ref(out._node.inputs[0])
        assert isinstance(whole(), FusedNode)
        del out, factor
        assert whole() is None
    finally:
        gc.enable()


def test_modes_hooks_and_names(device: str) -> None:
    x = data(device, grad=True)
    with torch.no_grad():
        assert not any(value.requires_grad for value in rms(x))
    out, factor = rms(x)
    assert "grad_fn=<RmsBackward0>" in repr(out)
    assert out.requires_grad
    assert factor.requires_grad
    seen: list[Any] = []
    out.register_hook(lambda g: seen.append(g) or g * 2)
    out.retain_grad()
    out.sum().backward()
    other = data("cpu", grad=True)
    plain(other)[0].sum().backward()
    same([x.grad, out.grad], [2 * other.grad, torch.full((5, 37), 2.0)])
    assert len(seen) == 1


def test_a_checkpoint_computes_it_again(device: str) -> None:
    x, y = data(device, grad=True), data("cpu", grad=True)
    checkpoint.checkpoint(lambda x: rms(x.sin())[0], x, use_reentrant=False).cos().sum().backward()
    plain(y.sin())[0].cos().sum().backward()
    same([x.grad], [y.grad])


def extremes(x: Any, rate: float) -> Any:
    """A step with a fused op of the package: the code of a page's op is what a captured step looks at, and refuses."""
    largest = (x * rate).max(1)
    (grad,) = autograd.grad(largest.values.sin().sum(), x)
    return grad * rate, largest.indices


def test_a_compiled_step_runs_as_the_eager_one(device: str) -> None:
    x, y = data(device, grad=True), data("cpu", grad=True)
    compiled = torch.compile(extremes)
    for rate in (0.1, 0.2, 0.3, 0.4, 0.5):
        same(compiled(x, rate), extremes(y, rate))
    assert compiled.counters["replays"] > 0
    recorded = torch.compile(lambda x, rate: rms(x * rate))
    for rate in (0.1, 0.2, 0.3):
        same(recorded(x, rate), plain(y * rate))


def test_an_export_plays_it(tmp_path: Path, device: str) -> None:
    if device != "webgpu":
        pytest.skip("what leaves Python runs on device webgpu")
    weight = torch.nn.Parameter(data(device))

    def step(x: Any) -> Any:
        largest = (x * weight).max(1)
        (grad,) = autograd.grad(largest.values.sin().sum(), weight)
        return grad, largest.indices

    x, compiled = data(device).cos(), torch.compile(step)
    wanted = compiled(x)
    torch.save_program(tmp_path, {"step": compiled})
    found = torch.load_program(tmp_path, device).run("step", {"x": x})
    same(found, wanted)


# Compilation


def test_what_a_fallback_is_made_of_may_be_fused_as_well() -> None:
    outer = Fused("outer", RMS.infer, lambda x, eps: RMS(pointwise.sin(x), eps=eps))
    x = leaf(5, 37)
    assert names(only(lambda: rms(x, outer))) == ["rms"]
    same(rms(data("cpu"), outer), plain(data("cpu").sin()))


def test_a_shape_that_a_template_does_not_support_is_the_fallback(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(TEMPLATE), "supports", lambda self, node, target: node.spec.shape[1] <= 64)
    narrow, wide = leaf(5, 64), leaf(5, 65)
    assert names(only(lambda: rms(narrow))) == ["rms"]
    assert "rms" not in names(only(lambda: rms(wide)))


def test_the_key_of_a_program_tells_values_apart() -> None:
    x = leaf(5, 37)
    settle()
    program_cache.clear()
    for which in (0, 1, 0):
        rms(x)[which].sum()
        kept = rms(x)[which]
        settle()
        del kept
    assert len(state.default.programs) == 2


# The first of its kind: an extreme and its position


def test_an_extreme_and_its_position_are_found_on_one_walk() -> None:
    x = leaf(8, 300)
    program = only(lambda: x.max(1))
    (kernel,) = program.kernels
    assert kernel.name == "rows_largest"
    assert sum(kernel.writes) == 2
    assert kernel.wgsl.count("= b0[") == 3, "each vector of a row is read once"


@pytest.mark.parametrize("name", ["max", "min"])
def test_extremes_of_hard_rows(name: str, device: str) -> None:
    inf, nan = float("inf"), float("nan")
    rows = [[-inf, -inf], [inf, inf], [nan, 1.0], [1.0, nan], [nan, nan], [-inf, inf], [0.0, -0.0], [2.0, 2.0]]
    found = getattr(torch.tensor(rows, device=device, requires_grad=True), name)(1)
    extreme = {"max": np.max, "min": np.min}[name](np.array(rows), axis=1)
    position = {"max": np.argmax, "min": np.argmin}[name](np.array(rows), axis=1)
    np.testing.assert_array_equal(found.values.numpy(force=True), extreme)
    np.testing.assert_array_equal(found.indices.numpy(force=True), position)


def test_an_explanation_names_the_op() -> None:
    x = leaf(8, 300)
    (kernel,) = torch.explain(x.max(1).values).kernels
    assert "largest" in kernel.work


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_the_first_nan_behind_a_fused_op_is_found(device: str) -> None:
    x = data(device, grad=True)
    with autograd.detect_anomaly():
        total = (x - 2).sqrt().max(1).values.sum()  # A square root of what is below 0.
        with pytest.raises(RuntimeError, match="SqrtBackward0"):
            total.backward()
