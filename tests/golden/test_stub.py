"""What type checkers are told of the namespace is what is there."""

import pytest

from pywebgpu.ir.surface import RECORDS, Takes
from tests.golden import stub

ELEMENTWISE = stub.FILE.parent / "tensor" / "elementwise.py"
BEGIN = "    if TYPE_CHECKING:  # Written by `python -m tests golden --update`.\n\n"
END = "\n\ndef _add("


def test_the_stub_says_what_the_namespace_holds(request: pytest.FixtureRequest) -> None:
    text = stub.text()
    if request.config.getoption("--update-golden"):
        stub.FILE.write_text(text, encoding="utf-8")
    assert stub.FILE.exists(), "pywebgpu/__init__.pyi is missing: python -m tests golden --update writes it"
    stored = stub.FILE.read_text(encoding="utf-8")
    assert text == stored, "pywebgpu/__init__.pyi changed: python -m tests golden --update, then read the diff"


def test_type_checkers_see_the_methods_of_records(request: pytest.FixtureRequest) -> None:
    lines = []
    for surface in RECORDS.values():
        other = "" if surface.takes in (Takes.REAL, Takes.WHOLE, Takes.UNARY) else ", other: Operand"
        for name in surface.names.split():
            forms = [(name, "Tensor"), (f"{name}_", "Self")] if surface.in_place else [(name, "Tensor")]
            lines += [f"        def {form}(self{other}) -> {result}: ...\n" for form, result in forms]
    before, begin, rest = ELEMENTWISE.read_text("utf-8").partition(BEGIN)
    _, end, after = rest.partition(END)
    text = "".join((before, begin, *sorted(lines), end, after))
    if request.config.getoption("--update-golden"):
        ELEMENTWISE.write_text(text, encoding="utf-8", newline="\n")
    stored = ELEMENTWISE.read_text("utf-8")
    assert text == stored, "tensor/elementwise.py: python -m tests golden --update, then read the diff"
