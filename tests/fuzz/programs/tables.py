"""All tables of programs."""

from tests.fuzz.programs import effects, modules, numbers, sources, state
from tests.fuzz.programs.program import Program

PROGRAMS: tuple[Program, ...] = (
    *sources.PROGRAMS,
    *numbers.PROGRAMS,
    *effects.PROGRAMS,
    *modules.PROGRAMS,
    *state.PROGRAMS,
)
