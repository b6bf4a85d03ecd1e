"""What a device keeps: buffers that wait, scratch, bind groups, results that come with their run.

The table is held by the devices in JavaScript, too: js_bridge/test/device_memory.test.mjs.
"""

import json
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import pywebgpu as torch
from pywebgpu import devices
from pywebgpu.compiler.driver import compile_graph
from pywebgpu.devices import timing
from pywebgpu.devices.pool import Pool, Scratch, size_class
from pywebgpu.ir.graph import Spec
from tests.unit.compiled import leaf

TABLE = json.loads((Path(__file__).parents[1] / "cases" / "device_memory.json").read_text())
SPEC = Spec((4,), torch.float32)


def named(rows: list[dict[str, Any]]) -> Any:
    return pytest.mark.parametrize("row", rows, ids=lambda row: row["name"])


class Made:
    """Buffers by number."""

    def __init__(self, budget: int) -> None:
        self.sizes: list[int] = []
        self.ended: list[int] = []
        self.pool = Pool(self._make, self.ended.append, budget)

    def _make(self, size: int) -> int:
        self.sizes.append(size)
        return len(self.sizes) - 1


def test_size_classes() -> None:
    assert [[nbytes, size_class(nbytes)] for nbytes, _ in TABLE["size_classes"]] == TABLE["size_classes"]


@named(TABLE["pools"])
def test_a_pool(row: dict[str, Any]) -> None:
    made = Made(row["budget"])
    for what, *rest in row["steps"]:
        match what:
            case "take":
                assert made.pool.take(rest[0]) == rest[1]
            case "give":
                made.pool.give(rest[0], made.sizes[rest[0]])
            case "refuse":
                with pytest.raises(AssertionError, match="comes back"):
                    made.pool.give(rest[0], made.sizes[rest[0]])
            case "clear":
                made.pool.clear()
            case "ended":
                assert made.ended == rest[0]
            case "waiting":
                assert made.pool.waiting_bytes == rest[0]
            case _:
                raise AssertionError(what)


@named(TABLE["scratch"])
def test_scratch(row: dict[str, Any]) -> None:
    made = Made(1 << 20)
    scratch, loaded = Scratch(made.pool), {}
    for what, *rest in row["steps"]:
        match what:
            case "load":
                loaded[rest[0]] = scratch.take({int(buffer): nbytes for buffer, nbytes in rest[1].items()})
                assert {str(buffer): chunk.buffer for buffer, chunk in loaded[rest[0]].items()} == rest[2]
            case "drop":
                scratch.give(loaded[rest[0]].values())
            case "bytes":
                assert scratch.nbytes == rest[0]
            case "waiting":
                assert made.pool.waiting_bytes == rest[0]
            case _:
                raise AssertionError(what)


def loaded_on(opened: Any) -> Any:
    """A Program with an input and an output of four floats."""
    return opened.load(compile_graph((torch.neg(leaf(4))._node,), opened.target))


@pytest.mark.parametrize("device", ["webgpu"])
@named(TABLE["runs"])
def test_runs(row: dict[str, Any], device: str) -> None:
    opened: Any = devices.open_device(device)
    opened.synchronize()
    loaded = loaded_on(opened)
    buffers = {number: opened.upload(bytes(16), SPEC) for run in row["runs"] for number in run}
    groups, submits = [], []
    for (given, out), read in zip(row["runs"], row.get("read", [0] * len(row["runs"])), strict=True):
        before = dict(opened.counters)
        opened.run(loaded, [buffers[given]], [], [buffers[out]])
        if read:
            assert len(opened.download(buffers[read], SPEC)) == 16
        groups.append(opened.counters["bind_groups_created"] - before["bind_groups_created"])
        submits.append(opened.counters["submits"] - before["submits"])
    assert groups == row["groups"]
    assert submits == row["submits"]


@pytest.mark.parametrize("device", ["webgpu"])
def test_what_came_with_a_run_is_not_what_was_written_there_since(device: str) -> None:
    opened: Any = devices.open_device(device)
    loaded, given = loaded_on(opened), opened.upload(bytes(16), SPEC)
    (out,) = opened.run(loaded, [given], [], [None])
    opened.download(out, SPEC)
    opened.run(loaded, [given], [], [out])
    handle, written = out.handle, []
    del out
    while not written or written[-1].handle is not handle:
        written.append(opened.upload(bytes(range(16)), SPEC))
        assert len(written) < 1000
    assert opened.download(written[-1], SPEC) == bytes(range(16))


@named(TABLE["timestamps"])
def test_timestamps(row: dict[str, Any]) -> None:
    gpu = SimpleNamespace(create_query_set=lambda type, count: count, create_buffer=lambda size, usage: size)
    stamps: Any = timing.Stamps(gpu, row["steps"], 1.0, Counter())
    assert stamps._sets == row["sets"]
    stamps._sets = [*range(len(row["sets"]))]
    for step, (which, first) in row["around"]:
        assert [*stamps.around(step).values()] == [which, first, first + 1]
