"""All tables of programs, and in which scopes each is run."""

from dataclasses import replace

from tests.fuzz.programs import effects, language, modules, numbers, optimizers, places, sources, state, training
from tests.fuzz.programs.program import Program

# Steps of the other tables that write to what outlives the call: no guard sees that, and the audit of the second call does.
WRITING = {
    "default_that_is_a_list",
    "float_kept_by_a_list",
    "result_of_a_write_to_a_slice",
    "optimizer_sgd_hook",
    "optimizer_adamw_hook",
    "loop_keeps_gradients",
    "loop_counts_to_accumulate",
    "loop_scales_the_loss",
    "loop_rate_by_hand",
    "loop_two_optimizers_in_turn",
    "loop_unused_at_times",
    "loop_exception",
    "loop_exception_caught",
    "loop_rate_in_text",
    "loop_rate_read",
    "loop_of_a_class",
    "loop_freezes_in_turn",
    "loop_keeps_copies_of_gradients",
    "try_finally",
    "error_raised_after_effects",
    "context_of_a_class",
    "nonlocal_chain",
    "name_that_is_assigned_inside",
    "flag_that_is_set_to_what_it_was",
    "early_return_by_count",
    "swap_of_models",
}


def told(programs: tuple[Program, ...]) -> tuple[Program, ...]:
    return tuple(replace(one, audited=effects.WRITES) if one.name in WRITING else one for one in programs)


# Where names are the subject, globals and closures are two subjects; elsewhere every other program has either.
NAMES: tuple[Program, ...] = told((*sources.PROGRAMS, *places.PROGRAMS, *effects.PROGRAMS, *language.PROGRAMS))
OTHERS: tuple[Program, ...] = told(
    (*numbers.PROGRAMS, *modules.PROGRAMS, *optimizers.PROGRAMS, *state.PROGRAMS, *training.PROGRAMS)
)
PROGRAMS: tuple[Program, ...] = (*NAMES, *OTHERS)
RUNS: tuple[tuple[Program, str], ...] = (
    *((program, scope) for program in NAMES for scope in program.scopes),
    *((program, program.scopes[n % len(program.scopes)]) for n, program in enumerate(OTHERS)),
)
