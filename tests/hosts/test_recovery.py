"""A loop whose device is lost again and again ends with the losses of one that nothing disturbs, on every host."""

import functools
import json

import pytest

from tests import sampling
from tests.hosts.host import HOSTS, Host

# Steps and losses of the device, after each of which all kernels are compiled anew; and of a sample, by host.
STEPS, KILLS = 24, 20
FEWER_STEPS, FEWER_KILLS = 10, {"native": 5, "node": 3, "chromium": 2}
HOST = pytest.mark.parametrize("host", ["native", "node", "chromium"])


@functools.cache
def outcomes(host: Host, steps: int, kills: int) -> dict[str, dict[str, object]]:
    """Of surviving.py, whose runs share a process."""
    text = host.results("surviving.py", str(steps), str(kills), "7", "outcomes", result="outcomes")
    found: dict[str, dict[str, object]] = json.loads(text)
    return found


@HOST
@pytest.mark.parametrize("mode", ["eager", "compiled"])
def test_a_loop_survives_losses_of_its_device(mode: str, host: str, pytestconfig: pytest.Config) -> None:
    there = HOSTS[host]
    if there.missing():
        pytest.skip(there.missing())
    is_sample = sampling.is_sample(pytestconfig)
    steps, kills = (FEWER_STEPS, FEWER_KILLS[host]) if is_sample else (STEPS, KILLS)
    found = outcomes(there, steps, kills)
    assert found[mode]["lost"] == kills
    assert found[mode]["losses"] == found["undisturbed"]["losses"]
