"""The profiler: whose time it is, as torch.profiler's names tell it; what an origin costs when nobody asks."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

import pywebgpu as torch
from pywebgpu import devices, nn
from pywebgpu.ir.graph import thread_state
from pywebgpu.profiler import ProfilerAction, ProfilerActivity, profile, record_function, schedule


class Twice(nn.Module):
    """Two layers, one inside the other's path."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(8, 16), nn.Tanh())
        self.head = nn.Linear(16, 1)

    def forward(self, x: Any) -> Any:
        return self.head(self.body(x))


def training(device: str) -> Any:
    torch.manual_seed(0)
    model = Twice().to(device)
    optimizer = torch.optim.AdamW(model.parameters())
    x = torch.rand(32, 8, device=device)
    torch.webgpu.synchronize(device)

    def step() -> Any:
        optimizer.zero_grad()
        with record_function("loss"):
            loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        return loss

    return step


def recorded(device: str, **options: Any) -> profile:
    step = training(device)
    step()
    with profile(**options) as found:
        step()
    return found


def rows(found: profile, group_by: str) -> dict[str, Any]:
    return {row.key: row for row in found.key_averages(group_by=group_by)}


def test_every_kernel_has_a_time_and_a_phase(device: str) -> None:
    found = recorded(device)
    kernels = [event for event in found.events() if event.device]
    assert kernels
    assert all(event.kind == "kernel" and event.time >= 0 for event in kernels)
    assert sum(event.time for event in kernels) > 0
    assert {event.origin.phase for event in kernels} == {"forward", "backward", "optimizer"}
    assert {"matmul", "sum"} & set(rows(found, "op"))


def test_modules_are_named_by_their_path(device: str) -> None:
    found = rows(recorded(device), "module")
    assert {"Twice.body.0", "Twice.head", "AdamW"} <= {name for name, row in found.items() if row.count}
    assert found["Twice"].calls == 1
    assert found["Twice"].cpu_time_total >= found["Twice.head"].cpu_time_total > 0


def test_phases_share_the_whole_time(device: str) -> None:
    found = recorded(device)
    phases = found.key_averages(group_by="phase")
    assert {"forward", "backward", "optimizer", "(elsewhere)"} <= {row.key for row in phases}
    kernels = sum(event.time for event in found.events() if event.device)
    assert sum(row.device_time_total for row in phases) == pytest.approx(kernels)


def test_labels_and_lines_are_the_programs(device: str) -> None:
    found = recorded(device, with_stack=True)
    labels, lines = rows(found, "label"), rows(found, "line")
    assert labels["loss"].calls == 1
    assert labels["loss"].count > 0
    assert any(Path(__file__).name in line for line in lines)
    assert any(row.key == "loss" for row in found.key_averages())


def test_a_table_is_sorted_by_torchs_names(device: str) -> None:
    table = recorded(device).key_averages(group_by="kernel")
    for name in ("cuda_time_total", "self_device_time_total", "device_time_total"):
        times = [line.split() for line in table.table(sort_by=name, row_limit=2).splitlines()]
        assert times[0][0] == "Name"
        assert f"{len(table) - 2} more rows" in table.table(sort_by=name, row_limit=2)
    with pytest.raises(ValueError, match="no column 'colour'"):
        table.table(sort_by="colour")


def test_a_trace_opens_in_perfetto(device: str, tmp_path: Path) -> None:
    found = recorded(device, profile_memory=True)
    found.add_metadata("run", "7")
    found.export_chrome_trace(str(tmp_path / "trace.json"))
    found.export_chrome_trace(str(tmp_path / "trace.json.gz"))
    text = (tmp_path / "trace.json").read_text()
    data = json.loads(text)
    assert gzip.decompress((tmp_path / "trace.json.gz").read_bytes()).decode() == text
    kinds = {event["ph"] for event in data["traceEvents"]}
    assert kinds == {"M", "X", "C"}
    assert data["otherData"] == {"run": "7"}
    timed = [event for event in data["traceEvents"] if event["ph"] == "X"]
    assert min(event["ts"] for event in timed) >= 0
    runs = [event for event in timed if event["cat"] == "kernel"]
    assert all(run["args"]["phase"] in ("forward", "backward", "optimizer") for run in runs)
    assert any("matmul" in run["args"]["ops"] for run in runs)
    optimizer = next(event for event in timed if event["cat"] == "optimizer")
    assert optimizer["name"] == "Optimizer.step#AdamW.step"


