"""Every case of every table against PyTorch: outputs and gradients, or that both raise. What holds of all tables."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from tests.cases import run
from tests.cases.case import Case, arrays, randn
from tests.cases.tables import AREAS, RAISING, TABLES
from tests.oracle import oracle


def cases(areas: list[str]) -> list[object]:
    return [pytest.param(case, id=f"{area}-{case.name}") for area in areas for case in TABLES[area]]


@pytest.mark.one_in(webgpu=16, words=True)
@pytest.mark.parametrize("case", cases([area for area in AREAS if area not in RAISING]))
def test_outputs_and_gradients_match_torch(case: Case, device: str) -> None:
    oracle.agree(case, device)


@pytest.mark.parametrize("case", cases(list(RAISING)))
def test_exception_types_match_torch(case: Case, device: str) -> None:
    oracle.agree_to_fail(case, device)


@pytest.mark.parametrize("area", AREAS)
def test_names_are_unique(area: str) -> None:
    names = [case.name for case in TABLES[area]]
    assert len(names) == len(set(names)), sorted({name for name in names if names.count(name) > 1})


@pytest.mark.parametrize("area", AREAS)
def test_inputs_are_the_same_each_time(area: str) -> None:
    for case in TABLES[area]:
        for one, other in zip(arrays(case), arrays(case), strict=True):
            assert one.tobytes() == other.tobytes(), case.name


def altered(result: run.Result, **changes: object) -> run.Result:
    """The result with its first output changed."""
    return replace(result, outputs=(replace(result.outputs[0], **changes), *result.outputs[1:]))


def test_a_difference_is_seen() -> None:
    case = Case("product", lambda torch, a: a * 2, (randn(3, 4),))
    right = run.run(case, torch, "cpu")
    array = right.outputs[0].array
    one_wrong, not_a_number = array.copy(), array.copy()
    one_wrong[1, 2] += 1e-3
    not_a_number[0, 0] = np.nan
    wrong = [
        altered(right, array=one_wrong),
        altered(right, array=not_a_number),
        altered(right, array=array[None]),
        altered(right, dtype="float16"),
        altered(right, requires_grad=False),
        replace(right, gradients=(None,)),
        replace(right, gradients=(replace(right.gradients[0], array=array),)),
        replace(right, outputs=()),
    ]
    run.check(case, right, right, "numpy")
    for result in wrong:
        with pytest.raises(AssertionError, match=r"product|outputs"):
            run.check(case, result, right, "numpy")
