"""Parts of random programs out of homes.py and holders.py: any value, anywhere, read in any way, and any change of it.

What is drawn is tried once without a step, so that a program reads a number and each change of it is one that can be seen.
"""

from __future__ import annotations

import ast
import functools
import itertools
import random
import re
from dataclasses import dataclass
from typing import Any

import numpy as np

from tests.fuzz.programs import holders, homes, world
from tests.fuzz.programs.holders import Holder
from tests.fuzz.programs.homes import Home
from tests.fuzz.programs.program import assigned

TRIES, CHANGES = 12, 3
MARK = "__number"  # for `$` in Python's grammar
STARTS = 40  # pairs that are tried for a program


@dataclass(frozen=True, slots=True)
class Composed:
    """setup makes the value, read is an expression of the step, is_tensor: of a tensor; changes are between the calls.
    argument: what the step is given by the name `a$`. edit: a change inside the step, where there is one."""

    name: str
    setup: str
    read: str
    is_tensor: bool
    changes: tuple[str, ...]
    argument: str
    edit: str


def drawn(draw: random.Random, torch: Any) -> Composed:
    """A value in a home, a way of reading it, and changes that this way can see."""
    for _ in range(STARTS):
        holder, home = draw.choice(draw.choice(holders.HOLDERS)), draw.choice(homes.HOMES)
        values = draw.choice(holder.groups)
        setup = _setup(holder, home, values[0])
        within = home.read or home.place
        read = draw.choice(_ways(holder, within, setup, home.argument, torch) or ("",))
        if not read:
            continue
        tried = _try(draw, holder, home, values)
        seen = (text for text in tried if _is_seen(setup, read, text, home.argument, torch))
        changes = [*itertools.islice(seen, CHANGES)]
        if not changes:
            continue
        value, _ = world.trial(torch, *_apart(setup, read, home.argument))
        edit = _change(draw, holder, within, "", values) if draw.random() < 0.15 else ""
        if "__getattribute__" in edit and isinstance(value, torch.Tensor):
            edit = ""  # A class of tensors is no longer one then, for the step that is in the middle of it.
        edit = edit if edit and _is_seen(setup, read, edit, home.argument, torch, inside=True) else ""
        name = f"{holder.name} in {home.name}"
        needed = _needed(holder.before, _home(home, values[0]), "\n".join((read, *changes, edit, home.argument)))
        return Composed(name, needed, read, isinstance(value, torch.Tensor), tuple(changes), home.argument, edit)
    raise RuntimeError("nothing that can be read")


def _setup(holder: Holder, home: Home, value: str) -> str:
    return f"{holder.before}\n{_home(home, value)}"


def _home(home: Home, value: str) -> str:
    return "\n".join(filter(None, (home.before, home.puts.format(v=f"make$({value})"))))


def _needed(before: str, rest: str, more: str) -> str:
    """The statements of a holder that make a name which the rest of a program uses, and the rest of its setup."""
    kept, used = [rest], rest + more
    lines = before.replace("$", MARK).splitlines()
    for node in reversed(ast.parse("\n".join(lines)).body):
        first = min([node.lineno, *(one.lineno for one in getattr(node, "decorator_list", ()))])
        text = "\n".join(lines[first - 1 : node.end_lineno]).replace(MARK, "$")
        if any(
            re.search(rf"\b{re.escape(name.replace(MARK, '$'))}(?!\w)", used) for name in assigned(ast.unparse(node))
        ):
            kept.append(text)
            used += text
    return "\n".join(reversed(kept))


def _change(draw: random.Random, holder: Holder, place: str, put: str, values: tuple[str, ...]) -> str:
    change = draw.choice([text for text in holder.changes if put or text != "{put}"] or ("",))
    return change.format(a=place, v=draw.choice(values), put=put)


def _try(draw: random.Random, holder: Holder, home: Home, values: tuple[str, ...]) -> list[str]:
    put = home.puts.format(v=f"make$({draw.choice(values[1:])})")
    return list(dict.fromkeys(_change(draw, holder, home.place, put, values) for _ in range(TRIES)))


def _apart(setup: str, read: str, argument: str) -> tuple[str, str]:
    """As a module, where what the step is given is one more name."""
    text = f"import importlib\n{setup}"
    if argument:
        read = f"(lambda a$: {read})({argument})"
    return text.replace("$", ""), read.replace("$", "")


@functools.lru_cache(maxsize=4096)
def _ways(holder: Holder, within: str, setup: str, argument: str, torch: Any) -> tuple[str, ...]:
    """The ways of reading that give a number, or a tensor, there."""
    setup_, _ = _apart(setup, "0", argument)
    _, hashes = _apart("", f"type({within}).__hash__ in (object.__hash__, torch.Tensor.__hash__)", argument)
    is_known_by_place = world.trials(torch, setup_, [hashes]) == [True]  # Its hash is another one in each world.
    reads = [
        read.format(a=within) for read in dict.fromkeys(holder.reads) if not (is_known_by_place and "hash(" in read)
    ]
    ways = [_apart("", read, argument)[1] for read in reads]
    values = world.trials(torch, setup_, ways)
    good = [read for read, value in zip(reads, values, strict=True) if _is_number(value, torch)]
    often = [read for read in good if holder.reads.count(read) > 1]
    return (*good, *often)


def _is_number(value: object, torch: Any) -> bool:
    if isinstance(value, torch.Tensor):
        return value.ndim == 0 or tuple(value.shape) == (4,)
    return isinstance(value, bool | int | float | np.number | np.bool_) and abs(float(value)) < 1e6


def _is_seen(setup: str, read: str, change: str, argument: str, torch: Any, *, inside: bool = False) -> bool:
    text, expression = _apart(setup, read, argument)
    change = change.replace("$", "")
    if inside and argument:
        text += f"\na = {argument.replace('$', '')}"
        expression = read.replace("$", "")
    try:
        before, after = world.trial(torch, text, expression, change)
        return not isinstance(before, Exception) and repr(before) != repr(after)
    except Exception:  # What Python, or an object, refuses.
        return False
