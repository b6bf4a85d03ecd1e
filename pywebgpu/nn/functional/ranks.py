"""Functions of one, two and three axes of space, each made of one that has their number as its last argument."""

import inspect
from collections.abc import Callable
from types import FunctionType
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


def of_rank(function: F, rank: int) -> F:
    """`conv2d` of `_convnd` and 2: the same code with that default, so that errors have its name.

    Its name and its words have "2d" for "nd"; its signature does not show `rank`.
    """
    source: Any = function
    name = source.__name__.lstrip("_").replace("nd", f"{rank}d")
    copy: Any = FunctionType(source.__code__, source.__globals__, name, source.__defaults__, source.__closure__)
    copy.__kwdefaults__ = source.__kwdefaults__ | {"rank": rank}
    copy.__qualname__, copy.__annotations__ = name, source.__annotations__
    copy.__doc__ = source.__doc__.replace("nd ", f"{rank}d ").replace("nd'", f"{rank}d'")
    signature = inspect.signature(function)
    shown = [parameter for parameter in signature.parameters.values() if parameter.name != "rank"]
    copy.__signature__ = signature.replace(parameters=shown)
    return copy  # type: ignore[no-any-return]


def of_each_rank(function: F) -> tuple[F, F, F]:
    """The functions of one, two and three axes."""
    return of_rank(function, 1), of_rank(function, 2), of_rank(function, 3)
