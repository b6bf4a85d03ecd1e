"""An interrupt in the middle of a replay: either nothing happened, or all that the call was to do.

It comes where Python looks for signals, as a function of the package starts, and the call is made again where nothing
had happened. All calls after it are what they are without an interrupt.
"""

from __future__ import annotations

import contextlib
import random
import signal
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

import pywebgpu
from pywebgpu.step_capture import builder
from pywebgpu.step_capture.watch import PACKAGE
from tests.fuzz.programs import world
from tests.fuzz.programs.observed import Eye, Seen, difference
from tests.fuzz.programs.program import Program

MOST = 400  # functions of the package that start before the interrupt


@dataclass(slots=True)
class Traced:
    """starts, ends: what could be seen before and after each call. replays: the calls that were replayed."""

    starts: dict[int, Seen] = field(default_factory=dict)
    ends: dict[int, Seen] = field(default_factory=dict)
    replays: list[int] = field(default_factory=list)
    found: str | None = None
    was_interrupted: bool = False


def found(program: Program, scope: str, device: str, draw: random.Random) -> str | None:
    """What an interrupt of one of a program's replays does wrong, or None."""
    eager = _run(program, scope, device, compiled=False)
    replays = _run(program, scope, device, compiled=True).replays
    if not replays:
        return None
    return _run(
        program, scope, device, compiled=True, call=draw.choice(replays), after=draw.randrange(1, MOST), eager=eager
    ).found


def _run(
    program: Program,
    scope: str,
    device: str,
    *,
    compiled: bool,
    call: int = 0,
    after: int = 0,
    eager: Traced | None = None,
) -> Traced:
    """call: the one that is interrupted, once `after` functions of the package have started in it."""
    traced, steps = Traced(), []

    def wrap(function: Any) -> Any:
        if compiled:
            steps.append(pywebgpu.compile(function))
        return steps[-1] if compiled else function

    with world.surroundings(pywebgpu, device, program):
        names = world.module(program, scope, {"torch": pywebgpu, "compile": wrap, "NUDGE": 0.0})
        eye = Eye(pywebgpu, lambda tensor: tensor.detach().tolist(), steps)
        for n in range(1, program.calls + 1):
            if n in program.changes:
                world.change(names, n)
            if eager is None and not compiled:
                traced.starts[n] = _look(eye, names)
            before = sum(step.counters["replays"] for step in steps)
            if n == call and eager is not None:
                traced.found = _interrupted(names, eye, n, after, eager)
                if traced.found is not None:
                    return traced
            else:
                world.called(names, n)
            if sum(step.counters["replays"] for step in steps) > before:
                traced.replays.append(n)
            if eager is None and not compiled:
                traced.ends[n] = _look(eye, names)
        if eager is not None:
            wrong = difference(eager.ends[program.calls], _look(eye, names), world.EXACT, same_library=True)
            traced.found = None if wrong is None else f"after all calls, call {call} was interrupted{wrong}"
    return traced


def _interrupted(names: dict[str, Any], eye: Eye, n: int, after: int, eager: Traced) -> str | None:
    recorded = [0]
    try:
        with _interrupt(after, recorded):
            out = names["call"](n)
    except KeyboardInterrupt:
        if recorded[0]:  # Where memory addresses decide, it is no replay this time.
            return None
        now = _look(eye, names)
        if difference(eager.starts[n], now, world.EXACT, same_library=True) is None:
            world.called(names, n)
        else:
            wrong = difference(eager.ends[n], now, world.EXACT, same_library=True)
            if wrong is not None:
                return f"call {n}, interrupted after {after} functions, did a part{wrong}"
    except Exception:  # The program's own, or an object that is used although it is not there.
        return None
    else:
        names["keep"](out)
    return None


def _look(eye: Eye, names: dict[str, Any]) -> Seen:
    with pywebgpu.no_grad():
        seen = eye.look(names["names"]())
    seen.parts["draws"] = Seen("list", pywebgpu.get_rng_state().tolist())
    return seen


@contextlib.contextmanager
def _interrupt(after: int, recorded: list[int]) -> Iterator[None]:
    """recorded: how many calls were recorded before the interrupt came."""
    left = after

    def look(frame: FrameType, event: str, arg: object) -> None:
        nonlocal left
        if event == "call" and frame.f_code.co_filename.startswith(PACKAGE):
            left -= 1
            recorded[0] += frame.f_code is builder.Builder.record.__code__
            if left == 0:
                signal.raise_signal(signal.SIGINT)  # It may be held back, as one that a person sends.

    sys.settrace(look)  # type: ignore[arg-type]  # It does not look at lines.
    try:
        yield
    finally:
        sys.settrace(None)
