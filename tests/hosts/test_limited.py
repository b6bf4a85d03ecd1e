"""Adapters that nobody has measured compute the same: what rules launch there is right on both translators."""

import json

import pytest

from tests.hosts import limited
from tests.hosts.host import HOSTS


@pytest.mark.parametrize("host", ["native", "node"])
def test_rules_for_unknown_adapters_launch_what_is_right(host: str) -> None:
    there = HOSTS[host]
    if there.missing():
        pytest.skip(there.missing())
    found = json.loads(there.results("limited.py", there.device, "results", result="results"))
    assert {"unknown", *limited.FAMILIES[1:]} <= found.keys()
    expected = limited.trained("cpu")
    for adapter, values in found.items():
        assert values == pytest.approx(expected, rel=1e-3, abs=2e-4), adapter
