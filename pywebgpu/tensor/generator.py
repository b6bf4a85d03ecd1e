"""Where the seeds of random draws come from.

A source is three numbers: seed, stream, draws. Each draw is a function of them alone, the same on every device; it
takes four host numbers and uploads nothing, so a Program runs again with other draws.
"""

from __future__ import annotations

import functools
import os
import threading
from typing import Any, NamedTuple, Self

from pywebgpu import devices, dtypes
from pywebgpu.graph.ir import Node, host
from pywebgpu.ops.random import Seed
from pywebgpu.step_capture.capture import Capture, recorder
from pywebgpu.step_capture.free_number import FREE

WORD = 0xFFFFFFFF
_drawing = threading.RLock()  # Threads share sources, and no two draws may be the same.


class State(NamedTuple):
    """All that a source is."""

    seed: int
    stream: int
    draws: Any  # a whole number, which is free in a captured step


class Source:
    """Random draws from a seed. Two sources of one seed give the same draws."""

    __slots__ = ("_fixed", "_state", "device")

    _fixed: tuple[Node, Node, Node]  # the words that stay while the seed does
    _state: State

    def __init__(self, device: str | devices.device | None = None) -> None:
        self.device = devices.device("cpu" if device is None else device)
        self._go_to(State(int.from_bytes(os.urandom(8), "little"), 0, 0))

    def manual_seed(self, seed: int) -> Self:
        """Starts over from a seed of 64 bits, where -1 is the largest. Raises ValueError for others."""
        seed = int(seed)
        if not -(2**63) <= seed < 2**64:
            raise ValueError(f"Overflow when unpacking long long: a seed has 64 bits, got {seed}")
        self.restore(State(seed % 2**64, 0, 0))
        return self

    def seed(self) -> int:
        """Starts over from a seed that the operating system draws, and returns it."""
        self.manual_seed(int.from_bytes(os.urandom(8), "little") % 2**63)
        return self._state.seed

    def initial_seed(self) -> int:
        """The seed that the draws started from."""
        seed, capture = self._state.seed, recorder.capture
        if capture is not None:
            capture.always.append(lambda: None if self._state.seed == seed else "a generator has another seed")
        return seed

    def draw(self) -> Seed:
        """The seed of the next draw: four host numbers."""
        with _drawing:
            seed, stream, draws = self.state
            self._state = State(seed, stream, draws + 1)
            fixed = self._fixed
        return (*fixed, host(draws if type(draws) in FREE else draws & WORD, dtypes.uint32))

    @property
    def state(self) -> State:
        """Small and immutable: what checkpoints and recomputations keep."""
        if recorder.capture is not None and recorder.capture.meet(self):
            self._enter(recorder.capture)
        return self._state

    def restore(self, state: State) -> None:
        """Goes back, or on, to a state."""
        if recorder.capture is not None and recorder.capture.meet(self):
            self._enter(recorder.capture)
        with _drawing:
            old, self._state = self._state, State(*state)
            if self._state[:2] != old[:2]:
                self._fixed = _words(self._state)

    def _enter(self, capture: Capture) -> None:
        """From here on the draws of a captured step count on from wherever the source is in each run."""
        begun = self._state
        capture.remember(lambda: functools.partial(self._go_to, self._state))
        words = [
            capture.read("seed.low", lambda: self._state.seed & WORD, self),
            capture.read("seed.high", lambda: self._state.seed >> 32, self),
            capture.read("stream", lambda: self._state.stream & WORD, self),
        ]
        low, high, stream = (host(word, dtypes.uint32) for word in words)
        self._fixed = (low, high, stream)
        draws = capture.read("draws", lambda: self._state.draws, self)
        self._state = State(begun.seed, begun.stream, draws)
        capture.endings.append(functools.partial(self._leave, capture, begun))

    def _leave(self, capture: Capture, begun: State) -> None:
        """The captured step is over: notes where it left the source."""
        seed, stream, draws = self._state
        same = (seed, stream) == begun[:2]
        if capture.is_free and type(draws) not in FREE:
            capture.act("seed", functools.partial(self._go_to, self._state))
        elif same:
            go_on = lambda n: self._go_to(State(self._state.seed, self._state.stream, n))  # noqa: E731
            capture.write("draws", draws, go_on, self)
        else:
            capture.write("draws", draws, lambda n: self._go_to(State(seed, stream, n)), self)

    def _go_to(self, state: State) -> None:
        with _drawing:
            self._state, self._fixed = state, _words(state)

    def __reduce__(self) -> Any:
        return _rebuild, (type(self), str(self.device), tuple(self._state))


def _words(state: State) -> tuple[Node, Node, Node]:
    seed, stream, _ = state
    return host(seed & WORD, dtypes.uint32), host(seed >> 32, dtypes.uint32), host(stream & WORD, dtypes.uint32)


def _rebuild(kind: type[Source], device: str, state: tuple[int, int, int]) -> Source:
    made = kind(device)
    made.restore(State(*state))
    return made


_default: list[Source] = [Source()]


def default() -> Source:
    """The source that manual_seed sets, and that draws without a generator use."""
    return _default[0]


def set_default(source: Source) -> None:
    _default[0] = source


def draw(generator: Source | None = None) -> Seed:
    """The seed of one draw from a generator, or from the default one."""
    return (_default[0] if generator is None else generator).draw()
