"""torch.webgpu.handler: functions that a page calls, in which Python may wait for the device nonetheless."""

from __future__ import annotations

import asyncio
import functools
import sys
import traceback
from collections.abc import Callable
from typing import Any

_IN_PYODIDE = sys.platform == "emscripten"


def handler(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function` as a handler of events, in which Python may wait for the device: `button.on_click(handler(show))`.

    A page calls handlers from JavaScript, where Python cannot wait, so this one runs a moment later; one after the
    other, however often it is called. What it raises is printed. Where Python can wait always, it is `function` itself.
    """
    if not _IN_PYODIDE:
        return function

    @functools.wraps(function)
    def begin(*args: Any, **options: Any) -> None:
        task = asyncio.ensure_future(_run(function, args, options))
        _running.add(task)
        task.add_done_callback(_running.discard)

    return begin


_running: set[Any] = set()  # A loop holds its tasks weakly.
_turn: list[asyncio.Lock] = []


async def _run(function: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]) -> None:
    if not _turn:
        _turn.append(asyncio.Lock())
    async with _turn[0]:
        try:
            result = function(*args, **options)
            if asyncio.iscoroutine(result):
                await result
        except Exception as error:
            for stream in {sys.stderr, sys.__stderr__}:  # JupyterLite drops what is said to its own outside of cells.
                traceback.print_exception(error, file=stream)
