"""Kernels as data: what is printed, what is found on the way, what is refused as it is made."""

import operator
import random
import re
from collections.abc import Callable
from importlib import import_module
from math import inf, nan

import pytest

import pywebgpu as torch
from pywebgpu.errors import CompileError
from pywebgpu.kernels import hoisting, ir, prelude, wgsl
from pywebgpu.kernels.builder import Builder
from pywebgpu.kernels.ir import BOOL, F32, I32, U32, Array, Const, Expr, Index, Type, Var
from pywebgpu.kernels.kernel import Kernel, Limits
from pywebgpu.support.symbolic import variable
from tests.unit.compiled import for_limits, leaf

A, B, C = (Var(U32, name) for name in "abc")
X, Y = Var(F32, "x"), Var(F32, "y")
P, Q = Var(BOOL, "p"), Var(BOOL, "q")
V = Var(Type("f32", 4), "v")
DATA = Array("storage", "b0", F32)
OUT = Array("storage", "b1", F32)


def lines(*body: ir.Statement) -> list[str]:
    """What a kernel's body is printed as."""
    text = printed(*body).wgsl
    return [line[2:] for line in text.splitlines()[text.splitlines().index(MAIN) + 1 : -1]]


MAIN = "fn main(@builtin(workgroup_id) w: vec3u, @builtin(local_invocation_index) lane: u32) {"


def printed(*body: ir.Statement) -> Kernel:
    numbers = Array("uniform", "numbers", Type("u32", 4), 1)
    return wgsl.kernel(ir.Function("subject", 64, (1, 1, 1), (DATA, OUT), (), numbers, list(body)))


def text(e: Expr) -> str:
    (line,) = lines(ir.Declare("let", Var(e.type, "it"), e))
    return line.removeprefix("let it = ").removesuffix(";")


EXPRESSIONS: dict[str, Expr] = {
    "a + b * 2u": A + B * 2,
    "(a + b) * 2u": (A + B) * 2,
    "a - (b - c)": A - (B - C),
    "a - b - c": A - B - C,
    "a / b * c": A // B * C,
    "a / (b * c)": A // (B * C),
    "7u - a": 7 - A,
    "(a & 7u) == 7u": (A & 7).eq(7),
    "p && a < b": P & (A < B),
    "p || (q && a < b)": P | (Q & (A < B)),
    "!p": ~P,
    "v.y * x": V[1] * X,
    "v[a % 4u]": V[A % 4],
    "b0[a + 1u]": DATA[A + 1],
    "b0[i * 4u + 1u]": DATA[Index(variable("i", 9) * 4 + 1)],
    "(i * 4u + 1u) % 3u": Index(variable("i", 9) * 4 + 1) % 3,
    "min(a, 3u)": ir.smaller(A, 3),
    "select(y, x, p)": ir.select(Y, X, P),
    "vec4<f32>()": ir.construct(V.type),
    "u32(x)": ir.construct(U32, X),
}


@pytest.mark.parametrize("wanted", EXPRESSIONS)
def test_expression_is_printed_with_the_parentheses_it_needs(wanted: str) -> None:
    assert text(EXPRESSIONS[wanted]) == wanted


