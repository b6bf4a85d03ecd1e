"""The programs of the gallery: short, described, and running as they are on every device."""

import ast
import runpy
from pathlib import Path

import pytest

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


@pieces
def test_it_is_short_and_says_what_it_is(piece: Path) -> None:
    text = piece.read_text(encoding="utf-8")
    title, colon, about = (ast.get_docstring(ast.parse(text)) or "").partition(": ")
    assert title
    assert colon
    assert about.endswith(".")
    assert len(text.splitlines()) <= LONGEST
    assert piece.with_suffix(".svg").read_text(encoding="utf-8").startswith("<svg xmlns=")


@pytest.mark.usefixtures("default_device")
@pytest.mark.parametrize("device", ["cpu"])
def test_its_boundary_parts_the_spirals(device: str, capfd: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(GALLERY / "boundary.py"), run_name="__main__")
    assert "240 of 240 points" in capfd.readouterr().out
