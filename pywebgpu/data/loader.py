"""The DataLoader: batches of a dataset, in the order of a sampler, put together by a collate function."""

from __future__ import annotations

import itertools
import multiprocessing
from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from typing import Any, Generic, TypeVar, cast

from pywebgpu.data import collate, dataset, fetch, sampler

_FIXED = ("batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers")
T_co = TypeVar("T_co", covariant=True)


class DataLoader(Generic[T_co]):
    """Iterates over a dataset in batches of `batch_size`; None gives single examples.

    The order is that of `sampler` or `batch_sampler`, else random with `shuffle`, else the dataset's. Everything runs
    in this process, when it is asked for, and no other one is started. With `num_workers` batches are made by so many
    workers in turns, each with a copy of the dataset and seeds of its own, as `worker_init_fn` and `get_worker_info`
    see them; so a stream that does not ask which part is its own is read once by each, as in PyTorch. `pin_memory`,
    `timeout`, `multiprocessing_context`, `prefetch_factor`, `pin_memory_device` and `in_order` are checked as in
    PyTorch, and change nothing. A program that starts processes of its own to prepare
    data starts them by `multiprocessing.get_context("spawn")`, and has them give NumPy arrays, or tensors on device
    cpu: no forked process can reach its parent's GPU.

    Raises: ValueError for options that exclude each other.
    """

    def __init__(
        self,
        dataset: dataset.Dataset[T_co] | Sequence[T_co],
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Iterable[Any] | None = None,
        batch_sampler: Iterable[Sequence[Any]] | None = None,
        num_workers: int = 0,
        collate_fn: Callable[[Any], Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Callable[[int], None] | None = None,
        multiprocessing_context: object = None,
        generator: sampler.Source = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
        in_order: bool = True,
    ) -> None:
        _check_workers(num_workers, timeout, prefetch_factor, persistent_workers, multiprocessing_context)
        self.dataset: Any = dataset
        self.num_workers = num_workers
        self.pin_memory = pin_memory
        self.timeout = timeout
        self.worker_init_fn = worker_init_fn
        self.multiprocessing_context = multiprocessing_context
        self.generator = generator
        self.prefetch_factor = 2 if num_workers and prefetch_factor is None else prefetch_factor
        self.persistent_workers = persistent_workers
        self.batch_size, self.drop_last = batch_size, drop_last
        self._choose_order(shuffle, sampler, batch_sampler)
        batched = collate.default_collate if self._auto_collation else collate.default_convert
        self.collate_fn = batched if collate_fn is None else collate_fn
        self._iterator: Any = None  # of workers that stay
        self._IterableDataset_len_called: int | None = None  # what a stream said that it is long
        self._initialized = True

    def __setattr__(self, name: str, value: object) -> None:
        if name in _FIXED and hasattr(self, "_initialized"):
            raise ValueError(f"{name} attribute should not be set after {type(self).__name__} is initialized")
        super().__setattr__(name, value)

    def __iter__(self) -> Iterator[Any]:
        if not (self.persistent_workers and self.num_workers):
            return self._get_iterator()
        if self._iterator is None:
            self._iterator = self._get_iterator()
        else:
            self._iterator._reset(self)
        return cast(Iterator[Any], self._iterator)

    def _get_iterator(self) -> fetch._BaseDataLoaderIter:
        several = self.num_workers > 0
        return (fetch._MultiProcessingDataLoaderIter if several else fetch._SingleProcessDataLoaderIter)(self)

    def __len__(self) -> int:
        """The number of batches. Raises: TypeError when the dataset or the sampler has no length."""
        if not isinstance(self.dataset, dataset.IterableDataset):
            return len(cast(Sized, self.batch_sampler if self._auto_collation else self.sampler))
        n_examples = self._IterableDataset_len_called = len(cast(Sized, self.dataset))
        if self.batch_size is None:
            return n_examples
        return n_examples // self.batch_size if self.drop_last else -(-n_examples // self.batch_size)

    @property
    def _auto_collation(self) -> bool:
        return self.batch_sampler is not None

    @property
    def _index_sampler(self) -> Any:
        """What gives the numbers of each batch, or of each example where there are no batches."""
        return self.sampler if self.batch_sampler is None else self.batch_sampler

    @property
    def _dataset_kind(self) -> int:
        is_stream = isinstance(self.dataset, dataset.IterableDataset)
        return fetch._DatasetKind.Iterable if is_stream else fetch._DatasetKind.Map

    def _choose_order(
        self, shuffle: bool | None, indices: Iterable[Any] | None, batches: Iterable[Sequence[Any]] | None
    ) -> None:
        """Checks the options of the order, and sets `sampler`, `batch_sampler`, `batch_size` and `drop_last`."""
        is_stream = isinstance(self.dataset, dataset.IterableDataset)
        if is_stream and shuffle:
            raise ValueError(f"DataLoader with IterableDataset: expected unspecified shuffle option, but got {shuffle}")
        for name, order in (("sampler", indices), ("batch_sampler", batches)):
            if is_stream and order is not None:
                raise ValueError(
                    f"DataLoader with IterableDataset: expected unspecified {name} option, but got {name}={order}"
                )
        if indices is not None and shuffle:
            raise ValueError("sampler option is mutually exclusive with shuffle")
        if batches is not None:
            if self.batch_size != 1 or shuffle or indices is not None or self.drop_last:
                raise ValueError(
                    "batch_sampler option is mutually exclusive with batch_size, shuffle, sampler, and drop_last"
                )
            self.batch_size, self.drop_last = None, False
        elif self.batch_size is None and self.drop_last:
            raise ValueError("batch_size=None option disables auto-batching and is mutually exclusive with drop_last")
        if indices is None:
            if is_stream:
                indices = itertools.repeat(None)
            elif shuffle:
                indices = sampler.RandomSampler(self.dataset, generator=self.generator)
            else:
                indices = sampler.SequentialSampler(self.dataset)
        if batches is None and self.batch_size is not None:
            batches = sampler.BatchSampler(indices, self.batch_size, self.drop_last)
        self.sampler, self.batch_sampler = indices, batches


def _check_workers(number: int, timeout: float, prefetch: int | None, persistent: bool, context: object) -> None:
    """Raises ValueError where PyTorch does for options of workers."""
    if number < 0:
        raise ValueError("num_workers option should be non-negative; use num_workers=0 to disable multiprocessing.")
    if timeout < 0:
        raise ValueError("timeout option should be non-negative")
    if number == 0 and prefetch is not None:
        raise ValueError(
            "prefetch_factor option could only be specified in multiprocessing. Let num_workers > 0 to enable "
            "multiprocessing, otherwise set prefetch_factor to None."
        )
    if prefetch is not None and prefetch < 0:
        raise ValueError("prefetch_factor option should be non-negative")
    if persistent and number == 0:
        raise ValueError("persistent_workers option needs num_workers > 0")
    if context is not None and number == 0:
        raise ValueError(
            "multiprocessing_context can only be used with multi-process loading (num_workers > 0), but got "
            "num_workers=0"
        )
    if not isinstance(context, str | None) and not isinstance(context, multiprocessing.context.BaseContext):
        raise TypeError(
            "multiprocessing_context option should be a valid context object or a string specifying the start method, "
            f"but got multiprocessing_context={context}"
        )
    if isinstance(context, str) and context not in multiprocessing.get_all_start_methods():
        raise ValueError(
            f"multiprocessing_context option should specify a valid start method in "
            f"{multiprocessing.get_all_start_methods()!r}, but got multiprocessing_context={context!r}"
        )


def get_worker_info() -> Any:
    """What the worker knows of itself whose turn it is, a `WorkerInfo`; None outside of workers."""
    return fetch.running.info
