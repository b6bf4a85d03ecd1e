"""Kernels as GPUs have them, on whatever is there: also where a CPU plays the GPU, which has others.

Apart from test_templates.py because not every software driver compiles them.
"""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import pywebgpu as torch
from pywebgpu import devices
from pywebgpu.kernels import marks, prelude, templates
from pywebgpu.kernels.target import Features
from pywebgpu.kernels.template import Template
from pywebgpu.kernels.templates import scan_blocks
from pywebgpu.nn import functional
from pywebgpu.ops import scattering
from pywebgpu.runtime import program_cache
from tests.unit.compiled import NULL, programs
from tests.unit.test_templates import TARGETS, Subject, data, halves, launched, problems, values

ROWS: dict[str, Subject] = {
    "held": lambda device: data(device, 5, 768).softmax(-1),
    "held_odd": lambda device: functional.layer_norm(data(device, 70, 67), (67,), data(device, 67)),
    "held_in_part": lambda device: data(device, 3, 1028).log_softmax(-1),
    "in_strips": lambda device: [(x := data(device, 3, 20004)).softmax(-1), x.amax(-1), x.sum(-1), x.argmin(-1)],
    "in_strips_odd": lambda device: data(device, 2, 20003).softmax(-1),
    "columns": lambda device: [(x := data(device, 601, 37)).sum(0), x.prod(0), x.argmax(0)],
    "both_ends": lambda device: data(device, 6, 9, 70).sum((0, 2)),
    "halves": lambda device: (x := halves(device, 9, 2056)) - x.amax(1, keepdim=True),
    "halves_odd": lambda device: (x := halves(device, 9, 2050)) - x.amax(1, keepdim=True),
    "loss": lambda device: differentiated_loss(data(device, 7, 3001), torch.arange(7).to(device) * 400),
}


def differentiated_loss(x: Any, classes: Any) -> Any:
    loss = functional.cross_entropy(x.requires_grad_(), classes)
    loss.backward()
    return loss, x.grad


