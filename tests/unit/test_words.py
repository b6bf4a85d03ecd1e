"""Variables are named by the noun of what they hold, and not by words that say nothing of it."""

import ast
import re
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "pywebgpu"
VAGUE = re.compile("apart|at|beside|born|claims|foreseen|found|given|halves|made|one|served|taps|told|way|which|whole")
FOLDERS = sorted(path.parent.name for path in PACKAGE.glob("*/__init__.py"))
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


def vague_names(module: ast.AST) -> set[str]:
    """The parameters and variables of functions that have such a name, with their lines."""
    nodes = [node for function in ast.walk(module) if isinstance(function, FUNCTIONS) for node in ast.walk(function)]
    names = [(node.id, node.lineno) for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)]
    names += [(node.arg, node.lineno) for node in nodes if isinstance(node, ast.arg)]
    return {f"{name}, line {line}" for name, line in names if VAGUE.fullmatch(name)}


@pytest.mark.parametrize("folder", FOLDERS)
def test_names_say_what_is_held(folder: str) -> None:
    files = sorted((PACKAGE / folder).rglob("*.py"))
    names = {file.name: vague_names(ast.parse(file.read_text(encoding="utf-8"))) for file in files}
    assert {name: vague for name, vague in names.items() if vague} == {}


def test_a_vague_name_is_seen() -> None:
    module = ast.parse("def f(at, size):\n    found = [one for one in at]\n    return found\n")
    assert vague_names(module) == {"at, line 1", "found, line 2", "one, line 2"}
