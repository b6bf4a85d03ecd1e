"""What can be said of a function before it runs: what it is called, and which names stand in its code."""

from __future__ import annotations

import types
from collections.abc import Callable, Iterator
from typing import Any

from pywebgpu.step_capture import kinds, watch
from pywebgpu.step_capture.surroundings import MISSING, attribute, is_a


def title(function: Callable[..., object]) -> str:
    return str(getattr(function, "__qualname__", None) or type(function).__name__)


def tells_numbers_apart(function: Callable[..., object], arguments: list[Any]) -> bool:
    """Whether code that may run can tell a number which stands for several values from Python's own."""
    return any(map(watch.tells_numbers_apart, _codes([function, *arguments])))


def _codes(waiting: list[Any]) -> Iterator[types.CodeType]:
    """The user's code of these functions, of methods of these objects, and of functions that it names."""
    seen: set[int] = set()
    while waiting:
        value = waiting.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        if is_a(value, types.CodeType):
            yield value
            waiting += [member for member in value.co_consts if isinstance(member, types.CodeType)]
        elif is_a(value, types.MethodType):
            waiting += [value.__func__, type(value.__self__)]
        elif is_a(value, types.FunctionType):
            code = value.__code__
            if watch.origin(code, value.__globals__)[0] is watch.USER:
                cells = [cell for cell in value.__closure__ or () if _is_filled(cell)]
                named = [value.__globals__[name] for name in code.co_names if name in value.__globals__]
                waiting += [code, *(cell.cell_contents for cell in cells), *named]
        elif kinds.hides_its_class(value):
            continue
        elif is_a(value, type):
            if kinds.origin_of(value) is not watch.INTERNAL:
                own = type.__getattribute__(value, "__dict__")
                waiting += [member for member in own.values() if isinstance(member, types.FunctionType)]
        elif not is_a(value, types.ModuleType) and attribute(value, "__dict__") is not MISSING:
            waiting.append(type(value))


def _is_filled(cell: types.CellType) -> bool:
    try:
        return cell.cell_contents is not cell
    except ValueError:
        return False
