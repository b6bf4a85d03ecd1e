"""Calls of names that no table of cases calls, for the reference: each runs as it stands, and shows what it gives.

In lines.txt and programs.txt names stand without `torch.`; `x`, `w`, `n` and `spikes` are tensors. After "!" stands
what is refused, after "?" what differs from machine to machine, so that its class is all that is shown. A program,
which ends where an empty line is, shows each of its names that has nothing else.
"""

import ast
import re
import warnings
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pywebgpu
from tests.cases.run import default_device
from tools.docs import described, refusals, samples, surface

HERE = Path(__file__).parent
PATH = re.compile(r"(?<![\w.'])[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*")
MARK = re.compile(r"^( *)([!?])", re.MULTILINE)


def collect() -> dict[str, samples.Found]:
    """By public name: calls that begin with it, or else programs that use it; what they give, or why not."""
    public = {name.full for path in surface.modules() for name in surface.names(path)}
    found: dict[str, samples.Found] = {}
    with warnings.catch_warnings(), default_device(pywebgpu, "cpu"), TemporaryDirectory() as folder:
        warnings.simplefilter("ignore")
        for marked in texts():
            mark = MARK.search(marked)
            shown, given = MARK.sub(r"\1", marked), words(folder)
            value, refused = outcome(shown, given)
            names = dict.fromkeys(one for one in named(shown, given) if one in public)
            assert (refused is not None) == (mark is not None and mark[2] == "!"), f"{marked}: {refused}"
            for name in names if "\n" in shown else list(names)[:1]:
                known = found.setdefault(name, samples.Found())
                if refused is not None:
                    known.errors[described.told(refused)] = shown
                elif "\n" not in shown or not known.calls:
                    text = type(value).__name__ if mark else said(value)
                    known.calls[(len(known.calls), (), shown)] = f"{shown} -> {text}"
                    if "\n" not in shown and "set_" not in shown and not mark and not known.errors:
                        known.errors |= next(filter(None, (refusals.of(call) for call in calls(shown, given))), {})
    return found


def texts() -> Iterator[str]:
    yield from (HERE / "lines.txt").read_text(encoding="utf-8").splitlines()
    yield from (HERE / "programs.txt").read_text(encoding="utf-8").strip().split("\n\n")


def calls(text: str, given: dict[str, Any]) -> Iterator[refusals.Call]:
    """Those in a line, the outermost first, then what made the object that is called."""
    node = ast.parse(text, mode="eval").body
    while isinstance(node, ast.Call | ast.Attribute | ast.Subscript):
        inner = node.func if isinstance(node, ast.Call) else node.value
        if isinstance(node, ast.Call):
            parts = [*node.args, *(one.value for one in node.keywords), inner]
            if not any(isinstance(one, ast.Starred) for one in parts):
                *values, function = (eval(ast.unparse(one), given) for one in parts)
                names = [one.arg or "" for one in node.keywords]
                count = len(node.args)
                options = dict(zip(names, values[count:], strict=True))
                yield refusals.Call(function, tuple(values[:count]), options, ast.unparse(inner))
        node = inner


def outcome(text: str, given: dict[str, Any]) -> tuple[object, Exception | None]:
    """What its last line gives, or why it is refused."""
    *before, last = ast.parse(text).body
    try:
        if not isinstance(last, ast.Expr):
            return exec(text, given), None
        exec(compile(ast.Module(before, []), "<example>", "exec"), given)
        return eval(compile(ast.Expression(last.value), "<example>", "eval"), given), None
    except (RuntimeError, TypeError, ValueError, AssertionError) as error:
        return None, error


def words(folder: str) -> dict[str, Any]:
    """What a line may name: all of torch, and a few values."""
    torch: Any = pywebgpu
    weight = torch.nn.Parameter(torch.ones(2, 3))
    weight.grad = torch.ones(2, 3)
    own = {
        "x": torch.rand(2, 3),
        "w": weight,
        "n": torch.arange(6).reshape(2, 3),
        "spikes": torch.tensor([[0.0, 1.0, 0.0], [2.0, 0.0, 3.0]]).to_sparse(),
        "linear": torch.nn.Linear(3, 4),
        "sgd": lambda: torch.optim.SGD([weight], lr=1.0),
        "rates": rates,
        "folder": folder,
        "len": len, "list": list, "next": next, "iter": iter, "dict": dict, "bytearray": bytearray, "map": map,
    }  # fmt: skip
    return namespace() | own


@cache
def namespace() -> dict[str, Any]:
    listed = {name.name: name.value for name in surface.names("")}
    return listed | {name: getattr(pywebgpu, name) for name in dir(pywebgpu)}


def rates(scheduler: Any, *metrics: float) -> list[float]:
    """The learning rate before each of five steps."""
    found = []
    for _ in (1, 2, 3, 4, 5):
        found.append(round(float(scheduler.optimizer.param_groups[0]["lr"]), 4))
        scheduler.optimizer.step()
        scheduler.step(*metrics)
    return found


def named(line: str, given: dict[str, Any]) -> Iterator[str]:
    """The dotted names of a line, longest first; a method of a value is one of Tensor."""
    for path in PATH.findall(line):
        first, _, rest = path.partition(".")
        if isinstance(given.get(first), pywebgpu.Tensor):
            yield f"Tensor.{rest}"
        parts = path.split(".")
        yield from (".".join(parts[:end]) for end in range(len(parts), 0, -1))


def said(value: object) -> str:
    """What the reference says of a value; of an object whose text has several lines, its class."""
    text = described.described(value)
    return type(value).__name__ if "..." in text else text
