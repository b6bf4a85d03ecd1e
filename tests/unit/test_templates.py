"""Templates: each of their launches gives the values of device cpu, and a tuning chooses among them."""

from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import pywebgpu as torch
from pywebgpu import composites, devices
from pywebgpu.compiler import kernel_table
from pywebgpu.compiler.passes import split_scans
from pywebgpu.composites import attention_parts, row_writes
from pywebgpu.io import block_formats
from pywebgpu.ir.graph import Fused, Structural
from pywebgpu.kernels import launch, templates
from pywebgpu.kernels.kernel import Limits
from pywebgpu.kernels.launch import Case, Launch, Problem
from pywebgpu.kernels.target import SUBGROUPS, Features, Target
from pywebgpu.kernels.template import Template
from pywebgpu.kernels.templates import attention
from pywebgpu.models import quantized
from pywebgpu.nn import functional
from pywebgpu.ops import indexing, scattering
from pywebgpu.runtime import program_cache, state
from pywebgpu.tensor.apply import apply
from tests.unit.compiled import NULL, for_limits, only, programs

Subject = Callable[[str], Any]  # a device -> results that the template computes there

DEFAULT = Limits()
OPS = (Fused, Structural)
FEW = 6  # launches of a template that are run on a device; all of them are compiled
TARGETS = {
    "default": Target(True, DEFAULT),
    "large": Target(True, replace(DEFAULT, bindings=16, shared_bytes=48 << 10), Features(kind="discrete")),
    "subgroups": Target(True, DEFAULT, Features((SUBGROUPS,), (8, 32), family="nvidia", translator="tint")),
    "emulated": Target(True, replace(DEFAULT, emulated=True), Features((SUBGROUPS,), (4, 4), family="swiftshader")),
    "small": Target(True, replace(DEFAULT, workgroup_size=100, shared_bytes=8 << 10)),
}

WORKGROUPS = {
    "attention_parts": 256
}  # that a template needs: where they are smaller, its subject is computed otherwise


def data(device: str, *shape: int) -> Any:
    """Numbers that differ from their neighbours, the same on every device."""
    count = torch.Size(shape).numel()
    return ((torch.arange(count) * 37 % 101).to(torch.float32) / 25 - 2).reshape(shape).to(device)


def matmul(m: int, n: int, k: int, batches: int = 1) -> Subject:
    return lambda device: (data(device, batches, m, k) @ data(device, batches, k, n)).relu()


def added(updates: int, columns: int = 3) -> Subject:
    """Rows added by number, many to each."""
    return lambda device: data(device, 7, columns).index_add(
        0, torch.arange(updates, device=device) % 7, data(device, updates, columns)
    )


def added_in_place(rows: int, columns: int, updates: int, different: int) -> Subject:
    """Rows added by number into many more."""
    return lambda device: data(device, rows, columns).index_add(
        0, (torch.arange(updates).to(device) * 5 % 23) % different, data(device, updates, columns)
    )


def overwritten(x: Any) -> Any:
    """A result in its operand's buffer, then a slice of it."""
    x.mul_(2).add_(1)
    x[1:5, ::2] += x[2:6, 1::2]
    return x


def sums_on_the_way(device: str) -> Any:
    x, g = data(device, 37, 5), data(device, 37, 9)
    return x.t() @ g, g.sum(0)


def halves(device: str, *shape: int) -> Any:
    """Whole numbers, whose sums and products two bytes hold."""
    count = torch.Size(shape).numel()
    return (torch.arange(count) * 7 % 11 - 5).to(torch.float16).reshape(shape).to(device)


def half_products(device: str) -> Any:
    x, g = halves(device, 36, 12), halves(device, 36, 20)
    return (x.t() @ g).relu(), g.sum(0), x @ halves(device, 12, 1)


def half_attention(device: str) -> Any:
    """Of one key: its value for each row."""
    key = halves(device, 1, 2, 1, 8)
    return functional.scaled_dot_product_attention(halves(device, 1, 2, 9, 8), key, key)


