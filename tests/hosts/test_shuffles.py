"""Variants that need subgroups: where they are, rows have the values that they have without, on both translators."""

import json

import numpy as np
import pytest

from tests import sampling
from tests.hosts import shuffles
from tests.hosts.host import HOSTS
from tests.hosts.windows import numbers


@pytest.mark.parametrize(("host", "start"), [("native", 0), ("node", 1)])
def test_shuffled_sums_are_right(host: str, start: int, pytestconfig: pytest.Config) -> None:
    there = HOSTS[host]
    if there.missing():
        pytest.skip(there.missing())
    shapes = sampling.part(pytestconfig, range(len(shuffles.SHAPES)), 2, start)
    text = there.results("shuffles.py", there.device, "results", *map(str, shapes), result="results")
    names, found, norms = json.loads(text)
    if "subgroups" not in names:
        pytest.skip(f"the adapter of {host} has no subgroups")
    assert {tuple(shape) for shape, *_ in found} == {shuffles.SHAPES[index] for index in shapes}
    for shape, launch, shuffled, plain in found:
        x = numbers(*shape)
        wanted = x.sum(1), x.softmax(1), x.amin(1), (x >= 0).any(1).float()
        expected = [number for tensor in wanted for number in tensor.reshape(-1).tolist()]
        _, _, _, each, split, _ = launch
        if split <= each[0]:  # One subgroup adds as a tree does.
            assert shuffled == plain, (shape, launch)
        assert shuffled == pytest.approx(expected, rel=1e-4, abs=1e-4), (shape, launch)
    for values in norms:
        assert values == pytest.approx(_norm(), rel=1e-4, abs=1e-4)


def _norm() -> list[float]:
    """A norm's gradients by float64."""
    shape = shuffles.NORMED
    x, weight, gradient = (np.asarray(numbers(*one).tolist()) for one in (shape, shape[1:], shape))
    scale = (x.var(1, keepdims=True) + 1e-5) ** -0.5
    normal, inner = (x - x.mean(1, keepdims=True)) * scale, gradient * weight
    parts = inner - inner.mean(1, keepdims=True) - normal * (inner * normal).mean(1, keepdims=True)
    found = parts * scale, (gradient * normal).sum(0), gradient.sum(0)
    return [float(number) for array in found for number in array.reshape(-1)]
