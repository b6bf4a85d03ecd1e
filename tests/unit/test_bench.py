"""`pywebgpu bench`: its numbers, its table, and what a steady step may cost."""

import gc
import json
from pathlib import Path
from typing import Any

import pytest

import pywebgpu
from pywebgpu import devices
from pywebgpu.bench import compare, integers, main, measure, report, rooflines, workloads
from pywebgpu.compiler import pipeline
from pywebgpu.hosts import site
from pywebgpu.runtime import state

KEYS = [
    "name", "host", "device", "adapter", "ms", "ms_min", "ms_max", "first_ms", "host_ms", "record_ms", "key_ms",
    "run_ms", "ops", "op_us", "dispatch_us", "dispatches", "submits", "buffers_created", "pipelines_created",
    "bind_groups_created", "ffi_calls", "peak_bytes", "planned_bytes", "bound_bytes", "live_bytes", "steps",
    "loss_first", "loss_last", "peers",
]  # fmt: skip
TRAINED = ("mlp", "gpt", "gpt1", "cnn")
MOST_DISPATCHES = {"pointwise": 1, "matmul": 1, "mlp": 8, "cnn": 17}


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[dict[str, Any]]:
    assert main([*arguments, "--json"]) == 0
    found: list[dict[str, Any]] = json.loads(capsys.readouterr().out)
    return found


@pytest.mark.one_in(3)
@pytest.mark.parametrize("device", ["cpu", "null"])
@pytest.mark.parametrize("name", workloads.WORKLOADS)
def test_a_workload_gives_all_numbers(name: str, device: str, capsys: pytest.CaptureFixture[str]) -> None:
    (one,) = run(capsys, name, "--device", device, "--steps", "3", "--no-peers")
    assert list(one) == KEYS
    assert (one["name"], one["host"], one["device"], one["steps"]) == (name, "native", device, 3)
    assert 0 < one["ms_min"] <= one["ms"] <= one["ms_max"]
    assert 0 < one["host_ms"] <= one["ms_max"]
    assert all(one[part] > 0 for part in ("record_ms", "key_ms", "run_ms", "ops", "op_us", "dispatch_us"))
    assert one["first_ms"] > 0
    assert one["peak_bytes"] >= one["live_bytes"] > 0
    assert one["planned_bytes"] >= one["bound_bytes"] > 0
    assert one["dispatches"] > 0
    assert one["submits"] == 1
    assert one["buffers_created"] == one["pipelines_created"] == one["bind_groups_created"] == 0
    assert one["peers"] == {}
    if device == "null":
        assert one["loss_first"] is one["loss_last"] is None
        assert one["dispatches"] <= MOST_DISPATCHES.get(name, one["dispatches"])
    elif name in TRAINED:
        assert one["loss_last"] < one["loss_first"]
    else:
        assert one["loss_last"] == one["loss_first"]