def attended(*shape: int, wide: int = 0, grad: bool = False, **options: Any) -> Subject:
    """Attention over equal operands, or what goes back to them; `wide`: the width of the value."""

    def subject(device: str) -> Any:
        query, key = data(device, *shape), data(device, *shape).flip(2)
        value = data(device, *shape[:3], wide or shape[3]).flip(1)
        query, key, value = (x.detach().requires_grad_(grad) for x in (query / 4, key / 4, value))
        out = functional.scaled_dot_product_attention(query, key, value, **options)
        return torch.autograd.grad(out, [query, key, value], out.detach().cos()) if grad else out

    return subject


def looked_up(rows: int, keys: int, width: int, wide: int, *, is_masked: bool = False, **options: Any) -> Subject:
    """Attention of few rows of four heads over many keys of two; a mask shows the first row none, the second some."""

    def subject(device: str) -> Any:
        query, key = data(device, 2, 4, rows, width), data(device, 2, 2, keys, width).flip(2)
        limits = torch.arange(rows, device=device).unsqueeze(1) * 70
        mask = torch.arange(keys, device=device) < limits if is_masked else None
        return functional.scaled_dot_product_attention(
            query / 4, key / 4, data(device, 2, 2, keys, wide), attn_mask=mask, enable_gqa=True, **options
        )

    return subject


def written(heads: int, count: int, start: int) -> Subject:
    """Neighbouring rows of two values at a computed place, of which one is computed on the way."""

    def subject(device: str) -> Any:
        first, place = torch.tensor(start, device=device), {"axis": 2}
        results = []
        for number in range(2):
            rows = data(device, 1, heads, count, 4).flip(number + 1) * (number + 1)
            results.append(apply(row_writes.write, data(device, 1, heads, 7, 4) + 1, rows, first, **place))
        return results

    return subject


def weighed(x: Any, format: str, rows: int, scale: float, device: str) -> Any:
    """x times a quantised weight."""
    blocks = block_formats.quantize(data("cpu", rows, x.shape[-1]) / scale, block_formats.FORMATS[format])
    return quantized.QuantizedLinear(quantized.Planes.of_blocks(blocks, format).to(device))(x) / 16


def decoded(format: str, rows: int, columns: int = 512, weights: int = 1) -> Subject:
    """Few rows times quantised weights of 37 rows, with work on the results."""

    def subject(device: str) -> Any:
        x, product = data(device, rows, columns) / 4, 1.0
        for number in range(weights):
            product = product * weighed(x, format, 37, 3 + number, device)
        return product + 1

    return subject


def normed(format: str, rows: int, columns: int, *, is_kept: bool = False) -> Subject:
    """Few rows, each divided by the root of its mean square, times quantised weights of several numbers of rows."""

    def subject(device: str) -> Any:
        x = functional.rms_norm(data(device, rows, columns), (columns,), data(device, columns))
        products = [weighed(x, format, n, 3 + number, device) for number, n in enumerate((37, 64, 37))]
        return [products[0] * products[2] + 1, products[1], *([x] if is_kept else [])]

    return subject


