"""Data pipes: examples one after the other, through steps that are methods of the pipe before them."""

from __future__ import annotations

import functools
import random
from collections.abc import Callable, Iterable, Iterator
from typing import Any, ClassVar

from pywebgpu.data.collate import default_collate
from pywebgpu.data.dataset import Dataset, IterableDataset


class IterDataPipe(IterableDataset[Any]):
    """Examples one after the other. `functional_datapipe` gives all pipes a method that makes another of them."""

    functions: ClassVar[dict[str, Callable[..., Any]]] = {}

    def __getattr__(self, name: str) -> Any:
        if name not in IterDataPipe.functions:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return functools.partial(IterDataPipe.functions[name], self)

    @classmethod
    def register_function(cls, function_name: str, function: Callable[..., Any]) -> None:
        """Adds a method to all pipes."""
        cls.functions[function_name] = function

    @classmethod
    def register_datapipe_as_function(cls, function_name: str, cls_to_register: Any, **options: Any) -> None:
        """Adds a method that makes a pipe of a class. Raises Exception for a name that is taken."""
        if function_name in cls.functions:
            raise Exception(f"Unable to add DataPipe function name {function_name} as it is already taken")
        cls.functions[function_name] = cls_to_register

    def __iter__(self) -> Iterator[Any]:
        raise NotImplementedError

    def reset(self) -> None:
        """Called by nothing; a pipe may have more to do before it begins again."""


class MapDataPipe(Dataset[Any]):
    """Examples by key."""

    functions: ClassVar[dict[str, Callable[..., Any]]] = {}
    __getattr__ = IterDataPipe.__getattr__
    register_datapipe_as_function = IterDataPipe.register_datapipe_as_function


DFIterDataPipe = IterDataPipe


class functional_datapipe:
    """Decorates a class of pipes: pipes get a method of this name that makes one."""

    def __init__(self, name: str, enable_df_api_tracing: bool = False) -> None:
        self.name = name

    def __call__(self, cls: Any) -> Any:
        base = IterDataPipe if issubclass(cls, IterDataPipe) else MapDataPipe
        base.register_datapipe_as_function(self.name, cls)
        return cls


class DataChunk(list[Any]):
    """A batch."""

    def __init__(self, items: Iterable[Any]) -> None:
        super().__init__(items)
        self.items = tuple(self)

    def raw_iterator(self) -> Iterator[Any]:
        """Its examples."""
        return iter(self.items)


class IterableWrapper(IterDataPipe):
    """The examples of anything that can be gone through."""

    def __init__(self, iterable: Iterable[Any], deepcopy: bool = True) -> None:
        self.iterable = iterable

    def __iter__(self) -> Iterator[Any]:
        yield from self.iterable

    def __len__(self) -> int:
        return len(self.iterable)  # type: ignore[arg-type]  # As long as it has a length.


@functional_datapipe("map")
class Mapper(IterDataPipe):
    """fn(example) for each."""

    def __init__(self, datapipe: Any, fn: Callable[..., Any], input_col: Any = None, output_col: Any = None) -> None:
        self.datapipe, self.fn = datapipe, fn

    def __iter__(self) -> Iterator[Any]:
        return map(self.fn, self.datapipe)

    def __len__(self) -> int:
        return len(self.datapipe)


@functional_datapipe("filter")
class Filter(IterDataPipe):
    """The examples for which a function says so."""

    def __init__(self, datapipe: Any, filter_fn: Callable[..., Any], input_col: Any = None) -> None:
        self.datapipe, self.filter_fn = datapipe, filter_fn

    def __iter__(self) -> Iterator[Any]:
        return filter(self.filter_fn, self.datapipe)


@functional_datapipe("batch")
class Batcher(IterDataPipe):
    """Batches of as many examples; drop_last: the last one may not be shorter."""

    def __init__(
        self, datapipe: Any, batch_size: int, drop_last: bool = False, wrapper_class: Callable[..., Any] = DataChunk
    ) -> None:
        self.datapipe, self.batch_size, self.drop_last, self.wrapper_class = (
            datapipe,
            batch_size,
            drop_last,
            wrapper_class,
        )

    def __iter__(self) -> Iterator[Any]:
        batch: list[Any] = []
        for example in self.datapipe:
            batch.append(example)
            if len(batch) == self.batch_size:
                yield self.wrapper_class(batch)
                batch = []
        if batch and not self.drop_last:
            yield self.wrapper_class(batch)

    def __len__(self) -> int:
        return len(self.datapipe) // self.batch_size if self.drop_last else -(-len(self.datapipe) // self.batch_size)


@functional_datapipe("collate")
class Collator(IterDataPipe):
    """Batches as tensors."""

    def __init__(self, datapipe: Any, conversion: Any = None, collate_fn: Callable[..., Any] | None = None) -> None:
        self.datapipe, self.collate_fn = datapipe, conversion or collate_fn or default_collate

    def __iter__(self) -> Iterator[Any]:
        return map(self.collate_fn, self.datapipe)

    def __len__(self) -> int:
        return len(self.datapipe)


@functional_datapipe("shuffle")
class Shuffler(IterDataPipe):
    """The examples in random order, of Python's generator."""

    def __init__(self, datapipe: Any, *, buffer_size: int = 10000, unbatch_level: int = 0) -> None:
        self.datapipe, self.buffer_size = datapipe, buffer_size

    def __iter__(self) -> Iterator[Any]:
        waiting: list[Any] = []
        for example in self.datapipe:
            if len(waiting) == self.buffer_size:
                index = random.randrange(self.buffer_size)
                yield waiting[index]
                waiting[index] = example
            else:
                waiting.append(example)
        random.shuffle(waiting)
        yield from waiting

    def __len__(self) -> int:
        return len(self.datapipe)
