"""`Any` stands at borders only: NumPy, wgpu-py, JavaScript, users' objects; programs are checked as PyTorch's are."""

import ast
import functools
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "pywebgpu"
MOST = 150  # functions that take or return what may be anything
ALIASES = {"compiler/program.py": ["Loaded"], "devices/base.py": ["Handle"]}  # a backend's own handles
NAMES = {"Any", "_Any", "typing.Any"}
NAMED = ast.Name | ast.Attribute

Function = ast.FunctionDef | ast.AsyncFunctionDef
FILES = sorted(PACKAGE.rglob("*.py"))


def relative(file: Path) -> str:
    return file.relative_to(PACKAGE).as_posix()


@functools.cache
def parsed(file: Path) -> ast.Module:
    return ast.parse(file.read_text(encoding="utf-8"))


def is_anything(annotation: ast.expr | None) -> bool:
    """Whether it is Any itself, or a union with it, which is no more."""
    match annotation:
        case ast.Constant(value=str(text)):
            return is_anything(ast.parse(text, mode="eval").body)
        case ast.BinOp():
            return is_anything(annotation.left) or is_anything(annotation.right)
        case ast.Name() | ast.Attribute():
            return ast.unparse(annotation) in NAMES
    return False


def untyped(file: Path) -> Iterator[Function]:
    """The functions with a parameter or a result that may be anything; what *args and **kwargs hold does not count."""
    for node in ast.walk(parsed(file)):
        if isinstance(node, Function):
            given = node.args
            parameters = [one.annotation for one in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
            if any(map(is_anything, [*parameters, node.returns])):
                yield node


def test_few_functions_take_or_return_anything() -> None:
    found = Counter({relative(file): len(list(untyped(file))) for file in FILES})
    assert found.total() <= MOST, found.most_common(20)


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
