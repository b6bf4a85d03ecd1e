"""Training loops as people write them have PyTorch's curves on device cpu; `python -m tests loops` times them."""

import pytest

import pywebgpu
from tests.loops import command

STEPS = 9  # So that a Program becomes one function, and runs as that.
QUICK = (
    "character_mlp",
    "wavenet",
    "names_rnn",
    "packed_lstm",
    "tcn",
    "normalizing_flow",
    "maml",
    "actor_critic",
    "gat",
)


def test_there_are_many_loops_of_different_names() -> None:
    assert len(command.LOOPS) == len({loop.name for loop in command.LOOPS}) >= 43
    assert set(QUICK) <= {loop.name for loop in command.LOOPS}


@pytest.mark.parametrize("name", QUICK)
def test_a_loop_has_pytorchs_curve(name: str, device: str) -> None:
    if device != "cpu":
        pytest.skip("the loops are for device cpu; test_scripts.py has some for others")
    loop = next(loop for loop in command.LOOPS if loop.name == name)
    with pywebgpu.device("cpu"):
        ours, theirs = command.curves(loop, STEPS)
    error, agrees = command.difference(loop, ours, theirs)
    assert agrees, (error, ours, theirs)


def test_a_difference_of_curves_is_seen() -> None:
    loop = command.LOOPS[0]
    assert command.difference(loop, [1.0, 2.0], [1.0, 2.001])[1]
    assert not command.difference(loop, [1.0, 2.0], [1.0, 2.01])[1]
