"""A loop whose device is lost 20 times ends with the losses of one that nothing disturbs, on every host."""

import functools
import json

import pytest

from tests.hosts.host import HOSTS, Host

STEPS, KILLS = 24, 20
HOST = pytest.mark.parametrize("host", ["native", "node", "chromium"])


@functools.cache
def undisturbed(host: str) -> object:
    """The losses of a run whose device stays."""
    return outcome(HOSTS[host], "eager", 0)["losses"]


def outcome(host: Host, mode: str, kills: int) -> dict[str, object]:
    arguments = [mode, str(STEPS), str(kills), "7", "outcome"]
    found: dict[str, object] = json.loads(host.results("surviving.py", *arguments, result="outcome"))
    return found


@HOST
@pytest.mark.parametrize("mode", ["eager", "compiled"])
def test_a_loop_survives_losses_of_its_device(mode: str, host: str) -> None:
    there = HOSTS[host]
    if there.missing():
        pytest.skip(there.missing())
    found = outcome(there, mode, KILLS)
    assert found["lost"] == KILLS
    assert found["losses"] == undisturbed(host)
