"""JSON from files that nobody vouches for: parsed strictly, and its parts held to their kinds.

What is wrong is `Malformed`; each format tells it on as its own error. js_bridge/validate.mjs has the same kinds.
"""

from __future__ import annotations

import json
import os
import re
import reprlib
import stat
from collections.abc import Iterable
from typing import Any, NoReturn, TypeGuard

EXACT = 2**53 - 1  # Up to here every reader of JSON has the same whole numbers.
MAX_RANK = 64
MAX_BYTES = 256 << 20
MAX_NESTING = 500
MAX_DEPTH = 100  # of containers in containers, in what a file stands for
STRINGS = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
NO_BRACKETS = re.compile(r"[^][{}]+")


class Malformed(ValueError):
    """A document breaks a rule of its format."""


def read(path: str | os.PathLike[str]) -> bytes:
    """The bytes of a file. Raises OSError, and Malformed for one that is not regular, or too large to be a document."""
    status = os.stat(path)
    if not stat.S_ISREG(status.st_mode) or status.st_size > MAX_BYTES:
        raise Malformed(f"it is no file of at most {MAX_BYTES} bytes")
    with open(path, "rb") as file:
        return file.read(status.st_size)


def parse(text: str | bytes) -> Any:
    """The value of a JSON text: no name twice in an object, no NaN, no nest without end. Raises Malformed."""
    try:
        text = text.decode("utf-8") if isinstance(text, bytes) else text
        _check_nesting(text)
        return json.loads(text, object_pairs_hook=_without_duplicates, parse_constant=_refuse_constant)
    except Malformed:
        raise
    except ValueError as error:
        raise Malformed(f"it is not JSON: {error}") from None
    except RecursionError:  # Its caller is deep already.
        raise Malformed("it is nested too deep") from None


def require(holds: object, where: str, rule: str) -> None:
    """Raises Malformed with the rule where it does not hold."""
    if not holds:
        raise Malformed(f"{where}: {rule}")


def is_size(value: object, most: int = EXACT) -> TypeGuard[int]:
    """Whether it is a whole number from 0 to `most`."""
    return type(value) is int and 0 <= value <= most


def is_shape(value: object) -> TypeGuard[list[int]]:
    """Whether it is a list of sizes, and neither the rank nor the number of elements is out of all bounds."""
    return isinstance(value, list) and len(value) <= MAX_RANK and all(map(is_size, value)) and count(value) <= EXACT


def count(sizes: Iterable[int]) -> int:
    """The product of the sizes that are not 0: what an array of this shape has to be able to count."""
    product = 1
    for size in sizes:
        product *= size or 1
    return product


def shown(value: object) -> str:
    """A value as an error tells of it, which is never long."""
    return reprlib.repr(value)


def _check_nesting(text: str) -> None:
    """json goes by recursion, and where Python runs in a browser that ends the page, not the call."""
    depth = 0
    for bracket in NO_BRACKETS.sub("", STRINGS.sub("", text)):
        depth += 1 if bracket in "[{" else -1
        if depth > MAX_NESTING:
            raise Malformed("it is nested too deep")


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    out = dict(pairs)
    if len(out) != len(pairs):
        raise Malformed("it names something twice")
    return out


def _refuse_constant(name: str) -> NoReturn:
    raise Malformed(f"it is not JSON: {name} is no number there")
