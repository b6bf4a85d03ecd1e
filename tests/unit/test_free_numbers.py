"""Free numbers: to Python they are floats and ints, and a replay never goes on with an old value.

Each expression is evaluated with a plain number, with a free one while a step is captured, and by replays with other
values: these say that something changed, raise, or give what Python gives.
"""

import functools
import math
import operator
import random
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from pywebgpu.ir.graph import thread_state
from pywebgpu.ir.observer import change_count, changed, unobserved
from pywebgpu.step_capture import free_number
from pywebgpu.step_capture.capture import Capture
from pywebgpu.step_capture.free_number import FREE, NotFreeError
from pywebgpu.step_capture.host_program import Changed, is_same
from tests.cases import host_numbers as cases
from tests.cases.host_numbers import FLOATS, INTS, Expression


def named(tables: list[dict[str, Expression]], values: tuple[Any, ...]) -> list[Any]:
    return [
        pytest.param(function, values, id=f"{name} of {type(values[0]).__name__}")
        for table in tables
        for name, function in table.items()
    ]


ALWAYS_FREE = [
    *named([cases.FREE_OF_BOTH, cases.FREE_OF_FLOATS], FLOATS),
    *named([cases.FREE_OF_BOTH, cases.FREE_OF_INTS], INTS),
]
ALL = [
    *ALWAYS_FREE,
    *named([cases.GUARDED, cases.GUARDED_OF_FLOATS], FLOATS),
    *named([cases.GUARDED, cases.GUARDED_OF_INTS], INTS),
]


def outcome(function: Expression, value: Any) -> Any:
    """What an expression gives, or the type of what it raises."""
    with np.errstate(all="ignore"):
        try:
            return function(value)
        except Exception as error:
            return type(error)


def plain(value: Any, values: list[Any] | None = None) -> Any:
    """A result in plain numbers: of free ones those that a replay computed, or the present ones."""
    if type(value) in FREE:
        return values[value._index] if values is not None else value._value
    if isinstance(value, list | tuple):
        return [plain(item, values) for item in value]
    return value


def equal(one: Any, other: Any) -> bool:
    """Equal values of equal types, down to the sign of zero."""
    if isinstance(one, list | tuple):
        return isinstance(other, list | tuple) and len(one) == len(other) and all(map(equal, one, other))
    if isinstance(one, np.ndarray):
        return type(other) is np.ndarray and one.dtype == other.dtype and one.tobytes() == other.tobytes()
    if isinstance(one, float) and type(one) is not float:
        return type(one) is type(other) and repr(one) == repr(other)
    if isinstance(one, complex):
        return repr(one) == repr(other)
    return is_same(one, other)


class Captured:
    """An expression of a number in a cell, captured as a step does it."""

    def __init__(self, function: Expression, value: Any) -> None:
        self.value = value
        self.capture = Capture()
        with self.capture.active():
            number = self.capture.read("k", lambda: self.value, self)
            self.number = number
            self.result = outcome(function, number)
        self._bound = self.capture.bound()

    def replayed(self, value: Any) -> Any:
        """Raises Changed, and what an operation raises."""
        self.value = value
        return plain(self.result, self._bound.run())

    def guards(self) -> int:
        return sum(one.op == "guard" for one in self.capture.program().instructions)


@pytest.mark.parametrize(("function", "values"), ALL)
@pytest.mark.filterwarnings("ignore:.*:RuntimeWarning", "ignore:.*:DeprecationWarning")
def test_free_numbers_are_what_python_computes(function: Expression, values: tuple[Any, ...]) -> None:
    for value in values:
        captured = Captured(function, value)
        assert equal(plain(captured.result), outcome(function, value)), value
        for other in values:
            try:
                found = captured.replayed(other)
            except (Changed, ArithmeticError, ValueError):
                assert not is_same(other, value) or isinstance(captured.result, type), "a replay of the same number"
                continue
            assert equal(found, outcome(function, other)), (value, other)


@pytest.mark.parametrize(("function", "values"), ALWAYS_FREE)
def test_what_stays_free_has_no_guard(function: Expression, values: tuple[Any, ...]) -> None:
    captured = Captured(function, values[0])
    assert captured.guards() == 0
    for other in values[:4]:
        assert equal(captured.replayed(other), outcome(function, other))


@pytest.mark.parametrize(("function", "values"), ALL)
@pytest.mark.filterwarnings("ignore:.*:RuntimeWarning", "ignore:.*:DeprecationWarning")
def test_numbers_of_a_finished_step_are_plain(function: Expression, values: tuple[Any, ...]) -> None:
    for value in values[:3]:
        captured = Captured(lambda k: None, value)
        found = outcome(function, captured.number)
        assert equal(plain(found), outcome(function, value))
        assert captured.guards() == 0


