"""What a name refuses, for the reference: calls that work, with one argument made wrong at a time."""

import linecache
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pywebgpu
from tools.docs.described import called, told

torch: Any = pywebgpu


@dataclass(frozen=True, slots=True)
class Call:
    """A call that works: the function, and what stands before its brackets."""

    function: Callable[..., Any]
    args: tuple[Any, ...]
    options: dict[str, Any]
    shown: str


def of(call: Call, most: int = 2) -> dict[str, str]:
    """Errors that the library raises on purpose, by their text, with the calls that they answer."""
    found: dict[str, str] = {}
    for args, options in wrong(call):
        try:
            call.function(*args, **options)
        except (RuntimeError, TypeError, ValueError, IndexError) as error:
            if is_meant(error):
                found.setdefault(told(error), call.shown + called(args, options))
        except Exception:
            continue  # Of Python itself: nothing to show.
        if len(found) == most:
            break
    return found


def wrong(call: Call) -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    """Another shape, an axis that is not there, other dtypes, and what is no tensor."""
    for change in (reshaped, beyond, as_bools, as_complex, as_text):
        for at, value in reversed([*enumerate(call.args)]):
            other = change(value)
            if other is not None:
                yield (*call.args[:at], other, *call.args[at + 1 :]), call.options
        for name, value in call.options.items():
            other = change(value)
            if other is not None:
                yield call.args, call.options | {name: other}


def reshaped(value: Any) -> Any:
    if is_tensor(value):
        return torch.ones((7, *value.shape), dtype=value.dtype) if value.numel() < 1000 else None
    return None


def beyond(value: Any) -> Any:
    return 9 if type(value) is int else None


def as_bools(value: Any) -> Any:
    return torch.ones(value.shape, dtype=torch.bool) if is_tensor(value) and value.dtype != torch.bool else None


def as_complex(value: Any) -> Any:
    return torch.ones(value.shape, dtype=torch.complex64) if is_tensor(value) and not value.is_complex() else None


def as_text(value: Any) -> Any:
    return "text" if is_tensor(value) or type(value) in (int, float) else None


def is_tensor(value: Any) -> bool:
    return type(value) in (torch.Tensor, torch.nn.Parameter)  # Others may have no shape yet, or no elements in rows.


def is_meant(error: Exception) -> bool:
    """Whether a `raise` of the library's is where it comes from."""
    last = error.__traceback__
    while last is not None and last.tb_next is not None:
        last = last.tb_next
    file = last.tb_frame.f_code.co_filename if last is not None else ""
    line = linecache.getline(file, last.tb_lineno) if last is not None else ""
    return "pywebgpu" in file and line.lstrip().startswith("raise ")
