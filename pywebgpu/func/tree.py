"""Nested tuples, lists and dicts: their leaves as one list, and back."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

Rebuild = Callable[[Sequence[object]], object]


def flatten(tree: object) -> tuple[list[Any], Rebuild]:
    """The leaves in order, and what makes the same containers of other leaves."""
    if isinstance(tree, dict):
        keys, made = list(tree), functools.partial[Any](type(tree))
        leaves, rebuild = _several([tree[key] for key in keys])
        if hasattr(tree, "default_factory"):
            made = functools.partial(made, tree.default_factory)
        return leaves, lambda found: made(zip(keys, rebuild(found), strict=True))
    if isinstance(tree, list | tuple):
        container = type(tree)
        leaves, rebuild = _several(list(tree))
        if hasattr(container, "_make"):
            return leaves, lambda found: container._make(rebuild(found))
        return leaves, lambda found: container(rebuild(found))
    return [tree], lambda found: found[0]


def _several(children: list[object]) -> tuple[list[Any], Callable[[Sequence[object]], list[object]]]:
    parts = [flatten(child) for child in children]

    def rebuild(found: Sequence[object]) -> list[object]:
        made, at = [], 0
        for leaves, back in parts:
            made.append(back(found[at : at + len(leaves)]))
            at += len(leaves)
        return made

    return [leaf for leaves, _ in parts for leaf in leaves], rebuild


def spread(prefix: object, tree: object) -> list[object]:
    """A leaf of `prefix` for each leaf of `tree`: one stands for all that is below its place.

    Raises ValueError where they have different containers.
    """
    if isinstance(prefix, dict | list | tuple) and isinstance(tree, dict | list | tuple):
        if len(prefix) != len(tree) or isinstance(prefix, dict) != isinstance(tree, dict):
            raise ValueError("the structures differ")
        if isinstance(prefix, dict) and isinstance(tree, dict):
            return [leaf for key in tree for leaf in spread(prefix[key], tree[key])]
        return [leaf for own, below in zip(prefix, tree, strict=True) for leaf in spread(own, below)]
    if isinstance(prefix, dict | list | tuple):
        raise ValueError("the structures differ")
    return [prefix] * len(flatten(tree)[0])
