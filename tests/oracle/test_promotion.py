"""The dtype of every result."""

from tests.cases import promotion
from tests.cases.case import Case
from tests.oracle import oracle


@oracle.parametrize(promotion.CASES)
def test_dtypes_match_torch(case: Case, device: str) -> None:
    oracle.agree(case, device)
