"""One seed gives one training run, on every host; what one host saves, every other one goes on from."""

import functools
import io
import json
import zipfile
from pathlib import Path

import numpy as np
import pytest

import pywebgpu as torch
from tests.hosts import agreeing, draws, losses, memory, soak
from tests.hosts.host import HOSTS, Host

HOST = pytest.mark.parametrize("host", ["native", "node", "chromium"])


@pytest.fixture
def there(host: str) -> Host:
    found = HOSTS[host]
    if found.missing():
        pytest.skip(found.missing())
    return found


@functools.cache
def answers(host: Host) -> dict[str, bytes]:
    """Of agreeing.py: draws, a checkpoint, one gone on from device cpu's, and what memory it held."""
    cpu = HOSTS["cpu"]
    given = {} if host is cpu else {"start": answers(cpu)["checkpoint"]}
    packed = host.results("agreeing.py", host.device, "answers", result="answers", **given)
    with zipfile.ZipFile(io.BytesIO(packed)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def gone_on(device: str, start: bytes, folder: Path) -> list[float]:
    """The losses of another host's checkpoint, and of some steps more in this process, which compiles them once."""
    (folder / "start").write_bytes(start)
    before = torch.get_default_device()
    try:
        return losses.trained(device, agreeing.MORE_STEPS, str(folder / "start")).losses
    finally:
        torch.set_default_device(before)


def load(data: bytes, folder: Path) -> dict[str, object]:
    file = folder / "loaded"
    file.write_bytes(data)
    found: dict[str, object] = torch.load(file, map_location="cpu")
    return found


@HOST
def test_losses_and_checkpoints_agree(there: Host, tmp_path: Path) -> None:
    theirs = answers(there)
    expected = load(answers(HOSTS["cpu"])["gone_on"], tmp_path)["losses"]
    assert isinstance(expected, list)
    assert expected[-1] < expected[0] / 1.5
    begun = load(theirs["checkpoint"], tmp_path)["losses"]
    assert begun == pytest.approx(expected[: agreeing.STEPS], rel=1e-4)
    assert load(theirs["gone_on"], tmp_path)["losses"] == pytest.approx(expected, rel=1e-4)
    for device in [HOSTS[name].device for name in ("cpu", "native") if not HOSTS[name].missing()]:
        assert gone_on(device, theirs["checkpoint"], tmp_path) == pytest.approx(expected, rel=1e-4)


@HOST
def test_draws_agree(there: Host, tmp_path: Path) -> None:
    """Bits, and what is made of them by whole numbers, to the last one."""
    found, expected = (load(answers(host)["draws"], tmp_path) for host in (there, HOSTS["cpu"]))
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
    samples = json.loads(answers(there)["memory"])
    assert memory.grown(samples) == [], json.dumps(samples[-1])
    assert samples[-1]["GPU"] >= samples[-1]["tensors"] > 0


def test_memory_that_grows_is_found() -> None:
    """A buffer of the smallest size lost in each step; none lost, but some more in use at once."""
    steps = range(soak.STEPS_BETWEEN, agreeing.SOAKED + 1, soak.STEPS_BETWEEN)
    assert memory.grown([{"GPU": 400_000 + 256 * step} for step in steps])
    assert not memory.grown([{"GPU": 400_000 + 256 * (step > 150)} for step in steps])
