"""How kernels decode quantised weights: 16 bytes of codes at a time, a unit, whose numbers share few scales.

What the formats mean stands in composites/quantized.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from pywebgpu.composites.quantized import FORMATS
from pywebgpu.ir.graph import Node
from pywebgpu.kernels.builder import Builder, Coords
from pywebgpu.kernels.ir import F32, I32, U32, Call, Const, Expr, Index, Type, call, construct, template
from pywebgpu.support.symbolic import Sym

BYTES = 16
WORDS = BYTES // 4
F32X4, I32X4, U32X4 = Type("f32", 4), Type("i32", 4), Type("u32", 4)


class Part(NamedTuple):
    """Numbers of a unit that share a scale: scale * codes + offset.  column: of the first of each four."""

    scale: Expr
    offset: Expr | None
    codes: Sequence[tuple[Sym, Expr]]


def elements(format: str) -> int:
    """How many numbers a unit has."""
    quantized = FORMATS[format]
    return quantized.elements * BYTES // quantized.planes[0].size


def load(build: Builder, planes: Sequence[Node], row: Sym, unit: Sym) -> list[Expr]:
    """The words of a unit's codes. Loads of several units stand together, so that one wait is for all."""
    return _words(build, planes[0], row, unit, WORDS)


def decode(
    format: str, build: Builder, planes: Sequence[Node], words: Sequence[Expr], row: Sym, unit: Sym
) -> list[Part]:
    """The numbers of a unit of a row, of whose codes the words were loaded."""
    return _DECODERS[format](build, planes, words, row, unit)


def _words(build: Builder, plane: Node, row: Sym, position: Sym, count: int) -> list[Expr]:
    """Neighbouring words of a row of a plane, from `position` times `count` on."""
    first = position * count * 4
    return [_word(build, plane, [(row, first + (4 * index + byte)) for byte in range(4)]) for index in range(count)]


def _word(build: Builder, plane: Node, places: Sequence[Coords]) -> Expr:
    """Four neighbouring bytes as the word that they are; where they are computed here, as one that is made of them."""
    loaded = build.word(plane, places)
    if loaded is not None:
        return build.let(loaded)
    values = [build.value(plane, place) for place in places]
    bits = values if values[0].type == U32 else [call("bitcast<u32>", U32, value) for value in values]
    text = " | ".join(f"(({{{index}}} & 0xffu) << {8 * index}u)" for index in range(4))
    return build.let(Call(template(f"({text})"), U32, *bits))


def _fields(build: Builder, word: Expr, first: int, mask: int) -> Expr:
    """The bits from `first` on of each of a word's bytes, as four numbers."""
    shifts = ", ".join(f"{first + 8 * index}u" for index in range(4))
    text = f"vec4<f32>((vec4<u32>({{0}}) >> vec4<u32>({shifts})) & vec4<u32>({mask}u))"
    return build.let(Call(template(text), F32X4, word))


def _nibbles(
    build: Builder, words: Sequence[Expr], columns: tuple[Sym, Sym]
) -> tuple[list[tuple[Sym, Expr]], list[tuple[Sym, Expr]]]:
    """The numbers of the low halves of bytes, and those of the high ones: from which columns on each."""
    low = [(columns[0] + 4 * index, _fields(build, word, 0, 15)) for index, word in enumerate(words)]
    high = [(columns[1] + 4 * index, _fields(build, word, 4, 15)) for index, word in enumerate(words)]
    return low, high


def _scaled(build: Builder, scale: Expr, by: float) -> Expr:
    return build.let(scale * Const(F32, by))


def _q4_0(build: Builder, planes: Sequence[Node], words: Sequence[Expr], row: Sym, unit: Sym) -> list[Part]:
    scale = build.value(planes[1], (row, unit))
    low, high = _nibbles(build, words, (unit * 32, unit * 32 + 16))
    return [Part(scale, _scaled(build, scale, -8.0), low + high)]


