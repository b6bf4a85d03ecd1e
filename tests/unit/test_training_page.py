"""Python of the Train tab without its page: what it answers to the page's commands, on device cpu."""

import asyncio
import base64
import json
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import pywebgpu as torch

ROOT = Path(__file__).parents[2]
NAMES = ("training", "inside", "data", "model", "texts", "train")
SETTINGS = {"steps": 3, "batch": 2, "context": 16, "layers": 2, "heads": 2, "width": 8, "rate": 0.01, "seed": 1}
START = {"do": "start", "settings": SETTINGS, "text": None, "source": None}
SOURCE = (ROOT / "demos" / "chargpt" / "model.py").read_text(encoding="utf-8")


class Ended(BaseException):
    """Nothing is left to do. No handler of mistakes takes it for one."""


class Port:
    """The page's end: gives commands one by one, and keeps what it is told."""

    device = "cpu"

    def __init__(self, *commands: dict[str, Any]) -> None:
        self.commands = list(commands)
        self.told: list[dict[str, Any]] = []

    def take(self) -> str:
        if not self.commands and {"is": "state", "state": "done"} in self.told:
            raise Ended
        return json.dumps(self.commands.pop(0)) if self.commands else ""

    async def arrived(self) -> None:
        raise Ended

    def tell(self, message: str) -> None:
        self.told.append(json.loads(message))

    give = tell

    def loaded(self) -> None: ...

    def ran(self) -> None: ...

    def heapBytes(self) -> int:
        return 0

    def all_of(self, kind: str) -> list[dict[str, Any]]:
        return [message for message in self.told if message["is"] == kind]


@pytest.fixture
def training(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[ModuleType]:
    for folder in ("web", "demos/chargpt"):
        monkeypatch.syspath_prepend(str(ROOT / folder))
    found = import_module("training")
    monkeypatch.setattr(found, "PATH", str(tmp_path / "checkpoint.safetensors"))
    yield found
    torch.set_default_device(None)
    for name in (*NAMES, "own_model"):
        sys.modules.pop(name, None)


def answers(training: ModuleType, *commands: dict[str, Any]) -> Port:
    port = Port(*commands)
    with pytest.raises(Ended):
        asyncio.run(training.main(port))
    return port


def test_it_trains_without_a_gpu(training: ModuleType) -> None:
    port = answers(training, {"do": "look", "is_wanted": True}, START)
    assert port.all_of("ready")[0]["adapter"]["name"] == "CPU, by NumPy"
    assert port.all_of("progress")[-1]["step"] == 3
    assert [message["state"] for message in port.all_of("state")] == ["training", "done"]
    assert not port.all_of("trouble")
    seen = port.all_of("inside")[0]
    maps = base64.b64decode(seen["maps"])
    length = len(seen["text"])
    assert len(maps) == 4 * length**2
    rows = [maps[at : at + length] for at in range(0, len(maps), length)]
    for at, row in enumerate(rows):  # Nobody looks ahead, and all that is looked at makes a whole.
        assert set(row[at % length + 1 :]) <= {0}
        assert sum(row) == pytest.approx(255, abs=length / 2 + 1)
    shares = [share for _, share in seen["next"]]
    assert shares == sorted(shares, reverse=True)
    assert [part for part, *_ in seen["sizes"]] == ["character", "position", "layer 1", "layer 2", "norm", "head"]
    assert all(weights > 0 and gradients > 0 for _, weights, gradients in seen["sizes"])
    assert seen["cost"]["submits"] >= 1


def test_a_model_of_ones_own_trains_and_its_mistakes_are_told_by_line(training: ModuleType) -> None:
    wrong = SOURCE.replace("nn.GELU", "nn.Nope")
    line = wrong[: wrong.index("nn.Nope")].count("\n") + 1
    port = answers(
        training, START | {"source": wrong}, START | {"source": SOURCE.replace("nn.GELU(", "nn.GELU(  ")[:-1]}
    )
    (trouble,) = port.all_of("trouble")
    assert (trouble["about"], trouble["details"]) == ("model", "")
    assert trouble["text"].startswith(f"Line {line}: AttributeError:")
    assert port.all_of("state")[-1]["state"] == "done"


def test_a_model_without_attention_shows_its_weights(training: ModuleType) -> None:
    source = SOURCE.replace("self.blocks", "self.layers").replace("self.attention", "self.looking")
    port = answers(training, {"do": "look", "is_wanted": True}, START | {"source": source})
    assert not port.all_of("trouble")
    seen = port.all_of("inside")[0]
    assert (seen["maps"], seen["next"]) == ("", [])
    assert "head" in [part for part, *_ in seen["sizes"]]


def test_a_checkpoint_opens_with_the_model_that_it_is_of(training: ModuleType) -> None:
    own = SOURCE.replace("4 * config.width", "2 * config.width")
    saved = [START | {"source": own}, {"do": "save", "source": None}]
    opened = {"do": "open", "text": None, "source": own}
    port = answers(training, *saved, opened)
    assert not port.all_of("trouble")
    assert [message["state"] for message in port.all_of("state")][-2:] == ["idle", "paused"]
    port = answers(training, *saved, opened | {"source": None})
    assert "does not fit its own settings" in port.all_of("trouble")[0]["text"]
