"""What holds of all size classes and of all orders of requests; test_device_memory.py has the cases one by one."""

from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from pywebgpu.devices.pool import Pool, size_class
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
