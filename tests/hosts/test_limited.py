"""Adapters that nobody has measured compute the same: what rules launch there is right on both translators."""

import json

import pytest

from tests import sampling
from tests.hosts import limited
from tests.hosts.host import HOSTS

NAMES = [*limited.ADAPTERS, limited.SHUFFLING]


@pytest.mark.parametrize(("host", "start"), [("native", 0), ("node", 1)])
def test_rules_for_unknown_adapters_launch_what_is_right(host: str, start: int, pytestconfig: pytest.Config) -> None:
    there = HOSTS[host]
    if there.missing():
        pytest.skip(there.missing())
    names = sampling.part(pytestconfig, NAMES, 3, start)
    found = json.loads(there.results("limited.py", there.device, "results", *names, result="results"))
    assert {*names} - {limited.SHUFFLING} <= found.keys() <= {*names}
    expected = limited.trained("cpu")
    for adapter, values in found.items():
        assert values == pytest.approx(expected, rel=1e-3, abs=2e-4), adapter
