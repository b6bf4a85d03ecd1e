"""Index expressions: whatever they are simplified to, as structure and as WGSL text, they keep their value."""

import random
import re
from collections.abc import Callable
from dataclasses import dataclass
from math import prod

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pywebgpu.ops import movement
from pywebgpu.support import symbolic
from pywebgpu.support.symbolic import Quotient, Remainder, Sym, Var, constant, flatten, text, unflatten, variable
from tests.fuzz.steps import PROFILE

WORD = 1 << 32
Values = dict[str, int]
Plain = Callable[[Values], int]


@dataclass(frozen=True)
class Count:
    """Unsigned arithmetic of 32 bits, as WGSL has it: it wraps, and division is by a number above 0."""

    value: int

    def __add__(self, other: "Count") -> "Count":
        return Count((self.value + other.value) % WORD)

    def __sub__(self, other: "Count") -> "Count":
        return Count((self.value - other.value) % WORD)

    def __mul__(self, other: "Count") -> "Count":
        return Count((self.value * other.value) % WORD)

    def __truediv__(self, other: "Count") -> "Count":
        return Count(self.value // other.value)

    def __mod__(self, other: "Count") -> "Count":
        return Count(self.value % other.value)


def in_words(wgsl: str, values: Values) -> int:
    """The number that a shader would find. A literal without its u is no Count, and fails."""
    expression = re.sub(r"\b(\d+)u\b", r"Count(\1)", wgsl)
    found = eval(expression, {"Count": Count, **{name: Count(value) for name, value in values.items()}})
    assert isinstance(found, Count)
    return found.value


def by_structure(e: Sym, values: Values) -> int:
    found = e.const
    for atom, factor in e.terms:
        match atom:
            case Var(name=name):
                part = values[name]
            case Quotient(of=of, by=by):
                part = by_structure(of, values) // by
            case Remainder(of=of, by=by):
                part = by_structure(of, values) % by
        found += factor * part
    return found


steps = st.lists(st.tuples(st.sampled_from("+-*/%kr="), st.integers(0, 5), st.integers(1, 300)), max_size=12)
sizes_of_variables = st.lists(st.integers(1, 40), min_size=1, max_size=4)


def build(sizes: list[int], drawn: list[tuple[str, int, int]]) -> tuple[Sym, Plain, Values]:
    """One expression twice: simplified while it is built, and as Python's own arithmetic. With the variables' sizes."""
    names = {f"v{at}": size for at, size in enumerate(sizes)}
    sym, plain = variable("v0", sizes[0]), _value_of("v0")
    for kind, which, number in drawn:
        name = f"v{which % len(sizes)}"
        if sym.high - sym.low < 1 << 24:  # What an index may be: larger tensors do not fit one binding.
            sym, plain = apply(kind, sym, plain, variable(name, names[name]), _value_of(name), number)
    return sym, plain, names


def _value_of(name: str) -> Plain:
    return lambda values: values[name]


def apply(kind: str, sym: Sym, plain: Plain, other: Sym, value: Plain, number: int) -> tuple[Sym, Plain]:
    match kind:
        case "+":
            return sym + other * number, lambda v: plain(v) + value(v) * number
        case "-":
            return sym - other, lambda v: plain(v) - value(v)
        case "*":
            return sym * (number % 7), lambda v: plain(v) * (number % 7)
        case "/":
            return sym // number, lambda v: plain(v) // number
        case "%":
            return sym % number, lambda v: plain(v) % number
        case "k":
            return sym + (number - 150), lambda v: plain(v) + number - 150
        case "r":  # counted from the end
            return constant(number * 10) - sym, lambda v: number * 10 - plain(v)
        case _:
            return sym // number * number + sym % number, plain


def draw_values(sizes: Values, seed: int, times: int = 25) -> list[Values]:
    """The corners of the ranges, and places inside."""
    chosen = random.Random(seed)
    corners = [dict.fromkeys(sizes, 0), {name: size - 1 for name, size in sizes.items()}]
    return corners + [{name: chosen.randrange(size) for name, size in sizes.items()} for _ in range(times)]


@given(sizes_of_variables, steps, st.integers(0, 99))
@PROFILE
def test_simplified_expressions_keep_their_value(
    sizes: list[int], drawn: list[tuple[str, int, int]], seed: int
) -> None:
    sym, plain, names = build(sizes, drawn)
    for values in draw_values(names, seed):
        assert by_structure(sym, values) == plain(values), (sym, values)


@given(sizes_of_variables, steps, st.integers(0, 99))
@PROFILE
def test_text_in_unsigned_words_has_the_same_value(
    sizes: list[int], drawn: list[tuple[str, int, int]], seed: int
) -> None:
    """Whatever a part of the text wraps to, the sum is right: a negative one is right modulo 2**32."""
    sym, plain, names = build(sizes, drawn)
    for values in draw_values(names, seed):
        assert in_words(text(sym, "u"), values) == plain(values) % WORD, (sym, values)


@given(sizes_of_variables, steps, st.integers(0, 99))
@PROFILE
def test_bounds_hold(sizes: list[int], drawn: list[tuple[str, int, int]], seed: int) -> None:
    sym, plain, names = build(sizes, drawn)
    for values in draw_values(names, seed):
        assert sym.low <= plain(values) <= sym.high, (sym, values)
    for divided in dividends(sym):
        assert 0 <= divided.low <= divided.high < WORD, divided


def dividends(sym: Sym) -> list[Sym]:
    """Everything that the text divides. It may not wrap."""
    found: list[Sym] = []
    stack = [sym]
    while stack:
        for atom, _ in stack.pop().terms:
            if not isinstance(atom, Var):
                found.append(atom.of)
                stack.append(atom.of)
    return found


def test_bounds_of_one_variable_are_tight() -> None:
    x = variable("x", 10)
    assert [(e.low, e.high) for e in (x, x + 5, x * 3, constant(9) - x, x // 4, x % 4)] == [
        (0, 9), (5, 14), (0, 27), (0, 9), (0, 2), (0, 3)
    ]  # fmt: skip


shapes = st.lists(st.integers(1, 6), min_size=1, max_size=5).map(tuple)


@given(shapes)
@PROFILE
def test_a_reshape_there_and_back_cancels(shape: tuple[int, ...]) -> None:
    i = variable("i", prod(shape))
    assert flatten(unflatten(i, shape), shape) == i


@given(shapes)
@PROFILE
def test_coordinates_come_back_from_their_position(shape: tuple[int, ...]) -> None:
    coords = tuple(variable(f"c{axis}", n) for axis, n in enumerate(shape))
    assert unflatten(flatten(coords, shape), shape) == coords


@given(st.permutations([2, 3, 4]), st.permutations([0, 1, 2]))
@PROFILE
def test_permutations_there_and_back_cancel(shape: list[int], order: list[int]) -> None:
    i, back = variable("i", prod(shape)), [order.index(axis) for axis in range(3)]
    turned = tuple(shape[axis] for axis in order)
    at, _ = movement.permute.index(unflatten(i, tuple(shape)), turned, order=tuple(back))
    at, _ = movement.permute.index(at, tuple(shape), order=tuple(order))
    assert flatten(at, tuple(shape)) == i


@pytest.mark.parametrize("shape", [(3, 5), (2, 3, 4), (50_001, 299)])
def test_a_reversed_flat_tensor_needs_no_division(shape: tuple[int, ...]) -> None:
    i, size = variable("i", prod(shape)), prod(shape)
    at, _ = movement.flip.index((i,), (size,), axes=(0,))
    assert text(flatten(unflatten(at[0], shape), shape), "u") == f"{size - 1}u - i"


def test_split_and_merged_axes_leave_no_division() -> None:
    row, column = variable("row", 7), variable("column", 12)
    split = unflatten(row * 12 + column, (7, 3, 4))
    assert split[0] == row
    assert flatten(split, (7, 3, 4)) == row * 12 + column
    assert text(split[1], "u") == "(column / 4u)"
    assert text(split[2], "u") == "(column % 4u)"


def test_a_remainder_that_cannot_wrap_disappears() -> None:
    x = variable("x", 8)
    assert x % 8 == x
    assert (x + 16) % 16 == x
    assert (x * 8) % 8 == symbolic.ZERO
    assert (x + 8) // 16 == symbolic.ZERO


def test_variables_are_found_below_divisions() -> None:
    x, y = variable("x", 100), variable("y", 100)
    assert {v.name for v in symbolic.atoms((x * 7 + y) // 13 % 5)} == {"x", "y"}
