"""Datasets, samplers and the DataLoader: torch's results where no chance is in play, and the same draws by seed."""

import collections
import math
import random as python_random
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch

from pywebgpu import dtypes
from pywebgpu.data import collate
from pywebgpu.tensor import create, random, tensor
from pywebgpu.utils import data


class Squares(data.Dataset[int]):
    def __init__(self, n_examples: int) -> None:
        self.n_examples = n_examples

    def __getitem__(self, index: int) -> int:
        return index * index

    def __len__(self) -> int:
        return self.n_examples


class Counting(data.IterableDataset[int]):
    def __init__(self, n_examples: int) -> None:
        self.n_examples = n_examples

    def __iter__(self) -> Iterator[int]:
        return iter(range(self.n_examples))

    def __len__(self) -> int:
        return self.n_examples


class TorchCounting(torch.utils.data.IterableDataset[int]):
    def __iter__(self) -> Iterator[int]:
        return iter(range(8))

    def __len__(self) -> int:
        return 8


class Pair(NamedTuple):
    x: Any
    y: Any


def plain(value: Any) -> Any:
    """A batch of ours or of torch's as plain Python, with the dtype of each tensor."""
    if isinstance(value, tensor.Tensor | torch.Tensor):
        return str(value.dtype).removeprefix("torch."), value.tolist()
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value).__name__, [plain(item) for item in value]
    return value


def tensors(*shape: int) -> tensor.Tensor:
    return create.tensor(np.arange(math.prod(shape), dtype=np.float32).reshape(shape), device="cpu")


def table(n_rows: int) -> data.TensorDataset:
    return data.TensorDataset(tensors(n_rows, 2), create.tensor(list(range(n_rows)), device="cpu"))


@pytest.fixture(autouse=True)
def _seeded() -> None:
    random.manual_seed(0)


# Collating

BATCHES: dict[str, Callable[[Any], list[Any]]] = {
    "ints": lambda t: [1, 2, 3],
    "bools": lambda t: [True, False],
    "floats": lambda t: [0.5, 1.5],
    "strings": lambda t: ["a", "b"],
    "bytes": lambda t: [b"a", b"b"],
    "tensors": lambda t: [t([1.0, 2.0]), t([3.0, 4.0])],
    "pairs": lambda t: [(t([1.0]), 0), (t([2.0]), 1)],
    "lists": lambda t: [[1, 0.5], [2, 1.5]],
    "dicts": lambda t: [{"x": t([1.0]), "y": [1, 2]}, {"x": t([2.0]), "y": [3, 4]}],
    "named": lambda t: [Pair(1, "a"), Pair(2, "b")],
    "ordered": lambda t: [collections.OrderedDict(b=1, a=2)] * 2,
    "nested": lambda t: [[{"a": (1, Pair(t([1]), "x"))}]] * 3,
    "arrays": lambda t: [np.ones((2, 2), np.float32), np.zeros((2, 2), np.float32)],
    "integer arrays": lambda t: [np.array([1, 2]), np.array([3, 4])],
    "numpy numbers": lambda t: [np.float32(0.5), np.float32(1.5)],
    "numpy ints": lambda t: [np.int32(1), np.int32(2)],
    "numpy bools": lambda t: [np.bool_(True), np.bool_(False)],
    "one": lambda t: [3],
}


@pytest.mark.parametrize("name", BATCHES)
def test_batches_are_torchs(name: str) -> None:
    ours = data.default_collate(BATCHES[name](lambda values: create.tensor(values, device="cpu")))
    assert plain(ours) == plain(torch.utils.data.default_collate(BATCHES[name](torch.tensor)))


@pytest.mark.parametrize("name", BATCHES)
def test_conversions_are_torchs(name: str) -> None:
    ours = data.default_convert(BATCHES[name](lambda values: create.tensor(values, device="cpu")))
    assert plain(ours) == plain(torch.utils.data.default_convert(BATCHES[name](torch.tensor)))


