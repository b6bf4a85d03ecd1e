"""Whether a program's code would catch an error that is raised now: what is checked late is raised too late for it."""

from __future__ import annotations

import dis
import functools
import os
from itertools import pairwise
from types import CodeType, FrameType

from pywebgpu.errors import PACKAGE
from pywebgpu.step_capture import watch

STEP_CAPTURE = os.path.join(PACKAGE, "step_capture", "")


def may_catch(frame: FrameType | None) -> bool:
    """Whether a program's code may go on after an error that is raised in a frame: it is in a `try` of its own."""
    while frame is not None and not frame.f_code.co_filename.startswith(STEP_CAPTURE):
        own = watch.origin(frame.f_code, frame.f_globals)[0] is watch.USER
        if own and any(start <= frame.f_lasti < end for start, end in _tries_of(frame.f_code)):
            return True
        frame = frame.f_back
    return False


@functools.lru_cache(1024)
def _tries_of(code: CodeType) -> tuple[tuple[int, int], ...]:
    """Where code is in a `try`, as offsets of instructions; a `with` statement is none."""
    lines = dis.Bytecode(code)
    steps = [*lines]
    handlers = {last.offset: step.opname for last, step in pairwise(steps) if last.opname == "PUSH_EXC_INFO"}
    ranges = [(step.start, step.end, handlers.get(step.target)) for step in lines.exception_entries]  # type: ignore[attr-defined]
    return tuple([(start, end) for start, end, first in ranges if first not in (None, "WITH_EXCEPT_START")])