def test_json_holds_the_sums(device: str, tmp_path: Path) -> None:
    found = recorded(device, profile_memory=True)
    found.export_json(str(tmp_path / "profile.json"))
    data = json.loads((tmp_path / "profile.json").read_text())
    assert {"kernel", "op", "module", "phase", "label"} == set(data["by"])
    assert data["memory"][0]["live_bytes"] > 0
    assert data["wall_time"] > 0


def test_a_device_without_a_clock_says_so(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if device == "cpu":
        pytest.skip("the processor always has a clock")
    monkeypatch.setattr(devices.open_device(device), "has_clock", False)
    found = recorded(device)
    events = [event for event in found.events() if event.device]
    assert [event.kind for event in events] == ["program"]
    assert events[0].time > 0
    assert "webgpu has no timestamps: its times are of whole programs" in found.key_averages().table()


def test_device_null_takes_no_time() -> None:
    table = recorded("null").key_averages().table()
    assert "device null computes nothing" in table


def test_values_are_the_same_while_somebody_watches(device: str) -> None:
    plain, watched = training(device), training(device)
    losses = [plain().item() for _ in range(3)]
    with profile():
        assert [watched().item() for _ in range(3)] == losses


def test_nobody_watches_afterwards(device: str) -> None:
    recorded(device)
    assert thread_state.origins is None
    with pytest.raises(ZeroDivisionError), profile(), record_function("trouble"):
        raise ZeroDivisionError
    assert thread_state.origins is None


def test_a_schedule_records_some_steps() -> None:
    N, W, R, S = ProfilerAction.NONE, ProfilerAction.WARMUP, ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE
    actions = schedule(skip_first=1, wait=1, warmup=1, active=2, repeat=2)
    assert [actions(at) for at in range(10)] == [N, N, W, R, S, N, W, R, S, N]
    told: list[list[str]] = []
    step = training("cpu")

    def ready(found: profile) -> None:
        told.append([event.name for event in found.events() if event.kind == "step"])

    with profile(schedule=schedule(wait=1, warmup=0, active=2, repeat=1), on_trace_ready=ready) as found:
        for _ in range(5):
            step()
            found.step()
    assert told == [["ProfilerStep#1", "ProfilerStep#2"]]


def test_schedules_are_torchs() -> None:
    torch_profiler = pytest.importorskip("torch.profiler")
    for options in ((0, 1, 1, 0, 0), (1, 2, 3, 0, 0), (2, 1, 2, 2, 3), (0, 1, 1, 1, 1)):
        names = dict(zip(("wait", "warmup", "active", "repeat", "skip_first"), options, strict=True))
        ours, theirs = schedule(**names), torch_profiler.schedule(**names)
        assert [ours(at).name for at in range(20)] == [theirs(at).name for at in range(20)]


def test_what_is_missing_is_refused() -> None:
    with pytest.raises(NotImplementedError, match="with_flops"):
        profile(with_flops=True)
    with pytest.raises(RuntimeError, match="didn't finish"):
        profile().key_averages()
    with pytest.raises(ValueError, match="Invalid profiler schedule"):
        schedule(wait=0, warmup=0, active=0)


def test_either_activity_alone(device: str) -> None:
    host = recorded(device, activities=[ProfilerActivity.CPU])
    assert not [event for event in host.events() if event.device]
    gpu = recorded(device, activities=[ProfilerActivity.CUDA])
    assert all(event.device for event in gpu.events())
    assert gpu.events()


def test_a_compiled_step_is_seen_again(device: str) -> None:
    step = training(device)
    again = torch.compile(step)
    for _ in range(3):
        again()
    with profile() as found:
        again()
    kernels = [event for event in found.events() if event.device]
    assert kernels
    assert all(event.name for event in kernels)
