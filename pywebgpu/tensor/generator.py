"""Where the seeds of random draws come from.

A source is three numbers: seed, stream, draws. Each draw is a function of them alone, the same on every device; it
takes four host numbers and uploads nothing, so a Program runs again with other draws.
"""

from __future__ import annotations

import functools
import os
import threading
from typing import TYPE_CHECKING, Any, Self

from pywebgpu import devices, dtypes
from pywebgpu.ir.graph import Node, host, thread_state
from pywebgpu.ops.random import Seed
from pywebgpu.step_capture.free_number import FREE

if TYPE_CHECKING:
    from pywebgpu.devices.base import Device
    from pywebgpu.ir.observer import Observer

WORD = 0xFFFFFFFF
Words = tuple[Node, Node, Node]
_drawing = threading.RLock()  # Threads share sources, and no two draws may be the same.


watching: list[list[tuple[Words, Any]]] = []  # lists that each draw is noted in: the words of its seed, its number


class State:
    """All that a source is: three whole numbers, of which `draws` is free in a captured step. It never changes.

    words: the host numbers of a seed and a stream, which stay for all its draws; a captured step reads them anew.
    """

    __slots__ = ("draws", "seed", "stream", "words")

    def __init__(self, seed: int, stream: int, draws: int, words: Words | None = None) -> None:
        self.seed, self.stream, self.draws = seed, stream, draws
        self.words = _words(seed, stream) if words is None else words

    def at(self, draws: int) -> State:
        """This seed, after so many draws."""
        return State(self.seed, self.stream, draws, self.words)


class Source:
    """Random draws from a seed. Two sources of one seed give the same draws."""

    __slots__ = ("_state", "device")

    _state: State

    def __init__(self, device: str | devices.device | None = None) -> None:
        self.device = devices.device("cpu" if device is None else device)
        self._state = State(int.from_bytes(os.urandom(8), "little"), 0, 0)

    def manual_seed(self, seed: int) -> Self:
        """Starts over from a seed of 64 bits, where -1 is the largest. Raises ValueError for others."""
        seed = int(seed)
        if not -(2**63) <= seed < 2**64:
            raise ValueError(f"Overflow when unpacking long long: a seed has 64 bits, got {seed}")
        self.restore(State(seed % 2**64, 0, 0))
        return self

    def seed(self) -> int:
        """Starts over from a seed that the operating system draws, and returns it."""
        if thread_state.observer is not None:
            thread_state.observer.refuse("it draws a seed from the operating system")
        self.manual_seed(int.from_bytes(os.urandom(8), "little") % 2**63)
        return self._state.seed

    def initial_seed(self) -> int:
        """The seed that the draws started from."""
        return self.numbers()[0]

    def numbers(self) -> tuple[int, int, Any]:
        """Seed, stream and draws, of which all that a source is can be made again: `State(*numbers)`."""
        state, capture = self.state, thread_state.observer
        begun = state.seed, state.stream
        if capture is not None:
            seed = lambda: None if (self._state.seed, self._state.stream) == begun else "a generator has another seed"  # noqa: E731
            capture.guard(seed, always=True)
        return *begun, state.draws

    def draw(self) -> Seed:
        """The seed of the next draw: four host numbers."""
        with _drawing:
            state = self.state
            draws = state.draws
            self._state = state.at(draws + 1)
        for drawn in watching:
            drawn.append((state.words, draws))
        return (*state.words, host(draws if type(draws) in FREE else draws & WORD, dtypes.uint32))

    @property
    def state(self) -> State:
        """Small and immutable: what checkpoints and recomputations keep."""
        if thread_state.observer is not None and thread_state.observer.meet(self):
            self._enter(thread_state.observer)
        return self._state

    def restore(self, state: State) -> None:
        """Goes back, or on, to a state."""
        if thread_state.observer is not None and thread_state.observer.meet(self):
            self._enter(thread_state.observer)
        self._go_to(state)

    def _enter(self, capture: Observer) -> None:
        """From here on the draws of a captured step count on from wherever the source is in each run."""
        begun = self._state
        capture.remember(lambda: functools.partial(self._go_to, self._state))
        low = capture.read("seed.low", lambda: self._state.seed & WORD, self)
        high = capture.read("seed.high", lambda: self._state.seed >> 32, self)
        stream = capture.read("stream", lambda: self._state.stream & WORD, self)
        draws = capture.read("draws", lambda: self._state.draws, self)
        words = host(low, dtypes.uint32), host(high, dtypes.uint32), host(stream, dtypes.uint32)
        entered = self._state = State(begun.seed, begun.stream, draws, words)
        capture.at_end(functools.partial(self._leave, capture, begun, entered.words))

    def _leave(self, capture: Observer, begun: State, entered: Words) -> None:
        """The captured step is over: notes where it left the source, on the seed of each run or on one of its own."""
        state = self._state
        seed, stream, draws = state.seed, state.stream, state.draws
        if state.words is entered:
            self._state = begun
            capture.write("draws", draws, lambda n: self._go_to(self._state.at(n)), self)
            return
        if type(draws) in FREE:
            capture.refuse("a generator goes on from where another one is")
        capture.write("draws", draws, lambda n: self._go_to(State(seed, stream, n)), self)

    def _go_to(self, state: State) -> None:
        with _drawing:
            self._state = state

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (type(self), str(self.device), self.numbers())


def _words(seed: int, stream: int) -> Words:
    return host(seed & WORD, dtypes.uint32), host(seed >> 32, dtypes.uint32), host(stream & WORD, dtypes.uint32)


def _rebuild(kind: type[Source], device: str, state: tuple[int, int, int]) -> Source:
    source = kind(device)
    source.restore(State(*state))
    return source


_default: list[Source] = [Source()]


def default() -> Source:
    """The source that manual_seed sets, and that draws without a generator use."""
    return _default[0]


def set_default(source: Source) -> None:
    _default[0] = source


def draw(generator: Source | None, device: Device) -> Seed:
    """The seed of one draw for a device, from a generator or from the default one. One without values takes none."""
    if not device.has_values:
        return (*_words(0, 0), host(0, dtypes.uint32))
    return (_default[0] if generator is None else generator).draw()
