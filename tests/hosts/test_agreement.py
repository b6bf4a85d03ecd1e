"""One seed gives one training run, on every host; what one host saves, every other one goes on from."""

import json
from pathlib import Path

import numpy as np
import pytest

import pywebgpu as torch
from tests.hosts import draws, memory
from tests.hosts.host import HOSTS, Host

STEPS, MORE_STEPS = 50, 60
HOST = pytest.mark.parametrize("host", ["native", "node", "chromium"])


@pytest.fixture
def there(host: str) -> Host:
    found = HOSTS[host]
    if found.missing():
        pytest.skip(found.missing())
    return found


def train(host: Host, steps: int, start: bytes = b"") -> bytes:
    """A checkpoint after so many steps, gone on from `start` where there is one."""
    arguments = [host.device, str(steps), "checkpoint", *(["start"] if start else [])]
    return host.results("losses.py", *arguments, result="checkpoint", start=start)


def load(data: bytes, folder: Path) -> dict[str, object]:
    file = folder / "loaded"
    file.write_bytes(data)
    found: dict[str, object] = torch.load(file, map_location="cpu")
    return found


@pytest.fixture(scope="module")
def reference() -> bytes:
    """Device cpu's checkpoint."""
    return train(HOSTS["cpu"], STEPS)


@pytest.fixture(scope="module")
def all_losses(reference: bytes, tmp_path_factory: pytest.TempPathFactory) -> list[float]:
    """Those of device cpu."""
    state = load(train(HOSTS["cpu"], MORE_STEPS, reference), tmp_path_factory.mktemp("reference"))
    losses = state["losses"]
    assert isinstance(losses, list)
    assert losses[-1] < losses[0] / 1.5
    return losses


@HOST
def test_losses_and_checkpoints_agree(there: Host, reference: bytes, all_losses: list[float], tmp_path: Path) -> None:
    theirs = train(there, STEPS)
    assert load(theirs, tmp_path)["losses"] == pytest.approx(all_losses[:STEPS], rel=1e-4)
    for host, start in ((there, reference), (HOSTS["cpu"], theirs), (HOSTS["native"], theirs)):
        if not host.missing():
            assert load(train(host, MORE_STEPS, start), tmp_path)["losses"] == pytest.approx(all_losses, rel=1e-4)


@HOST
def test_draws_agree(there: Host, tmp_path: Path) -> None:
    """Bits, and what is made of them by whole numbers, to the last one."""
    found, expected = (
        load(host.results("draws.py", host.device, "drawn", result="drawn"), tmp_path) for host in (there, HOSTS["cpu"])
    )
    assert found.keys() == expected.keys()
    for name in expected:
        mine, theirs = found[name].numpy(), expected[name].numpy()  # type: ignore[attr-defined]
        assert mine.dtype == theirs.dtype
        if name.split()[0] in draws.EXACT:
            np.testing.assert_array_equal(mine, theirs, err_msg=name)
        else:
            np.testing.assert_allclose(mine, theirs, rtol=2e-6, atol=2e-6, err_msg=name)


@HOST
def test_memory_stays_flat(there: Host) -> None:
    """The short form of `python -m tests soak`."""
    samples = memory.soak(there, 200)
    assert memory.grown(samples) == [], json.dumps(samples[-1])
    assert samples[-1]["GPU"] >= samples[-1]["tensors"] > 0
