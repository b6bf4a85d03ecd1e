"""Kernels of quantised weights give the values of device cpu on both translators."""

import json

import pytest

from pywebgpu.composites.quantized import FORMATS
from tests import sampling
from tests.hosts import decoding
from tests.hosts.host import HOSTS


@pytest.mark.parametrize(("host", "start"), [("native", 0), ("node", 1), ("chromium", 2)])
def test_quantised_weights_have_the_values_of_device_cpu(host: str, start: int, pytestconfig: pytest.Config) -> None:
    there = HOSTS[host]
    if there.missing():
        pytest.skip(there.missing())
    names = sampling.part(pytestconfig, tuple(FORMATS), 2, start)
    by_format = json.loads(there.results("decoding.py", there.device, "results", *names, result="results"))
    assert by_format.keys() == {*names}
    for name, values in by_format.items():
        for actual, expected in zip(values, decoding.outcome(name, "cpu"), strict=True):
            limit = 4e-6 * max(map(abs, expected))
            assert actual == pytest.approx(expected, rel=0, abs=limit), name