@pytest.mark.parametrize("name", cases.LOUD)
def test_what_takes_exact_types_alone_raises(name: str) -> None:
    function, value = cases.LOUD[name]
    function(value)
    assert Captured(function, value).result in (TypeError, ValueError)


def test_the_exact_type_shows_what_a_free_number_is() -> None:
    """No object can pass for another there; who captures refuses free numbers to code that names `type`."""
    assert Captured(lambda k: type(k) is float, 0.5).result is False


class Added:
    """As a free float on a Python whose `sum` adds with a correction."""

    def __add__(self, other: Any) -> Any:
        free_number._require_operator("sum")
        return "added"

    __radd__ = __add__


def test_sums_with_a_correction_are_refused() -> None:
    one = Added()
    assert (one + 1, 1 + one) == ("added", "added")
    total = 1
    total += one
    assert total == "added"
    for bad in (lambda: sum([one]), lambda: sum([0.1, one]), lambda: sum(x for x in [0.1, 0.2, one])):
        with pytest.raises(NotFreeError, match="sum"):
            bad()


# Captures


def test_numbers_are_read_once_and_writes_are_seen() -> None:
    home = {"rate": 0.5, "step": 3}
    capture = Capture()

    def rate() -> Any:
        return capture.read("rate", lambda: home["rate"], home)

    with capture.active():
        first = rate()
        assert rate() is first
        capture.write("rate", first * 2, lambda value: home.__setitem__("rate", value), home)
        second = rate()
        capture.write("step", 7, lambda value: home.__setitem__("step", value), home)
        result = second + capture.read("step", lambda: home["step"], home)
    assert home == {"rate": 1.0, "step": 7}
    assert [one.op for one in capture.program().instructions].count("read") == 1
    bound = capture.bound()
    home |= {"rate": 10.0, "step": 0}
    values = bound.run()
    bound.commit(values)
    assert values[result._index] == 27.0
    assert home == {"rate": 20.0, "step": 7}


def test_a_number_that_was_changed_behind_the_capture_is_read_again() -> None:
    home = {"rate": 0.5}
    capture = Capture()
    with capture.active():
        first = capture.read("rate", lambda: home["rate"], home)
        home["rate"] = 0.25
        second = capture.read("rate", lambda: home["rate"], home)
        assert (plain(first), plain(second)) == (0.5, 0.25)
    assert [one.op for one in capture.program().instructions].count("read") == 2


def test_an_action_may_change_any_number() -> None:
    home = {"rate": 0.5}
    capture = Capture()
    with capture.active():
        read = functools.partial(capture.read, "rate", lambda: home["rate"], home)
        first = read()
        capture.act("schedule", lambda: home.__setitem__("rate", home["rate"] / 2))
        result = first * 100 + read()
    bound = capture.bound()
    home["rate"] = 8.0
    assert bound.run()[result._index] == 804.0
    assert home["rate"] == 4.0


def test_numbers_that_are_plain_are_noted() -> None:
    """A capture that is an ordinary call: plain numbers, no instruction, and what was read and written."""
    home = {"rate": 0.5}
    capture = Capture(free=False)
    seen = []
    with capture.active():
        rate = capture.read("rate", lambda: home["rate"], home)
        assert type(rate) is float
        capture.write("rate", rate * 2, lambda value: home.__setitem__("rate", value), home)
        capture.read("rate", lambda: home["rate"], home)
        capture.act("schedule", lambda: seen.append(home["rate"]))
    ((at, _),) = capture.reads
    assert (capture.cells[at].owner, capture.cells[at].name) == (home, "rate")
    assert (capture.reads, capture.writes, seen) == ([(at, 0.5)], [(at, 1.0)], [1.0])
    assert capture.program().instructions == ()


def test_guarded_numbers_are_plain_where_the_program_is_handed_them() -> None:
    value = 0.5
    capture = Capture(guarded=True)
    with capture.active():
        assert type(capture.read("rate", lambda: value)) in FREE
        assert type(capture.read("rate", lambda: value, handed=True)) is float
    bound = capture.bound()
    bound.run()
    value = 0.25
    with pytest.raises(Changed, match=r"rate was 0\.5 and is 0\.25"):
        bound.run()


@pytest.mark.parametrize("value", [np.float64(0.5), True, cases.MyFloat(2.0)])
def test_numbers_of_other_types_are_guarded(value: Any) -> None:
    now = value
    capture = Capture()
    with capture.active():
        assert capture.read("rate", lambda: now) is value
    bound = capture.bound()
    bound.run()
    now = type(value)(0)
    with pytest.raises(Changed, match="rate was"):
        bound.run()


