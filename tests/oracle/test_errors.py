"""What must raise, raises PyTorch's exception type."""

from tests.cases import errors, misuse
from tests.cases.case import Case
from tests.oracle import oracle


@oracle.parametrize(errors.CASES, misuse.CASES)
def test_exception_types_match_torch(case: Case, device: str) -> None:
    oracle.agree_to_fail(case, device)
