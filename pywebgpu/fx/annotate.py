"""Types for values of a function that is traced."""

from __future__ import annotations

from typing import Any

from pywebgpu.fx.proxy import Proxy


def annotate(val: Any, type: Any) -> Any:
    """Gives a proxy's node a type, and returns the value. Raises RuntimeError where the node has one."""
    if isinstance(val, Proxy):
        if val.node.type:
            raise RuntimeError(
                f"Tried to annotate a value that already had a type on it! Existing type is {val.node.type} and "
                f"new type is {type}."
            )
        val.node.type = type
    return val