def test_what_a_paused_capture_does_with_a_number_is_guarded() -> None:
    value = 0.5
    capture = Capture()
    with capture.active():
        k = capture.read("rate", lambda: value)
        with unobserved():
            assert type(k * 2) is float
        free = k * 3
    assert type(free) in FREE
    bound = capture.bound()
    value = 0.25
    with pytest.raises(Changed):
        bound.run()


def test_a_number_of_an_earlier_step_is_a_constant() -> None:
    earlier = Captured(lambda k: k * 2, 0.5)
    later = Captured(lambda k: k + earlier.result, 1.0)
    assert later.replayed(5.0) == 6.0
    assert later.guards() == earlier.guards() == 0


def test_captures_are_of_one_thread() -> None:
    capture = Capture()
    seen: list[Any] = []
    before = change_count()

    def elsewhere(k: Any) -> None:
        seen.append(thread_state.observer)
        seen.append(type(k * 2))
        changed()

    with capture.active():
        k = capture.read("rate", lambda: 0.5)
        thread = threading.Thread(target=elsewhere, args=(k,))
        thread.start()
        thread.join()
        assert thread_state.observer is capture
    assert thread_state.observer is None
    assert seen == [None, float]
    assert change_count() != before
    assert [one.op for one in capture.program().instructions] == ["read", "guard"]


def test_changes_are_never_missed_between_threads() -> None:
    """Each change gives a number that was never there before, whatever order threads come in."""
    numbers_seen: list[int] = []

    def change() -> None:
        for _ in range(300):
            changed()
            numbers_seen.append(change_count())

    threads = [threading.Thread(target=change) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    end = change_count()
    changed()
    assert change_count() not in (end, *numbers_seen)


def test_too_many_numbers_are_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pywebgpu.step_capture.host_program.MOST", 50)
    capture = Capture()
    with capture.active():
        k = capture.read("rate", lambda: 1.0)
        total = k
        for n in range(100):
            total = total + n
        assert plain(total) == 4951.0
    assert "numbers" in capture.reason


# Random expressions

BINARY: list[Callable[[Any, Any], Any]] = [
    operator.add,
    operator.sub,
    operator.mul,
    operator.truediv,
    operator.floordiv,
    operator.mod,
    lambda a, b: a ** (b % 4),
    lambda a, b: divmod(a, b)[1],
    lambda a, b: a if a < b else b,
    max,
    lambda a, b: a if a else b,
    lambda a, b: a + math.floor(b),
]
UNARY: list[Callable[[Any], Any]] = [
    operator.neg,
    abs,
    round,
    lambda a: a * 0.5,
    lambda a: int(a) if abs(a) < 1e9 else a,
    lambda a: float(a),
    lambda a: math.sqrt(abs(a)),
    lambda a: a + len(f"{a:.1f}"),
    lambda a: math.trunc(a) + 1,
    lambda a: 1 if a == 2 else a,
]


def expression(draw: random.Random, depth: int) -> Callable[[list[Any]], Any]:
    """A random function of a list of numbers."""
    if depth == 0 or draw.random() < 0.15:
        if draw.random() < 0.3:
            constant = draw.choice([0, 1, 2, -3, 0.5, -0.25, 10, True])
            return lambda given: constant
        at = draw.randrange(3)
        return lambda given: given[at]
    if draw.random() < 0.3:
        unary, inner = draw.choice(UNARY), expression(draw, depth - 1)
        return lambda given: unary(inner(given))
    binary = draw.choice(BINARY)
    left, right = expression(draw, depth - 1), expression(draw, depth - 1)
    return lambda given: binary(left(given), right(given))


def given(draw: random.Random) -> list[Any]:
    return [
        draw.choice([0.5, -1.5, 2.0, 0.0, draw.uniform(-9, 9)]),
        draw.choice([0, 1, 2, -3, 7]),
        draw.choice([1e-3, 3.0]),
    ]


@pytest.mark.parametrize("seed", range(30))
def test_random_expressions_are_what_python_computes(seed: int) -> None:
    draw = random.Random(seed)
    n_replays = 0
    for _ in range(40):
        function = expression(draw, 5)
        starts = given(draw)
        cells = list(starts)
        capture = Capture()
        with capture.active():
            read = [capture.read(f"k{at}", functools.partial(cells.__getitem__, at)) for at in range(3)]
            result = outcome(function, read)
        assert equal(plain(result), outcome(function, starts))
        bound = capture.bound()
        for _ in range(6):
            cells[:] = given(draw)
            try:
                values = bound.run()
            except (Changed, ArithmeticError, ValueError):
                continue
            n_replays += 1
            assert equal(plain(result, values), outcome(function, cells))
    assert n_replays > 20
