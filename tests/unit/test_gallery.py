"""The programs of the gallery: short, described, and running as they are on every device."""

import ast
import re
import runpy
from pathlib import Path

import pytest

from tools.docs import tutorials

GALLERY = Path(__file__).parents[2] / "demos" / "gallery"
PIECES = sorted(GALLERY.glob("*.py"))
LONGEST = 120  # lines
pieces = pytest.mark.parametrize("piece", PIECES, ids=lambda path: path.stem)


@pytest.mark.one_in(4)  # On webgpu each takes seconds: most of its kernels are its own.
@pieces
@pytest.mark.usefixtures("default_device")
def test_it_runs(piece: Path, device: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("STEPS", "3")
    runpy.run_path(str(piece), run_name="__main__")
    assert "step 3" in capfd.readouterr().err


@pytest.mark.usefixtures("default_device")
@pytest.mark.parametrize("name", ["kernels", "tensors"])
def test_examples_of_the_editor_run(name: str, device: str, capfd: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(GALLERY / "examples" / f"{name}.py"), run_name="__main__")
    said = {"kernels": "step 4: loss 0.", "tensors": "the gradient tensor([ 0., -3.]"}[name]
    assert said in capfd.readouterr().out


@pieces
def test_it_is_short_and_says_what_it_is(piece: Path) -> None:
    text = piece.read_text(encoding="utf-8")
    title, colon, about = (ast.get_docstring(ast.parse(text)) or "").partition(": ")
    assert title
    assert colon
    assert about.endswith(".")
    assert len(text.splitlines()) <= LONGEST
    assert piece.with_suffix(".svg").read_text(encoding="utf-8").startswith("<svg xmlns=")


@pieces
def test_its_tutorial_holds_each_line_once_and_says_what_to_try(piece: Path) -> None:
    page = tutorials.page(piece)
    told = re.findall(r"^```{code-block} python\n:class: piece\n\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    lines = [line for block in told for line in block.splitlines() if line]
    assert lines == [line for line in piece.read_text(encoding="utf-8").splitlines() if line]
    assert len(told) > 4
    assert "*You learn:*" in page
    assert "## What to try" in page


@pytest.mark.usefixtures("default_device")
@pytest.mark.parametrize("device", ["cpu"])
def test_its_boundary_parts_the_spirals(device: str, capfd: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(GALLERY / "boundary.py"), run_name="__main__")
    assert "240 of 240 points" in capfd.readouterr().out
