"""Functions of nn.functional."""

from tests.cases import functional
from tests.cases.case import Case
from tests.oracle import oracle


@oracle.parametrize(functional.CASES)
def test_values_and_gradients_match_torch(case: Case, device: str) -> None:
    oracle.agree(case, device)
