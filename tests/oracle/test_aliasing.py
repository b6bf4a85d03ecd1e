"""Writes in place and through views."""

from tests.cases import aliasing, other_memory
from tests.cases.case import Case
from tests.oracle import oracle


@oracle.parametrize(aliasing.CASES, other_memory.CASES)
def test_aliases_match_torch(case: Case, device: str) -> None:
    oracle.agree(case, device)
