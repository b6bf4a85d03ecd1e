"""A replay gives what running Python again would give: small programs, each in three worlds, with changes between calls."""

import functools
from itertools import product
from typing import Any

import pytest

import pywebgpu
from pywebgpu.errors import CaptureError
from tests.fuzz.programs import tables, world
from tests.fuzz.programs.program import Program

RUNS = [
    pytest.param(program, scope, id=f"{program.name}-{scope}")
    for program in tables.PROGRAMS
    for scope in program.scopes
]


@pytest.mark.parametrize(("program", "scope"), RUNS)
def test_a_compiled_program_does_what_python_does(program: Program, scope: str, device: str) -> None:
    reading = world.LATE if scope == "closure" else world.AT_ONCE
    eager = world.run(program, scope, pywebgpu, device, compiled=False, reading=reading)
    compiled = world.run(program, scope, pywebgpu, device, compiled=True, reading=reading)
    assert world.compared(eager, compiled, world.EXACT, same_library=True) is None, "eager and compiled"
    assert compiled.counted("replays") >= program.replays, compiled.reasons()
