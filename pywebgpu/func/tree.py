"""Arguments and results of function transforms as lists of leaves, and back: PyTorch's trees."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from pywebgpu.utils import _pytree

Rebuild = Callable[[Iterable[object]], object]


def flatten(tree: object) -> tuple[list[Any], Rebuild]:
    """The leaves in order, and what makes the same containers of other leaves."""
    leaves, spec = _pytree.tree_flatten(tree)
    return leaves, spec.unflatten


def structure(tree: object) -> _pytree.TreeSpec:
    """The containers of a tree, without its leaves."""
    return _pytree.tree_structure(tree)


def spread(prefix: object, tree: object) -> list[Any]:
    """A leaf of `prefix` for each leaf of `tree`: one stands for all that is below its place.

    Raises ValueError where they have different containers.
    """
    leaves = _pytree._broadcast_to_and_flatten(prefix, _pytree.tree_structure(tree))
    if leaves is None:
        raise ValueError("the structures differ")
    return leaves
