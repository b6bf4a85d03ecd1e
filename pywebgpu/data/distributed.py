"""DistributedSampler: the part of a dataset that one of several processes reads."""

import itertools
import math
from collections.abc import Iterator, Sized

from pywebgpu.data.sampler import Sampler, host_random, permutation
from pywebgpu.tensor import generator


class DistributedSampler(Sampler[int]):
    """Every `num_replicas`-th index from `rank` on, of all in an order that `seed` and the epoch fix.

    What is left over is filled up with the first indices, or left out with `drop_last`. Both numbers have to be given:
    there is one process here that knows of no others, and without them ValueError is raised.
    """

    def __init__(
        self,
        dataset: Sized,
        num_replicas: int | None = None,
        rank: int | None = None,
        shuffle: bool = True,
        seed: int = 0,
        drop_last: bool = False,
    ) -> None:
        if num_replicas is None or rank is None:
            raise ValueError("Default process group has not been initialized: give num_replicas and rank")
        if rank >= num_replicas or rank < 0:
            raise ValueError(f"Invalid rank {rank}, rank should be in the interval [0, {num_replicas - 1}]")
        self.dataset, self.num_replicas, self.rank = dataset, num_replicas, rank
        self.epoch, self.drop_last, self.shuffle, self.seed = 0, drop_last, shuffle, seed
        size = len(dataset)
        self.num_samples = math.ceil(size / num_replicas)
        if drop_last and size % num_replicas:
            self.num_samples = math.ceil((size - num_replicas) / num_replicas)
        self.total_size = self.num_samples * num_replicas

    def __iter__(self) -> Iterator[int]:
        indices = list(range(len(self.dataset)))
        if self.shuffle:
            source = generator.Source()
            source.manual_seed(self.seed + self.epoch)
            indices = permutation(len(indices), host_random(source))
        padded = itertools.islice(itertools.cycle(indices), self.total_size)
        return itertools.islice(padded, self.rank, None, self.num_replicas)

    def __len__(self) -> int:
        return self.num_samples

    def set_epoch(self, epoch: int) -> None:
        """Another order for each epoch, and the same in all processes."""
        self.epoch = epoch