@pytest.mark.parametrize("device", ["cpu", "null"])
def test_floats_are_as_wide_as_the_device_allows(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made = create.tensor
    monkeypatch.setattr(collate.create, "tensor", lambda *args, **options: made(*args, device=device, **options))
    found = collate.default_collate([0.5])
    assert found.dtype is (dtypes.float64 if device == "cpu" else dtypes.float32)


def test_a_list_keeps_its_class() -> None:
    class Words(list[Any]):
        pass

    assert type(data.default_collate([Words([1, 2])] * 2)) is Words


WRONG_BATCHES: dict[str, tuple[type[Exception], list[Any]]] = {
    "lists of several lengths": (RuntimeError, [[1], [1, 2]]),
    "objects": (TypeError, [object()]),
    "nothing": (TypeError, [None]),
    "arrays of text": (TypeError, [np.array(["a"])]),
}


@pytest.mark.parametrize("name", WRONG_BATCHES)
def test_wrong_batches_raise_what_torch_raises(name: str) -> None:
    error, batch = WRONG_BATCHES[name]
    for function in (data.default_collate, torch.utils.data.default_collate):
        with pytest.raises(error):
            function(batch)


# Datasets


def test_a_tensor_dataset_gives_rows() -> None:
    rows = table(3)
    assert len(rows) == 3
    assert [value.tolist() for value in rows[1]] == [[2.0, 3.0], 1]
    with pytest.raises(AssertionError, match="Size mismatch"):
        data.TensorDataset(tensors(3, 2), tensors(4))


def test_datasets_of_datasets() -> None:
    both = Squares(3) + Squares(2)
    assert isinstance(both, data.ConcatDataset)
    assert [both[i] for i in range(len(both))] == [0, 1, 4, 0, 1]
    assert both[-1] == 1
    assert both[-5] == 0
    with pytest.raises(IndexError):
        both[5]
    with pytest.raises(AssertionError, match="empty"):
        data.ConcatDataset([])
    subset = data.Subset(both, [4, 0, 2])
    assert [subset[i] for i in range(len(subset))] == [1, 0, 4]
    assert list(Counting(2) + Counting(3)) == [0, 1, 0, 1, 2]


@pytest.mark.parametrize("lengths", [[7, 3], [0.5, 0.5], [0.3, 0.3, 0.4], [1 / 3, 1 / 3, 1 / 3], [10]])
def test_splits_cover_the_dataset(lengths: list[float]) -> None:
    parts = data.random_split(Squares(10), lengths)
    theirs = torch.utils.data.random_split(range(10), lengths)
    assert [len(part) for part in parts] == [len(part) for part in theirs]
    assert sorted(i for part in parts for i in part.indices) == list(range(10))


def test_wrong_splits_raise() -> None:
    with pytest.raises(ValueError, match="Sum of input lengths"):
        data.random_split(Squares(10), [3, 3])
    with pytest.raises(ValueError, match="Fraction"):
        data.random_split(Squares(10), [1.5, -0.5])
    with pytest.warns(UserWarning, match="empty"):
        data.random_split(Squares(1), [0.5, 0.5])


# Samplers

SAMPLERS: dict[str, Callable[[Any], Any]] = {
    "random": lambda generator: data.RandomSampler(range(20), generator=generator),
    "with replacement": lambda generator: data.RandomSampler(range(20), True, 50, generator),
    "more than all": lambda generator: data.RandomSampler(range(20), num_samples=50, generator=generator),
    "subset": lambda generator: data.SubsetRandomSampler(range(5, 25), generator),
    "weighted": lambda generator: data.WeightedRandomSampler([1.0] * 20, 30, generator=generator),
    "weighted, once each": lambda generator: data.WeightedRandomSampler([1.0] * 20, 15, False, generator),
}


@pytest.mark.parametrize("name", SAMPLERS)
def test_a_seed_fixes_the_draws(name: str) -> None:
    random.manual_seed(7)
    first, second = [list(SAMPLERS[name](None)) for _ in range(2)]
    random.manual_seed(7)
    assert [list(SAMPLERS[name](None)) for _ in range(2)] == [first, second]
    assert first != second
    own = random.Generator().manual_seed(3)
    other = random.Generator().manual_seed(3)
    assert list(SAMPLERS[name](own)) == list(SAMPLERS[name](other))
    assert len(first) == len(SAMPLERS[name](None))


def test_a_pass_is_a_permutation() -> None:
    order = list(data.RandomSampler(range(100)))
    assert sorted(order) == list(range(100))
    assert order != list(range(100))
    rounds = list(data.RandomSampler(range(10), num_samples=25))
    assert [sorted(rounds[i : i + 10]) for i in (0, 10)] == [list(range(10))] * 2
    assert len(set(rounds[20:])) == 5


def test_all_indices_are_equally_likely() -> None:
    counts = collections.Counter(data.RandomSampler(range(10), True, 20_000))
    assert all(abs(counts[i] - 2000) < 250 for i in range(10))
    firsts = collections.Counter(next(iter(data.RandomSampler(range(5)))) for _ in range(2000))
    assert all(abs(firsts[i] - 400) < 120 for i in range(5))


def test_weights_are_chances() -> None:
    counts = collections.Counter(data.WeightedRandomSampler([1.0, 0.0, 3.0, 0.0], 10_000))
    assert set(counts) == {0, 2}
    assert abs(counts[2] / counts[0] - 3) < 0.3
    firsts = collections.Counter(next(iter(data.WeightedRandomSampler([1.0, 0.0, 3.0], 2, False))) for _ in range(4000))
    assert set(firsts) == {0, 2}
    assert abs(firsts[2] / firsts[0] - 3) < 0.5
    assert sorted(data.WeightedRandomSampler(create.tensor([0.5, 0.0, 0.1], device="cpu"), 2, False)) == [0, 2]


WRONG_SAMPLERS: dict[str, tuple[type[Exception], Callable[[Any], Any]]] = {
    "of nothing": (ValueError, lambda d: d.RandomSampler([])),
    "no number of samples": (ValueError, lambda d: d.RandomSampler([1], num_samples=0)),
    "replacement that is a number": (TypeError, lambda d: d.RandomSampler([1], replacement=1)),
    "batches of 0": (ValueError, lambda d: d.BatchSampler([1], 0, False)),
    "batches of a bool": (ValueError, lambda d: d.BatchSampler([1], True, False)),
    "drop_last that is a number": (ValueError, lambda d: d.BatchSampler([1], 2, 0)),
    "no weighted samples": (ValueError, lambda d: d.WeightedRandomSampler([1.0], 0)),
}


@pytest.mark.parametrize("name", WRONG_SAMPLERS)
def test_wrong_samplers_raise_what_torch_raises(name: str) -> None:
    error, make = WRONG_SAMPLERS[name]
    for module in (data, torch.utils.data):
        with pytest.raises(error):
            make(module)


@pytest.mark.parametrize("weights", [[0.0, 0.0], [-1.0, 2.0], [math.inf], [math.nan, 1.0]])
def test_weights_that_are_no_chances_are_refused(weights: list[float]) -> None:
    with pytest.raises(ValueError, match="weights"):
        data.WeightedRandomSampler(weights, 1)


# The loader

LOADERS: dict[str, dict[str, Any]] = {
    "plain": {},
    "batches": {"batch_size": 3},
    "whole batches only": {"batch_size": 3, "drop_last": True},
    "no batches": {"batch_size": None},
    "a sampler": {"batch_size": 2, "sampler": [4, 2, 0]},
    "a sampler, no batches": {"batch_size": None, "sampler": [4, 2, 0]},
    "a batch sampler": {"batch_sampler": [[0, 1], [2], [5, 6, 0]]},
    "a function": {"batch_size": 4, "collate_fn": sum},
    "workers": {"batch_size": 4, "pin_memory": False, "timeout": 0},
    "batches larger than the dataset": {"batch_size": 100},
}


@pytest.mark.parametrize("name", LOADERS)
def test_batches_come_in_torchs_order(name: str) -> None:
    ours = data.DataLoader(Squares(8), **LOADERS[name])
    theirs = torch.utils.data.DataLoader(Squares(8), **LOADERS[name])  # type: ignore[arg-type]
    assert len(ours) == len(theirs)
    assert plain(list(ours)) == plain(list(theirs))
    assert plain(list(ours)) == plain(list(theirs))
    assert (ours.batch_size, ours.drop_last) == (theirs.batch_size, theirs.drop_last)


@pytest.mark.parametrize("options", [{}, {"batch_size": 3}, {"batch_size": 3, "drop_last": True}, {"batch_size": None}])
def test_streams_are_batched_like_torchs(options: dict[str, Any]) -> None:
    ours, theirs = data.DataLoader(Counting(8), **options), torch.utils.data.DataLoader(TorchCounting(), **options)
    assert len(ours) == len(theirs)
    assert plain(list(ours)) == plain(list(theirs))


WRONG_LOADERS: dict[str, tuple[bool, dict[str, Any]]] = {
    "fewer than no workers": (False, {"num_workers": -1}),
    "a timeout below 0": (False, {"timeout": -1}),
    "prefetching without workers": (False, {"prefetch_factor": 2}),
    "prefetching fewer than none": (False, {"num_workers": 1, "prefetch_factor": -1}),
    "workers that stay, and none": (False, {"persistent_workers": True}),
    "a context without workers": (False, {"multiprocessing_context": "spawn"}),
    "a context that does not exist": (False, {"num_workers": 1, "multiprocessing_context": "split"}),
    "shuffle and a sampler": (False, {"shuffle": True, "sampler": [0]}),
    "a batch sampler and a batch size": (False, {"batch_sampler": [[0]], "batch_size": 2}),
    "a batch sampler and shuffle": (False, {"batch_sampler": [[0]], "shuffle": True}),
    "no batches, but the last dropped": (False, {"batch_size": None, "drop_last": True}),
    "batches of 0": (False, {"batch_size": 0}),
    "a shuffled stream": (True, {"shuffle": True}),
    "a stream and a sampler": (True, {"sampler": [0]}),
    "a stream and a batch sampler": (True, {"batch_sampler": [[0]]}),
}


@pytest.mark.parametrize("name", WRONG_LOADERS)
def test_wrong_loaders_raise_what_torch_raises(name: str) -> None:
    is_stream, options = WRONG_LOADERS[name]
    with pytest.raises(ValueError):
        torch.utils.data.DataLoader(TorchCounting() if is_stream else [0], **options)
    with pytest.raises(ValueError):
        data.DataLoader(Counting(3) if is_stream else [0], **options)


def test_shuffling_follows_the_seed_and_changes_each_epoch() -> None:
    def epochs() -> list[Any]:
        random.manual_seed(5)
        loader = data.DataLoader(Squares(20), batch_size=4, shuffle=True)
        return [[batch.tolist() for batch in loader] for _ in range(3)]

    first = epochs()
    assert first == epochs()
    assert first[0] != first[1] != first[2]
    assert all(sorted(i for batch in epoch for i in batch) == [i * i for i in range(20)] for epoch in first)


def test_a_saved_generator_continues_the_order() -> None:
    loader = data.DataLoader(Squares(20), batch_size=4, shuffle=True)
    state = random.get_rng_state()
    expected = [batch.tolist() for batch in loader]
    random.set_rng_state(state)
    assert [batch.tolist() for batch in loader] == expected


@pytest.mark.parametrize(
    "wrap", [lambda rows: rows, lambda rows: data.Subset(data.Subset(rows, [6, 5, 4, 1]), [3, 1, 0])]
)
def test_rows_gathered_at_once_equal_rows_stacked(wrap: Callable[[Any], Any]) -> None:
    source = wrap(table(7))
    whole = data.DataLoader(source, batch_size=2)
    one_by_one = data.DataLoader(source, batch_size=2, collate_fn=lambda batch: data.default_collate(batch))
    assert plain(list(whole)) == plain(list(one_by_one))


def test_a_row_that_is_not_there_is_an_index_error() -> None:
    with pytest.raises(IndexError):
        list(data.DataLoader(table(3), sampler=[0, 3]))


def test_datasets_that_give_many_examples_are_asked_once() -> None:
    asked = []

    class Many(Squares):
        def __getitems__(self, indices: list[int]) -> list[int]:
            asked.append(indices)
            return [-index for index in indices]

    found = [batch.tolist() for batch in data.DataLoader(Many(4), batch_size=3)]
    assert found == [[0, -1, -2], [-3]]
    assert asked == [[0, 1, 2], [3]]


def test_options_of_workers_change_nothing() -> None:
    loader = data.DataLoader(
        Squares(4), num_workers=2, pin_memory=True, prefetch_factor=4, persistent_workers=True, worker_init_fn=int
    )
    assert [batch.tolist() for batch in loader] == [[0], [1], [4], [9]]
    assert data.get_worker_info() is None


def numbers(module: Any, limit: int, *, shared: bool) -> Any:
    """A stream of the numbers below a limit, all of them or a worker's part; it counts its passes."""

    class Numbers(module.IterableDataset):  # type: ignore[misc]
        passes = 0

        def __iter__(self) -> Iterator[int]:
            info = module.get_worker_info()
            assert info.dataset is self
            self.passes += 1
            start, step = (info.id, info.num_workers) if shared else (0, 1)
            return iter([number + 100 * self.passes for number in range(start, limit, step)])

    return Numbers()


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("persistent", [True, False])
@pytest.mark.parametrize("batch_size", [None, 3])
def test_streams_of_workers_are_those_of_torch(shared: bool, persistent: bool, batch_size: int | None) -> None:
    passes = []
    for module in (torch.utils.data, data):
        options: dict[str, Any] = {"batch_size": batch_size, "num_workers": 2, "persistent_workers": persistent}
        loader: Any = module.DataLoader(numbers(module, 7, shared=shared), **options)
        passes.append([[getattr(batch, "tolist", lambda batch=batch: batch)() for batch in loader] for _ in range(2)])
    assert passes[0] == passes[1]


def test_workers_draw_numbers_of_their_own_and_nobody_else_does() -> None:
    class Drawn(data.Dataset[Any]):
        def __getitem__(self, index: int) -> list[float]:
            return [python_random.random(), np.random.rand(), random.rand(()).item(), random.initial_seed()]

        def __len__(self) -> int:
            return 6

    def seeded(number: int) -> None:
        if number:
            random.manual_seed(5)

    random.manual_seed(0)
    python_random.seed(0)
    np.random.seed(0)
    loader = data.DataLoader(Drawn(), batch_size=None, num_workers=2, worker_init_fn=seeded, collate_fn=list)
    rows = [*loader]
    assert len({tuple(row[:3]) for row in rows}) == 6
    assert [row[3] == 5 for row in rows] == [False, True] * 3
    assert python_random.random() == python_random.Random(0).random()
    assert np.random.rand() == np.random.RandomState(0).rand()
    assert random.initial_seed() == 0


def test_an_error_of_a_worker_leaves_no_worker_running() -> None:
    def wrong(number: int) -> None:
        raise RuntimeError("of the program")

    with pytest.raises(RuntimeError, match="of the program"):
        iter(data.DataLoader(Squares(4), num_workers=2, worker_init_fn=wrong))
    assert data.get_worker_info() is None


@pytest.mark.parametrize("size", [0, 1, 3, 10, 11])
@pytest.mark.parametrize("replicas", [1, 2, 4])
@pytest.mark.parametrize("drop_last", [False, True])
def test_processes_share_a_dataset_as_in_torch(size: int, replicas: int, drop_last: bool) -> None:
    for rank in range(replicas):
        given = {"num_replicas": replicas, "rank": rank, "shuffle": False, "drop_last": drop_last}
        found, expected = (library.DistributedSampler(range(size), **given) for library in (data, torch.utils.data))
        assert (list(found), len(found)) == (list(expected), len(expected))


def test_an_epoch_gives_all_processes_one_order() -> None:
    parts = [data.DistributedSampler(range(9), 3, rank, seed=2) for rank in range(3)]
    first = [list(part) for part in parts]
    assert sorted(index for part in first for index in part) == list(range(9))
    assert first == [list(part) for part in parts]
    for part in parts:
        part.set_epoch(1)
    assert [list(part) for part in parts] != first
    assert len(list(data.DataLoader(table(9), batch_size=2, sampler=parts[0]))) == 2


@pytest.mark.parametrize("rank", [2, -1, None])
def test_a_process_that_is_not_there_raises_what_torch_raises(rank: int | None) -> None:
    for library in (data, torch.utils.data):
        with pytest.raises(ValueError, match=r"rank|process group"):
            library.DistributedSampler(range(3), 2, rank)


@pytest.mark.parametrize("num_workers", [0, 3])
def test_a_program_may_go_on_after_an_error_of_a_batch(num_workers: int) -> None:
    class Odd(data.Dataset[int]):
        def __len__(self) -> int:
            return 8

        def __getitem__(self, index: int) -> int:
            if index % 2:
                raise ValueError("odd")
            return index

    numbers, errors, batches = [], 0, iter(data.DataLoader(Odd(), batch_size=None, num_workers=num_workers))
    while True:
        try:
            numbers.append(next(batches))
        except ValueError:
            errors += 1
        except StopIteration:
            break
    assert (numbers, errors) == ([0, 2, 4, 6], 4)
