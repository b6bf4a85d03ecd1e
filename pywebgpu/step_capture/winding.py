"""A tape as Python code: a replay does what the host did, in one call."""

from __future__ import annotations

from math import copysign, inf, nan
from typing import Any

from pywebgpu.live import Entry

NAMES = {"inf": inf, "nan": nan, "__builtins__": {}}


def program_of(entries: list[Entry]) -> Any:
    """A tape as one function of the list that its reads fill; it returns a reason where a guard does not hold."""
    lines, last = ["def wind(v):"], ""
    for at, entry in enumerate(entries):
        if entry.kind == "read":
            lines.append(f"    v.append(action{at}())")
        elif entry.kind == "act":
            lines.append(f"    action{at}()")
        elif entry.kind == "write":
            lines += [f"    value = {entry.text}"] * (entry.text != last) + [f"    action{at}(value)"]
        else:
            lines += [f"    value = {entry.text}", f"    if not same(value, entry{at}.expected):"]
            lines.append(f"        return changed(entry{at}, value)")
        last = entry.text if entry.kind == "write" else ""
    names: dict[str, Any] = {**NAMES, "same": _is_same, "changed": _changed}
    names |= {f"action{at}": entry.action for at, entry in enumerate(entries) if entry.action is not None}
    names |= {f"entry{at}": entry for at, entry in enumerate(entries)}
    exec(compile("\n".join([*lines, "    return None"]), "<tape>", "exec"), names)
    return names["wind"]


def function_of(text: str) -> Any:
    """An expression of the tape as a function of that list."""
    return eval(compile(f"lambda v: {text}", "<tape>", "eval"), dict(NAMES))


def _is_same(now: Any, before: Any) -> bool:
    """Whether Python cannot tell two numbers apart: it can 0.0 and -0.0, and not NaN and NaN."""
    if now == before:
        return now != 0 or copysign(1, now) == copysign(1, before)
    return bool(now != now and before != before)


def _changed(entry: Entry, value: Any) -> str:
    change = f"{entry.text} was {entry.expected!r} and is {value!r}"
    return f"a number of the host changed what Python does: {change}"
