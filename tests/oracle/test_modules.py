"""Modules: outputs, gradients, buffers, names."""

from tests.cases import modules
from tests.cases.case import Case
from tests.oracle import oracle


@oracle.parametrize(modules.CASES)
def test_modules_match_torch(case: Case, device: str) -> None:
    oracle.agree(case, device)
