"""Marks of what stays as it is between versions; they say nothing here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_BACK_COMPAT_OBJECTS: dict[Any, None] = {}
_MARKED_WITH_COMPATIBILITY: dict[Any, None] = {}


def compatibility(is_backward_compatible: bool) -> Callable[[Any], Any]:
    """Marks a function or class."""

    def mark(function: Any) -> Any:
        if is_backward_compatible:
            _BACK_COMPAT_OBJECTS.setdefault(function)
        _MARKED_WITH_COMPATIBILITY.setdefault(function)
        return function

    return mark