SUBJECTS: dict[str, list[Subject]] = {
    "pointwise": [
        lambda device: [(x := data(device, 7, 13)).sin(), x.exp() + data(device, 13)],
        lambda device: [(x := halves(device, 7, 13)) * 2, x > 1, x.float() + 1],
        lambda device: [(x := halves(device, 7, 16)) * 2, x > 1, x.float() + 1],
        lambda device: [(x := halves(device, 7, 14)) * 2, x.float() + 1],
        lambda device: [(x := data(device, 6, 12)) * data(device, 12) + data(device, 6, 1), x > 0, (x * 9).int()],
        lambda device: data(device, 12, 6).t() + data(device, 6, 12).flip(1),
        lambda device: functional.pad(data(device, 6, 7), (1, 4)) + data(device, 12),
        lambda device: functional.embedding(torch.arange(6).to(device) % 4, data(device, 4, 8)).half() * 3,
        lambda device: torch.cat([data(device, 3, 4), data(device, 5, 4)]) + data(device, 2, 16)[:, 3:7].reshape(8, 1),
        lambda device: overwritten(data(device, 8, 6)),
    ],
    "rows": [
        lambda device: data(device, 5, 37).softmax(-1),
        lambda device: data(device, 70, 11).sum(0),
        lambda device: data(device, 9, 130).argmax(1),
        lambda device: (x := halves(device, 9, 36)) - x.amax(1, keepdim=True),
    ],
    "matmul": [matmul(7, 13, 5), matmul(33, 20, 70, 2), sums_on_the_way, half_products, matmul(20, 12, 330, 2)],
    "scan": [lambda device: data(device, 3, 77).cumsum(-1)],
    "scan_blocks": [
        lambda device: [data(device, 3, 5000).cumsum(-1), halves(device, 3, 5000).cummax(-1)[0]],
        lambda device: [data(device, 40_007).sign().cumprod(-1), data(device, 40_007).cummin(-1)[1]],
        lambda device: (data(device, 2, 20_000) * 9).long().flip(1).cumsum(-1),
    ],
    "scan_chain": [],  # GPUs have it: see test_kernels_of_gpus.py.
    "scatter": [added(20), added(20, 8)],
    "scatter_sorted": [added(4100), added(9000, 2)],
    "fold_sorted": [
        added(9000),
        lambda device: halves(device, 3, 2).index_add(
            0, torch.arange(9000).to(device) // 3000, halves(device, 9000, 2)
        ),
    ],
    "scatter_blocks": [added_in_place(4000, 36, 70, 20), added_in_place(9000, 33, 30, 2)],
    "scatter_carried": [added_in_place(4000, 36, 70, 3), added_in_place(4000, 1028, 33, 2)],
    "scatter_few": [],  # GPUs have it: see below.
    "sort_block": [lambda device: data(device, 3, 300).argsort(-1), added_in_place(4000, 32, 300, 9)],
    "sort_merge": [lambda device: data(device, 600).argsort(-1)],
    "attention": [attended(1, 2, 37, 16, is_causal=True), attended(2, 1, 20, 10, wide=7), half_attention],
    "attention_backward": [
        attended(1, 2, 37, 16, is_causal=True, grad=True),
        attended(2, 1, 20, 10, wide=7, grad=True),
    ],
    "attention_parts": [
        looked_up(2, 150, 16, 16, is_masked=True),
        looked_up(1, 1100, 8, 24),
        looked_up(3, 70, 64, 128, is_causal=True),
    ],
    "quantized": [
        decoded("q4_1", 1, 576, weights=2),
        decoded("q8_0", 3, 96),
        *[decoded(name, 1) for name in ("q4_0", "q4_k", "q6_k")],
        normed("q4_1", 1, 96),
        normed("q4_1", 1, 2080),
        normed("q8_0", 3, 1056, is_kept=True),
    ],
    "row_writes": [written(2, 5, 3), written(1, 1, 6), written(3, 2, -1)],
    "pack": [],  # It fills gaps, which nobody reads; test_suballocation.py looks into them.
}


@pytest.fixture(autouse=True)
def _kernels_of_every_adapter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attention, "STORED", 0)  # Adapters that are a CPU have kernels for it, too.
    monkeypatch.setattr(split_scans, "CHAINED", ())
    monkeypatch.setattr(scattering, "FEW", 0)  # GPUs do without those that put numbers in order.


@contextmanager
def launched(template: Template, at: int) -> Any:
    """Kernels of a template are launched as the variant number `at`, of all that there are."""
    choose = launch.choose

    def chosen(of: Template, problem: Problem, target: Target) -> Launch:
        found = of.launches(problem, target)
        return found[at % len(found)] if of is template else choose(of, problem, target)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernel_table.launch, "choose", chosen)
        patch.setattr(state.default, "is_stored", False)
        program_cache.clear()
        yield
        program_cache.clear()


def values(results: Any) -> list[Any]:
    return [one.numpy(force=True) for one in (results if isinstance(results, list | tuple) else [results])]


CASES = [(template, subject) for template in templates.load_all() for subject in SUBJECTS[template.name]]
IDS = [f"{template.name}{SUBJECTS[template.name].index(subject)}" for template, subject in CASES]


def test_every_template_is_tried() -> None:
    assert {template.name for template in templates.load_all()} == SUBJECTS.keys()


