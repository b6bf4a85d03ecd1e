"""Programs as JSON: there and back, for the bridge's eyes, and of one version."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

import pywebgpu as torch
from pywebgpu.compiler import serialization, wire
from pywebgpu.compiler.driver import compile_graph
from pywebgpu.compiler.program import Dispatch, Program
from pywebgpu.errors import CompileError
from pywebgpu.kernels import marks
from pywebgpu.kernels.kernel import Limits
from pywebgpu.kernels.target import Target
from tests.unit import compiled

BRIDGE = Path(__file__).parents[2] / "js_bridge"


def step() -> Program:
    """A linear layer with its update in place: inputs, outputs, a host number, something inside."""
    x, weight = compiled.leaf(4, 6), compiled.leaf(6, 5, grad=True)

    def run() -> Any:
        loss = (x @ weight).tanh().sum()
        loss.backward()
        with torch.no_grad():
            weight.sub_(weight.grad * 0.1)
        weight.grad = None
        return loss

    return compiled.only(run)


def test_reading_back_what_was_written_gives_the_same_json() -> None:
    text = wire.to_json(step())
    assert wire.to_json(serialization.from_json(text)) == text


def test_bridge_sees_buffers_and_not_slots() -> None:
    program = step()
    data = wire.as_data(program)
    for (kernel, *buffers), dispatch in zip(data["steps"], program.steps, strict=True):
        assert isinstance(dispatch, Dispatch)
        assert kernel == dispatch.kernel
        if dispatch.numbers:
            assert data["blocks"][buffers.pop()] == list(dispatch.numbers)
        assert buffers == [program.slots[slot].buffer for slot in dispatch.slots]
        assert max(buffers) < len(data["sizes"])
    assert [value["buffer"] for value in data["inputs"]] == [program.slots[slot].buffer for slot in program.inputs]
    assert data["written"], "the weight is updated in its own memory"
    for output, given in data["written"]:
        assert data["outputs"][output]["buffer"] == data["inputs"][given]["buffer"]
    assert len(data["numbers"]) == len(program.numbers) > 0 < len(data["blocks"])


def test_bindings_have_a_letter_each_in_order() -> None:
    for kernel, data in zip(step().kernels, wire.as_data(step())["kernels"], strict=True):
        declared = dict(re.findall(r"@binding\((\d+)\) var<([a-z_, ]+)>", kernel.wgsl))
        kinds = {"storage, read": "r", "storage, read_write": "w", "uniform": "n"}
        assert [kinds[declared[str(at)]] for at in range(len(declared))] == list(data["bindings"].replace("f", "w"))


def test_the_work_of_large_products_is_told() -> None:
    large, small = compiled.leaf(512, 512), compiled.leaf(8, 8)
    program = compiled.only(lambda: (large @ large, small @ small))
    data = wire.as_data(program)
    assert sorted(kernel.get("work", 0) for kernel in data["kernels"]) == [0, 512**3]
    assert [kernel.work for kernel in serialization.from_data(data).kernels] == [one.work for one in program.kernels]


def test_another_version_is_refused() -> None:
    data = json.loads(wire.to_json(step())) | {"version": wire.VERSION + 1}
    with pytest.raises(CompileError, match=f"a program of version {wire.VERSION + 1}"):
        serialization.from_json(json.dumps(data))


def test_a_program_of_the_cpu_device_stays_in_python() -> None:
    roots = (torch.ones(3, device="null").exp()._node,)
    program = compile_graph(roots, Target(wgsl=False, limits=Limits()))
    with pytest.raises(CompileError, match="cannot leave Python"):
        wire.to_json(program)


def test_both_ends_have_one_version_and_the_same_commands() -> None:
    script = (BRIDGE / "program.mjs").read_text(encoding="utf-8")
    assert f"VERSION = {wire.VERSION};" in script
    source = Path(wire.__file__).parents[1] / "devices" / "bridged.py"
    names, values = re.search(r"^((?:[A-Z]+, )+[A-Z]+) = ([\d, ]+)  # the commands", source.read_text(), re.M).groups()
    theirs = dict(re.findall(r"^const ([A-Z]+) = (\d+);", (BRIDGE / "python.mjs").read_text(), re.M))
    assert dict(zip(names.split(", "), values.split(", "), strict=True)) == theirs


def test_the_bridge_has_as_many_words_of_its_own_as_kernels_use() -> None:
    words = re.search(r"^const WORDS = (\d+);", (BRIDGE / "bridge.mjs").read_text(encoding="utf-8"), re.M)
    assert words is not None
    assert int(words[1]) == marks.WORDS
