"""What save writes PyTorch reads, and load reads what PyTorch writes: nested state, shared memory, whole models."""

import collections
import io
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch as theirs

import pywebgpu as ours

pytestmark = pytest.mark.usefixtures("default_device")

Converted = Callable[[Any], Any]


def to_theirs(value: Any, **options: Any) -> Any:
    file = io.BytesIO()
    ours.save(value, file)
    file.seek(0)
    return theirs.load(file, **options)


def to_ours(value: Any, **options: Any) -> Any:
    file = io.BytesIO()
    theirs.save(value, file)
    file.seek(0)
    return ours.load(file, map_location="cpu", **options)  # where all dtypes are


WAYS = {"to PyTorch": (ours, theirs, to_theirs), "from PyTorch": (theirs, ours, to_ours)}
way = pytest.mark.parametrize(("here", "there", "convert"), WAYS.values(), ids=list(WAYS))


def same(a: Any, b: Any) -> bool:
    if hasattr(a, "dtype"):
        return (
            str(a.dtype) == str(b.dtype) and a.requires_grad == b.requires_grad and a.shape == b.shape
            and a.tolist() == b.tolist()
        )  # fmt: skip
    if isinstance(a, dict):
        return type(a) is type(b) and list(a) == list(b) and all(same(a[key], b[key]) for key in a)
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(same, a, b))
    return str(a) == str(b)


def nested(torch: ModuleType) -> dict[str, Any]:
    kinds = ("float32", "float64", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8", "bool")
    base = torch.arange(12.0, device="cpu").reshape(3, 4)
    return {
        "kinds": {name: torch.tensor([0, 1, 2], device="cpu").to(getattr(torch, name)) for name in kinds},
        "views": [base, base.t(), base[1], base[:, 1:3], base[:1].expand(5, 4), base[0, 0]],
        "empty": torch.zeros(0, 3, device="cpu"),
        "wants": torch.ones(2, device="cpu").requires_grad_(),
        "ordered": collections.OrderedDict([("b", torch.ones(1, device="cpu")), ("a", (1, [2.5, None, True, "é"]))]),
        "facts": (torch.float16, torch.Size([2, 3]), torch.device("cpu")),
        0: 2**70,
    }


@way
def test_nested_state_arrives(here: ModuleType, there: ModuleType, convert: Converted) -> None:
    value = nested(here)
    assert same(value, convert(value))


def test_tensors_that_share_memory_share_it_in_pytorch() -> None:
    base = ours.zeros(3, 4, device="cpu")
    found = to_theirs({"base": base, "view": base.t(), "row": base[1]})
    found["base"].fill_(5)
    assert found["view"].unique().tolist() == found["row"].unique().tolist() == [5.0]
    assert found["view"].stride() == (1, 4)


def test_a_training_run_goes_on_in_pytorch(tmp_path: Path, device: str) -> None:
    file = tmp_path / "run.pt"

    def step(torch: ModuleType, model: Any, optimizer: Any) -> None:
        x = torch.ones(2, 3, device=next(model.parameters()).device)
        optimizer.zero_grad()
        (model(x) ** 2).sum().backward()
        optimizer.step()

    def made(torch: ModuleType, where: str) -> tuple[Any, Any]:
        model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1)).to(where)
        return model, torch.optim.AdamW(model.parameters(), lr=0.05)

    mine, own = made(ours, device)
    step(ours, mine, own)
    ours.save({"model": mine.state_dict(), "optimizer": own.state_dict(), "step": 1}, file)
    other, their = made(theirs, "cpu")
    state = theirs.load(file)
    other.load_state_dict(state["model"])
    their.load_state_dict(state["optimizer"])
    step(ours, mine, own)
    step(theirs, other, their)
    for a, b in zip(mine.parameters(), other.parameters(), strict=True):
        assert a.detach().cpu().numpy() == pytest.approx(b.detach().numpy(), abs=1e-6)


MODELS: dict[str, tuple[Callable[[Any], Any], tuple[int, ...]]] = {
    "linear": (lambda nn: nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Dropout(0.1)), (2, 3)),
    "images": (
        lambda nn: nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4), nn.MaxPool2d(2), nn.Flatten()),
        (2, 3, 4, 4),
    ),
    "reflected": (lambda nn: nn.Conv2d(3, 2, 3, padding=1, padding_mode="reflect"), (2, 3, 4, 4)),
    "lstm": (lambda nn: nn.LSTM(3, 4, num_layers=2, batch_first=True), (2, 5, 3)),
    "gru": (lambda nn: nn.GRU(3, 4, bidirectional=True), (2, 5, 3)),
    "transformer": (
        lambda nn: nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 8, batch_first=True), 2), (2, 5, 4),
    ),
    "norms": (lambda nn: nn.Sequential(nn.LayerNorm(4), nn.GroupNorm(1, 5), nn.Softmax(-1)), (2, 5, 4)),
}  # fmt: skip


@way
@pytest.mark.parametrize("name", MODELS)
def test_whole_models_arrive(name: str, here: ModuleType, there: ModuleType, convert: Converted) -> None:
    make, shape = MODELS[name]
    with ours.device("cpu"):
        model = make(here.nn).eval()
        found = convert(model, weights_only=False)
        outs = [net(torch.ones(*shape) * 0.3) for net, torch in ((model, here), (found, there))]
    a, b = (np.array((out[0] if isinstance(out, tuple) else out).tolist()) for out in outs)
    assert type(found).__name__ == type(model).__name__
    assert a == pytest.approx(b, abs=1e-5)
    found.train().zero_grad()
    assert list(found.state_dict()) == list(model.state_dict())


def test_whole_models_come_back(tmp_path: Path) -> None:
    model = ours.nn.Sequential(ours.nn.Linear(3, 4), ours.nn.Tanh())
    ours.save(model, tmp_path / "model.pt")
    found = ours.load(tmp_path / "model.pt", weights_only=False)
    x = ours.ones(2, 3)
    assert found(x).tolist() == model(x).tolist()


def test_a_whole_model_is_refused_unless_the_file_is_trusted(tmp_path: Path) -> None:
    ours.save(ours.nn.Linear(2, 1), tmp_path / "model.pt")
    with pytest.raises(ValueError, match="weights_only=False"):
        ours.load(tmp_path / "model.pt")


def test_the_suffix_chooses_safetensors(tmp_path: Path) -> None:
    ours.save({"a": ours.ones(2)}, tmp_path / "a.safetensors")
    ours.save({"a": ours.ones(2)}, tmp_path / "a.pt")
    assert (tmp_path / "a.safetensors").read_bytes()[8:9] == b"{"
    assert (tmp_path / "a.pt").read_bytes()[:2] == b"PK"
    for name in ("a.safetensors", "a.pt"):
        assert ours.load(tmp_path / name)["a"].tolist() == [1.0, 1.0]


def test_devices_come_back(tmp_path: Path) -> None:
    ours.save({"where": ours.device("webgpu")}, tmp_path / "a.pt")
    assert ours.load(tmp_path / "a.pt")["where"] == ours.device("webgpu")


def test_storages_can_be_mapped(tmp_path: Path) -> None:
    ours.save({"a": ours.ones(3), "b": ours.zeros(5)}, tmp_path / "a.pt")
    assert theirs.load(tmp_path / "a.pt", mmap=True)["a"].tolist() == [1.0] * 3
