"""Arguments by name, as PyTorch takes them: its own names and NumPy's, of methods and of functions."""

import pytest

pytest.importorskip("expecttest", reason="torch.testing's samples need expecttest, of the extra `test`")

from tests.opdb import argument_names, operators  # After the package that they need.


@pytest.mark.one_in(4)
@pytest.mark.parametrize("name", sorted(operators.entries()))
def test_arguments_have_the_names_that_pytorch_knows(name: str) -> None:
    found = {text: argument_names.trouble(call, "cpu") for text, call in argument_names.calls(name, 4)}
    assert not {text: why for text, why in found.items() if why}
