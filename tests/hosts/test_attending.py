"""Kernels of attention give the composite's values and gradients on both translators."""

import json

import pytest

from tests.cases.attention import CALLS, bound, outcome
from tests.hosts import attending
from tests.hosts.host import HOSTS


@pytest.mark.parametrize("host", ["native", "node", "chromium"])
def test_attention_has_the_values_of_the_composite(host: str) -> None:
    there = HOSTS[host]
    if there.missing():
        pytest.skip(there.missing())
    found = json.loads(there.results("attending.py", there.device, "results", result="results"))
    assert found.keys() == {*attending.NAMES}
    for name, values in found.items():
        call = CALLS[name]
        for one, other in zip(values, outcome(call, "cpu", fused=False), strict=True):
            expected = other.float().reshape(-1).tolist()
            limit = bound(call) * max([1.0, *[abs(number) for number in expected if number == number]])
            assert one == pytest.approx(expected, rel=0, abs=limit, nan_ok=True), name
