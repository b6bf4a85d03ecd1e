"""The block formats of GGUF, decoded and encoded by tensor operations: weights of a row in blocks that share scales.

A row is cut into blocks of `elements`, each of `size` bytes: codes of few bits, and the scales (and minima) that turn
them into numbers. Each format says once how bytes become numbers, by operations that run on every device.
The K formats have blocks of 256 with a scale for each 16 or 32, which are codes of 4 to 8 bits themselves.
Source: github.com/ggml-org/ggml, ggml-common.h (layouts), ggml-quants.c (meaning).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pywebgpu import dtypes
from pywebgpu.composites import quantized
from pywebgpu.tensor import create, functions
from pywebgpu.tensor.apply import apply
from pywebgpu.tensor.tensor import Tensor


@dataclass(frozen=True, slots=True)
class BlockFormat:
    """One format: its name, its number in files, elements and bytes of a block.

    decode: blocks (n, size) of bytes -> (n, elements) float32.  encode: the other way, by rounding.
    """

    name: str
    code: int
    elements: int
    size: int
    decode: Callable[[Tensor], Tensor]
    encode: Callable[[Tensor], Tensor]


def dequantize(data: Tensor, block_format: BlockFormat) -> Tensor:
    """The numbers of rows of blocks.

    Shapes: data (..., blocks * size) -> (..., blocks * elements).  Dtypes: uint8 -> float32.
    """
    blocks = data.reshape(-1, block_format.size)
    return block_format.decode(blocks).reshape(
        *data.shape[:-1], data.shape[-1] // block_format.size * block_format.elements
    )


def quantize(values: Tensor, block_format: BlockFormat) -> Tensor:
    """Rows of numbers as blocks of a format, rounded to what it can say.

    Shapes: values (..., blocks * elements) -> (..., blocks * size).  Dtypes: floating -> uint8.
    Raises: ValueError when rows are not whole blocks.
    """
    elements = block_format.elements
    if values.ndim == 0 or values.shape[-1] % elements:
        raise ValueError(
            f"{block_format.name}: rows must be a multiple of {elements} elements, not {tuple(values.shape)}"
        )
    blocks = values.detach().float().reshape(-1, elements)
    return block_format.encode(blocks).reshape(*values.shape[:-1], values.shape[-1] // elements * block_format.size)


# Parts of blocks


def _split(blocks: Tensor, sizes: Sequence[int]) -> list[Tensor]:
    """The bytes of each part of a block, in their order."""
    return [part.contiguous() for part in blocks.split(list(sizes), dim=1)]


def _halves(data: Tensor) -> Tensor:
    """Pairs of bytes as the float16 that they are, widened."""
    return data.view(dtypes.float16).float()


def _half_bytes(values: Tensor) -> Tensor:
    return values.half().contiguous().view(dtypes.uint8)


def _fields(data: Tensor, bits: int) -> Tensor:
    """The fields of bytes: (n, k) -> (n, 8 / bits, k), those of the lowest bits first."""
    shifts = create.tensor(list(range(0, 8, bits)), dtype=dtypes.uint8, device=data.device).reshape(1, -1, 1)
    result: Tensor = (data.unsqueeze(1) >> shifts) & (2**bits - 1)
    return result


def _from_fields(fields: Tensor, bits: int) -> Tensor:
    """The other way: (n, 8 / bits, k) -> (n, k)."""
    shifts = create.tensor(list(range(0, 8, bits)), dtype=dtypes.int32, device=fields.device).reshape(1, -1, 1)
    return (fields.int() << shifts).sum(1, dtype=dtypes.int32).to(dtypes.uint8)


def _reciprocal(scales: Tensor) -> Tensor:
    """1 / scales, and 0 for those which are 0."""
    return functions.where(scales == 0, 0.0, 1.0 / scales)


def _codes(values: Tensor, levels: int) -> Tensor:
    """Values rounded down to the codes 0 to `levels`."""
    return values.floor().clamp(0, levels).to(dtypes.uint8)


def _signed_largest(blocks: Tensor) -> Tensor:
    """The element of each row whose size is largest, with its sign."""
    return blocks.gather(-1, blocks.abs().argmax(-1, keepdim=True))


# Blocks of 32 with one scale


def _decode_fifth_bits(data: Tensor, low: Tensor) -> Tensor:
    """Codes of five bits: the fifth of element j is bit j of four bytes."""
    bits = _fields(data, 1).transpose(1, 2).reshape(-1, 32)
    return low | (bits << 4)


def _encode_fifth_bits(codes: Tensor) -> Tensor:
    return _from_fields((codes >> 4).reshape(-1, 4, 8).transpose(1, 2), 1)


def _decode_q5_0(blocks: Tensor) -> Tensor:
    scale, high, low = _split(blocks, [2, 4, 16])
    codes = _decode_fifth_bits(high, _fields(low, 4).reshape(-1, 32))
    return _halves(scale) * (codes.float() - 16)


def _encode_symmetric(bits: int) -> Callable[[Tensor], Tensor]:
    """Q4_0, Q5_0: a scale, then codes around 2 ** (bits - 1)."""
    middle = 2 ** (bits - 1)

    def encode(blocks: Tensor) -> Tensor:
        scale = _signed_largest(blocks) / -middle
        codes = _codes(blocks * _reciprocal(scale) + (middle + 0.5), 2 * middle - 1)
        high = [_encode_fifth_bits(codes)] if bits == 5 else []
        return functions.cat([_half_bytes(scale), *high, _from_fields((codes & 15).reshape(-1, 2, 16), 4)], dim=1)

    return encode


def _decode_q5_1(blocks: Tensor) -> Tensor:
    scale, minimum, high, low = _split(blocks, [2, 2, 4, 16])
    codes = _decode_fifth_bits(high, _fields(low, 4).reshape(-1, 32))
    return _halves(scale) * codes.float() + _halves(minimum)


def _encode_affine(bits: int) -> Callable[[Tensor], Tensor]:
    """Q4_1, Q5_1: a scale and a minimum, then codes from 0."""
    levels = 2**bits - 1

    def encode(blocks: Tensor) -> Tensor:
        minimum = blocks.amin(1, keepdim=True)
        scale = (blocks.amax(1, keepdim=True) - minimum) / levels
        codes = _codes((blocks - minimum) * _reciprocal(scale) + 0.5, levels)
        high = [_encode_fifth_bits(codes)] if bits == 5 else []
        low = _from_fields((codes & 15).reshape(-1, 2, 16), 4)
        return functions.cat([_half_bytes(scale), _half_bytes(minimum), *high, low], dim=1)

    return encode


def _encode_q8_0(blocks: Tensor) -> Tensor:
    scale = blocks.abs().amax(1, keepdim=True) / 127
    scaled = blocks * _reciprocal(scale)
    codes = (scaled.abs() + 0.5).floor() * scaled.sign()
    return functions.cat([_half_bytes(scale), codes.to(dtypes.int8).view(dtypes.uint8)], dim=1)


# Blocks of 256 with a scale for each 16: codes around a middle


def _fit_symmetric(blocks: Tensor, middle: int, scale_levels: int) -> tuple[Tensor, Tensor, Tensor]:
    """A block's scale (n, 1), codes of the scales of 16 elements (n, 16), codes of the elements (n, 256) from 0."""
    parts = blocks.reshape(-1, 16, 16)
    scales = _signed_largest(parts).squeeze(-1) / -middle
    largest = _signed_largest(scales)
    block_scale = (largest / -scale_levels).half().float()
    scale_codes = (scales * _reciprocal(block_scale)).round().clamp(-scale_levels, scale_levels - 1)
    inverses = _reciprocal(block_scale * scale_codes).unsqueeze(-1)
    codes = _codes(parts * inverses + (middle + 0.5), 2 * middle - 1)
    return block_scale, scale_codes, codes.reshape(-1, 256)


