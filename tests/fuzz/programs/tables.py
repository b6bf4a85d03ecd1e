"""All tables of programs."""

from tests.fuzz.programs import effects, numbers, sources
from tests.fuzz.programs.program import Program

PROGRAMS: tuple[Program, ...] = (*sources.PROGRAMS, *numbers.PROGRAMS, *effects.PROGRAMS)
