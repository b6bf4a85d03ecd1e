"""Subscripts, gather and scatter, order and search."""

from tests.cases import indexing
from tests.cases.case import Case
from tests.oracle import oracle


@oracle.parametrize(indexing.CASES)
def test_values_and_gradients_match_torch(case: Case, device: str) -> None:
    oracle.agree(case, device)
