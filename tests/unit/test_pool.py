"""Buffers that wait: by size class, within a budget, the oldest class given up first."""

from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from pywebgpu.devices.pool import Pool, Scratch, size_class
from tests.fuzz.steps import PROFILE


@dataclass
class Maker:
    """Makes numbers for buffers, and remembers which ones have ended."""

    sizes: list[int] = field(default_factory=list)
    ended: list[int] = field(default_factory=list)

    def make(self, size: int) -> int:
        self.sizes.append(size)
        return len(self.sizes) - 1

    def pool(self, budget: int = 1 << 20) -> Pool:
        return Pool(self.make, self.ended.append, budget)


@given(st.integers(1, 1 << 30))
@PROFILE
def test_a_class_holds_what_was_asked_for_and_little_more(nbytes: int) -> None:
    size = size_class(nbytes)
    assert size >= nbytes
    assert size % 256 == 0
    assert size - nbytes < max(256, nbytes / 8)
    assert size_class(size) == size


@given(st.integers(1, 1 << 30), st.integers(1, 1 << 20))
@PROFILE
def test_classes_are_ordered(nbytes: int, more: int) -> None:
    assert size_class(nbytes) <= size_class(nbytes + more)


def test_eight_classes_between_powers_of_two() -> None:
    assert len({size_class(n) for n in range((1 << 16) + 1, (1 << 17) + 1)}) == 8


def test_a_buffer_comes_back_for_its_class_only() -> None:
    maker = Maker()
    pool = maker.pool()
    first = pool.take(1000)
    pool.give(first, 1000)
    assert pool.take(1020) == first
    assert pool.take(1020) != first
    assert pool.take(3000) not in (first, 1)
    assert (pool.created, pool.reused, pool.waiting_bytes) == (3, 1, 0)


def test_the_budget_ends_the_class_that_was_not_used_for_longest() -> None:
    maker = Maker()
    pool = maker.pool(budget=8 << 10)
    small, large = [pool.take(1 << 10) for _ in range(4)], [pool.take(4 << 10) for _ in range(2)]
    for buffer in small:
        pool.give(buffer, 1 << 10)
    pool.give(large[0], 4 << 10)
    assert maker.ended == []
    pool.give(large[1], 4 << 10)
    assert maker.ended == small
    assert pool.waiting_bytes == 8 << 10


def test_a_buffer_larger_than_the_budget_ends_at_once() -> None:
    maker = Maker()
    pool = maker.pool(budget=1 << 10)
    pool.give(pool.take(1 << 20), 1 << 20)
    assert maker.ended == [0]
    assert pool.waiting_bytes == 0


def test_clear_ends_all_that_wait() -> None:
    maker = Maker()
    pool = maker.pool()
    buffers = [pool.take(n) for n in (100, 1000, 10_000, 1000)]
    for buffer, n in zip(buffers[:3], (100, 1000, 10_000), strict=True):
        pool.give(buffer, n)
    pool.clear()
    assert sorted(maker.ended) == buffers[:3]
    assert pool.waiting_bytes == 0
    assert pool.take(100) == 4


@given(st.lists(st.tuples(st.booleans(), st.integers(1, 5000)), max_size=60))
@PROFILE
def test_bytes_that_wait_are_those_of_the_buffers_that_wait(drawn: list[tuple[bool, int]]) -> None:
    maker = Maker()
    pool = maker.pool(budget=20_000)
    out: list[tuple[int, int]] = []
    for take, nbytes in drawn:
        if take or not out:
            taken = pool.take(nbytes)
            assert taken not in maker.ended
            assert taken not in [buffer for buffer, _ in out]
            assert maker.sizes[taken] >= nbytes
            out.append((taken, nbytes))
        else:
            pool.give(*out.pop(nbytes % len(out)))
        held = {buffer for buffer, _ in out} | set(maker.ended)
        waiting = [size for buffer, size in enumerate(maker.sizes) if buffer not in held]
        assert pool.waiting_bytes == sum(waiting) <= pool.budget
    assert len(maker.ended) == len(set(maker.ended))


def test_programs_share_what_passes_inside_them() -> None:
    maker = Maker()
    scratch = Scratch(maker.pool())
    large, small = scratch.take({5: 4096, 7: 512}), scratch.take({2: 300, 3: 2000})
    assert maker.sizes == [4096, 512]
    assert (small[3].buffer, small[2].buffer) == (large[5].buffer, large[7].buffer)
    assert scratch.nbytes == 4096 + 512


def test_scratch_goes_back_with_the_last_program_that_has_it() -> None:
    maker = Maker()
    pool = maker.pool()
    scratch = Scratch(pool)
    first, second = scratch.take({0: 1024}), scratch.take({0: 1024})
    scratch.give(first.values())
    assert (scratch.nbytes, pool.waiting_bytes) == (1024, 0)
    scratch.give(second.values())
    assert (scratch.nbytes, pool.waiting_bytes) == (0, 1024)
