"""Datasets: examples by index or one after the other, and datasets made of datasets."""

from __future__ import annotations

import bisect
import itertools
import math
import warnings
from collections.abc import Iterable, Iterator, Sequence, Sized
from typing import Any, Generic, TypeVar, cast

from pywebgpu import dtypes
from pywebgpu.data import sampler
from pywebgpu.tensor import create, tensor

T_co = TypeVar("T_co", covariant=True)


class Dataset(Generic[T_co]):
    """Examples by index: a subclass gives `__getitem__`, and `__len__` where the number of examples is known."""

    def __getitem__(self, index: Any) -> T_co:
        raise NotImplementedError("Subclasses of Dataset should implement __getitem__.")

    def __add__(self, other: Dataset[T_co]) -> ConcatDataset[T_co]:
        return ConcatDataset([self, other])


class IterableDataset(Dataset[T_co], Iterable[T_co]):
    """Examples one after the other: a subclass gives `__iter__`."""

    def __add__(self, other: Dataset[T_co]) -> ChainDataset[T_co]:  # type: ignore[override]
        return ChainDataset([self, other])


class TensorDataset(Dataset[tuple[tensor.Tensor, ...]]):
    """Example i is the i-th row of each tensor.

    Raises: AssertionError when the tensors differ in their number of rows.
    """

    def __init__(self, *tensors: tensor.Tensor) -> None:
        if any(column.ndim == 0 or column.shape[0] != tensors[0].shape[0] for column in tensors):
            sizes = ", ".join(str(tuple(column.shape)) for column in tensors)
            raise AssertionError(f"Size mismatch between tensors: {sizes}")
        self.tensors = tensors

    def __getitem__(self, index: int) -> tuple[tensor.Tensor, ...]:
        return tuple(column[index] for column in self.tensors)

    def __len__(self) -> int:
        return int(self.tensors[0].shape[0])

    def batch(self, indices: Sequence[int]) -> list[tensor.Tensor]:
        """The examples as one tensor each, as default_collate makes them, but with one gather for all rows."""
        n_rows = len(self)
        for index in indices:
            if not -n_rows <= index < n_rows:
                raise IndexError(f"index {index} is out of bounds for a dataset of {n_rows} examples")
        rows = [index % n_rows for index in indices]
        # The rows are data of the program, so all batches of one size run the same program.
        by_device = {
            column.device: create.tensor(rows, dtype=dtypes.int64, device=column.device) for column in self.tensors
        }
        return [column[by_device[column.device]] for column in self.tensors]


class Subset(Dataset[T_co]):
    """The examples `indices` of a dataset, in that order."""

    def __init__(self, dataset: Dataset[T_co], indices: Sequence[int]) -> None:
        self.dataset = dataset
        self.indices = indices

    def __getitem__(self, index: int | list[int]) -> T_co:
        if isinstance(index, list):
            return self.dataset[[self.indices[i] for i in index]]
        return self.dataset[self.indices[index]]

    def __getitems__(self, indices: list[int]) -> list[T_co]:
        """Many examples at once, where the dataset can give them at once."""
        chosen = [self.indices[index] for index in indices]
        many = getattr(self.dataset, "__getitems__", None)
        return cast(list[T_co], many(chosen)) if many is not None else [self.dataset[index] for index in chosen]

    def __len__(self) -> int:
        return len(self.indices)


class ConcatDataset(Dataset[T_co]):
    """The examples of several datasets, one dataset after the other."""

    def __init__(self, datasets: Iterable[Dataset[T_co]]) -> None:
        self.datasets = list(datasets)
        if not self.datasets:
            raise AssertionError("datasets should not be an empty iterable")
        if any(isinstance(dataset, IterableDataset) for dataset in self.datasets):
            raise AssertionError("ConcatDataset does not support IterableDataset")
        self.cumulative_sizes = list(itertools.accumulate(len(cast(Any, dataset)) for dataset in self.datasets))

    def __getitem__(self, index: int) -> T_co:
        if not -len(self) <= index < len(self):
            raise IndexError(f"index {index} is out of bounds for a dataset of {len(self)} examples")
        index %= len(self)
        dataset_index = bisect.bisect_right(self.cumulative_sizes, index)
        return self.datasets[dataset_index][
            index - self.cumulative_sizes[dataset_index - 1] if dataset_index else index
        ]

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]


