"""GLOSSARY.md has each word once, and each is the name of something; docs/architecture.md names every file."""

import ast
import re
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "pywebgpu"
ROW = re.compile(r"^\| ([^|]+) \| [^|]+ \| [^|]* \| `([\w/.]+)(?:: (\w+))?` \|$", re.MULTILINE)
TEXT = (ROOT / "GLOSSARY.md").read_text(encoding="utf-8")
ROWS: list[tuple[str, str, str]] = ROW.findall(TEXT)


def test_every_row_is_read_and_no_word_stands_twice() -> None:
    lines = [line for line in TEXT.splitlines() if line.startswith("| ")]
    assert len(ROWS) == len(lines) - 1  # the head
    assert max(Counter(word for words, _, _ in ROWS for word in words.split(", ")).values()) == 1


@pytest.mark.parametrize(("word", "path", "name"), ROWS, ids=[row[0] for row in ROWS])
def test_word_is_the_name_of_something(word: str, path: str, name: str) -> None:
    found = PACKAGE / path
    assert found.exists(), f"{word}: {path}"
    if name:
        tree = ast.parse(found.read_text(encoding="utf-8"))
        defined = {node.name for node in tree.body if isinstance(node, ast.ClassDef | ast.FunctionDef)}
        assert name in defined, f"{word}: {path} has no {name}"


def test_every_folder_with_a_name_of_its_own_is_a_word() -> None:
    """Folders with PyTorch's names need none."""
    own = ("autodiff", "compiler", "composites", "exporter", "hosts", "ir", "kernels", "ops", "runtime", "step_capture")
    named = {path.partition("/")[0] for _, path, _ in ROWS}
    assert set(own) <= named
    assert all((PACKAGE / folder).is_dir() for folder in own)


MAP = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
FAMILIES = ("composites", "nn", "utils/data", "optim/lr_scheduler")  # A name each would say no more than the folder.


@pytest.mark.parametrize("folder", sorted({path.parent for path in PACKAGE.rglob("*.py")}), ids=lambda path: path.name)
def test_the_map_names_every_file(folder: Path) -> None:
    if folder.relative_to(PACKAGE).as_posix().startswith(FAMILIES):
        return
    names = {path.name for path in folder.glob("*.py") if not path.name.startswith("__")}
    assert {name for name in names if not re.search(rf"(?<![\w.]){re.escape(name)}", MAP)} == set()
