"""`pywebgpu bench`: its numbers, its table, and what a steady step may cost."""

import gc
import json
from typing import Any

import pytest

import pywebgpu
from pywebgpu import devices, realize
from pywebgpu.bench import main, measure, report, workloads

KEYS = [
    "name", "host", "device", "adapter", "ms", "ms_min", "ms_max", "first_ms", "host_ms", "dispatches", "submits",
    "buffers_created", "pipelines_created", "ffi_calls", "peak_bytes", "live_bytes", "steps", "loss_first", "loss_last",
    "peers",
]  # fmt: skip
TRAINED = ("mlp", "gpt", "gpt1", "cnn")
MOST_DISPATCHES = {"pointwise": 1, "matmul": 1, "mlp": 12}
LONG_RUN = 2000


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[dict[str, Any]]:
    assert main([*arguments, "--json"]) == 0
    found: list[dict[str, Any]] = json.loads(capsys.readouterr().out)
    return found


@pytest.mark.parametrize("device", ["cpu", "null"])
@pytest.mark.parametrize("name", workloads.WORKLOADS)
def test_a_workload_gives_all_numbers(name: str, device: str, capsys: pytest.CaptureFixture[str]) -> None:
    (one,) = run(capsys, name, "--device", device, "--steps", "3", "--no-peers")
    assert list(one) == KEYS
    assert (one["name"], one["host"], one["device"], one["steps"]) == (name, "native", device, 3)
    assert 0 < one["ms_min"] <= one["ms"] <= one["ms_max"]
    assert 0 < one["host_ms"] <= one["ms_max"]
    assert one["first_ms"] > 0
    assert one["peak_bytes"] >= one["live_bytes"] > 0
    assert one["dispatches"] > 0
    assert one["submits"] == 1
    assert one["buffers_created"] == one["pipelines_created"] == 0
    assert one["peers"] == {}
    if device == "null":
        assert one["loss_first"] is one["loss_last"] is None
        assert one["dispatches"] <= MOST_DISPATCHES.get(name, one["dispatches"])
    elif name in TRAINED:
        assert one["loss_last"] < one["loss_first"]
    else:
        assert one["loss_last"] == one["loss_first"]


@pytest.mark.parametrize("name", workloads.WORKLOADS)
def test_losses_are_those_of_the_peer(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    (one,) = run(capsys, name, "--device", "cpu", "--steps", "1")
    peer = one["peers"]["torch-cpu"]
    assert peer["ms"] > 0
    assert peer["threads"] >= 1
    assert peer["version"].startswith("2.")
    assert one["loss_first"] == pytest.approx(peer["loss_first"], rel=1e-4)
    assert one["loss_last"] == pytest.approx(peer["loss_last"], rel=1e-4)


@pytest.mark.parametrize("device", ["cpu", "null"])
def test_live_bytes_stay_flat(device: str) -> None:
    opened = devices.open_device(device)
    step = workloads.WORKLOADS["mlp"].build(pywebgpu, device)
    for _ in range(10):
        step()
    gc.collect()  # What earlier tests left behind goes now.
    live = opened.counters["live_bytes"]
    opened.counters["peak_bytes"] = live
    peak, programs = 0, realize.counters["program_misses"]
    for at in range(LONG_RUN):
        step()
        assert opened.counters["live_bytes"] == live
        peak = peak or opened.counters["peak_bytes"]
        assert opened.counters["peak_bytes"] == peak, f"more memory in step {at}"
    assert realize.counters["program_misses"] == programs


def test_the_table_fits_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["pointwise", "mlp", "--device", "cpu", "--steps", "1"]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    lines = captured.out.splitlines()
    assert max(map(len, lines)) <= 100
    assert lines[0].startswith("host native, device cpu: NumPy")
    rows = [line.split() for line in lines if line.startswith(("workload", "pointwise", "mlp"))]
    assert len(rows) == 3
    assert {len(row) for row in rows} == {len(rows[0])}
    assert rows[0][-2:] == ["torch", "ratio"]


def test_the_table_tells_of_losses_that_are_not_the_peers() -> None:
    peer = {"ms": 1.0, "version": "2.0", "threads": 2, "loss_first": 2.3, "loss_last": 2.3}
    numbers = dict.fromkeys(KEYS, 1) | {"name": "mlp", "host": "native", "device": "cpu", "adapter": None}
    numbers |= {"loss_first": 2.3, "loss_last": 2.2, "peers": {"torch-cpu": peer}}
    found = report.table([measure.Measurement(**numbers)])
    assert "mlp: the last loss is 2.2, and PyTorch's is 2.3" in found
    assert "the first loss" not in found


@pytest.mark.parametrize("arguments", [["nothing"], ["mlp", "--steps", "0"], ["--steps", "x"], ["--device", "cuda"]])
def test_bad_arguments_are_refused(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(arguments)
    assert stopped.value.code == 2
    assert "Traceback" not in capsys.readouterr().err


def test_each_step_of_a_count_is_one_step() -> None:
    counters = {"dispatches": 0}

    def step() -> Any:
        counters["dispatches"] += 7
        return pywebgpu.tensor(1.5, device="cpu")

    engine = measure.Engine(submit=lambda: None, wait=lambda: None, counters=counters)
    samples = measure.sample(step, engine, steps=4)
    assert len(samples) == measure.WARM_UP + 4
    assert {one.counts["dispatches"] for one in samples} == {7}
    assert measure.summary(samples)["loss_last"] == 1.5