SIGNS: list[tuple[Callable[[Expr, Expr], Expr], Callable[[int, int], int]]] = [
    (operator.add, operator.add),
    (operator.sub, operator.sub),
    (operator.mul, operator.mul),
    (operator.floordiv, lambda a, b: a // b if b else 0),
    (operator.and_, operator.and_),
]


def tree(draw: random.Random, depth: int) -> tuple[Expr, int]:
    """An expression, and the number that it stands for."""
    if depth == 0 or draw.random() < 0.2:
        value = draw.randrange(1, 9)
        return Const(I32, value), value
    (left, a), (right, b) = tree(draw, depth - 1), tree(draw, depth - 1)
    make, compute = draw.choice([sign for sign in SIGNS if b or sign[0] is not operator.floordiv])
    return make(left, right), compute(a, b)


@pytest.mark.parametrize("seed", range(100))
def test_text_means_what_the_tree_does(seed: int) -> None:
    e, value = tree(random.Random(seed), 4)
    assert eval(text(e).replace("/", "//")) == value


NUMBERS = {
    "0.1": (0.10000000149011612, "0.10000000149011612"),
    "minus": (-2.0, "(-2.0)"),
    "minus zero": (-0.0, "-0.0"),
    "denormal": (1e-45, "bitcast<f32>(1u)"),
    "too large": (1e300, "p_inf()"),
    "minus infinity": (-inf, "(-p_inf())"),
    "nan": (nan, "p_nan()"),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_float_constant_is_exact(name: str) -> None:
    value, wanted = NUMBERS[name]
    assert text(ir.constant(value, F32)) == wanted


def test_whole_constants_have_the_bits_of_their_type() -> None:
    assert text(ir.constant(-1, U32)) == "4294967295u"
    assert text(ir.constant(-(2**31), I32)) == "(-2147483647 - 1)"
    with pytest.raises(OverflowError):
        ir.constant(2**31, I32)


REFUSED: dict[str, Callable[[], object]] = {
    "a sum of two kinds": lambda: X + A,
    "a sum of vectors of two widths": lambda: V + Var(Type("f32", 2), "w"),
    "a comparison of two kinds": lambda: X < A,
    "an index that is a float": lambda: DATA[X],
    "a part of a number": lambda: X[0],
    "a choice by a number": lambda: ir.select(X, Y, A),
    "a choice of two kinds": lambda: ir.select(A, X, P),
    "a vector of too few numbers": lambda: ir.construct(V.type, X, Y),
    "a store of another kind": lambda: builder().assign(DATA[A], A),
    "a condition that is a number": lambda: builder().if_(A),
    "a loop while a number": lambda: builder().while_(A),
    "a jump by a number": lambda: builder().jump("return", A),
}


@pytest.mark.parametrize("name", REFUSED)
def test_types_are_checked_where_an_expression_is_made(name: str) -> None:
    with pytest.raises(CompileError):
        REFUSED[name]()


def builder() -> Builder:
    return Builder((), {}, {}, Limits())


RARE = [text for module in prelude.RARE for text in import_module(f"pywebgpu.kernels.{module}").TEXTS]
NAMES = {*prelude.HELPERS, *(re.findall(r"fn (p_\w+)", text)[0] for text in RARE)}


@pytest.mark.parametrize("name", sorted(NAMES))
def test_helper_knows_all_that_it_calls(name: str) -> None:
    """What is declared for one helper is complete, in order, and no more than is called."""
    found, faults = prelude.declarations(frozenset({name}))
    named = re.findall(r"\bp_\w+", found)
    declared = re.findall(r"(?:fn|var<private>) (p_\w+)", found)
    assert set(declared) == set(named)
    assert declared[-1] == name
    assert faults == ("fault[" in found)


def test_helpers_are_found_in_the_tree() -> None:
    found = printed(ir.Assign(OUT[A], ir.call("p_exp", F32, ir.select(X, Y, ~ir.isnan_(X)))))
    assert re.findall(r"fn (\w+)", found.wgsl) == ["p_isnan", "p_exp", "main"]
    assert not found.faults


def test_names_in_the_text_of_others_are_no_helpers() -> None:
    """A variable may be called as a helper is."""
    found = printed(ir.Declare("let", Var(F32, "p_exp"), X))
    assert "fn p_exp" not in found.wgsl


def test_what_is_bound_is_what_the_tree_uses() -> None:
    number = Array("uniform", "numbers", Type("u32", 4), 1)[0][2]
    plain = printed(ir.Assign(OUT[A], DATA[A]))
    assert (plain.writes, plain.numbers, plain.faults) == ((False, True), False, False)
    used = printed(ir.Assign(DATA[A], X), ir.Declare("let", B, number))
    assert (used.writes, used.numbers, used.faults) == ((True, False), True, False)
    checked = ir.construct(U32, ir.call("p_index", I32, Var(I32, "i"), Const(I32, 4)))
    failing = printed(ir.Assign(OUT[checked], X))
    assert (failing.writes, failing.numbers, failing.faults) == ((False, True), False, True)
    assert "@binding(2) var<storage, read_write> fault: array<atomic<u32>>;" in failing.wgsl


def test_statements_are_printed_in_blocks() -> None:
    build = builder()
    build.jump("return", A >= 9)
    with build.loop("k", 0, A, 2) as k:
        found = build.var(F32, "found")
        with build.if_(k < 1, P):
            build.assign(found, X)
        with build.else_():
            build.assign(found, 0.0)
        build.barrier()
    with build.loop("step", 8, 0, 1, ">>="):
        build.assign(A, 1, "+=")
    with build.while_(P), build.scope():
        build.jump("break")
    assert lines(*build._body) == [
        "if (a >= 9u) { return; }",
        "for (var k = 0u; k < a; k += 2u) {",
        "  var found: f32;",
        "  if (k < 1u && p) {",
        "    found = x;",
        "  }",
        "  else {",
        "    found = 0.0;",
        "  }",
        "  workgroupBarrier();",
        "}",
        "for (var step = 8u; step > 0u; step >>= 1u) {",
        "  a++;",
        "}",
        "while (p) {",
        "  {",
        "    break;",
        "  }",
        "}",
    ]


def test_a_chain_of_branches_is_as_long_as_it_needs_to_be() -> None:
    """Nothing is nested for it: Python's stack, which is short in a browser, does not end it."""
    at = Index(variable("i", 4000) // 3)
    chain = ir.If([(at < end, [ir.Jump("return")]) for end in range(2000)])
    assert lines(*hoisting.hoist([chain])).count("  return;") == 2000


def test_constants_are_known_as_such() -> None:
    """A translator computes them, and refuses what overflows."""
    assert ir.is_constant(Const(F32, 1))
    assert ir.is_constant(ir.construct(I32, Index(variable("i", 1))))
    assert not any(map(ir.is_constant, (X, ir.construct(I32, A), ir.constant(inf, F32), DATA[0])))


def test_parts_of_indices_stand_outside_of_loops() -> None:
    build = builder()
    row = build.let(A, "row")
    with build.loop("column", 0, 9) as column:
        build.let(DATA[Index(row.within(5) * 9 + column.within(9))], "value")
    assert lines(*hoisting.hoist(build._body)) == [
        "let row = a;",
        "let p1 = row * 9u;",
        "for (var column = 0u; column < 9u; column++) {",
        "  let value = b0[p1 + column];",
        "}",
    ]


def test_a_part_of_an_index_is_computed_once_and_without_division() -> None:
    build = builder()
    i = build.let(A, "i")
    place = i.within(700) // 7
    for offset in range(2):
        build.let(DATA[Index(place + offset)], f"value{offset}")
    assert lines(*hoisting.hoist(build._body)) == [
        "let i = a;",
        "let p1 = u32(i32((f32(i32(i)) + 0.5) * 0.14285714285714285));",
        "let value0 = b0[p1];",
        "let value1 = b0[p1 + 1u];",
    ]


def test_sums_beside_a_product_may_be_narrower_than_its_results() -> None:
    """One result of a linear layer, so the bias's sum is a number where results are vectors: they share no memory."""
    limits = Limits(emulated=True)
    weight, bias = leaf(1, 8, grad=True), leaf(1, grad=True)
    torch.nn.functional.linear(leaf(4096, 8), weight, bias).sin().sum().backward()
    program = for_limits(limits, weight.grad, bias.grad)
    (found,) = [kernel for kernel in program.kernels if kernel.name == "matmul_small_sum"]
    assert re.findall(r"var<workgroup> (\w+: \S+),", found.wgsl) == ["tile_n: array<vec4<f32>", "shared_1: array<f32"]


def test_no_variable_is_called_as_a_type() -> None:
    build = Builder((), {}, {}, Limits())
    names = [build.fresh("i") for _ in range(70)]
    assert len({*names}) == 70
    assert not {"i16", "i32", "i64"} & {*names}
