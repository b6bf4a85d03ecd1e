"""Host programs: one table says what instructions give, for Python here and for JavaScript in js_bridge/test."""

import json
import operator
import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pywebgpu.step_capture import host_data
from pywebgpu.step_capture.host_program import (
    BITS,
    MOST,
    OPERATIONS,
    Bound,
    Builder,
    Changed,
    HostProgram,
    HostProgramError,
    is_same,
)

TABLE = json.loads((Path(__file__).parents[1] / "cases" / "host_programs.json").read_text())
SPECIAL = {"inf": float("inf"), "-inf": float("-inf"), "nan": float("nan")}


def number(data: list[Any]) -> Any:
    return SPECIAL.get(data[1], data[1])


def bound(program: HostProgram, cells: list[Any], names: list[str] | None = None) -> Bound:
    getters = [lambda at=at: cells[at] for at in range(len(cells))]  # type: ignore[misc]
    setters = [lambda value, at=at: cells.__setitem__(at, value) for at in range(len(cells))]  # type: ignore[misc]
    return Bound(program, names or [], getters, setters)


def test_operations_give_what_the_table_says() -> None:
    for op, *operands, wanted in TABLE["operations"]:
        program = host_data.from_data([*operands, [op, *range(len(operands))]], 0)
        try:
            found = bound(program, []).run()[-1]
        except (ArithmeticError, ValueError):
            found = "error"
        value = wanted if wanted == "error" else number(wanted)
        assert is_same(found, value) or (found != found and value != value), (op, operands, found)
        if wanted != "error":
            assert type(found) is program.kinds[-1]


def test_every_operation_is_in_the_table() -> None:
    assert {op for op, *_ in TABLE["operations"]} == OPERATIONS.keys()


@pytest.mark.parametrize("case", TABLE["programs"], ids=lambda case: case["name"])
def test_programs_read_guard_and_write(case: dict[str, Any]) -> None:
    cells = list(case["cells"])
    program = host_data.from_data(case["program"], len(cells))
    run = bound(program, cells, case["names"])
    if "error" in case:
        with pytest.raises(Changed, match=re.escape(case["error"])):
            run.run()
        return
    values = run.run()
    run.commit(values)
    for place, wanted in case["values"].items():
        assert is_same(values[int(place)], wanted)
    assert cells == case["after"]


@pytest.mark.parametrize("case", TABLE["damaged"], ids=lambda case: case[0])
def test_what_is_no_program_is_refused(case: list[Any]) -> None:
    with pytest.raises(HostProgramError):
        host_data.from_data(case[1], 1)


@pytest.mark.parametrize("case", TABLE["programs"], ids=lambda case: case["name"])
def test_data_is_what_the_program_was(case: dict[str, Any]) -> None:
    program = host_data.from_data(case["program"], len(case["cells"]))
    data = json.loads(json.dumps(host_data.to_data(program, case["names"]), allow_nan=False))
    assert data == case["program"]
    assert host_data.from_data(data, len(case["cells"])) == program or "nan" in str(data)


def test_sizes_are_bounded() -> None:
    """A file cannot make the host compute for long: there is a budget of instructions, and one of bits."""
    with pytest.raises(HostProgramError, match="at most"):
        host_data.from_data([["int", 1]] * (MOST + 1), 0)
    with pytest.raises(HostProgramError, match="no int"):
        host_data.from_data([["int", 1 << BITS]], 0)
    for data in (
        [["int", 9], ["pow", 0, 0], ["pow", 1, 1], ["pow", 2, 2]],
        [["int", 9], *(["mul", at, at] for at in range(40))],
    ):
        with pytest.raises(OverflowError, match="bits"):
            bound(host_data.from_data(data, 0), []).run()


def test_programs_that_are_too_long_say_so() -> None:
    builder = Builder()
    places = [builder.read(0, float) for _ in range(MOST + 3)]
    assert builder.is_full
    assert (places[MOST - 1], places[MOST]) == (MOST - 1, 0)
    assert len(builder.built(1).instructions) == MOST


def test_equal_computations_are_there_once() -> None:
    builder = Builder()
    rate = builder.read(0, float)
    made = [builder.apply("mul", rate, builder.const(2)) for _ in range(3)]
    assert len(set(made)) == 1
    assert len({builder.const(n) for n in (1, 1.0, True, -0.0, 0.0)}) == 4  # True is 1.
    builder.guard(made[0], 1.0)
    builder.guard(made[0], 1.0)
    assert [one.op for one in builder.instructions].count("guard") == 1


def test_what_is_read_is_of_its_type() -> None:
    builder = Builder()
    builder.read(0, int)
    with pytest.raises(Changed, match="step was of type int and is of type float"):
        bound(builder.built(1), [1.0], ["step"]).run()


def test_writes_wait_where_nothing_else_depends_on_them() -> None:
    builder = Builder()
    builder.write(0, builder.apply("neg", builder.read(0, float)))
    cells = [1.0]
    run = bound(builder.built(1), cells)
    values = run.run()
    assert run.is_deferred
    assert cells == [1.0]
    run.commit(values)
    assert cells == [-1.0]


@pytest.mark.parametrize("last", ["act", "read"])
def test_writes_come_first_where_something_depends_on_them(last: str) -> None:
    builder = Builder()
    builder.write(0, builder.const(2.0))
    seen: list[Any] = []
    cells = [1.0]
    getter: list[Callable[[], Any]] = [lambda: cells[0]]
    builder.act(0) if last == "act" else builder.read(0, float)
    run = Bound(
        builder.built(1, 1), ["rate"], getter, [lambda v: cells.__setitem__(0, v)], [lambda: seen.append(cells[0])]
    )
    values = run.run()
    assert not run.is_deferred
    assert (seen if last == "act" else [values[-1]]) == [2.0]
    run.commit(values)
    assert cells == [2.0]


RULES: dict[str, Callable[..., Any]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "div": operator.truediv,
    "floordiv": operator.floordiv,
    "mod": operator.mod,
    "pow": operator.pow,
    "neg": operator.neg,
    "round": round,
}


@pytest.mark.parametrize("seed", range(20))
def test_random_programs_are_what_python_computes(seed: int) -> None:
    """Programs out of random operations, written as Python at the same time."""
    draw = random.Random(seed)
    for _ in range(50):
        cells: list[Any] = [draw.choice([1, 2, -3, 7]), draw.choice([0.5, -0.0, 1e10, -2.25]), draw.uniform(-3, 3)]
        builder = Builder()
        wanted = list(cells)
        places = [builder.read(at, type(value)) for at, value in enumerate(cells)]
        for _ in range(12):
            op = draw.choice(list(RULES))
            chosen = [draw.randrange(len(places)) for _ in range(OPERATIONS[op].n_operands)]
            operands = [wanted[at] for at in chosen]
            if op == "pow" and all(type(n) is int for n in operands) and not 0 <= operands[1] <= 9:
                continue
            try:
                value = RULES[op](*operands)
            except (ArithmeticError, ValueError):
                continue
            if type(value) is float or (type(value) is int and value.bit_length() < BITS):
                places.append(builder.apply(op, *[places[at] for at in chosen]))
                wanted.append(value)
        program = host_data.from_data(json.loads(json.dumps(host_data.to_data(builder.built(3), "abc"))), 3)
        values = bound(program, cells).run()
        for place, value in zip(places, wanted, strict=True):
            assert is_same(values[place], value)
