"""What PyTorch's worker processes do, in turns in this process: each has its number, its seeds and its own dataset."""

from __future__ import annotations

import copy
import random
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from pywebgpu.data import fetch, sampler
from pywebgpu.tensor import generator


@dataclass(eq=False)
class WorkerInfo:
    """What a worker knows of itself: its number of `num_workers`, its seed, and its copy of the dataset."""

    id: int
    num_workers: int
    seed: int
    dataset: Any


class Worker:
    """One of a loader's workers: what it draws and what it changes of its dataset is seen by no other one."""

    def __init__(self, loader: Any, number: int, base_seed: int) -> None:
        source = loader.dataset
        with suppress(TypeError):  # What cannot be copied is shared.
            source = copy.copy(source)
        self.info = WorkerInfo(number, loader.num_workers, base_seed + number, source)
        self._fetcher: Any = None
        self._states: tuple[Any, ...] | None = None
        with self._running():
            _seed(self.info.seed, base_seed, number)
            if loader.worker_init_fn is not None:
                loader.worker_init_fn(number)

    def begin(self) -> None:
        """Another pass begins."""
        self._fetcher = None

    def fetch(self, loader: Any, index: Any) -> Any:
        """The batch, or the example, that an index names. Raises StopIteration where a stream has ended."""
        with self._running():
            if self._fetcher is None:
                self._fetcher = fetch._DatasetKind.create_fetcher(
                    loader._dataset_kind, self.info.dataset, loader._auto_collation, loader.collate_fn, loader.drop_last
                )
            return self._fetcher.fetch(index)

    @contextmanager
    def _running(self) -> Iterator[None]:
        outer, before = fetch.running.info, _states()
        fetch.running.info = self.info
        if self._states is not None:
            _restore(self._states)
        try:
            yield
        finally:
            self._states = _states()
            _restore(before)
            fetch.running.info = outer


def start(loader: Any) -> list[Worker]:
    """The workers of a loader."""
    base_seed = int(sampler.host_random(loader.generator)() * 2**53)
    return [Worker(loader, number, base_seed) for number in range(loader.num_workers)]


def _seed(seed: int, base_seed: int, number: int) -> None:
    random.seed(seed)
    generator.default().manual_seed(seed)
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed(_generate_state(base_seed, number))


def _states() -> tuple[Any, ...]:
    numpy = sys.modules.get("numpy")
    return random.getstate(), generator.default().state, None if numpy is None else numpy.random.get_state()


def _restore(states: tuple[Any, ...]) -> None:
    of_python, of_torch, of_numpy = states
    random.setstate(of_python)
    generator.default().restore(of_torch)
    if of_numpy is not None:
        sys.modules["numpy"].random.set_state(of_numpy)


def _generate_state(base_seed: int, worker_id: int) -> list[int]:
    """Four words that seed NumPy's generator in a process. Source: O'Neill 2015, seed_seq_fe."""
    a, b, mask = 0x43B0D7E5, 0x931E8875, 0xFFFFFFFF
    multiplier, mixed = a, []

    def hashed(value: int) -> int:
        nonlocal multiplier
        value = (value ^ multiplier) & mask
        multiplier = multiplier * b & mask
        value = value * multiplier & mask
        return (value ^ value >> 16) & mask

    def mix(x: int, y: int) -> int:
        result = ((0xCA01F9DD * x & mask) - (0x4973F715 * y & mask)) & mask
        return (result ^ result >> 16) & mask

    entropy = [worker_id, base_seed & mask, base_seed >> 32 & mask, 0]
    pool = [hashed(word) for word in entropy]
    for source in range(4):
        for target in range(4):
            if source != target:
                pool[target] = mix(pool[target], hashed(pool[source]))
    multiplier = 0x8B51F9DD
    for word in pool:
        word = (word ^ multiplier) & mask
        multiplier = multiplier * 0x58F38DED & mask
        word = word * multiplier & mask
        mixed.append((word ^ word >> 16) & mask)
    return mixed
