"""Taking arguments apart as they were taken apart when a function was traced."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pywebgpu.utils import _pytree

_flatten: dict[type, Callable[[Any, Any], list[Any]]] = {}


def register_pytree_flatten_spec(cls: type, flatten_fn_spec: Callable[[Any, Any], list[Any]], *rest: object) -> None:
    """How containers of a class are taken apart by the spec of another."""
    _flatten[cls] = flatten_fn_spec


def tree_flatten_spec(pytree: Any, spec: Any) -> list[Any]:
    """The leaves of a tree where a spec has leaves. Raises RuntimeError for a container of another kind."""
    if spec.is_leaf():
        return [pytree]
    if spec.type in _flatten:
        children = _flatten[spec.type](pytree, spec)
    elif spec.type is dict:
        children = [pytree[key] for key in spec.context]
    elif spec.type in (tuple, list) or issubclass(spec.type, tuple):
        children = [pytree[index] for index in range(spec.num_children)]
    else:
        leaves, own = _pytree.tree_flatten(pytree)
        if own != spec:
            raise RuntimeError(f"Real spec {own} of object {pytree} is different from expected spec {spec}.")
        return leaves
    return [
        leaf
        for child, part in zip(children, spec.children_specs, strict=True)
        for leaf in tree_flatten_spec(child, part)
    ]
