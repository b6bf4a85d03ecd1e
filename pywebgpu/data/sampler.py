"""Samplers: the order in which examples are drawn.

Orders are made on the host, so drawing them reads nothing back; they come from a generator of the library, so
`manual_seed` fixes them and a saved generator continues them. They use `random.Random.random` alone, the one method
whose sequence Python promises to keep.
"""

import bisect
import itertools
import math
import random
from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from typing import Any, Generic, TypeVar, cast

from pywebgpu.tensor import generator, tensor

T_co = TypeVar("T_co", covariant=True)
Source = generator.Source | None  # None is the default generator.


class Sampler(Generic[T_co]):
    """Draws indices: a subclass gives `__iter__`, and `__len__` where the number of draws is known."""

    def __init__(self, data_source: object = None) -> None:
        pass

    def __iter__(self) -> Iterator[T_co]:
        raise NotImplementedError


class SequentialSampler(Sampler[int]):
    """All indices in order."""

    def __init__(self, data_source: Sized) -> None:
        self.data_source = data_source

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.data_source)))

    def __len__(self) -> int:
        return len(self.data_source)


class RandomSampler(Sampler[int]):
    """`num_samples` indices (as many as examples when None) at random; without `replacement`, all before one again."""

    def __init__(
        self,
        data_source: Sized,
        replacement: bool = False,
        num_samples: int | None = None,
        generator: Source = None,
    ) -> None:
        self.data_source = data_source
        self.replacement = replacement
        self._num_samples = num_samples
        self.generator = generator
        _require_bool(replacement, "replacement", TypeError)
        _require_positive(self.num_samples, "num_samples")

    @property
    def num_samples(self) -> int:
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def __iter__(self) -> Iterator[int]:
        n_examples = len(self.data_source)
        draw = host_random(self.generator)
        if self.replacement:
            for _ in range(self.num_samples):
                yield int(draw() * n_examples)
            return
        for begin in range(0, self.num_samples, n_examples):
            yield from permutation(n_examples, draw)[: self.num_samples - begin]

    def __len__(self) -> int:
        return self.num_samples


class SubsetRandomSampler(Sampler[int]):
    """The given indices in random order."""

    def __init__(self, indices: Sequence[int], generator: Source = None) -> None:
        self.indices = indices
        self.generator = generator

    def __iter__(self) -> Iterator[int]:
        for i in permutation(len(self.indices), host_random(self.generator)):
            yield self.indices[i]

    def __len__(self) -> int:
        return len(self.indices)


class WeightedRandomSampler(Sampler[int]):
    """`num_samples` indices at random, index i with a chance in proportion to weights[i].

    Source for drawing without replacement: Efraimidis, Spirakis 2006 (smallest exponential variates first).
    Raises: ValueError for weights that are no chances; RuntimeError in iterating, where they are too few.
    """

    def __init__(
        self,
        weights: Sequence[float] | tensor.Tensor,
        num_samples: int,
        replacement: bool = True,
        generator: Source = None,
    ) -> None:
        _require_positive(num_samples, "num_samples")
        _require_bool(replacement, "replacement", ValueError)
        values: Iterable[Any] = weights.tolist() if isinstance(weights, tensor.Tensor) else weights
        values = list(values)
        if any(hasattr(weight, "__len__") for weight in values):
            raise ValueError("weights should be a 1d sequence")
        self.weights = [float(weight) for weight in values]
        self.num_samples = num_samples
        self.replacement = replacement
        self.generator = generator
        if not all(0 <= weight < math.inf for weight in self.weights) or not any(self.weights):
            raise ValueError("weights should be finite, not negative, and not all zero")

    def __iter__(self) -> Iterator[int]:
        draw = host_random(self.generator)
        if self.replacement:
            ends = list(itertools.accumulate(self.weights))
            last = max(i for i, weight in enumerate(self.weights) if weight > 0)
            for _ in range(self.num_samples):
                yield min(bisect.bisect_right(ends, draw() * ends[-1]), last)
            return
        possible = [i for i, weight in enumerate(self.weights) if weight > 0]
        if self.num_samples > len(possible):
            raise RuntimeError(
                f"cannot sample n_sample > prob_dist.size(-1) samples without replacement: {self.num_samples} from "
                f"{len(possible)} with a chance"
            )
        waits = {i: -math.log1p(-draw()) / self.weights[i] for i in possible}
        yield from sorted(possible, key=waits.__getitem__)[: self.num_samples]

    def __len__(self) -> int:
        return self.num_samples


class BatchSampler(Sampler[list[int]]):
    """The indices of another sampler in lists of `batch_size`; a shorter last one is left out with `drop_last`."""

    def __init__(self, sampler: Iterable[int], batch_size: int, drop_last: bool) -> None:
        _require_positive(batch_size, "batch_size")
        _require_bool(drop_last, "drop_last", ValueError)
        self.sampler = sampler
        self.batch_size = batch_size
        self.drop_last = drop_last

    def __iter__(self) -> Iterator[list[int]]:
        indices = iter(self.sampler)
        while batch := list(itertools.islice(indices, self.batch_size)):
            if len(batch) == self.batch_size or not self.drop_last:
                yield batch

    def __len__(self) -> int:
        n_indices = len(cast(Sized, self.sampler))
        return n_indices // self.batch_size if self.drop_last else -(-n_indices // self.batch_size)


def host_random(generator: Source) -> Callable[[], float]:
    """Numbers in [0, 1) for one pass, fixed by the next draw of `generator`."""
    return random.Random(_next_seed(generator)).random


def permutation(n: int, draw: Callable[[], float]) -> list[int]:
    """0 .. n-1 in random order."""
    keys = [draw() for _ in range(n)]
    return sorted(range(n), key=keys.__getitem__)


def _next_seed(origin: Source) -> int:
    """A number of the host for the next draw, which is taken."""
    source = generator.default() if origin is None else origin
    seed, stream, draws = source.numbers()
    source.draw()
    return seed | stream << 64 | int(draws) << 128


def _require_positive(value: object, name: str) -> None:
    if type(value) is not int or value <= 0:
        raise ValueError(f"{name} should be a positive integer value, but got {name}={value}")


def _require_bool(value: object, name: str, error: type[Exception]) -> None:
    if not isinstance(value, bool):
        raise error(f"{name} should be a boolean value, but got {name}={value}")