def test_an_entry_with_an_op_is_of_a_template_of_that_op_alone() -> None:
    modules = (indexing, scattering, composites.quantized, attention_parts, row_writes)
    ops = [value for module in modules for value in vars(module).values() if isinstance(value, OPS)]
    for entry in templates.ENTRIES:
        claimed = [op for op in ops if entry.template.matches(op, TARGETS["default"])]
        wanted = [op for op in ops if entry.op in (op, op.name)]
        assert entry.op is None or (claimed == wanted and len(wanted) == 1), entry.template.name


def problems(template: Template, subject: Subject, target: Target) -> list[tuple[Problem, list[Launch]]]:
    """What the template's kernels of a subject are chosen for, and the launches there are."""
    found: list[tuple[Problem, list[Launch]]] = []
    choose = launch.choose

    def seen(of: Template, problem: Problem, on: Target) -> Launch:
        asked = (problem, list(of.launches(problem, target))) if of is template else None
        if asked and asked not in found:  # A pass may ask as well.
            found.append(asked)
        return choose(of, problem, on)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernel_table.launch, "choose", seen)
        patch.setattr(state.default, "is_stored", False)
        programs(lambda: subject("null"))
    assert found, f"{template.name} computes nothing of its subject"
    return found


@pytest.mark.one_in(13)
@pytest.mark.parametrize(("template", "subject"), CASES, ids=IDS)
@pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS.keys())
def test_every_launch_keeps_to_the_limits(
    template: Template, subject: Subject, target: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    if target.limits.workgroup_size < WORKGROUPS.get(template.name, 1):
        pytest.skip("no workgroup is as large as its kernels need")
    monkeypatch.setattr(NULL, "target", target)
    for _, found in problems(template, subject, target):
        assert len({*found}) == len(found), "a launch is listed once"
        for at in range(len(found)):
            with launched(template, at):
                programs(lambda: subject("null"))


@pytest.mark.one_in(webgpu=3)
@pytest.mark.parametrize(("template", "subject"), CASES, ids=IDS)
def test_launches_give_the_values_of_device_cpu(
    template: Template, subject: Subject, device: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if device == "cpu":
        pytest.skip("device cpu has no kernels")
    expected = values(subject("cpu"))
    target = devices.open_device(device).target
    monkeypatch.setattr(NULL, "target", target)
    count = max(len(found) for _, found in problems(template, subject, target))
    for at in sorted({round(step * (count - 1) / (FEW - 1)) for step in range(FEW)}):
        with launched(template, at):
            for one, wanted in zip(values(subject(device)), expected, strict=True):
                np.testing.assert_allclose(one, wanted, rtol=1e-5, atol=1e-4, err_msg=f"launch {at} of {count}")


def test_a_tuning_chooses_among_the_launches_that_a_target_can_run() -> None:
    template = templates.load_all()[2]
    problem = Problem((1, 300, 512, 64), ("float32",), "nn")
    plain = TARGETS["default"]
    rule, other, *_ = template.launches(problem, plain)
    assert launch.choose(template, problem, plain) == rule
    where = launch.case(template, problem)
    assert where == Case("matmul", (1, 512, 512, 64), ("float32",), "nn")
    assert launch.choose(template, problem, replace(plain, tuning={where: other})) == other
    impossible = Launch("", 4096, (4096, 16, 16), (4, 4))
    assert launch.choose(template, problem, replace(plain, tuning={where: impossible})) == rule


def test_a_tuning_changes_the_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    subject = SUBJECTS["matmul"][1]
    rule = only(lambda: subject("null")).kernels[-1]
    template = templates.load_all()[2]
    ((problem, found),) = problems(template, subject, NULL.target)
    tuned = replace(NULL.target, tuning={launch.case(template, problem): found[-1]})
    monkeypatch.setattr(NULL, "target", tuned)
    monkeypatch.setattr(state.default, "is_stored", False)
    other = only(lambda: subject("null")).kernels[-1]
    assert other.wgsl != rule.wgsl


def test_an_op_without_a_template_is_refused() -> None:
    selection = templates.Selection(TARGETS["default"])
    assert selection.find(indexing.argsort) is None
    assert for_limits(DEFAULT, torch.zeros(3, device="null").argsort()).steps
