"""A program as text, and the module that it becomes: its names are globals, or cells of a closure.

A program is text so that each world has its own globals, classes and modules, and a failing one prints whole.
"""

import ast
import functools
import re
import textwrap
from dataclasses import dataclass, field

GLOBALS, CLOSURE = "globals", "closure"
CALLS = 10  # Audits are calls 2, 3, 5 and 9: the calls between them are replays.

# What every program finds.
PRELUDE = '''
import abc, array, bisect, collections, contextlib, contextvars, copy, dataclasses, datetime, decimal, enum, fractions
import functools, gc, heapq, io, itertools, json, logging, math, operator, os, pickle, random, re, string, sys, tempfile
import threading, time, types, typing, warnings, weakref
import numpy as np

nn, F, optim = torch.nn, torch.nn.functional, torch.optim


def data(n, *shape):
    """Numbers of a shape, others for each n. NUDGE moves each by another amount: norms undo a common factor."""
    shape = shape or (3, 4)
    index = torch.arange(float(math.prod(shape))).reshape(shape)
    numbers = torch.sin(index * 0.7 + n)
    return numbers * (1.0 + NUDGE * torch.cos(index + n)) if NUDGE else numbers


def param(n, *shape):
    return nn.Parameter(data(n, *(shape or (4,))))


def filled(module):
    """The module with numbers in its parameters that are the same in each library."""
    with torch.no_grad():
        for n, p in enumerate(module.parameters()):
            p.copy_(data(n, *p.shape) * 0.5)
    return module


def linear(n=0, rows=4, columns=4):
    layer = filled(nn.Linear(columns, rows))
    with torch.no_grad():
        layer.weight.add_(0.1 * n)
    return layer


def stop_(is_due):
    """An interrupt where it is due, else a number."""
    if is_due:
        raise KeyboardInterrupt("user")
    return 2.0


def mlp():
    return nn.Sequential(linear(0, 3, 4), nn.Tanh(), linear(1, 4, 3))
'''


@dataclass(frozen=True, slots=True, eq=False)
class Program:
    """A step, what it stands in, and what happens between its calls.

    setup: makes all names, `step` among them; `step` is compiled unless the text says `compile` itself.
    A line `outer a, b` in a function declares names of the setup that it assigns.
    call: an expression of `n`, the number of the call. Its value is seen, as is each name without a leading `_`.
    changes: by the number of the call, statements that run before it.
    modules: by name, texts of modules that the setup may name or import.
    alone: why PyTorch is not asked. refused: compiled, each call that gets so far raises CaptureError.
    replays: how many calls are replayed at least. audited: why only an audit sees that a replay would be wrong.
    """

    name: str
    setup: str
    changes: dict[int, str] = field(default_factory=dict)
    call: str = "step(data(n))"
    modules: dict[str, str] = field(default_factory=dict)
    scopes: tuple[str, ...] = (GLOBALS, CLOSURE)
    calls: int = CALLS
    alone: str = ""
    refused: bool = False
    replays: int = 0
    audited: str = ""


@functools.lru_cache(maxsize=8)
def source(program: Program, scope: str) -> str:
    """The module's text: it defines `call(n)`, `change_4()` …, `names()`, `keep(value)` and `_result()`."""
    setup = textwrap.dedent(program.setup).strip("\n")
    if not re.search(r"\bcompile\(|@compile", setup):
        setup += "\nstep = compile(step)"
    setup += "\nout = None"
    known = assigned(setup)
    word = "global" if scope == GLOBALS else "nonlocal"
    parts = [setup, _function("call(n)", f"return {program.call}"), _names(known, scope)]
    parts.append(_function("keep(value)", f"{word} out\nout = value"))
    parts.append(_function("_result()", "return out"))
    for at, change in program.changes.items():
        change = textwrap.dedent(change).strip("\n")
        outer = sorted(assigned(change) & known) if scope == CLOSURE else sorted(assigned(change))
        parts.append(_function(f"change_{at}()", (f"{word} {', '.join(outer)}\n" if outer else "") + change))
    text = re.sub(r"\bouter (?=\w+(, \w+)*$)", f"{word} ", "\n\n".join(parts), flags=re.MULTILINE)
    if scope == GLOBALS:
        return text + "\n"
    made = ["call", "names", "keep", "_result", *[f"change_{at}" for at in program.changes]]
    text += "\n\nreturn " + "dict(" + ", ".join(f"{name}={name}" for name in made) + ")"
    return _function("make()", text) + "\n\nglobals().update(make())\n"


def _function(head: str, body: str) -> str:
    return f"def {head}:\n" + textwrap.indent(body, "    ")


def _names(known: set[str], scope: str) -> str:
    shown = sorted(name for name in known if not name.startswith("_") and name not in ("out", "step"))
    if scope == CLOSURE:
        return _function("names()", "return {" + ", ".join(f"{name!r}: {name}" for name in shown) + "}")
    return _function("names()", f"return {{name: globals()[name] for name in {shown!r} if name in globals()}}")


def assigned(text: str) -> set[str]:
    """The names that a text assigns or deletes in its own scope."""
    found: set[str] = set()

    def look(node: ast.AST) -> None:
        match node:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name) | ast.AsyncFunctionDef(name=name):
                found.add(name)
                return
            case ast.Lambda() | ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
                return
            case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
                found.add(name)
            case ast.Import(names=names) | ast.ImportFrom(names=names):
                found.update((alias.asname or alias.name).partition(".")[0] for alias in names)
            case ast.ExceptHandler(name=str() as name):
                found.add(name)
        for child in ast.iter_child_nodes(node):
            look(child)

    look(ast.parse(re.sub(r"\bouter (?=\w+(, \w+)*$)", "global ", text, flags=re.MULTILINE)))
    return found
