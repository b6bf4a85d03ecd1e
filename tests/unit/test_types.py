"""`Any` stands at borders only: NumPy, wgpu-py, JavaScript, users' objects; programs are checked as PyTorch's are."""

import ast
import functools
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "pywebgpu"
# A backend's own handles, and PyTorch's names for what programs put into trees.
ALIASES = {
    "compiler/program.py": ["Loaded"], "devices/base.py": ["Handle"], "utils/_pytree.py": ["PyTree", "Context"],
    "fx/node.py": ["Argument"],
}  # fmt: skip
NAMES = {"Any", "_Any", "typing.Any"}
NAMED = ast.Name | ast.Attribute

FILES = sorted(PACKAGE.rglob("*.py"))


def relative(file: Path) -> str:
    return file.relative_to(PACKAGE).as_posix()


@functools.cache
def parsed(file: Path) -> ast.Module:
    return ast.parse(file.read_text(encoding="utf-8"))


def test_no_other_name_stands_for_any() -> None:
    aliases = {}
    for file in FILES:
        pairs = [(node.targets[0], node.value) for node in ast.walk(parsed(file)) if isinstance(node, ast.Assign)]
        names = [ast.unparse(name) for name, value in pairs if isinstance(value, NAMED) and ast.unparse(value) in NAMES]
        if names:
            aliases[relative(file)] = names
    assert aliases == ALIASES


def test_checkers_pass_right_programs_and_find_mistakes() -> None:
    pytest.importorskip("mypy", reason="type checking is part of the dev extra")
    command = [sys.executable, "-m", "mypy", "--no-pretty", "tests/typing/right.py", "tests/typing/wrong.py"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    found = set(re.findall(r"^(\S+?):(\d+): error: .*\[([\w-]+)\]$", done.stdout, re.MULTILINE))
    lines = (ROOT / "tests/typing/wrong.py").read_text(encoding="utf-8").splitlines()
    marked = [(str(at), line.partition("# wrong: ")[2]) for at, line in enumerate(lines, 1)]
    assert found == {("tests/typing/wrong.py", at, kind) for at, kind in marked if kind}, done.stdout + done.stderr
