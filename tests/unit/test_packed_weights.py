"""Weights in 8 and 4 bits, and in GGUF's blocks, decoded by ordinary functions: of whole bytes the product reads
them as they are, and no float of them is stored. NumPy decodes the same bytes on its own."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import pywebgpu as torch
from tests.unit.compiled import leaf, only

ROWS, K, N, BLOCK = 5, 64, 12, 32
FP4 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6], "float32")


def minifloats(exponent: int, mantissa: int, bias: int) -> np.ndarray:
    """The 256 values of a float of 8 bits, NaN and infinity left out."""
    codes = np.arange(256)
    e, m = codes >> mantissa & (1 << exponent) - 1, codes & (1 << mantissa) - 1
    normal = (1 + m / 2.0**mantissa) * 2.0 ** (e - bias)
    value = np.where(e == 0, m / 2.0**mantissa * 2.0 ** (1 - bias), normal)
    return np.where(codes & 128, -value, value).astype("float32")


E4M3, E5M2 = minifloats(4, 3, 7), minifloats(5, 2, 15)


@dataclass(frozen=True)
class Scheme:
    """draw: arrays of packed weights for (K, N).  numpy, decode: those arrays -> float32 (K, N), each in its way."""

    draw: Callable[[np.random.Generator], list[np.ndarray]]
    numpy: Callable[..., np.ndarray]
    decode: Callable[..., Any]


def scales(rng: np.random.Generator, block: int = BLOCK) -> np.ndarray:
    return rng.uniform(0.01, 0.1, (K // block, 1, N)).astype("float32")


def blocks(weights: Any, block: int = BLOCK) -> Any:
    """(K, N) -> (K / block, block, N)"""
    return weights.reshape(K // block, block, N)


def int8(rng: np.random.Generator) -> list[np.ndarray]:
    return [rng.integers(-127, 128, (K, N), "int8"), scales(rng)]


def int8_with_zeros(rng: np.random.Generator) -> list[np.ndarray]:
    return [rng.integers(0, 256, (K, N), "uint8"), scales(rng), rng.integers(0, 256, (K // BLOCK, 1, N), "uint8")]


def int4(rng: np.random.Generator) -> list[np.ndarray]:
    """Two neighbours along k in a byte."""
    return [rng.integers(0, 256, (K // 2, N), "uint8"), scales(rng)]


def numpy_nibbles(packed: np.ndarray) -> np.ndarray:
    return np.stack([packed & 15, packed >> 4], 1).reshape(K, N)


def nibbles(packed: Any) -> Any:
    shifts = torch.tensor([0, 4], dtype=torch.uint8, device=packed.device).reshape(2, 1)
    return (packed.unsqueeze(1) >> shifts & 15).reshape(K, N)


def codes(table: np.ndarray, usable: int) -> Callable[[np.random.Generator], list[np.ndarray]]:
    """Codes of either sign whose magnitude is below `usable`: the others stand for no number."""

    def draw(rng: np.random.Generator) -> list[np.ndarray]:
        sign = rng.integers(0, 2, (K, N), "uint8") << 7
        return [rng.integers(0, usable, (K, N), "uint8") | sign, table]

    return draw


def looked_up(packed: Any, table: Any) -> Any:
    return table[packed.long()]


SCHEMES = {
    "int8_block": Scheme(
        int8,
        lambda w, s: (blocks(w.astype("float32")) * s).reshape(K, N),
        lambda w, s: (blocks(w.float()) * s).reshape(K, N),
    ),
    "int8_block_with_zeros": Scheme(
        int8_with_zeros,
        lambda w, s, z: ((blocks(w.astype("float32")) - z) * s).reshape(K, N),
        lambda w, s, z: ((blocks(w.float()) - z.float()) * s).reshape(K, N),
    ),
    "int4_block": Scheme(
        int4,
        lambda w, s: (blocks(numpy_nibbles(w).astype("float32") - 8) * s).reshape(K, N),
        lambda w, s: (blocks(nibbles(w).float() - 8) * s).reshape(K, N),
    ),
    "float8_e4m3": Scheme(codes(E4M3, 127), lambda w, table: table[w], looked_up),
    "float8_e5m2": Scheme(codes(E5M2, 0x58), lambda w, table: table[w], looked_up),
    "float4_block": Scheme(
        lambda rng: [*int4(rng)[:1], FP4, scales(rng, 16)],
        lambda w, table, s: (blocks(table[numpy_nibbles(w)], 16) * s).reshape(K, N),
        lambda w, table, s: (blocks(table[nibbles(w).long()], 16) * s).reshape(K, N),
    ),
}


@pytest.mark.parametrize("name", SCHEMES)
def test_a_product_with_packed_weights_is_that_of_their_values(name: str, device: str) -> None:
    scheme, rng = SCHEMES[name], np.random.default_rng(len(name))
    packed, x = scheme.draw(rng), rng.standard_normal((ROWS, K)).astype("float32")
    wanted = x @ scheme.numpy(*packed)
    found = torch.tensor(x, device=device) @ scheme.decode(*[torch.tensor(array, device=device) for array in packed])
    np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-5, atol=1e-5 * np.abs(wanted).max())


@pytest.mark.parametrize("name", ["int8_block", "int8_block_with_zeros"])
def test_the_product_reads_the_packed_bytes(name: str) -> None:
    """One dispatch, which binds them: no decoded weight is in memory."""
    scheme = SCHEMES[name]
    arrays = scheme.draw(np.random.default_rng(0))
    packed = [leaf(*array.shape, dtype=getattr(torch, str(array.dtype))) for array in arrays]
    x = leaf(ROWS, K)
    program = only(lambda: x @ scheme.decode(*packed))
    assert len(program.steps) == 1
    assert {program.slots[slot].spec.dtype.name for slot in program.inputs} >= {str(arrays[0].dtype)}


def test_weights_may_be_kept_in_halves(device: str) -> None:
    """Half of the bytes, and products in float32 that read them as they lie."""
    rng = np.random.default_rng(4)
    x, w = rng.standard_normal((ROWS, K)).astype("float32"), rng.uniform(0.5, 1, (K, N)).astype("float32")
    kept = torch.tensor(w, device=device).half()
    assert kept.nbytes == w.nbytes / 2
    found = (torch.tensor(x, device=device) @ kept.float()).numpy()
    assert np.abs(found - x @ w).max() < 1e-3 * np.abs(x @ w).max()
    left, right = leaf(ROWS, K), leaf(K, N, dtype=torch.float16)
    assert len(only(lambda: left @ right.float()).steps) == 1


def test_rows_that_fill_no_block_are_refused_where_they_are_parted() -> None:
    with pytest.raises(RuntimeError, match="shape"):
        blocks(torch.zeros(K - 1, N, dtype=torch.int8))


def test_bytes_go_to_the_device_and_back_as_they_are(device: str) -> None:
    data = np.random.default_rng(3).integers(0, 256, 1001, "uint8").tobytes()
    assert torch.frombuffer(bytearray(data), dtype=torch.uint8).to(device).tobytes() == data


# Blocks of 256 as GGUF has them, (rows, blocks, bytes) -> (rows, 256 * blocks)


def six_bits(packed: Any, at: int) -> tuple[Any, Any]:
    """Scale and least value number `at` of the eight that twelve bytes hold."""
    if at < 4:
        return packed[..., at] & 63, packed[..., at + 4] & 63
    low, high = packed[..., at + 4], packed[..., at - 4] >> 6 << 4
    return low & 15 | high, low >> 4 | packed[..., at] >> 6 << 4


def q4_k(data: Any) -> Any:
    factors = data[..., :4].contiguous().view(torch.float16).float()
    parts = [six_bits(data[..., 4:16], at) for at in range(8)]
    scale, least = (torch.stack([part[at] for part in parts], -1).unsqueeze(-1).float() for at in (0, 1))
    packed = data[..., 16:].unflatten(-1, (4, 1, 32))
    shifts = torch.tensor([0, 4], dtype=torch.uint8, device=data.device).reshape(2, 1)
    values = (packed >> shifts & 15).flatten(-3, -2).float()
    d, low = factors[..., 0, None, None], factors[..., 1, None, None]
    return (d * scale * values - low * least).flatten(1)


def q6_k(data: Any) -> Any:
    low, high = data[..., :128].unflatten(-1, (2, 2, 32)), data[..., 128:192].unflatten(-1, (2, 1, 32))
    scale = data[..., 192:208].view(torch.int8).float().unflatten(-1, (2, 4, 2, 1))
    d = data[..., 208:].contiguous().view(torch.float16).float()[..., None, None, None]
    made = [low[..., 0, :] & 15, low[..., 1, :] & 15, low[..., 0, :] >> 4, low[..., 1, :] >> 4]
    bits = [high[..., 0, :] >> 2 * at & 3 for at in range(4)]
    values = torch.stack([one | bit << 4 for one, bit in zip(made, bits, strict=True)], -2).float() - 32
    return (d * scale * values.unflatten(-1, (2, 16))).flatten(1)


def q4_k_by_element(block: np.ndarray) -> list[float]:
    """One block, number by number, as its format is described."""
    d, least = (float(x) for x in block[:4].view("float16"))
    s, q = [int(x) for x in block[4:16]], [int(x) for x in block[16:]]
    found = []
    for at in range(256):
        part, byte = at // 32, q[at // 64 * 32 + at % 32]
        scale = s[part] & 63 if part < 4 else s[part + 4] & 15 | s[part - 4] >> 6 << 4
        low = s[part + 4] & 63 if part < 4 else s[part + 4] >> 4 | s[part] >> 6 << 4
        found.append(d * scale * (byte >> 4 if part % 2 else byte & 15) - least * low)
    return found


def q6_k_by_element(block: np.ndarray) -> list[float]:
    ql, qh = [int(x) for x in block[:128]], [int(x) for x in block[128:192]]
    scales, d = block[192:208].view("int8"), float(block[208:].view("float16")[0])
    found = []
    for at in range(256):
        half, quarter, lane = at // 128, at % 128 // 32, at % 32
        byte = ql[64 * half + 32 * (quarter % 2) + lane]
        code = (byte >> 4 if quarter > 1 else byte & 15) | (qh[32 * half + lane] >> 2 * quarter & 3) << 4
        found.append(d * int(scales[at // 16]) * (code - 32))
    return found


def drawn(kind: str, *rows: int) -> np.ndarray:
    """Random blocks of bytes, whose float16 factors are small numbers."""
    rng, (size, factors) = np.random.default_rng(7), {"q4_k": (144, slice(0, 4)), "q6_k": (210, slice(208, 210))}[kind]
    data = rng.integers(0, 256, (*rows, 2, size), "uint8")
    small = rng.uniform(0.001, 0.01, (*rows, 2, (factors.stop - factors.start) // 2)).astype("float16")
    data[..., factors] = small.view("uint8")
    return data


GGUF = {"q4_k": (q4_k, q4_k_by_element), "q6_k": (q6_k, q6_k_by_element)}


def by_element(kind: str, data: np.ndarray) -> np.ndarray:
    return np.array([[x for block in row for x in GGUF[kind][1](block)] for row in data], "float32")


@pytest.mark.parametrize("kind", GGUF)
def test_blocks_of_gguf_multiply(kind: str, device: str) -> None:
    data, x = drawn(kind, 6), np.random.default_rng(1).standard_normal((3, 512)).astype("float32")
    wanted = x @ by_element(kind, data).T
    found = torch.tensor(x, device=device) @ GGUF[kind][0](torch.tensor(data, device=device)).T
    np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-5, atol=2e-5 * np.abs(wanted).max())


@pytest.mark.parametrize("kind", GGUF)
def test_experts_of_gguf_multiply_their_rows_before_a_transform(kind: str, device: str) -> None:
    """Products with packed weights, sums and a Fourier transform of one graph."""
    data, x = drawn(kind, 4, 8), np.random.default_rng(2).standard_normal((5, 512)).astype("float32")
    expert = [3, 0, 1, 3, 2]
    weights = by_element(kind, data.reshape(-1, *data.shape[2:])).reshape(4, 8, 512)
    wanted = np.fft.rfft(np.stack([weights[e] @ row for e, row in zip(expert, x, strict=True)]) + 1)
    decoded = GGUF[kind][0](torch.tensor(data, device=device).flatten(0, 1)).unflatten(0, (4, 8))
    chosen = decoded[torch.tensor(expert, device=device)]
    product = torch.bmm(chosen, torch.tensor(x, device=device).unsqueeze(-1)).squeeze(-1)
    found = torch.fft.rfft(product + 1)
    np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-4, atol=2e-5 * np.abs(wanted).max())
