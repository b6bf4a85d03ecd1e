"""vmap over the tables: a case over two samples at once is the case over each of them, values and gradients."""

from typing import Any

import numpy as np
import pytest

import pywebgpu as torch
from pywebgpu import func
from tests.cases.case import Case, generator, host_dtype
from tests.cases.tables import AREAS, RAISING, TABLES

EACH = 7  # of so many cases one: the rules are a dozen, and every op passes several
LARGE = 20_000  # elements of an input, from which on a case only takes longer
RANDOM = ("bernoulli", "dropout", "normal", "rand", "rrelu", "multinomial", "poisson", "uniform", "gumbel")


def cases() -> list[object]:
    areas = [area for area in AREAS if area not in RAISING]
    found = [(area, case) for area in areas for case in TABLES[area] if case.inputs and "cpu" in case.devices]
    small = [one for one in found if max(np.prod(item.shape) for item in one[1].inputs) <= LARGE]
    fixed = [one for one in small if not any(word in one[1].name for word in RANDOM)]
    return [pytest.param(case, id=f"{area}-{case.name}") for area, case in fixed[::EACH]]


def tensors(case: Case, which: int, device: str) -> list[Any]:
    random = generator(f"{case.name}, sample {which}")
    drawn = [np.array(item.draw(random, item.shape)).astype(host_dtype(item.dtype)) for item in case.inputs]
    return [
        torch.tensor(array.reshape(item.shape), dtype=getattr(torch, item.dtype), device=device)
        for array, item in zip(drawn, case.inputs, strict=True)
    ]


def flat(result: Any) -> list[Any]:
    return [leaf for item in result for leaf in flat(item)] if isinstance(result, list | tuple) else [result]


def gradient(case: Case, *inputs: Any) -> Any:
    """The gradients of the sum of squares of what a case gives."""
    at = [which for which, item in enumerate(case.inputs) if item.needs_grad and item.dtype == "float32"]

    def total(*moving: Any) -> Any:
        given = list(inputs)
        for which, value in zip(at, moving, strict=True):
            given[which] = value
        outputs = [leaf for leaf in flat(case.fn(torch, *given)) if torch.is_tensor(leaf) and leaf.is_floating_point()]
        return sum(((leaf * leaf).sum() for leaf in outputs), inputs[at[0]].new_zeros(()))

    return func.grad(total, tuple(range(len(at))))(*[inputs[which] for which in at]) if at and case.grad else ()


def close(found: Any, wanted: Any) -> None:
    assert found.dtype is wanted.dtype
    tolerance = 2e-3 if wanted.dtype in (torch.float16, torch.bfloat16) else 1e-4
    got, expected = (np.asarray(one.tolist(), "float64") for one in (found, wanted))
    np.testing.assert_allclose(got, expected, rtol=tolerance, atol=tolerance)


@pytest.mark.one_in(10, webgpu=3)
@pytest.mark.parametrize("case", cases())
def test_a_batch_is_its_samples(case: Case, device: str, default_device: None) -> None:
    if device not in case.devices:
        pytest.skip(f"{case.name} is of {', '.join(case.devices)}")
    for call in (case.fn, gradient):
        first = torch if call is case.fn else case
        one, two = (flat(call(first, *tensors(case, which, device))) for which in range(2))
        shapes = [[getattr(leaf, "shape", None) for leaf in leaves] for leaves in (one, two)]
        if not one or None in shapes[0] or shapes[0] != shapes[1]:
            continue  # No tensors, or as many elements as the values say.
        batch = [torch.stack(pair) for pair in zip(*[tensors(case, which, device) for which in range(2)], strict=True)]
        found = flat(func.vmap(lambda *given, call=call, first=first: call(first, *given))(*batch))
        for leaf, *samples in zip(found, one, two, strict=True):
            for which, sample in enumerate(samples):
                close(leaf[which], sample)
