"""Every call of the tables with shapes that nobody chose: what PyTorch refuses is refused, the rest agrees."""

import zlib
from collections.abc import Iterator
from dataclasses import replace

import pytest

from tests.cases.case import Case, Input, arrays
from tests.cases.tables import RAISING, TABLES
from tests.oracle import oracle

EVERY = 32  # one call in so many, by its name
# PyTorch makes the scatter and then fails in its backward, where the gradient of what was not taken is 0 here.
LENIENT = ("scatter",)
# PyTorch's answer there says something of its own implementation, and nothing of shapes.
ELSEWHERE = ("chances", "ormqr", "linear_cross_entropy", "norm_nuc", "convolution_transposed")
CRASHING = ("factors",)  # areas: PyTorch ends the process at some of these


def others(shape: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """One more column, one more row, an axis less, an axis more."""
    yield (*shape[:-1], shape[-1] + 1)
    yield shape[1:]
    yield (2, *shape)
    if len(shape) > 1:
        yield (shape[0] + 1, *shape[1:])


def calls() -> Iterator[tuple[str, Case]]:
    for area, table in TABLES.items():
        for case in table if area not in (*RAISING, *CRASHING) else ():
            if any(word in case.name for word in (*LENIENT, *ELSEWHERE)):
                continue
            for at, given in enumerate(case.inputs):
                for shape in others(given.shape) if given.shape else ():
                    changed = replace(case, inputs=tuple(_with(case.inputs, at, replace(given, shape=shape))))
                    yield f"{area}-{case.name}-{at}-{'x'.join(map(str, shape))}", changed


def _with(inputs: tuple[Input, ...], at: int, one: Input) -> Iterator[Input]:
    return (one if number == at else given for number, given in enumerate(inputs))


def can_be_drawn(case: Case) -> bool:
    """Whether no input has values of its own, which no other shape holds."""
    try:
        return bool(arrays(case))
    except ValueError:
        return False


CALLS = [(name, case) for name, case in calls() if zlib.crc32(name.encode()) % EVERY == 0 and can_be_drawn(case)]


@pytest.mark.parametrize("case", [pytest.param(case, id=name) for name, case in CALLS])
def test_wrong_shapes_are_refused_as_in_torch(case: Case) -> None:
    oracle.agree_or_fail(case, "cpu")


def test_there_are_calls_of_every_area() -> None:
    areas = {name.partition("-")[0] for name, _ in CALLS}
    assert len(CALLS) > 400
    assert len(areas) > 15
