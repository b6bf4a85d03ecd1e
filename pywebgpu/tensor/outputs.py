"""`out=` of a function: an argument that its decorator takes. What it may be, and its writing, is in output_rules."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from pywebgpu.tensor import output_rules

if TYPE_CHECKING:
    from pywebgpu.tensor.output_rules import Output

P = ParamSpec("P")
R = TypeVar("R")


def writable(name: str = "") -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Gives a function an `out`: a tensor, or a tuple of them. name: the function's in PyTorch, with its module's."""

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        known = name or function.__name__

        @functools.wraps(function)
        def call(*args: P.args, **options: P.kwargs) -> R:
            out: Any = options.pop("out", None)
            return finished(known, function(*args, **options), out, *args, *options.values())

        return call

    return decorate


def finished(name: str, result: R, out: Output | None, *inputs: object) -> R:
    """The result of a function, in `out` where that is given."""
    if out is None:
        return result
    output_rules.check(name, out, inputs)
    return output_rules.into(out, result, name)
