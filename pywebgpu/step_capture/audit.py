"""Audits: a call that a step would replay is recorded as an ordinary one, and both are compared.

Guards know what they look at; an audit finds what nobody thought of. Calls number 2, 3, 5, 9, 17, ... of a step are
audited: what Python records is what is computed, and Python runs once.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pywebgpu.devices.base import Buffer
from pywebgpu.step_capture import templates
from pywebgpu.step_capture.builder import Recording
from pywebgpu.step_capture.free_number import plain
from pywebgpu.step_capture.host_program import Bound, Changed, is_same
from pywebgpu.step_capture.step import Step


def is_due(n_calls: int, setting: str) -> bool:
    """Whether the call that makes it `n_calls` is audited. setting: "" for the schedule, "1" for all, "0" for none."""
    if setting:
        return setting != "0"
    return n_calls >= 2 and (n_calls - 1) & (n_calls - 2) == 0


def difference(step: Step, call: Recording) -> str | None:
    """What the step would have done otherwise than the ordinary call did, in words."""
    return next((found for found in _differences(step, call) if found is not None), None)


def _differences(step: Step, call: Recording) -> Iterator[str | None]:
    if call.run is None:
        yield "it computes nothing"
        return
    if call.run.structure != step.run.structure:
        yield "the graph that it records is another one"
        return
    for at, (was, now) in enumerate(zip(step.sources, call.sources, strict=True)):
        yield _source(step, call, at, was, now)
    if [set(map(_identity, kinds)) for kinds in step.takers] != [set(map(_identity, kinds)) for kinds in call.takers]:
        yield "what it computes goes to other tensors"
    yield _numbers(step, call)
    yield from _returned(step, call)


def _identity(kind: Any) -> Any:
    return (type(kind), int(kind)) if isinstance(kind, int) else id(kind)


def _source(step: Step, call: Recording, at: int, was: Any, now: Any) -> str | None:
    if _identity(was) == _identity(now):
        return None
    if isinstance(was, Buffer) and isinstance(now, Buffer):
        old, new = step.capture.uploads.get(id(was)), call.capture.uploads.get(id(now))
        if old is not None and new is not None:
            return None if old[1] == new[1] else "a constant that it makes has other values"
    return "it reads another tensor"


def _numbers(step: Step, call: Recording) -> str | None:
    """The host program, run on the numbers that the ordinary call read, gives what that computed and wrote."""
    cells = step.capture.cells
    reads = iter(call.capture.reads)
    written: list[tuple[int, Any]] = []

    def get(at: int) -> Any:
        number, value = next(reads, (-1, None))
        if number != at:
            raise Changed(f"{cells[at].name} is not read where it was")
        return value

    getters = [lambda at=at: get(at) for at in range(len(cells))]  # type: ignore[misc]
    setters = [lambda value, at=at: written.append((at, value)) for at in range(len(cells))]  # type: ignore[misc]
    names = [cell.name for cell in cells]
    bound = Bound(step.host.program, names, getters, setters, [lambda: None] * len(step.capture.acts))
    try:
        values = bound.run()
        bound.commit(values)
    except (Changed, ArithmeticError, ValueError, TypeError) as error:
        return f"a number of the host is another one: {error}"
    for at, (place, number) in enumerate(zip(step.places, call.numbers, strict=True)):
        if not is_same(_as_computed(values[place]), _as_computed(plain(number))):
            return f"number {at} of the program would be {values[place]!r} and is {plain(number)!r}"
    made = sorted((at, repr(value)) for at, value in call.capture.writes)
    if sorted((at, repr(value)) for at, value in written) != made:
        return "it leaves other numbers on the host"
    return None


def _as_computed(number: Any) -> Any:
    return int(number) if isinstance(number, bool) else number


def _returned(step: Step, call: Recording) -> Iterator[str | None]:
    yield templates.difference(step.result, call.result_template, "what it returns")
    yield templates.difference(step.taps, call.taps_template, "what it shows")
    old = {id(leaf): end for leaf, end in (*step.gradients.ends, *step.other_gradients)}
    new = {id(leaf): end for leaf, end in (*call.new_gradients, *call.other_gradients)}
    if old.keys() != new.keys():
        yield "it leaves gradients of other parameters"
    else:
        yield from (templates.difference(old[at], new[at], "a gradient") for at in old)
