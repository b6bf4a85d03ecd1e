"""Random bits against the published vectors, and generators as the three numbers that they are."""

import pickle

import numpy as np
import pytest

from pywebgpu import dtypes
from pywebgpu.composites import random as draws
from pywebgpu.ir.graph import Spec, host
from pywebgpu.nn import functional
from pywebgpu.ops import random
from pywebgpu.tensor import create
from pywebgpu.tensor import random as surface
from tests.unit.compiled import only

pytestmark = pytest.mark.usefixtures("default_device")

# Random123's kat_vectors: counter, key, result of philox4x32-10.
VECTORS = {
    "zeros": ("00000000 00000000 00000000 00000000", "00000000 00000000", "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
    "ones": ("ffffffff ffffffff ffffffff ffffffff", "ffffffff ffffffff", "408f276d 41c83b0e a20bc7c6 6d5451fd"),
    "pi": ("243f6a88 85a308d3 13198a2e 03707344", "a4093822 299f31d0", "d16cfe09 94fdcceb 5001e420 24126ea1"),
}


def words(text: str) -> list[int]:
    return [int(word, 16) for word in text.split()]


@pytest.mark.parametrize("name", VECTORS)
def test_philox_matches_the_published_vectors(name: str) -> None:
    counter, key, expected = (words(text) for text in VECTORS[name])
    assert list(random.philox(counter, (key[0], key[1]))) == expected


@pytest.mark.parametrize("count", [7, 4 * random.FEW + 1, random.CHUNK * 4 + 3])
def test_bits_are_words_of_blocks(count: int) -> None:
    """Element i is word i mod 4 of block i div 4: of few, of many, and beyond the part that is computed at a time."""
    spec = Spec((count,), dtypes.uint32)
    seed = [np.uint32(word) for word in (5, 6, 7, 8)]
    found = random.bits.reference(np, *seed, spec=spec)
    for at in (0, 1, 6, count - 1):
        assert found[at] == random.philox((at // 4, 8, 7, 0), (5, 6))[at % 4]


def test_a_draw_is_four_host_numbers(device: str) -> None:
    generator = surface.Generator().manual_seed((3 << 32) + 4)
    generator.draw()
    assert [word.buffer for word in generator.draw()] == [4, 3, 0, 1]


@pytest.mark.parametrize("bits", [0, 2**32 - 1])
def test_the_ends_of_the_range_are_kept(bits: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The smallest and the largest word give numbers of [0, 1), of (0, 1), and finite normal ones."""
    seed = tuple(host(0, dtypes.uint32) for _ in range(4))
    monkeypatch.setattr(draws, "words", lambda seed, shape: draws.creation.full(bits, shape, dtypes.uint32))
    device = create.devices.open_device("cpu")
    for dtype in (dtypes.float32, dtypes.float16, dtypes.bfloat16, dtypes.float64):
        assert 0 <= create.Tensor._new(draws.uniform(seed, (1,), dtype), device).item() < 1
        assert abs(create.Tensor._new(draws.normal(seed, (1,), dtype), device).item()) < 9
    assert 0 < create.Tensor._new(draws.inner(seed, (1,), dtypes.float32), device).item() < 1


def test_state_goes_back() -> None:
    generator = surface.Generator().manual_seed(3)
    surface.rand(2, generator=generator)
    state = generator.get_state()
    first = surface.rand(5, generator=generator).tolist()
    copied = pickle.loads(pickle.dumps(generator.set_state(state)))
    assert surface.rand(5, generator=generator).tolist() == first
    assert surface.rand(5, generator=copied).tolist() == first
    assert surface.rand(5, generator=copied).tolist() != first


def test_fork_leaves_the_default_generator() -> None:
    surface.manual_seed(1)
    with surface.fork_rng():
        inside = surface.rand(3).tolist()
    assert surface.rand(3).tolist() == inside


@pytest.mark.parametrize("wrong", ["a tensor of floats", "too short", "no tensor"])
def test_a_wrong_state_is_refused(wrong: str) -> None:
    given = {
        "a tensor of floats": create.zeros(24), "too short": create.zeros(5, dtype=dtypes.uint8), "no tensor": b"0" * 24
    }[wrong]  # fmt: skip
    with pytest.raises((TypeError, RuntimeError)):
        surface.Generator().set_state(given)


def test_moments_and_shares() -> None:
    """Loose bounds, five standard errors wide, on a fixed seed."""
    surface.manual_seed(0)
    n = 40_000
    drawn = surface.randn(n).numpy()
    assert abs(drawn.mean()) < 5 / n**0.5
    assert abs(drawn.std() - 1) < 5 / (2 * n) ** 0.5
    assert abs((np.abs(drawn) < 1).mean() - 0.6827) < 5 * (0.22 / n) ** 0.5
    chosen = surface.randint(0, 10, (n,)).numpy()
    assert np.abs(np.bincount(chosen, minlength=10) / n - 0.1).max() < 5 * (0.09 / n) ** 0.5
    weights = create.tensor([0.0, 1.0, 0.0, 3.0])
    for replacement in (True, False):
        picked = weights.expand(n // 4, 4).multinomial(2, replacement=replacement).numpy()
        assert set(np.unique(picked)) == {1, 3}
        assert abs((picked[:, 0] == 3).mean() - 0.75) < 5 * (0.19 / (n // 4)) ** 0.5


def test_neighbours_that_an_invocation_computes_share_a_draw_of_four(device: str) -> None:
    """And have the bits that they have alone."""
    found = []
    for size in (1 << 17, 1001):
        surface.manual_seed(3)
        found.append(functional.dropout(create.ones(size, device=device), 0.3).numpy())
    np.testing.assert_array_equal(found[0][:1001], found[1])
    program = only(lambda: functional.dropout(create.ones(1 << 17, device="null"), 0.3))
    assert program.kernels[0].wgsl.count("p_philox4(") == 2, "it is declared and called once"


def test_whole_numbers_without_bounds_are_those_that_the_device_holds(device: str) -> None:
    numbers = create.empty(1000, dtype=dtypes.int64, device=device).random_()
    assert numbers.min().item() >= 0
    assert numbers.max().item() > 2**30
