"""Views, joins and padding."""

from tests.cases import movement
from tests.cases.case import Case
from tests.oracle import oracle


@oracle.parametrize(movement.CASES)
def test_values_and_gradients_match_torch(case: Case, device: str) -> None:
    oracle.agree(case, device)