def _q4_1(build: Builder, planes: Sequence[Node], words: Sequence[Expr], row: Sym, unit: Sym) -> list[Part]:
    scale, minimum = (build.value(planes[1], (row, unit * 2 + index)) for index in range(2))
    low, high = _nibbles(build, words, (unit * 32, unit * 32 + 16))
    return [Part(scale, minimum, low + high)]


def _q8_0(build: Builder, planes: Sequence[Node], words: Sequence[Expr], row: Sym, unit: Sym) -> list[Part]:
    scale = build.value(planes[1], (row, unit // 2))
    text = "vec4<f32>((vec4<i32>({0}) << vec4<u32>(24u, 16u, 8u, 0u)) >> vec4<u32>(24u))"
    codes = [build.let(Call(template(text), F32X4, call("bitcast<i32>", I32, word))) for word in words]
    return [Part(scale, None, [(unit * 16 + 4 * index, four) for index, four in enumerate(codes)])]


def _q4_k(build: Builder, planes: Sequence[Node], words: Sequence[Expr], row: Sym, unit: Sym) -> list[Part]:
    _, scales, parts = planes
    block, pair = unit // 8, unit % 8 // 2  # 64 numbers of two parts have 32 bytes.
    low, high = _nibbles(
        build, words, (block * 256 + pair * 64 + unit % 2 * 16, block * 256 + pair * 64 + unit % 2 * 16 + 32)
    )
    scale, minimum = (build.value(scales, (row, block * 2 + index)) for index in range(2))
    packed = _words(build, parts, row, block, 3)
    unit_parts = []
    for index, codes in enumerate((low, high)):
        number = build.let(Index(pair * 2 + index))
        six = build.let(Call(template(_SIX_BITS), Type("u32", 2), *packed, number))
        unit_parts.append(
            Part(
                build.let(scale * construct(F32, six[0])),
                build.let(minimum * construct(F32, six[1]) * Const(F32, -1.0)),
                codes,
            )
        )
    return unit_parts


# The scale and the minimum number {3} of the twelve bytes {0}, {1}, {2}: see composites/quantized.py.
_SIX_BITS = (
    "select("
    "vec2<u32>((({2} >> (8u * ({3} & 3u))) & 15u) | (((({0} >> (8u * ({3} & 3u))) >> 6u) & 3u) << 4u), "
    "(({2} >> (8u * ({3} & 3u) + 4u)) & 15u) | (((({1} >> (8u * ({3} & 3u))) >> 6u) & 3u) << 4u)), "
    "vec2<u32>(({0} >> (8u * {3})) & 63u, ({1} >> (8u * {3})) & 63u), "
    "{3} < 4u)"
)


def _q6_k(build: Builder, planes: Sequence[Node], words: Sequence[Expr], row: Sym, unit: Sym) -> list[Part]:
    _, high, parts, scales = planes
    block, half, quarter = unit // 8, unit % 8 // 4, unit % 4  # 128 numbers have 64 low bytes and 32 high ones.
    first = block * 256 + half * 128 + quarter * 16
    low_fours, high_fours = _nibbles(build, words, (first, first + 64))
    upper = _words(build, high, row, block * 4 + half * 2 + quarter % 2, WORDS)
    shift = build.let(Index(quarter // 2 * 2))
    scale = build.value(scales, (row, block))
    unit_parts = []
    for index, fours in enumerate((low_fours, high_fours)):
        codes = []
        for (column, four), word in zip(fours, upper, strict=True):
            bits = build.let(Call(template(f"({{0}} >> ({{1}} + {4 * index}u))"), U32, word, shift))
            codes.append((column, build.let(four + _fields(build, bits, 0, 3) * Const(F32, 16.0))))
        of_part = build.value(parts, (row, block * 16 + half * 8 + quarter + 4 * index))
        own = build.let(scale * construct(F32, of_part))
        unit_parts.append(Part(own, _scaled(build, own, -32.0), codes))
    return unit_parts


_Decoder = Callable[[Builder, Sequence[Node], Sequence[Expr], Sym, Sym], list[Part]]
_DECODERS: dict[str, _Decoder] = {"q4_0": _q4_0, "q4_1": _q4_1, "q8_0": _q8_0, "q4_k": _q4_k, "q6_k": _q6_k}
