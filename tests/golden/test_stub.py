"""What type checkers are told of the namespace is what is there."""

import pytest

from tests.golden import stub


def test_the_stub_says_what_the_namespace_holds(request: pytest.FixtureRequest) -> None:
    text = stub.text()
    if request.config.getoption("--update-golden"):
        stub.FILE.write_text(text, encoding="utf-8")
    assert stub.FILE.exists(), "pywebgpu/__init__.pyi is missing: python -m tests golden --update writes it"
    stored = stub.FILE.read_text(encoding="utf-8")
    assert text == stored, "pywebgpu/__init__.pyi changed: python -m tests golden --update, then read the diff"
