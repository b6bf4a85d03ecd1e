"""Folds, scans and row functions."""

from tests.cases import reduction
from tests.cases.case import Case
from tests.oracle import oracle


@oracle.parametrize(reduction.CASES)
def test_values_and_gradients_match_torch(case: Case, device: str) -> None:
    oracle.agree(case, device)
