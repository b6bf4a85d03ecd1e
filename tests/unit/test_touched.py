"""Additions touch as few files as CONTRIBUTING.md says, and work at once."""

import pytest

from tests import touched

FILES = {"elementwise op": 2, "function made of ops": 2, "module": 3, "template": 3, "dtype": 3, "device": 2}


@pytest.mark.parametrize("kind", touched.EXAMPLES)
def test_an_addition_touches_few_files_and_works(kind: str) -> None:
    touched.run(touched.EXAMPLES[kind])
    assert len(touched.EXAMPLES[kind].files) == FILES[kind]
