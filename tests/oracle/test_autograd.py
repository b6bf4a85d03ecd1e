"""Programs that ask for gradients."""

from tests.cases import autograd, derivatives, functions, recomputed
from tests.cases.case import Case
from tests.oracle import oracle


@oracle.parametrize(autograd.CASES, derivatives.CASES, functions.CASES, recomputed.CASES)
def test_gradients_match_torch(case: Case, device: str) -> None:
    oracle.agree(case, device)
