"""Every element-wise function, operator and in-place form."""

from tests.cases import pointwise
from tests.cases.case import Case
from tests.oracle import oracle


@oracle.parametrize(pointwise.CASES)
def test_values_and_gradients_match_torch(case: Case, device: str) -> None:
    oracle.agree(case, device)
