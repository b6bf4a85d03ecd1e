"""Kernels of attention give the composite's values and gradients on both translators."""

import json

import pytest

from tests import sampling
from tests.cases.attention import CALLS, bound, outcome
from tests.hosts import attending
from tests.hosts.host import HOSTS


@pytest.mark.parametrize(("host", "start"), [("native", 0), ("node", 1), ("chromium", 2)])
def test_attention_has_the_values_of_the_composite(host: str, start: int, pytestconfig: pytest.Config) -> None:
    there = HOSTS[host]
    if there.missing():
        pytest.skip(there.missing())
    names = sampling.part(pytestconfig, attending.NAMES, 4, start)
    found = json.loads(there.results("attending.py", there.device, "results", *names, result="results"))
    assert found.keys() == {*names}
    for name, values in found.items():
        call = CALLS[name]
        for one, other in zip(values, outcome(call, "cpu", fused=False), strict=True):
            expected = other.float().reshape(-1).tolist()
            limit = bound(call) * max([1.0, *[abs(number) for number in expected if number == number]])
            assert one == pytest.approx(expected, rel=0, abs=limit, nan_ok=True), name