def _decode_q3_k(blocks: Tensor) -> Tensor:
    high, low, packed, scale = _split(blocks, [32, 64, 12, 2])
    low_bits = _fields(low.reshape(-1, 32), 2).reshape(-1, 8, 32)
    codes = (low_bits | (_fields(high, 1) << 2)).reshape(-1, 256).float() - 4
    low_scales = _fields(packed[:, :8], 4).reshape(-1, 16)
    high_scales = _fields(packed[:, 8:], 2).reshape(-1, 16)
    scale_codes = (low_scales | (high_scales << 4)).float() - 32
    scales = _halves(scale) * scale_codes
    return (codes.reshape(-1, 16, 16) * scales.unsqueeze(-1)).reshape(-1, 256)


def _encode_q3_k(blocks: Tensor) -> Tensor:
    scale, scale_codes, codes = _fit_symmetric(blocks, 4, 32)
    planes = codes.reshape(-1, 8, 32)
    low = _from_fields((planes & 3).reshape(-1, 4, 32), 2).reshape(-1, 64)
    shifted = (scale_codes + 32).to(dtypes.uint8)
    packed = [_from_fields((shifted & 15).reshape(-1, 2, 8), 4), _from_fields((shifted >> 4).reshape(-1, 4, 4), 2)]
    return functions.cat([_from_fields(planes >> 2, 1), low, *packed, _half_bytes(scale)], dim=1)


