"""A replay gives what running Python again would give: small programs in three worlds, with changes between calls."""

import gc
from collections.abc import Iterator

import numpy as np
import pytest
import torch

import pywebgpu
from pywebgpu.errors import CaptureError
from tests.fuzz.programs import command, sequences, tables, world
from tests.fuzz.programs.program import CLOSURE, GLOBALS, Program
from tests.fuzz.programs.sequences import Trained
from tests.unit.replays import audited

LONGEST = {"cpu": 6, "webgpu": 4}
SHORTER = {"cpu": 4, "webgpu": 3}  # of steps of which each is compiled
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


@pytest.mark.one_in(20, webgpu=5)
@pytest.mark.parametrize(("program", "scope"), RUNS)
def test_a_compiled_program_does_what_python_does(program: Program, scope: str, device: str) -> None:
    """Globals: audits as they are due, and what is seen is read at once. Closures: guards stand alone, without audits,
    and what is seen is read when the last call is over."""
    alone = scope == CLOSURE and not program.audited
    reading = world.AT_ONCE if scope == GLOBALS else world.LATE
    eager = world.run(program, scope, pywebgpu, device, compiled=False, reading=reading)
    if device == "cpu" and not program.alone:  # Text tells the device, which PyTorch has not.
        theirs = world.run(program, scope, torch, device, compiled=False, reading=reading)
        assert world.compared(eager, theirs, world.NEAR, same_library=False) is None, "eager and PyTorch"
    with audited("0" if alone else ""):
        if program.refused:
            with pytest.raises(CaptureError, match=r"program\.py"):
                world.run(program, scope, pywebgpu, device, compiled=True, reading=reading)
            return
        compiled = world.run(program, scope, pywebgpu, device, compiled=True, reading=reading)
    assert world.compared(eager, compiled, world.EXACT, same_library=True) is None, "eager and compiled"
    assert compiled.counted("replays") >= program.replays, compiled.reasons()
    assert compiled.reasons() or not compiled.counted("recompiles"), "a step that is recorded again says why"
    assert program.audited or not compiled.counted("differences"), compiled.reasons()


# Gradients


@RECAPTURED
@pytest.mark.one_in(9, webgpu=2)
@pytest.mark.usefixtures("default_device")
@pytest.mark.parametrize("kind", sequences.STEPS)
@pytest.mark.parametrize("rule", sequences.OPTIMIZERS)
def test_every_sequence_of_zeroed_gradients_leaves_what_python_leaves(rule: str, kind: str, device: str) -> None:
    """One step walks through all sequences of LONGEST calls: what was captured for one must not show in another."""
    eager, compiled, theirs = (Trained(library, rule, kind) for library in (pywebgpu, pywebgpu, torch))
    step = compiled.call = pywebgpu.compile(compiled.call)
    longest = LONGEST[device]
    walked: list[str] = []
    for how in sequences.walk(longest):
        walked.append(how)
        expected = eager.after(how)
        found = sequences.difference(compiled.after(how), expected, world.EXACT)
        assert found is None, f"{found}, in call {len(walked)}, after {' '.join(walked[-longest:])}"
        if len(walked) < 50:  # From then on roundings have grown.
            assert sequences.difference(theirs.after(how), expected, world.NEAR) is None, "eager and PyTorch"
    assert step.counters["replays"] > 3**longest // 2, step.reasons


@RECAPTURED
@pytest.mark.one_in(14)
@pytest.mark.usefixtures("default_device")
@pytest.mark.parametrize("kind", sequences.STEPS)
@pytest.mark.parametrize("rule", sequences.OPTIMIZERS)
def test_every_sequence_of_a_new_step_leaves_what_python_leaves(rule: str, kind: str, device: str) -> None:
    wrong = []
    for sequence in sequences.sequences(SHORTER[device]):
        eager, compiled = Trained(pywebgpu, rule, kind), Trained(pywebgpu, rule, kind)
        compiled.call = pywebgpu.compile(compiled.call)
        for at, how in enumerate(sequence, 1):
            found = sequences.difference(compiled.after(how), eager.after(how), world.EXACT)
            wrong += [f"{' '.join(sequence[:at])}: {found}"] if found else []
    assert wrong == [], f"{len(wrong)} calls"


@RECAPTURED
@pytest.mark.one_in(100)
@pytest.mark.usefixtures("default_device")
@pytest.mark.parametrize("how", sequences.ZEROING)
def test_gradients_that_are_kept_stay_what_they_were(how: str) -> None:
    """Who keeps `p.grad`, or a view of it, has what Python would have left there."""

    def run(*, compiled: bool) -> list[list[float]]:
        trained, kept = Trained(pywebgpu, "sgd", "plain"), []
        trained.call = pywebgpu.compile(trained.call) if compiled else trained.call
        for _ in range(10):
            trained.after(how)
            kept += [view for p in trained.params for view in (p.grad, p.grad[0], p.grad.detach())]
        return [np.ravel(grad.tolist()).tolist() for grad in kept]

    np.testing.assert_equal(run(compiled=True), run(compiled=False))
