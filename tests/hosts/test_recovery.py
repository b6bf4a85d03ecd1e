"""A loop whose device is lost 20 times ends with the losses of one that nothing disturbs, on every host."""

import functools
import json

import pytest

from tests.hosts.host import HOSTS, Host

STEPS, KILLS = 24, 20
HOST = pytest.mark.parametrize("host", ["native", "node", "chromium"])


@functools.cache
def outcomes(host: Host) -> dict[str, dict[str, object]]:
    """Of surviving.py, whose runs share a process."""
    text = host.results("surviving.py", str(STEPS), str(KILLS), "7", "outcomes", result="outcomes")
    found: dict[str, dict[str, object]] = json.loads(text)
    return found


@HOST
@pytest.mark.parametrize("mode", ["eager", "compiled"])
def test_a_loop_survives_losses_of_its_device(mode: str, host: str) -> None:
    there = HOSTS[host]
    if there.missing():
        pytest.skip(there.missing())
    found = outcomes(there)
    assert found[mode]["lost"] == KILLS
    assert found[mode]["losses"] == found["undisturbed"]["losses"]
