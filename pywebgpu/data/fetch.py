"""Examples of a dataset by their numbers, as batches; and passes through a loader. Libraries make these classes."""

from __future__ import annotations

import itertools
import warnings
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

from pywebgpu.data import collate, dataset

if TYPE_CHECKING:
    from pywebgpu.tensor.tensor import Tensor

Collate = Callable[[Any], Any]


class _BaseDatasetFetcher:
    """Fetches from a dataset. auto_collation: several examples become a batch."""

    def __init__(self, dataset: Any, auto_collation: bool, collate_fn: Collate, drop_last: bool) -> None:
        self.dataset, self.auto_collation = dataset, auto_collation
        self.collate_fn, self.drop_last = collate_fn, drop_last

    def fetch(self, possibly_batched_index: Any) -> Any:
        raise NotImplementedError


class _MapDatasetFetcher(_BaseDatasetFetcher):
    """From a dataset that has examples by number."""

    def fetch(self, possibly_batched_index: Any) -> Any:
        """An example, or a batch of those that a list names."""
        if not self.auto_collation:
            return self.collate_fn(self.dataset[possibly_batched_index])
        if self.collate_fn is collate.default_collate:
            rows = _rows_at_once(self.dataset, [*possibly_batched_index])
            if rows is not None:
                return rows
        many = getattr(self.dataset, "__getitems__", None)
        if many is not None:
            return self.collate_fn(many([*possibly_batched_index]))
        return self.collate_fn([self.dataset[index] for index in possibly_batched_index])


class _IterableDatasetFetcher(_BaseDatasetFetcher):
    """From a stream."""

    def __init__(self, dataset: Any, auto_collation: bool, collate_fn: Collate, drop_last: bool) -> None:
        super().__init__(dataset, auto_collation, collate_fn, drop_last)
        self.dataset_iter, self.ended = iter(dataset), False

    def fetch(self, possibly_batched_index: Sequence[Any]) -> Any:
        """The next example, or as many as a list has. Raises StopIteration at the end."""
        if not self.auto_collation:
            return self.collate_fn(next(self.dataset_iter))
        if self.ended:
            raise StopIteration
        rows = [*itertools.islice(self.dataset_iter, len(possibly_batched_index))]
        self.ended = len(rows) < len(possibly_batched_index)
        if not rows or (self.drop_last and self.ended):
            raise StopIteration
        return self.collate_fn(rows)


class _DatasetKind:
    """Whether a dataset has examples by number, or is a stream."""

    Map, Iterable = 0, 1

    @staticmethod
    def create_fetcher(kind: int, dataset: Any, auto_collation: bool, collate_fn: Collate, drop_last: bool) -> Any:
        fetcher = _MapDatasetFetcher if kind == _DatasetKind.Map else _IterableDatasetFetcher
        return fetcher(dataset, auto_collation, collate_fn, drop_last)


class _BaseDataLoaderIter:
    """One pass through a loader, which may be of a class of a library."""

    def __init__(self, loader: Any) -> None:
        self._loader, self._num_yielded = loader, 0
        self._sampler_iter = iter(loader._index_sampler)
        self._dataset_fetcher = _DatasetKind.create_fetcher(
            loader._dataset_kind, loader.dataset, loader._auto_collation, loader.collate_fn, loader.drop_last
        )

    def __iter__(self) -> Iterator[Any]:
        return self

    def __len__(self) -> int:
        return len(self._loader._index_sampler)

    def __next__(self) -> Any:
        data = self._dataset_fetcher.fetch(next(self._sampler_iter))
        self._count()
        return data

    def _count(self) -> None:
        """Counts a batch; warns of more than a stream said to have."""
        self._num_yielded += 1
        length = getattr(self._loader, "_IterableDataset_len_called", None)
        if length is not None and self._num_yielded > length and self._loader._dataset_kind == _DatasetKind.Iterable:
            warnings.warn(
                f"Length of IterableDataset {self._loader.dataset} was reported to be {length} (when accessing "
                f"len(dataloader)), but {self._num_yielded} samples have been fetched. {self._advice}",
                stacklevel=3,
            )

    _advice = ""


class _SingleProcessDataLoaderIter(_BaseDataLoaderIter):
    """That of every loader: all is fetched here."""


class _Running:
    """Whose turn it is: what a worker knows of itself, None outside of workers."""

    info: Any = None


running = _Running()


class _MultiProcessingDataLoaderIter(_BaseDataLoaderIter):
    """That of a loader with workers, which take turns: each gives a batch, until its stream has ended."""

    def __init__(self, loader: Any) -> None:
        self._turns = import_module("pywebgpu.data.workers").start(loader)
        self._reset(loader)

    def _reset(self, loader: Any) -> None:
        self._loader, self._num_yielded = loader, 0
        self._sampler_iter = iter(loader._index_sampler)
        self._waiting = deque(self._turns)
        for worker in self._waiting:
            worker.begin()

    def __next__(self) -> Any:
        while self._waiting:
            index = next(self._sampler_iter)
            worker = self._waiting.popleft()
            try:
                data = worker.fetch(self._loader, index)
            except StopIteration:
                if self._loader._dataset_kind == _DatasetKind.Map:
                    raise
                continue
            except Exception:  # A program may go on with the next batch.
                self._waiting.append(worker)
                raise
            self._waiting.append(worker)
            self._count()
            return data
        raise StopIteration

    _advice = (
        "For multiprocessing data-loading, this could be caused by not properly configuring the IterableDataset "
        "replica at each worker: see get_worker_info()."
    )


def _rows_at_once(source: object, indices: list[Any]) -> list[Tensor] | None:
    """A batch of a TensorDataset, or of a subset of one, gathered as a whole; None for other datasets."""
    while type(source) is dataset.Subset:
        indices = [source.indices[index] for index in indices]
        source = source.dataset
    return source.batch(indices) if type(source) is dataset.TensorDataset else None
