"""Vectors of 2 and 4 elements: taken where an index is provably contiguous and aligned, and nowhere else."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pywebgpu as torch
from pywebgpu.compiler import kernel_table
from pywebgpu.kernels import ir, launch, templates, vectors
from pywebgpu.kernels.ir import F32, Array, Assign, Const, Declare, If, Index, Loop, Scope, Type, Var
from pywebgpu.kernels.kernel import Limits
from pywebgpu.kernels.launch import Launch, Problem
from pywebgpu.kernels.target import Target
from pywebgpu.kernels.templates.pointwise import LARGE
from pywebgpu.nn import functional
from pywebgpu.runtime import program_cache, state
from pywebgpu.support.symbolic import Sym, variable
from tests.unit.compiled import kernel, leaf

POINTWISE = templates.load_all()[0]


@pytest.fixture
def vector(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """vector(4): pointwise kernels are launched with vectors of 4 wherever they can be."""
    choose = launch.choose
    monkeypatch.setattr(state.default, "is_stored", False)

    def use(width: int) -> None:
        def chosen(template: Any, problem: Problem, target: Target) -> Launch:
            found = template.launches(problem, target)
            fitting = (one for one in found if one.vector == width)
            return next(fitting, found[0]) if template is POINTWISE else choose(template, problem, target)

        monkeypatch.setattr(kernel_table.launch, "choose", chosen)
        program_cache.clear()

    return use


def written_slice() -> Any:
    x = leaf(8, 8)
    x[2:4] = leaf(2, 8)
    return x


# By subject: how each binding is read with vectors of 4, in order. A number is the width.
SUBJECTS: dict[str, tuple[Callable[[], Any], list[int]]] = {
    "neighbours": (lambda: leaf(6, 12) + leaf(6, 12), [4, 4, 4]),
    "one a row": (lambda: leaf(6, 12) + leaf(6, 1), [4, 1, 4]),
    "one a column": (lambda: leaf(6, 12) + leaf(12), [4, 4, 4]),
    "rows that no vector divides": (lambda: leaf(4, 7) + leaf(7), [4, 1, 4]),
    "transposed": (lambda: leaf(12, 8).t() + leaf(8, 12), [1, 4, 4]),
    "backwards": (lambda: leaf(6, 12).flip(1) + leaf(6, 12), [4, 4, 4]),
    "padded": (lambda: leaf(6, 12) + functional.pad(leaf(6, 7), (1, 4)), [4, 1, 4]),
    "rows by number": (lambda: functional.embedding(leaf(6, dtype=torch.int64), leaf(9, 8)), [1, 4, 4]),
    "joined": (lambda: torch.cat([leaf(3, 4), leaf(5, 4)]), [1, 1, 4]),
    "a slice whose start may change": (lambda: leaf(8, 16)[:, 4:12] + 1, [1, 4]),
    "written slice": (written_slice, [1, 1, 4]),
    "an array that no vector divides": (lambda: leaf(9, 3)[:8].flatten() + leaf(24), [1, 4, 4]),
}


@pytest.mark.parametrize("name", SUBJECTS)
def test_arrays_are_read_as_vectors_where_they_may_be(name: str, vector: Callable[[int], None]) -> None:
    subject, widths = SUBJECTS[name]
    vector(4)
    found = re.findall(r"var<storage, \w+> b\d+: array<(vec4<)?", kernel(subject()).wgsl)
    assert [4 if one else 1 for one in found] == widths


def test_a_whole_vector_is_one_load_and_one_store(vector: Callable[[int], None]) -> None:
    vector(4)
    text = kernel(leaf(6, 12) * leaf(6, 12)).wgsl
    assert text.count("b0[") == text.count("b1[") == text.count("b2[") == 1


@pytest.mark.parametrize("size", range(1, 18))
@pytest.mark.parametrize("width", [2, 4])
def test_any_size_is_right(size: int, width: int, vector: Callable[[int], None], device: str) -> None:
    if device == "cpu":
        pytest.skip("device cpu has no kernels")

    def results(on: str) -> list[Any]:
        x = torch.arange(3 * size).reshape(3, size).to(torch.float32).to(on)
        y = torch.arange(size).to(torch.float32).to(on)
        z = x[1:].clone()
        z.mul_(2)[:, size // 2 :] += y[size // 2 :]
        return [x * y, x.t() + y.reshape(size, 1), x[:2] + 1, x.flatten()[1:] - 1, x.flip(1) > y, z]

    vector(width)
    for found, wanted in zip(results(device), results("cpu"), strict=True):
        np.testing.assert_array_equal(found.numpy(), wanted.numpy())


def test_sizes_decide_which_vectors_there_are() -> None:
    target = Target(True, Limits())

    def widths(size: int, nodes: int = 1) -> list[int]:
        layout = str(next(width for width in (4, 2, 1) if size % width == 0))
        return list(
            dict.fromkeys([one.vector for one in POINTWISE.launches(Problem((size, nodes), (), layout), target)])
        )

    assert widths(8) == [1, 4, 2]
    assert widths(6) == [1, 2]
    assert widths(7) == [1]
    assert widths(LARGE) == [4, 2, 1]
    assert widths(LARGE + 2) == [2, 1]
    assert widths(LARGE, nodes=64) == [2, 1]
    assert widths(LARGE, nodes=100) == [1]


# The pass

AT = variable("i", 8)
IN = Array("storage", "b0", F32, 0, 32)
INDEX = ir.construct(ir.U32, IN[Index(AT * 4)])


def loads(*places: Sym) -> ir.Block:
    return [Declare("let", Var(F32, f"v{at}"), IN[Index(place)]) for at, place in enumerate(places)]


def test_what_is_missing_of_a_vector_may_be_loaded() -> None:
    body = loads(AT * 4 + 1, AT * 4 + 3)
    found, made = vectors.vectorize(body, [IN], 4)
    assert {old.name: new.type for old, new in made.items()} == {"b0": Type("f32", 4)}
    assert len(found) == 3


def test_a_block_has_vectors_of_its_own() -> None:
    body = [*loads(AT * 4, AT * 4 + 1), Loop(Var(ir.BOOL, "c"), loads(AT * 4 + 2, AT * 4 + 3))]
    found, made = vectors.vectorize(body, [IN], 4)
    assert list(made) == [IN]
    assert [len(found), len(found[-1].body)] == [4, 3]


RETURN = If([(Var(ir.BOOL, "c"), [ir.Jump("return")])])
ONES = [Assign(IN[Index(AT * 4 + at)], Const(F32, 1.0)) for at in range(4)]
BARRED: dict[str, ir.Block] = {
    "an index that is no multiple": loads(AT * 3, AT * 3 + 1),
    "one component of a vector": loads(AT * 4),
    "one component of a vector in each block": [*loads(AT * 4), If([(None, loads(AT * 4 + 1))])],
    "an index in an expression": [
        *loads(AT * 4, AT * 4 + 1),
        Declare("let", Var(F32, "w"), IN[Index(AT * 4 + 1)] + 1.0),
    ],
    "an index in a condition": [*loads(AT * 4, AT * 4 + 1), If([(IN[Index(AT * 4)] > 1.0, [])])],
    "an index of its own element": [*loads(AT * 4, AT * 4 + 1), *loads(AT), Assign(IN[INDEX], Const(F32, 1.0))],
    "what is added to": [*ONES, Assign(IN[Index(AT * 4)], Const(F32, 1.0), "+=")],
    "what is read after it was written": [*ONES, *loads(AT * 4)],
    "what is written twice": [*ONES, *ONES],
    "what is not written whole": ONES[:3],
    "what is not written whole in a block": [*ONES[:2], Scope(ONES[2:])],
    "what is written after a way out": [*ONES[:2], RETURN, *ONES[2:]],
    "what is written of a variable that changes": [*ONES[:2], Assign(Var(F32, "w"), Const(F32, 1.0)), *ONES[2:]],
}


@pytest.mark.parametrize("name", BARRED)
def test_an_array_stays_as_it_is_where_vectors_are_not_proven(name: str) -> None:
    body = BARRED[name]
    assert vectors.vectorize(body, [IN], 4) == (body, {})
