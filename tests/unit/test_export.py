"""Captured steps as files: what is written is played as it was, and what cannot leave Python is refused."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import pywebgpu as torch
from pywebgpu import cli, nn
from pywebgpu.compiler import serialization, wire
from pywebgpu.errors import CaptureError, CompileError
from pywebgpu.exporter.player import PlayError
from pywebgpu.io import safetensors
from pywebgpu.kernels.kernel import Limits
from tests import devices
from tests.unit import compiled

pytestmark = pytest.mark.skipif(bool(devices.why_no_webgpu()), reason=devices.why_no_webgpu())
DEVICE = "webgpu"


def same(found: Any, wanted: Any) -> None:
    """Equal tensors in equal structures."""
    if isinstance(wanted, dict):
        assert found.keys() == wanted.keys()
        for name in wanted:
            same(found[name], wanted[name])
    elif isinstance(wanted, list | tuple):
        assert len(found) == len(wanted)
        for one, other in zip(found, wanted, strict=True):
            same(one, other)
    elif isinstance(wanted, torch.Tensor):
        assert found.dtype == wanted.dtype
        assert found.tolist() == wanted.tolist()
    else:
        assert found == wanted


class Net(nn.Module):
    """Parameters of two dtypes, a tied one, buffers that a step writes, and one nobody reads."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(4, 4)
        self.norm = nn.BatchNorm1d(4)
        self.second = nn.Linear(4, 4)
        self.second.weight = self.first.weight
        self.unused = nn.Parameter(torch.zeros(3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.second(self.norm(self.first(x)).relu())


def built(optimizer: Callable[[Any], Any]) -> tuple[Net, Any, Any, Any]:
    torch.manual_seed(1)
    net = Net().to(DEVICE)
    rule = optimizer([p for p in net.parameters() if p is not net.unused])

    @torch.compile
    def training(batch: dict[str, torch.Tensor], scale: float) -> Any:
        rule.zero_grad()
        loss = (net(batch["x"] + torch.rand(6, 4, device=DEVICE) * 0.1) - batch["y"]).square().mean()
        (loss * scale).backward()
        rule.step()
        torch.capture("scaled", loss.detach() * scale)
        return {"loss": loss.detach(), "more": [scale * 2, net.first.bias, "text"]}

    @torch.compile
    @torch.no_grad()
    def inference(x: torch.Tensor) -> torch.Tensor:
        return net(x).T[1:3, ::2]

    return net, rule, training, inference


def batch(step: int) -> dict[str, torch.Tensor]:
    return {
        name: torch.randn(6, 4, generator=torch.Generator().manual_seed(2 * step + at)).to(DEVICE)
        for at, name in enumerate("xy")
    }


OPTIMIZERS: dict[str, Callable[[Any], Any]] = {
    "adamw": lambda params: torch.optim.AdamW(params, lr=0.01),
    "sgd": lambda params: torch.optim.SGD(params, lr=0.1),
    "momentum": lambda params: torch.optim.SGD(params, lr=0.1, momentum=0.9, weight_decay=0.01),
    "rmsprop": lambda params: torch.optim.RMSprop(params, lr=0.01, centered=True),
    "amsgrad": lambda params: torch.optim.Adam(
        [{"params": params[:1], "lr": 0.02}, {"params": params[1:]}], amsgrad=True
    ),
}


def test_a_manifest_says_what_it_holds_and_gives(tmp_path: Path) -> None:
    """Parameters by the names of named_parameters(); of what a step gives, the dtypes and shapes of its recording."""
    net = nn.Sequential(nn.Linear(4, 3), nn.LayerNorm(3)).to(DEVICE)

    @torch.compile
    @torch.no_grad()
    def step(x: torch.Tensor) -> dict[str, torch.Tensor]:
        y = net(x)
        return {"y": y, "best": y.argmax(-1), "half": y.half()}

    given = step(torch.ones(5, 4, device=DEVICE))
    torch.save_program(tmp_path, {"step": step}, net)
    data = json.loads((tmp_path / "program.json").read_text(encoding="utf-8"))
    parameters = {name: list(p.shape) for name, p in net.named_parameters()}
    assert {one["name"]: one["shape"] for one in data["tensors"] if one["kind"] == "parameter"} == parameters
    told = data["programs"]["step"]["result"]["dict"]
    assert {name: (one["dtype"], one["shape"]) for name, one in told.items()} == {
        name: (str(value.dtype).removeprefix("torch."), list(value.shape)) for name, value in given.items()
    }


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_player_goes_on_where_python_stood(name: str, tmp_path: Path) -> None:
    net, rule, training, inference = built(OPTIMIZERS[name])
    for step in range(3):
        training(batch(step), 0.5 + step)
    inference(batch(0)["x"])
    torch.save_program(tmp_path, {"training": training, "inference": inference}, net, rule)
    player = torch.load_program(tmp_path, DEVICE)
    assert "unused" not in player.params.names
    assert {"first.weight", "second.weight", "norm.running_mean"} <= set(player.params.names)
    for step in range(5):
        given = batch(step)
        wanted = training(given, 1.0 + step)
        found = player.step("training", {"batch.x": given["x"], "batch.y": given["y"], "scale": 1.0 + step})
        same(found, wanted)
        same(player.captures["scaled"], training.captures["scaled"])
    same(player.run("inference", {"x": batch(0)["x"]}), inference(batch(0)["x"]))
    for title, tensor in net.state_dict().items():
        if title in player.params.names:
            same(player.params.get(title), tensor)
    for title in player.gradients:
        same(player.gradients.get(title), dict(net.named_parameters(remove_duplicate=False))[title].grad)


def exported(tmp_path: Path) -> Any:
    net, rule, training, _ = built(OPTIMIZERS["adamw"])
    training.warmup(batch(0), 1.0)
    training(batch(0), 1.0)
    torch.save_program(tmp_path, {"training": training}, net, rule)
    return torch.load_program(tmp_path, DEVICE)


def test_weights_are_an_ordinary_file(tmp_path: Path) -> None:
    player = exported(tmp_path)
    file = safetensors.load_file(tmp_path / "weights.safetensors", "cpu")
    assert file["first.weight"].shape == (4, 4)
    assert "second.weight" not in file  # It is the first's.
    assert "optimizer/first.bias.exp_avg" in file
    same(player.params.get("second.weight").cpu(), file["first.weight"])


def test_tensors_and_options_are_set_by_name(tmp_path: Path) -> None:
    player = exported(tmp_path)
    before = player.params.get("norm.weight").tolist()
    player.params.set({"first.bias": [1.0, 2.0, 3.0, 4.0]})
    assert player.params.get("first.bias").tolist() == [1, 2, 3, 4]
    assert player.params.get("norm.weight").tolist() == before
    with pytest.raises(PlayError, match="there is no tensor 'third'; there are first"):
        player.params.set({"third": [0.0]})
    with pytest.raises(PlayError, match=r"first\.bias has 4 elements; it was given 1"):
        player.params.set({"first.bias": [0.0]})
    with pytest.raises(PlayError, match="there is no option 'rate'; there are"):
        player.options.rate = 1
    with pytest.raises(PlayError, match=r"training takes batch\.x, batch\.y, scale; it was given nothing"):
        player.step("training")
    assert (player.options.lr, player.options["lr:0"], player.options.step) == (0.01, 0.01, 1)
    player.optimizer.reset()
    assert player.options.step == 0
    assert player.optimizer.get("first.bias.exp_avg").tolist() == [0, 0, 0, 0]
    player.options.lr = 0.0
    given = batch(1)
    player.step("training", {"batch.x": given["x"], "batch.y": given["y"], "scale": 1.0})
    assert player.params.get("first.bias").tolist() == [1, 2, 3, 4]  # A rate of 0, and its weight decay with it.


def test_gradients_that_add_up_are_kept(tmp_path: Path) -> None:
    weight = torch.ones(3, device=DEVICE, requires_grad=True)

    @torch.compile
    def add(x: torch.Tensor) -> torch.Tensor:
        loss = (weight * x).sum()
        loss.backward()
        return loss.detach()

    x = torch.tensor([1.0, 2.0, 3.0], device=DEVICE)
    for _ in range(3):
        add(x)
    torch.save_program(tmp_path, {"add": add}, {"weight": weight})
    player = torch.load_program(tmp_path, DEVICE)
    assert player.run("add", {"x": x}).item() == 6
    assert player.gradients.get("weight").tolist() == [4, 8, 12]


def test_a_schedule_stays_in_python_and_is_told(tmp_path: Path) -> None:
    weight = nn.Parameter(torch.ones(3, device=DEVICE))
    rule = torch.optim.SGD([weight], lr=1.0)
    schedule = torch.optim.lr_scheduler.StepLR(rule, 1, 0.5)

    @torch.compile
    def training(x: torch.Tensor) -> torch.Tensor:
        rule.zero_grad()
        loss = (weight * x).sum()
        loss.backward()
        rule.step()
        schedule.step()
        return loss.detach()

    training(torch.ones(3, device=DEVICE))
    said = torch.save_program(tmp_path, {"training": training}, {"weight": weight}, rule)
    assert "training: Python code that stays in Python: schedule; set the options that it would set" in str(said)
    player = torch.load_program(tmp_path, DEVICE)
    assert player.options.lr == 0.5
    player.options.lr = 2.0
    player.step("training", {"x": torch.ones(3)})
    assert player.params.get("weight").tolist() == [-2, -2, -2]


def test_what_cannot_leave_is_refused(tmp_path: Path) -> None:
    x = torch.ones(4, device=DEVICE)

    def refused(function: Any, given: Any, message: str) -> None:
        step = torch.compile(function)
        if given is not None:
            step(given)
        with pytest.raises(CaptureError, match=message):
            torch.save_program(tmp_path, {"step": step})

    refused(lambda x: x * 2, None, "no captured step to export; call it with an example")
    refused(lambda x: x.add_(1), x, "writes into its argument x")
    refused(lambda x: x * 2, x[1:3], r"x is a view of a larger tensor; call it with a clone\(\)")
    refused(lambda x: (x * 2, object()), x, "it returns an object of class object, which each run would have to make")
    refused(lambda x: x * 2, torch.ones(2, device="cpu"), "ran on device cpu, which has no kernels")
    with pytest.raises(CaptureError, match="step is a function; export takes what"):
        torch.save_program(tmp_path, {"step": lambda x: x})


def test_another_version_is_refused(tmp_path: Path) -> None:
    double = torch.compile(lambda x: x * 2)
    double(torch.ones(2, device=DEVICE))
    torch.save_program(tmp_path, {"double": double})
    file = tmp_path / "program.json"
    data = json.loads(file.read_text())
    with pytest.raises(PlayError, match="device cpu runs none"):
        torch.load_program(tmp_path, "cpu")
    file.write_text(json.dumps(data | {"version": 99}))
    with pytest.raises(CompileError, match="of the format pywebgpu 99; this pywebgpu reads pywebgpu 3"):
        torch.load_program(tmp_path, DEVICE)
    data["programs"]["double"]["program"]["version"] = 98
    file.write_text(json.dumps(data))
    with pytest.raises(CompileError, match="a program of version 98"):
        torch.load_program(tmp_path, DEVICE)


def test_command_exports_what_a_function_returns(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "double.py"
    file.write_text(
        "import pywebgpu as torch\n"
        "def parts(arguments):\n"
        "    double = torch.compile(lambda x: x * float(arguments[0]))\n"
        "    double(torch.ones(2, device='webgpu'))\n"
        "    return {'programs': {'double': double}, 'files': {'text.txt': 'words'}}\n"
    )
    out = tmp_path / "out"
    assert cli.main(["export", f"{file}:parts", str(out), "3"]) == 0
    assert {"program.json", "weights.safetensors", "player.mjs", "bridge.mjs", "index.html", "text.txt"} <= {
        p.name for p in out.iterdir()
    }
    assert torch.load_program(out, DEVICE).run("double", {"x": [1, 2]}).tolist() == [3, 6]
    assert cli.main(["export", str(file), str(out)]) == 2
    assert "has no function exported" in capsys.readouterr().err


def test_a_program_is_a_file(tmp_path: Path) -> None:
    x = compiled.leaf(4)
    program = compiled.only(x.exp)
    serialization.save(program, tmp_path / "one.json")
    assert wire.to_json(serialization.load(tmp_path / "one.json")) == wire.to_json(program)
    (tmp_path / "none.json").write_text("{}")
    with pytest.raises(CompileError, match="a program of version None"):
        serialization.load(tmp_path / "none.json")
    (tmp_path / "none.json").write_text("words")
    with pytest.raises(CompileError, match=r"none\.json is not a program"):
        serialization.load(tmp_path / "none.json")


DAMAGED: dict[str, Callable[[dict[str, Any]], None]] = {
    "words of nothing": lambda host: host.update(words=[99]),
    "too few words": lambda host: host["words"].pop(),
    "no operation": lambda host: host["program"].append(["jump", 0]),
    "an operand of later": lambda host: host["program"].insert(0, ["neg", 1]),
    "a cell that is not there": lambda host: host["cells"].append(["cell", 99]),
    "an argument that is not there": lambda host: host["cells"].append(["argument", 99]),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_damaged_host_programs_are_refused(name: str, tmp_path: Path) -> None:
    exported(tmp_path)
    file = tmp_path / "program.json"
    data = json.loads(file.read_text())
    DAMAGED[name](data["programs"]["training"]["host"])
    file.write_text(json.dumps(data))
    with pytest.raises(PlayError, match=r"training\.host\."):
        torch.load_program(tmp_path, DEVICE)


def test_numbers_that_python_looked_at_are_held(tmp_path: Path) -> None:
    weight = nn.Parameter(torch.ones(3, device=DEVICE))
    rule = torch.optim.SGD([weight], lr=1.0)

    @torch.compile
    def training(x: torch.Tensor, scale: float) -> torch.Tensor:
        rule.zero_grad()
        loss = (weight * x).sum() * (1 / scale if scale > 0.5 else 0.0)
        loss.backward()
        rule.step()
        return loss.detach()

    x = torch.ones(3, device=DEVICE)
    training(x, 1.0)
    torch.save_program(tmp_path, {"training": training}, {"weight": weight}, rule)
    player = torch.load_program(tmp_path, DEVICE)
    before = player.params.get("weight").tolist()
    with pytest.raises(PlayError, match=r"training was made for other numbers: \(argument 0 > 0.5\) was True"):
        player.step("training", {"x": x, "scale": 0.25})
    player.options.lr = 0
    assert player.step("training", {"x": x, "scale": 2}).item() == sum(before) / 2
    assert player.params.get("weight").tolist() == before
    player.options.lr = "fast"
    with pytest.raises(PlayError, match="cannot compute with these numbers"):
        player.step("training", {"x": x, "scale": 2.0})


def test_numbers_that_one_program_writes_are_read_by_another(tmp_path: Path) -> None:
    """Also where the one that writes comes first and does not read them."""
    weight = nn.Parameter(torch.ones(1, device=DEVICE))
    rule = torch.optim.SGD([weight], lr=1.0)

    @torch.compile
    def warm(x: torch.Tensor) -> torch.Tensor:
        rule.param_groups[0]["lr"] = 0.25
        return x * 2

    @torch.compile
    def training() -> None:
        rule.zero_grad()
        (weight * 1.0).sum().backward()
        rule.step()

    warm(torch.ones(1, device=DEVICE))
    training()
    torch.save_program(tmp_path, {"warm": warm, "training": training}, {"weight": weight}, rule)
    player = torch.load_program(tmp_path, DEVICE)
    player.options.lr = 9.0
    player.run("warm", {"x": [1.0]})
    assert player.options.lr == 0.25


def test_portable_kernels_keep_to_what_every_device_has() -> None:
    code = "from pywebgpu.devices import open_device; print(open_device('webgpu').target.limits)"
    environment = os.environ | {"PYWEBGPU_PORTABLE": "1"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True)
    assert done.stdout.strip() == str(Limits())