@pytest.mark.parametrize("name", ROWS)
def test_rows_are_folded_on_a_gpu_as_on_device_cpu(name: str, device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where a CPU plays the GPU, which visits columns one by one."""
    opened: Any = devices.open_device(device)
    if device == "cpu":
        pytest.skip("device cpu has no kernels")
    limits = replace(opened.target.limits, emulated=False)
    monkeypatch.setattr(opened, "target", replace(opened.target, limits=limits))
    program_cache.clear()
    for one, wanted in zip(values(ROWS[name](device)), values(ROWS[name]("cpu")), strict=True):
        np.testing.assert_allclose(one, wanted, rtol=1e-5, atol=1e-4)
    program_cache.clear()


SMALL = "small"  # Its workgroups have too few lanes for blocks that tell each other what they come to.
SCANS: dict[str, Subject] = {
    "one dispatch": lambda device: [data(device, 3, 9000).cumsum(-1), data(device, 32_767).cummax(-1)[0]],
    "one dispatch, halves": lambda device: [halves(device, 2, 9000).cummin(-1)[0], halves(device, 4001).cumsum(-1)],
    "rows of one block": lambda device: data(device, 5, 9001).cumsum(-1),
    "blocks": lambda device: [
        data(device, 100_003).sign().cumprod(-1),
        (data(device, 2, 40_000) * 9).long().cumsum(-1),
    ],
    "blocks that wait": lambda device: [
        (data(device, 3, 50_003) * 9).int().flip(1).cumsum(-1),
        halves(device, 100_004)[5:].cummin(-1)[0],
        (data(device, 70_001) * 2 + 1).cumsum(-1),
    ],
    "larger blocks": lambda device: [
        data(device, 600_000).cummax(-1)[0],
        (data(device, 5_000_001) + 2).cumsum(-1)[-9:],
    ],
    "logarithms": lambda device: data(device, 20_000).logcumsumexp(-1),
}


@pytest.mark.parametrize("name", SCANS)
def test_rows_are_scanned_on_a_gpu_as_on_device_cpu(name: str, device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    play_a_gpu(device, monkeypatch)
    for one, wanted in zip(values(SCANS[name](device)), values(SCANS[name]("cpu")), strict=True):
        np.testing.assert_allclose(one, wanted, rtol=1e-5, atol=1e-3)
    program_cache.clear()


def chain() -> Template:
    return next(template for template in templates.load_all() if template.name == "scan_chain")


def play_a_gpu(device: str, monkeypatch: pytest.MonkeyPatch, **features: Any) -> Any:
    opened: Any = devices.open_device(device)
    if device == "cpu":
        pytest.skip("device cpu has no kernels")
    limits = replace(opened.target.limits, emulated=False)
    features = replace(opened.target.features, kind="discrete", **features)
    monkeypatch.setattr(opened, "target", replace(opened.target, limits=limits, features=features))
    return opened


@pytest.mark.parametrize("target", [name for name, target in TARGETS.items() if not target.is_cpu and name != SMALL])
def test_every_launch_of_one_dispatch_keeps_to_the_limits(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(NULL, "target", TARGETS[target])
    template, subject = chain(), lambda device: [data(device, size).cumsum(-1) for size in (100_003, 10**6)]
    for _, launches in problems(template, subject, TARGETS[target]):
        for index in range(len(launches)):
            with launched(template, index):
                programs(lambda: subject("null"))


@pytest.mark.parametrize("lanes", [0, 4], ids=["by workgroup memory", "by shuffles"])
def test_a_block_whose_total_does_not_arrive_is_read_again_with_the_same_bits(
    lanes: int, device: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And no dispatch takes what an earlier one, of another size, left; not even where tags start again."""
    opened = play_a_gpu(device, monkeypatch)
    monkeypatch.setattr(scan_blocks, "in_one_subgroup", lambda features: lanes)
    monkeypatch.setattr(scan_blocks, "PARTS", 64)
    template = chain()
    shapes = (150_007,), (3, 33_001), (40_000,)

    def scans() -> list[bytes]:
        with launched(template, 0):
            xs = [data(device, *shape) + 0.3 for shape in shapes]
            results = [[x.cumsum(-1), x.sign().mul(1.0001).cumprod(-1), x.cummax(-1)[0]] for x in xs]
            return [one.tobytes() for one in values([one for result in results for one in result])]

    first = scans()
    for shape, bits in zip(shapes, first[::3], strict=True):
        expected = (data("cpu", *shape) + 0.3).cumsum(-1).numpy()
        np.testing.assert_allclose(np.frombuffer(bits, "float32").reshape(shape), expected, rtol=1e-5, atol=1e-3)
    opened._gpu.queue.write_buffer(opened._fault, 4 * marks.FAULTS, (0xFFFD0000).to_bytes(4, "little"))
    assert scans() == first
    text = prelude.find("p_mark_wait").text
    impatient = prelude.Helper(text.replace(f"left = {marks.PATIENCE}u", "left = 0u"), (), True)
    monkeypatch.setitem(prelude.HELPERS, "p_mark_wait", impatient)
    prelude.declarations.cache_clear()
    try:
        assert scans() == first
    finally:
        prelude.declarations.cache_clear()


def written(columns: int, updates: int, different: int) -> Subject:
    """Rows added and written by number, some of which are not numbers."""

    def subject(device: str) -> Any:
        rows, x = (torch.arange(updates).to(device) * 5 % 23) % different, data(device, 9000, columns)
        y = data(device, updates, columns)
        y[1, -1] = math.nan
        return x.index_add(0, rows, y), x.index_reduce(0, rows, y, "amax"), x.index_copy(0, rows[:2], y[:2])

    return subject


@pytest.mark.parametrize("shape", [(36, 70, 20), (1028, 33, 2), (33, 30, 1), (34, 300, 3)], ids=str)
def test_few_rows_are_added_on_a_gpu_as_on_device_cpu(
    shape: tuple[int, int, int], device: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: Any = devices.open_device(device)
    if device == "cpu":
        pytest.skip("device cpu has no kernels")
    monkeypatch.setattr(scattering, "FEW", 1024)
    limits = replace(opened.target.limits, emulated=False)
    features = Features(family="nvidia", translator=opened.target.features.translator)
    monkeypatch.setattr(opened, "target", replace(opened.target, limits=limits, features=features))
    expected = values(written(*shape)("cpu"))
    template = next(one for one in templates.load_all() if one.name == "scatter_few")
    for at in range(3):
        with launched(template, at):
            found = values(written(*shape)(device))
            for one, wanted in zip(found, expected, strict=True):
                np.testing.assert_allclose(one, wanted, rtol=1e-5, atol=1e-4)
