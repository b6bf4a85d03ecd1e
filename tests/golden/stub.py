"""What `import pywebgpu as torch` gives to type checkers, written out: the namespace is put together as it is imported.

Names that stand in a file are imported from there; functions made of methods get the methods' signatures, in torch's
way: the tensor is called `input`, and `out` takes the result.
"""

import ast
import inspect
import re
import sys
import typing
from collections import defaultdict
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pywebgpu
from pywebgpu import dtypes, errors
from pywebgpu.nn import functional
from pywebgpu.support import closed_types
from pywebgpu.support.closed_types import Closed
from pywebgpu.tensor import functions, limits
from pywebgpu.torch_api import rare_names

FILE = Path(pywebgpu.__file__).with_suffix(".pyi")
HEAD = '"""Written by `python -m tests golden --update`: see tests/golden/stub.py."""\n'
SHADOWED = re.compile(r"(?<![\w.])(bool|float|int)\b")  # in the namespace these are dtypes
QUALIFIED = re.compile(r"\b(?:\w+\.)+(?=(?:device|DType|Tensor)\b)")
RESULTS = {"Tensor": "Tensor", "Self": "Tensor"}


def text() -> str:
    imports: dict[str, set[str]] = defaultdict(set)
    lines: list[str] = []
    made = functions.generated()
    parts = sorted(pywebgpu._PARTS)
    for name, value in sorted(vars(pywebgpu).items()):
        is_hidden = name.startswith("_") and name != "__version__"
        if is_hidden or (isinstance(value, ModuleType) and value is not errors):
            continue
        if name in made:
            lines += _function(name, value, imports)
        else:
            _named(name, value, imports, lines)
    for name, module in sorted((pywebgpu._ELSEWHERE | rare_names.NAMES).items()):
        imports[module].add(f"{name} as {name}")
    imports["pywebgpu.nn.functional"] |= {
        f"{name} as {name}" for name in limits.FUNCTIONAL if hasattr(functional, name)
    }
    for home in ("pywebgpu", "pywebgpu.torch_api"):
        imports[home] |= {f"{part} as {part}" for part in parts if part != "_C" and _is_there(part, home)}
    froms = [f"from {module} import {name}" for module, names in sorted(imports.items()) for name in sorted(names)]
    return "\n".join([HEAD, "import builtins", *froms, "", *lines, ""])


def _is_there(part: str, home: str) -> bool:
    folder = FILE.parents[1].joinpath(*home.split("."))
    return (folder / part).is_dir() or (folder / f"{part}.py").exists()


def _named(name: str, value: Any, imports: dict[str, set[str]], lines: list[str]) -> None:
    """A class or a function of some file, or a value."""
    if getattr(value, "__module__", "") == "pywebgpu":  # Of the surface: it is around one of a file.
        value = getattr(value, "__wrapped__", value)
    own = getattr(value, "__module__", "") if isinstance(value, type) or inspect.isroutine(value) else ""
    source = sys.modules.get(own)
    found = next((at for at in (name, getattr(value, "__name__", "")) if getattr(source, at, None) is value), None)
    kind = value if isinstance(value, type) else type(value)
    if issubclass(kind, Closed):  # It has PyTorch's name there, and that of a class where it stands.
        home = dtypes if kind is dtypes.DType else closed_types
        word = next(word for word, thing in vars(home).items() if thing is kind)
        imports[home.__name__].add(f"{word} as {kind.__name__}")
        lines += [] if value is kind else [f"{name}: {kind.__name__}"]
    elif value is errors:
        imports["pywebgpu"].add("errors as errors")
    elif found is not None and own.startswith("pywebgpu."):
        imports[own].add(f"{found} as {name}")
    elif found is not None and own == "pywebgpu":
        lines.append(f"def {name}{_signature(inspect.signature(value), own, imports)}: ...")
    elif value is None:
        lines.append(f"{name}: None")
    else:
        kind = type(value)
        if kind.__module__ == "builtins":
            lines.append(f"{name}: builtins.{kind.__name__}")
        else:
            imports[kind.__module__].add(f"{kind.__name__} as {kind.__name__}")
            lines.append(f"{name}: {kind.__name__}")