@pytest.mark.one_in(2)
@pytest.mark.parametrize("precision", ["amp", "amp-bfloat16"])
def test_mixed_precision_is_measured(precision: str, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["gpt1", "mlp", "--device", "cpu", "--steps", "3", "--no-peers", "--compiled"]
    wide, mixed = run(capsys, *arguments), run(capsys, *arguments, "--precision", precision)
    for one, other in zip(wide, mixed, strict=True):
        assert one["loss_first"] != other["loss_first"]
        assert other["loss_last"] == pytest.approx(one["loss_last"], rel=0.02)


@pytest.mark.one_in(6)
@pytest.mark.parametrize("name", ["resnet18", "resnet18-224", "mobilenet", "mobilenet-224", "vit", "lstm"])
def test_networks_on_pictures_compile(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    (one,) = run(capsys, name, "--device", "null", "--steps", "1", "--compiled", "--no-peers")
    assert (one["name"], one["submits"], one["buffers_created"]) == (name, 1, 0)


@pytest.mark.parametrize("device", ["cpu", "null"])
@pytest.mark.parametrize("name", ["mlp", "gpt1"])
def test_a_compiled_step_gives_the_same_numbers(name: str, device: str, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = [name, "--device", device, "--steps", "2", "--no-peers"]
    (eager,) = run(capsys, *arguments)
    (one,) = run(capsys, *arguments, "--compiled")
    assert list(one) == KEYS
    assert (one["ops"], one["op_us"], one["key_ms"]) == (0, 0, 0)
    assert one["record_ms"] > 0
    assert one["run_ms"] > 0
    assert one["submits"] == 1
    assert one["buffers_created"] == one["pipelines_created"] == one["bind_groups_created"] == 0
    for key in ("dispatches", "planned_bytes", "loss_first", "loss_last"):
        assert one[key] == eager[key]


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", workloads.WORKLOADS)
def test_losses_are_those_of_the_peer(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    (one,) = run(capsys, name, "--device", "cpu", "--steps", "1")
    peer = one["peers"]["torch-cpu"]
    assert peer["ms"] > 0
    assert peer["threads"] >= 1
    assert peer["version"].startswith("2.")
    assert one["loss_first"] == pytest.approx(peer["loss_first"], rel=1e-4)
    assert one["loss_last"] == pytest.approx(peer["loss_last"], rel=1e-4)


@pytest.mark.parametrize(("device", "n_steps"), [("cpu", 400), ("null", 2000)])
def test_live_bytes_stay_flat(device: str, n_steps: int) -> None:
    opened = devices.open_device(device)
    step = workloads.WORKLOADS["mlp"].build(pywebgpu, device)
    for _ in range(10):
        step()
    gc.collect()  # What earlier tests left behind goes now.
    live = opened.counters["live_bytes"]
    opened.counters["peak_bytes"] = live
    peak, programs = 0, state.default.counters["program_misses"]
    for at in range(n_steps):
        step()
        assert opened.counters["live_bytes"] == live
        peak = peak or opened.counters["peak_bytes"]
        assert opened.counters["peak_bytes"] == peak, f"more memory in step {at}"
    assert state.default.counters["program_misses"] == programs


def test_the_table_fits_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["pointwise", "mlp", "--device", "cpu", "--steps", "1"]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    lines = captured.out.splitlines()
    assert max(map(len, lines)) <= 100
    assert lines[0].startswith("host native, device cpu: NumPy")
    rows = [line.split() for line in lines if line.startswith(("workload ", "pointwise ", "mlp "))]
    assert len(rows) == 3
    assert {len(row) for row in rows} == {len(rows[0])}
    assert rows[0][-2:] == ["torch", "ratio"]


def test_the_table_tells_of_losses_that_are_not_the_peers() -> None:
    peer = {
        "ms": 1.0,
        "ms_min": 1.0,
        "ms_max": 1.0,
        "version": "2.0",
        "threads": 2,
        "loss_first": 2.3,
        "loss_last": 2.3,
    }
    numbers = dict.fromkeys(KEYS, 1) | {"name": "mlp", "host": "native", "device": "cpu", "adapter": None}
    numbers |= {"loss_first": 2.3, "loss_last": 2.2, "peers": {"torch-cpu": peer}}
    found = report.table([measure.Measurement(**numbers)])
    assert "mlp: the last loss is 2.2, and PyTorch's is 2.3" in found
    assert "the first loss" not in found


def test_a_peer_that_is_not_installed_says_how(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(site, "PEERS", tmp_path)
    command = ["mlp", "--host", "chromium", "--peer", "jax-js"]
    assert main(command) == 2
    assert "from a checkout" in capsys.readouterr().err
    (tmp_path / "jaxjs").mkdir()
    assert main(command) == 2
    assert "make peers" in capsys.readouterr().err


def test_a_peer_with_other_losses_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    samples = {
        "ours": [{"loss": 2.0}, {"loss": 1.5}],
        "theirs": [{"loss": 2.00001}, {"loss": 1.50002}],
    }
    monkeypatch.setattr(compare.torch_baseline, "losses", lambda workload, steps: [])
    errors = compare._errors(workloads.WORKLOADS["mlp"], samples)
    assert errors == {"ours": 0, "theirs": pytest.approx(2e-5)}
    for wrong in (1.501, float("nan")):
        samples["theirs"][1]["loss"] = wrong
        with pytest.raises(compare.CompareError, match="loss of theirs in step 1"):
            compare._errors(workloads.WORKLOADS["mlp"], samples)


def test_turns_go_there_and_back() -> None:
    order: list[str] = []

    def entrant(library: str, ms: float) -> compare.Entrant:
        def take(name: str, steps: int) -> compare.Samples:
            order.append(library * steps)
            return [{"ms": ms, "loss": 1.0, "counts": {"dispatches": 3, "submits": 1}}] * steps

        return compare.Entrant(library, lambda workload: None, take)

    both = [entrant("a", 1.0), entrant("b", 2.0)]
    samples, rounds = compare._turns(workloads.WORKLOADS["mlp"], both, steps=7)
    assert order == ["aaa", "bbb", "a", "b", "b", "a", "aa", "bb", "b", "a", "aa", "bb"]
    assert len(samples["a"]) == measure.WARM_UP + 7
    assert compare._ratio(rounds["a"], rounds["b"]) == 0.5


@pytest.mark.parametrize(
    "arguments",
    [["nothing"], ["mlp", "--steps", "0"], ["--steps", "x"], ["--device", "cuda"], ["--peer", "jax-js"]],
)
def test_bad_arguments_are_refused(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(arguments)
    assert stopped.value.code == 2
    assert "Traceback" not in capsys.readouterr().err


def test_rooflines_are_shares_of_a_copy_and_of_the_fastest_product(device: str, monkeypatch: Any) -> None:
    if device == "cpu":
        with pytest.raises(SystemExit):
            main(["--rooflines", "--device", device])
        return
    monkeypatch.setattr(rooflines, "SMALL", 1 << 15)
    monkeypatch.setattr(rooflines, "SMALL_SIDE", 32)
    monkeypatch.setattr(rooflines, "TOKENS", (16,))
    found = rooflines.run(device)
    assert all(one.ms > 0 and one.rate > 0 for one in found)
    lines = rooflines.table(found).splitlines()
    shares = [float(line.split()[-1]) for line in lines[1 : len(found) + 1]]
    assert shares[0] == 1.0
    assert 1.0 in [share for one, share in zip(found, shares, strict=True) if one.operations]


def test_checks_of_int64_and_two_words_are_timed_in_turns_with_what_they_are_held_against(
    device: str, monkeypatch: Any
) -> None:
    if device == "cpu":
        with pytest.raises(SystemExit):
            main(["--integers", "--device", device])
        return
    monkeypatch.setattr(integers, "SMALL", 1 << 11)
    monkeypatch.setattr(integers, "TURNS", 2)
    monkeypatch.setattr(integers, "RUNS", 1)
    passes, programs = pipeline.DEVICE, state.default.programs
    costs = integers.run(device)
    assert pipeline.DEVICE is passes
    assert state.default.programs is programs
    assert [row.name for row in (*costs["check"], *costs["words"])] == [*integers.CHECKED, *integers.WORDS]
    assert all(len(row.plain) == len(row.other) == 2 and row.ratio > 0 for rows in costs.values() for row in rows)


def test_each_step_of_a_count_is_one_step() -> None:
    counters = {"dispatches": 0}

    def step() -> Any:
        counters["dispatches"] += 7
        return pywebgpu.tensor(1.5, device="cpu")

    engine = measure.Engine(submit=lambda: None, wait=lambda: None, counters=lambda: counters)
    samples = measure.sample(step, engine, steps=4)
    assert len(samples) == measure.WARM_UP + 4
    assert {one.counts["dispatches"] for one in samples} == {7}
    assert measure.summary(samples)["loss_last"] == 1.5
