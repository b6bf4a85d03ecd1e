"""A loop with a Stop button, for kernels that cannot be interrupted: JupyterLite, PyScript, a page."""

from __future__ import annotations

import asyncio
import sys
import time
import uuid
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Generic, TypeVar

from pywebgpu.display import html, places

T = TypeVar("T")
OFTEN = 0.05  # seconds between two looks at the button, each of which lets the page's messages in
PRESSED = "this.disabled=true;this.textContent='Stopping'"


class Stoppable(Generic[T]):
    """The items of `steps`, with a Stop button where Python runs in a page: it ends the loop between two steps.

    ```python
    for batch in stoppable(batches):  # `async for` where Python cannot wait
        live.log(loss=step(batch))
    ```

    stopped: whether the button was pressed. Elsewhere the kernel, an editor's Stop, or Ctrl-C interrupts.
    target: the id of an element of the page for the button.
    """

    def __init__(self, steps: Iterable[T], *, target: str | None = None) -> None:
        self.steps, self.stopped, self.step = steps, False, 0
        self._target = target
        self._looked = 0.0

    def __iter__(self) -> Iterator[T]:
        with self._button():
            for item in self.steps:
                if self._is_due():
                    _let_messages_in()
                if self.stopped:
                    return
                self.step += 1
                yield item

    async def __aiter__(self) -> AsyncIterator[T]:
        with self._button():
            for item in self.steps:
                if self._is_due():
                    await asyncio.sleep(0)
                if self.stopped:
                    return
                self.step += 1
                yield item

    def stop(self, *_: object) -> None:
        """Ends the loop before its next step, as the button does."""
        self.stopped = True

    def _is_due(self) -> bool:
        now = time.monotonic()
        is_due = now - self._looked >= OFTEN
        if is_due:
            self._looked = now
        return is_due

    @contextmanager
    def _button(self) -> Iterator[None]:
        """A button that tells this Python of its press by a channel, since Python may run in a worker."""
        place = places.find(self._target) if sys.platform == "emscripten" else None
        if place is None or isinstance(place, (places.Output, places.Terminal)):  # An editor has a Stop of its own.
            yield
            return
        import js
        from pyodide.ffi import create_proxy

        name = f"pywebgpu-{uuid.uuid4()}"
        channel: Any = js.BroadcastChannel.new(name)
        pressed = create_proxy(self.stop)
        channel.onmessage = pressed
        press = html.escape(f"{PRESSED};new BroadcastChannel('{name}').postMessage(0)")
        place.show(f'<button type="button" onclick="{press}">Stop</button>', "", last=False, active=True)
        try:
            yield
        finally:
            channel.close()
            pressed.destroy()
            said = f"{'stopped' if self.stopped else 'ended'} after {self.step} steps"
            place.show(html.card(f'<span style="{html.SOFT}">{said}</span>'), said, last=True)


def stoppable(steps: Iterable[T], *, target: str | None = None) -> Stoppable[T]:
    """A loop's items with a Stop button where no kernel can be interrupted: see Stoppable."""
    return Stoppable(steps, target=target)


def _let_messages_in() -> None:
    if sys.platform == "emscripten":
        from pyodide.ffi import can_run_sync, run_sync

        if can_run_sync():
            run_sync(asyncio.sleep(0))