def _function(name: str, function: Callable[..., Any], imports: dict[str, set[str]]) -> list[str]:
    method = inspect.unwrap(function)
    written = SimpleNamespace(__module__=method.__module__, __qualname__=method.__code__.co_qualname)
    overloads = typing.get_overloads(written)  # They are registered by the name in the source.
    lines = []
    for one in overloads or [method]:
        taken = _taken(name, inspect.signature(one))
        imports["pywebgpu.tensor.tensor"].add("Tensor as Tensor")
        lines += ["@overload"] * bool(overloads)
        lines.append(f"def {name}{_signature(taken, method.__module__, imports)}: ...")
    if overloads:
        imports["typing"].add("overload")
    return lines


def _taken(name: str, own: inspect.Signature) -> inspect.Signature:
    """The signature of a method as that of a function."""
    first, *rest = own.parameters.values()
    kind = "Tensor | Number" if name in functions.REFLECTED else "Tensor"
    rest.insert(0, first.replace(name="input", annotation=kind, kind=inspect.Parameter.POSITIONAL_OR_KEYWORD))
    result = RESULTS.get(own.return_annotation, own.return_annotation)
    if result == "Tensor" and "out" not in own.parameters:
        out = inspect.Parameter("out", inspect.Parameter.KEYWORD_ONLY, default=None, annotation="Tensor | None")
        at = len(rest) - any(one.kind is one.VAR_KEYWORD for one in rest)
        rest.insert(at, out)
    return own.replace(parameters=rest, return_annotation=result)


def _signature(own: inspect.Signature, module: str, imports: dict[str, set[str]]) -> str:
    """As text, with the default values left out; what its annotations name is imported."""
    parts, is_open = [], False
    for one in own.parameters.values():
        if one.kind is one.KEYWORD_ONLY and not is_open:
            parts.append("*")
        is_open = is_open or one.kind in (one.VAR_POSITIONAL, one.KEYWORD_ONLY)
        star = {one.VAR_POSITIONAL: "*", one.VAR_KEYWORD: "**"}.get(one.kind, "")
        default = "" if one.default is one.empty else " = ..."
        parts.append(f"{star}{one.name}: {_annotation(one.annotation, module, imports)}{default}")
    return f"({', '.join(parts)}) -> {_annotation(own.return_annotation, module, imports)}"


def _annotation(annotation: Any, module: str, imports: dict[str, set[str]]) -> str:
    words = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation, "pywebgpu")
    words = QUALIFIED.sub("", words.replace("_Any", "Any"))
    for name in sorted(set(re.findall(r"(?<![\w.])[A-Za-z_]\w*", words))):
        source = _origins(module).get(name) or _origins("pywebgpu.tensor.types").get(name)
        if source is not None and getattr(vars(pywebgpu).get(name), "__mro__", (None, None))[1] is not Closed:
            imports[source].add(f"{name} as {name}" if name in vars(pywebgpu) else name)
    return SHADOWED.sub(r"builtins.\1", words)


@cache
def _origins(module: str) -> dict[str, str]:
    """Where the names come from that a file imports for its annotations, and those that it has itself."""
    tree = ast.parse(Path(str(sys.modules[module].__file__ if module in sys.modules else _path(module))).read_text())
    found = {"Any": "typing"}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            found |= {alias.asname or alias.name: str(node.module) for alias in node.names}
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            found[node.name] = module
        elif isinstance(node, ast.Assign):
            found |= {target.id: module for target in node.targets if isinstance(target, ast.Name)}
    return found


def _path(module: str) -> Path:
    return FILE.parents[1].joinpath(*module.split(".")).with_suffix(".py")