def _encode_q6_k(blocks: Tensor) -> Tensor:
    scale, scale_codes, codes = _fit_symmetric(blocks, 32, 128)
    planes = codes.reshape(-1, 4, 32)
    low = _from_fields((planes & 15).reshape(-1, 2, 64), 4).reshape(-1, 128)
    high = _from_fields(planes >> 4, 2).reshape(-1, 64)
    return functions.cat([low, high, scale_codes.to(dtypes.int8).view(dtypes.uint8), _half_bytes(scale)], dim=1)


# Blocks of 256 with a scale and a minimum for each 16 or 32: codes from 0


def _fit_affine(blocks: Tensor, levels: int, scale_levels: int, n_parts: int) -> tuple[Tensor, ...]:
    """A block's scale and step of minima (n, 1), their codes for each part (n, n_parts), the elements' (n, 256)."""
    parts = blocks.reshape(-1, n_parts, 256 // n_parts)
    minima = (-parts.amin(-1)).clamp(min=0)
    scales = (parts.amax(-1) + minima).clamp(min=0) / levels
    steps = [(values.amax(1, keepdim=True) / scale_levels).half().float() for values in (scales, minima)]
    scale_codes = _codes(scales * _reciprocal(steps[0]) + 0.5, scale_levels)
    minimum_codes = _codes(minima * _reciprocal(steps[1]) + 0.5, scale_levels)
    offsets = (steps[1] * minimum_codes.float()).unsqueeze(-1)
    inverses = _reciprocal(steps[0] * scale_codes.float()).unsqueeze(-1)
    codes = _codes((parts + offsets) * inverses + 0.5, levels)
    return steps[0], steps[1], scale_codes, minimum_codes, codes.reshape(-1, 256)


def _scaled_and_shifted(codes: Tensor, scales: Tensor, minima: Tensor) -> Tensor:
    """Codes (n, 256) times the scale less the minimum of their part, both (n, parts)."""
    parts = codes.reshape(-1, scales.shape[1], 256 // scales.shape[1]).float()
    return (parts * scales.unsqueeze(-1) - minima.unsqueeze(-1)).reshape(-1, 256)


def _decode_q2_k(blocks: Tensor) -> Tensor:
    scale_codes, low, scale, minimum = _split(blocks, [16, 64, 2, 2])
    codes = _fields(low.reshape(-1, 32), 2).reshape(-1, 256)
    scales = _halves(scale) * (scale_codes & 15).float()
    return _scaled_and_shifted(codes, scales, _halves(minimum) * (scale_codes >> 4).float())


def _encode_q2_k(blocks: Tensor) -> Tensor:
    scale, minimum, scale_codes, minimum_codes, codes = _fit_affine(blocks, 3, 15, 16)
    low = _from_fields(codes.reshape(-1, 4, 32), 2).reshape(-1, 64)
    return functions.cat([scale_codes | (minimum_codes << 4), low, _half_bytes(scale), _half_bytes(minimum)], dim=1)


def _six_bit_pairs(packed: Tensor) -> tuple[Tensor, Tensor]:
    """Eight scales and eight minima of six bits in twelve bytes: the first four of each whole, the others in nibbles,
    with their upper two bits above the first ones."""
    first, second, rest = _split(packed, [4, 4, 4])
    scales = functions.cat([first & 63, (rest & 15) | ((first >> 6) << 4)], dim=1)
    minima = functions.cat([second & 63, (rest >> 4) | ((second >> 6) << 4)], dim=1)
    return scales.float(), minima.float()


def _pack_six_bit_pairs(scales: Tensor, minima: Tensor) -> Tensor:
    first = scales[:, :4] | ((scales[:, 4:] >> 4) << 6)
    second = minima[:, :4] | ((minima[:, 4:] >> 4) << 6)
    return functions.cat([first, second, (scales[:, 4:] & 15) | ((minima[:, 4:] & 15) << 4)], dim=1)


def _decode_q5_k(blocks: Tensor) -> Tensor:
    scale, minimum, packed, high, low = _split(blocks, [2, 2, 12, 32, 128])
    codes = _fields(low.reshape(-1, 32), 4).reshape(-1, 8, 32) | (_fields(high, 1) << 4)
    scale_codes, minimum_codes = _six_bit_pairs(packed)
    return _scaled_and_shifted(codes, _halves(scale) * scale_codes, _halves(minimum) * minimum_codes)


def _encode_affine_k(bits: int) -> Callable[[Tensor], Tensor]:
    """Q4_K, Q5_K: eight parts of 32, whose fifth bits stand apart."""

    def encode(blocks: Tensor) -> Tensor:
        scale, minimum, scale_codes, minimum_codes, codes = _fit_affine(blocks, 2**bits - 1, 63, 8)
        planes = codes.reshape(-1, 8, 32)
        high = [_from_fields(planes >> 4, 1)] if bits == 5 else []
        low = _from_fields((planes & 15).reshape(-1, 2, 32), 4).reshape(-1, 128)
        packed = _pack_six_bit_pairs(scale_codes, minimum_codes)
        return functions.cat([_half_bytes(scale), _half_bytes(minimum), packed, *high, low], dim=1)

    return encode


def _by_planes(name: str) -> Callable[[Tensor], Tensor]:
    """Decodes a format with which products compute: its record says what its parts mean."""
    planes = quantized.FORMATS[name].planes

    def decode(blocks: Tensor) -> Tensor:
        parts = [blocks[:, plane.start : plane.start + plane.size].contiguous().view(plane.dtype) for plane in planes]
        return apply(quantized.dequantize, *parts, format=name)

    return decode


FORMATS = {
    block_format.name: block_format
    for block_format in (
        BlockFormat("q4_0", 2, 32, 18, _by_planes("q4_0"), _encode_symmetric(4)),
        BlockFormat("q4_1", 3, 32, 20, _by_planes("q4_1"), _encode_affine(4)),
        BlockFormat("q5_0", 6, 32, 22, _decode_q5_0, _encode_symmetric(5)),
        BlockFormat("q5_1", 7, 32, 24, _decode_q5_1, _encode_affine(5)),
        BlockFormat("q8_0", 8, 32, 34, _by_planes("q8_0"), _encode_q8_0),
        BlockFormat("q2_k", 10, 256, 84, _decode_q2_k, _encode_q2_k),
        BlockFormat("q3_k", 11, 256, 110, _decode_q3_k, _encode_q3_k),
        BlockFormat("q4_k", 12, 256, 144, _by_planes("q4_k"), _encode_affine_k(4)),
        BlockFormat("q5_k", 13, 256, 176, _decode_q5_k, _encode_affine_k(5)),
        BlockFormat("q6_k", 14, 256, 210, _by_planes("q6_k"), _encode_q6_k),
    )
}
