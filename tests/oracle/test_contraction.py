"""Matrix products, einsum, tensordot."""

from tests.cases import contraction
from tests.cases.case import Case
from tests.oracle import oracle


@oracle.parametrize(contraction.CASES)
def test_values_and_gradients_match_torch(case: Case, device: str) -> None:
    oracle.agree(case, device)
