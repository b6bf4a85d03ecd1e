"""A replay gives what running Python again would give: small programs in three worlds, with changes between calls."""

import gc
from collections.abc import Iterator

import numpy as np
import pytest
import torch

import pywebgpu
from pywebgpu.errors import CaptureError
from tests.fuzz.programs import command, sequences, tables, world
from tests.fuzz.programs.program import Program
from tests.fuzz.programs.sequences import Trained

LONGEST = 6
RECAPTURED = pytest.mark.filterwarnings("ignore:.*captured anew:UserWarning", "ignore:.*cannot be replayed:UserWarning")
RUNS = [pytest.param(program, scope, id=f"{program.name}-{scope}") for program, scope in tables.RUNS]


@pytest.fixture(scope="module", autouse=True)
def imported() -> Iterator[None]:
    command.prepare()
    yield
    gc.unfreeze()


@pytest.fixture(autouse=True)
def few_to_collect(imported: None) -> None:
    command.set_aside()


@pytest.mark.parametrize(("program", "scope"), RUNS)
def test_a_compiled_program_does_what_python_does(program: Program, scope: str, device: str) -> None:
    """Globals are seen after each call; closures too, but what is seen is read when the last call is over."""
    reading = world.AT_ONCE if scope == "globals" else world.LATE
    eager = world.run(program, scope, pywebgpu, device, compiled=False, reading=reading)
    if not program.alone:
        theirs = world.run(program, scope, torch, device, compiled=False, reading=reading)
        assert world.compared(eager, theirs, world.NEAR, same_library=False) is None, "eager and PyTorch"
    if program.refused:
        with pytest.raises(CaptureError, match=r"program\.py"):
            world.run(program, scope, pywebgpu, device, compiled=True, reading=reading)
        return
    compiled = world.run(program, scope, pywebgpu, device, compiled=True, reading=reading)
    assert world.compared(eager, compiled, world.EXACT, same_library=True) is None, "eager and compiled"
    assert compiled.counted("replays") >= program.replays, compiled.reasons()
    if compiled.counted("recompiles"):
        assert all(compiled.reasons()), "a step that is recorded again says why"
        assert compiled.reasons()


# Gradients


@pytest.fixture
def default_device(device: str) -> Iterator[None]:
    was = pywebgpu.get_default_device()
    pywebgpu.set_default_device(device)
    yield
    pywebgpu.set_default_device(was)


@RECAPTURED
@pytest.mark.usefixtures("default_device")
@pytest.mark.parametrize("kind", sequences.STEPS)
@pytest.mark.parametrize("rule", sequences.OPTIMIZERS)
def test_every_sequence_of_zeroed_gradients_leaves_what_python_leaves(rule: str, kind: str) -> None:
    """One compiled step for all sequences: what one of them captured must not show in another."""
    expected = sequences.tree(pywebgpu, rule, kind, LONGEST)
    for sequence, theirs in sequences.tree(torch, rule, kind, 3).items():
        assert sequences.differs(expected[sequence], theirs, world.NEAR) is None, sequence
    trained = Trained(pywebgpu, rule, kind)
    trained.call = pywebgpu.compile(trained.step)
    wrong = [found for one in sequences.sequences(LONGEST) for found in failures(trained, one, expected)]
    assert wrong == [], f"{len(wrong)} calls"


@RECAPTURED
@pytest.mark.usefixtures("default_device")
@pytest.mark.parametrize("kind", sequences.STEPS)
@pytest.mark.parametrize("rule", sequences.OPTIMIZERS)
def test_every_sequence_of_a_new_step_leaves_what_python_leaves(rule: str, kind: str) -> None:
    expected, wrong = sequences.tree(pywebgpu, rule, kind, 4), []
    for sequence in sequences.sequences(4):
        trained = Trained(pywebgpu, rule, kind)
        trained.call = pywebgpu.compile(trained.step)
        wrong += failures(trained, sequence, expected)
    assert wrong == [], f"{len(wrong)} calls"


@pytest.mark.usefixtures("default_device")
@pytest.mark.parametrize("how", [sequences.NONE, sequences.ZERO, sequences.KEEP])
def test_gradients_that_are_kept_stay_what_they_were(how: str) -> None:
    """Who keeps `p.grad`, or a view of it, has what Python would have left there."""

    def run(*, compiled: bool) -> list[list[float]]:
        trained, kept = Trained(pywebgpu, "sgd", "plain"), []
        call = pywebgpu.compile(trained.step) if compiled else trained.step
        for _ in range(10):
            trained.zero(how)
            call(trained.x)
            kept += [view for p in trained.params for view in (p.grad, p.grad[0], p.grad.detach())]
        return [np.ravel(grad.tolist()).tolist() for grad in kept]

    np.testing.assert_equal(run(compiled=True), run(compiled=False))


def failures(trained: Trained, sequence: tuple[str, ...], expected: dict[tuple[str, ...], sequences.Left]) -> list[str]:
    trained.again()
    for at, how in enumerate(sequence, 1):
        trained.zero(how)
        left = trained.left(trained.call(trained.x))
        difference = sequences.differs(left, expected[sequence[:at]], world.EXACT)
        if difference is not None:
            return [f"{' '.join(sequence[:at])}: {difference}"]
    return []
