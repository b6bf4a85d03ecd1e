"""What nodes pass on to those that are made of them: where they came from."""

from __future__ import annotations

import copy
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

PASSED_ON = ("stack_trace", "nn_module_stack", "torch_fn", "source_fn_stack", "from_node", "custom")


class _Notes(threading.local):
    """What a thread passes on."""

    def __init__(self) -> None:
        self.meta: dict[str, Any] = {}
        self.preserves = False


_notes = _Notes()


@contextmanager
def preserve_node_meta(enable: bool = True) -> Iterator[None]:
    """A block in which an Interpreter passes on what nodes know."""
    before, meta = _notes.preserves, _notes.meta
    _notes.preserves, _notes.meta = enable, meta.copy()
    try:
        yield
    finally:
        _notes.preserves, _notes.meta = before, meta


def has_preserved_node_meta() -> bool:
    """Whether such a block is open."""
    return _notes.preserves


def get_current_meta() -> dict[str, Any]:
    """What is passed on now."""
    return _notes.meta


@contextmanager
def set_current_meta(node: Any, pass_name: str = "") -> Iterator[None]:
    """A block in which what a node knows is passed on."""
    if not (_notes.preserves and node.meta):
        yield
        return
    before, _notes.meta = _notes.meta, node.meta.copy()
    try:
        yield
    finally:
        _notes.meta = before


def copy_meta(node: Any) -> None:
    """Gives a node what is passed on."""
    for name in PASSED_ON:
        if name in _notes.meta:
            node.meta[name] = copy.copy(_notes.meta[name])


def set_stack_trace(stack: list[str]) -> None:
    """Says where what is made next comes from."""
    if _notes.preserves and stack:
        _notes.meta["stack_trace"] = "".join(stack)


def format_stack() -> list[str]:
    """Where what is made next comes from."""
    if _notes.preserves:
        return [str(_notes.meta.get("stack_trace", ""))]
    return traceback.format_list(traceback.extract_stack()[:-1])


@contextmanager
def annotate(annotation_dict: dict[str, Any]) -> Iterator[None]:
    """A block whose nodes have these notes in meta["custom"]."""
    before = _notes.meta.get("custom")
    _notes.meta["custom"] = {**(before or {}), **annotation_dict}
    try:
        yield
    finally:
        if before is None:
            del _notes.meta["custom"]
        else:
            _notes.meta["custom"] = before
