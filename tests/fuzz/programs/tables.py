"""All tables of programs, and in which scopes each is run."""

from tests.fuzz.programs import effects, language, modules, numbers, sources, state, training
from tests.fuzz.programs.program import Program

# Where names are the subject, globals and closures are two subjects; elsewhere every other program has either.
NAMES: tuple[Program, ...] = (*sources.PROGRAMS, *effects.PROGRAMS, *language.PROGRAMS)
OTHERS: tuple[Program, ...] = (*numbers.PROGRAMS, *modules.PROGRAMS, *state.PROGRAMS, *training.PROGRAMS)
PROGRAMS: tuple[Program, ...] = (*NAMES, *OTHERS)
RUNS: tuple[tuple[Program, str], ...] = (
    *((program, scope) for program in NAMES for scope in program.scopes),
    *((program, program.scopes[n % len(program.scopes)]) for n, program in enumerate(OTHERS)),
)
