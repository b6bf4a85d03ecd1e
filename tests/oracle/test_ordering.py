"""Order, search and counting, over dtypes and edges."""

from tests.cases import ordering
from tests.cases.case import Case
from tests.oracle import oracle


@oracle.parametrize(ordering.CASES)
def test_values_and_gradients_match_torch(case: Case, device: str) -> None:
    oracle.agree(case, device)
