"""Update rules and schedules over ten steps."""

from tests.cases import optim
from tests.cases.case import Case
from tests.oracle import oracle


@oracle.parametrize(optim.CASES)
def test_trajectories_match_torch(case: Case, device: str) -> None:
    oracle.agree(case, device)