class StackDataset(Dataset[Any], Generic[T_co]):
    """Example i is the i-th example of each dataset: a tuple, or a dict of those that have names.

    Raises: ValueError when the datasets differ in their number of examples, or there are none.
    """

    def __init__(self, *args: Dataset[T_co], **kwargs: Dataset[T_co]) -> None:
        if args and kwargs:
            raise ValueError("Supported either ``tuple``- (via ``args``) or ``dict``- (via ``kwargs``) like input")
        self.datasets: Any = args or kwargs
        sizes = {len(cast(Sized, dataset)) for dataset in (args or kwargs.values())}
        if not sizes:
            raise ValueError("At least one dataset should be passed")
        if len(sizes) > 1:
            raise ValueError("Size mismatch between datasets")
        (self._length,) = sizes

    def __getitem__(self, index: int) -> tuple[T_co, ...] | dict[str, T_co]:
        if isinstance(self.datasets, dict):
            return {name: dataset[index] for name, dataset in self.datasets.items()}
        return tuple(dataset[index] for dataset in self.datasets)

    def __getitems__(self, indices: list[int]) -> list[tuple[T_co, ...]] | list[dict[str, T_co]]:
        """Many examples at once, of the datasets that can give them at once."""
        if isinstance(self.datasets, dict):
            columns = [_many(dataset, indices) for dataset in self.datasets.values()]
            return [dict(zip(self.datasets, row, strict=True)) for row in zip(*columns, strict=True)]
        return list(zip(*[_many(dataset, indices) for dataset in self.datasets], strict=True))

    def __len__(self) -> int:
        return self._length


def _many(dataset: Any, indices: list[int]) -> list[Any]:
    many = getattr(dataset, "__getitems__", None)
    if not callable(many):
        return [dataset[index] for index in indices]
    items: list[Any] = many(indices)
    if len(items) != len(indices):
        raise ValueError(f"Nested dataset's output size mismatch. Expected {len(indices)}, got {len(items)}")
    return items


class ChainDataset(IterableDataset[T_co]):
    """The examples of several iterable datasets, one dataset after the other."""

    def __init__(self, datasets: Iterable[Dataset[T_co]]) -> None:
        self.datasets = list(datasets)

    def __iter__(self) -> Iterator[T_co]:
        for dataset in self.datasets:
            if not isinstance(dataset, IterableDataset):
                raise AssertionError("ChainDataset only supports IterableDataset")
            yield from dataset

    def __len__(self) -> int:
        return sum(len(cast(Any, dataset)) for dataset in self.datasets)


def random_split(
    dataset: Dataset[T_co], lengths: Sequence[int | float], generator: sampler.Source = None
) -> list[Subset[T_co]]:
    """Parts of a dataset that have no example in common, drawn with `generator` (the default generator when None).

    `lengths` are numbers of examples, or fractions of sum 1; what rounding leaves goes to the first parts.
    Raises: ValueError when the lengths do not cover the dataset, or a fraction is not between 0 and 1.
    """
    n_examples = len(cast(Any, dataset))
    if math.isclose(sum(lengths), 1) and sum(lengths) <= 1:
        lengths = _rounded(lengths, n_examples)
    if sum(lengths) != n_examples:
        raise ValueError("Sum of input lengths does not equal the length of the input dataset!")
    order = sampler.permutation(n_examples, sampler.host_random(generator))
    sizes = [int(length) for length in lengths]
    ends = itertools.accumulate(sizes)
    return [Subset(dataset, order[end - size : end]) for size, end in zip(sizes, ends, strict=True)]


def _rounded(fractions: Sequence[float], n_examples: int) -> list[int]:
    for i, fraction in enumerate(fractions):
        if not 0 <= fraction <= 1:
            raise ValueError(f"Fraction at index {i} is not between 0 and 1")
    sizes = [math.floor(n_examples * fraction) for fraction in fractions]
    for i in range(n_examples - sum(sizes)):
        sizes[i % len(sizes)] += 1
    for i, size in enumerate(sizes):
        if size == 0:
            warnings.warn(
                f"Length of split at index {i} is 0. This might result in an empty dataset.", UserWarning, stacklevel=3
            )
    return sizes
