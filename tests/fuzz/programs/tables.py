"""All tables of programs."""

from tests.fuzz.programs import effects, language, modules, numbers, sources, state, training
from tests.fuzz.programs.program import Program

PROGRAMS: tuple[Program, ...] = (
    *sources.PROGRAMS,
    *numbers.PROGRAMS,
    *effects.PROGRAMS,
    *modules.PROGRAMS,
    *state.PROGRAMS,
    *training.PROGRAMS,
    *language.PROGRAMS,
)
