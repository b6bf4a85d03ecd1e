"""Expressions of the tape as trees of JSON: a number, or a list of a name and its operands.

["v", 3] is the third number that the tape read; the other names are those of Python's operators, and "inf" and "nan".
A tree and not text, because a page may forbid its scripts to evaluate text.
"""

import ast
import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import inf, isfinite, nan
from typing import Any

from pywebgpu.errors import CaptureError

Tree = Any  # int | float | list[Any]

_SYMBOLS: dict[type[ast.AST], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.Pow: "**",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Eq: "==",
    ast.NotEq: "!=",
}
_RULES: dict[str, Callable[..., Any]] = {
    "inf": lambda: inf,
    "nan": lambda: nan,
    "neg": operator.neg,
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "**": operator.pow,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}


def reads(texts: Iterable[str]) -> dict[int, int]:
    """The numbers of what texts read, counted anew without those that none reads."""
    found = {int(at) for text in texts for at in re.findall(r"v\[(\d+)\]", text)}
    return {old: new for new, old in enumerate(sorted(found))}


def parsed(text: str, numbers: Mapping[int, int]) -> Tree:
    """The tree of a text, with the numbers of `reads`. Raises CaptureError for what the tape does not write."""
    return _tree(ast.parse(text, mode="eval").body, text, numbers)


def value(tree: Tree, v: Sequence[float]) -> Any:
    """What a tree stands for, of the numbers `v` that were read."""
    if not isinstance(tree, list):
        return tree
    name, *operands = tree
    return v[operands[0]] if name == "v" else _RULES[name](*[value(operand, v) for operand in operands])


def _tree(node: ast.AST, text: str, numbers: Mapping[int, int]) -> Tree:
    match node:
        case ast.Constant(value=bool() | int() | float() as number) if isfinite(number):
            return number + 0
        case ast.Constant(value=float()):
            return ["inf"]  # 1e999
        case ast.Name(id="inf" | "nan" as name):
            return [name]
        case ast.Subscript(value=ast.Name(id="v"), slice=ast.Constant(value=int() as at)):
            return ["v", numbers[at]]
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return ["neg", _tree(operand, text, numbers)]
        case ast.BinOp(left=left, op=op, right=right) | ast.Compare(left=left, ops=[op], comparators=[right]):
            if type(op) in _SYMBOLS:
                return [_SYMBOLS[type(op)], _tree(left, text, numbers), _tree(right, text, numbers)]
    raise CaptureError(f"a number of the host cannot leave Python: {text}")
