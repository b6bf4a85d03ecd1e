"""Audits: a call that a step would replay is recorded as an ordinary one, and both are compared.

Guards know what they look at; an audit finds what nobody thought of. Calls number 2, 3, 5, 9, 17, ... of a step are
audited, those from a line that did not call it before, and those after a change of what it takes for granted: what
Python records is what is computed, and Python runs once.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterator
from typing import Any

from pywebgpu.devices.base import Buffer
from pywebgpu.step_capture import bindings
from pywebgpu.step_capture.bindings import Replays
from pywebgpu.step_capture.captured_call import CapturedCall
from pywebgpu.step_capture.host_program import Bound, Changed, is_same
from pywebgpu.step_capture.signature import Call
from pywebgpu.step_capture.step import NOTHING, Step

LINES = 64  # from which a step is called, and which it knows


def is_due(n_calls: int, setting: str) -> bool:
    """Whether the call that makes it `n_calls` is audited. setting: "" for the schedule, "1" for all, "0" for none."""
    if setting:
        return setting != "0"
    return n_calls >= 2 and (n_calls - 1) & (n_calls - 2) == 0


def is_new(now: Replays, line: tuple[int, int], setting: str) -> bool:
    """Whether a call is audited because of where it comes from, or of what changed since the last one."""
    if setting:
        return False
    is_due = now.is_changed or line not in now.lines
    now.is_changed = False
    if len(now.lines) == LINES:
        now.lines.clear()
    now.lines.add(line)
    return is_due


def begin(step: Step, call: Call) -> list[Any]:
    """What the cells hold, before the ordinary call: it may not read all of them."""
    step.now.current[0] = call
    try:
        return [None if cell.get is None else cell.get() for cell in step.capture.cells]
    finally:
        step.now.current[0] = NOTHING


def difference(step: Step, call: CapturedCall, begun: list[Any]) -> str | None:
    """What the step would have done otherwise than the ordinary call did, in words: "" where it would not have run."""
    written: list[tuple[Any, Any]] = []
    try:
        values = _evaluated(step, call, begun, written)
    except (Changed, ArithmeticError, ValueError, TypeError):
        return ""  # It would have found that it does not fit.
    return next((text for text in _differences(step, call, values, written) if text is not None), None)


def _evaluated(step: Step, call: CapturedCall, begun: list[Any], written: list[tuple[Any, Any]]) -> list[Any]:
    """The values of the host program, run on the numbers that the ordinary call read, cell by cell."""
    cells = step.capture.cells
    read: dict[Any, list[Any]] = {}
    for number, value in reversed(call.capture.reads):
        read.setdefault(call.capture.cells[number].key, []).append(value)

    def get(number: int) -> object:
        values = read.get(cells[number].key, begun[number : number + 1])
        return values.pop() if len(values) > 1 else values[0]

    getters = [functools.partial(get, number) for number in range(len(cells))]
    setters = [functools.partial(_note, written, cell.key) for cell in cells]
    bound = Bound(
        step.host.program, [cell.name for cell in cells], getters, setters, [_nothing] * len(step.capture.acts)
    )
    values = bound.run()
    bound.commit(values)
    return values


def _note(written: list[tuple[Any, Any]], key: object, value: object) -> None:
    written.append((key, value))


def _nothing() -> None:
    pass


def _differences(
    step: Step, call: CapturedCall, values: list[Any], written: list[tuple[Any, Any]]
) -> Iterator[str | None]:
    yield call.reason or None
    if call.run is None:
        return
    if call.run.structure != step.run.structure:
        yield "the graph that it records is another one"
        return
    for was, now in zip(step.sources, call.sources, strict=True):
        yield _source(step, call, was, now)
    if [set(map(_identity, kinds)) for kinds in step.takers] != [set(map(_identity, kinds)) for kinds in call.takers]:
        yield "what it computes goes to other tensors"
    for position, (index, number) in enumerate(zip(step.number_indices, call.numbers, strict=True)):
        if not is_same(_as_computed(values[index]), _as_computed(number)):
            yield f"number {position} of the program would be {values[index]!r} and is {number!r}"
    cells = call.capture.cells
    if _told(step, call, written) != _told(
        step, call, [(cells[position].key, value) for position, value in call.capture.writes]
    ):
        yield "it leaves other numbers on the host"
    yield bindings.difference(step.result, call.result_template, "what it returns", values)
    yield bindings.difference(step.taps, call.taps_template, "what it shows", values)
    old = {id(leaf): end for leaf, end in (*step.gradients.ends, *step.other_gradients)}
    new = {id(leaf): end for leaf, end in (*call.new_gradients, *call.other_gradients)}
    if old.keys() != new.keys():
        yield "it leaves gradients of other parameters"
    else:
        yield from (bindings.difference(old[position], new[position], "a gradient", values) for position in old)


def _told(step: Step, call: CapturedCall, written: list[tuple[Any, Any]]) -> Counter[str]:
    """What was written, each with where; what only one of the calls knows was made in it, and goes by name."""
    both = {cell.key for cell in step.capture.cells} & {cell.key for cell in call.capture.cells}
    return Counter(repr((key if key in both else key[1], value)) for key, value in written)


def _identity(kind: object) -> object:
    return (type(kind), int(kind)) if isinstance(kind, int) else id(kind)


def _source(step: Step, call: CapturedCall, was: object, now: object) -> str | None:
    if _identity(was) == _identity(now):
        return None
    if isinstance(was, Buffer) and isinstance(now, Buffer):
        old, new = step.capture.uploads.get(id(was)), call.capture.uploads.get(id(now))
        if old is not None and new is not None:
            return None if old[1] == new[1] else "a constant that it makes has other values"
    return "it reads another tensor"


def _as_computed(number: object) -> object:
    return int(number) if isinstance(number, bool) else number
