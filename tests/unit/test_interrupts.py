"""Ctrl-C: what a device did and what the host counted stay the same, and no interrupt is lost."""

import signal
import sys
import threading
from typing import Any

import pytest

import pywebgpu as torch
from pywebgpu.runtime import state
from pywebgpu.support import interrupts
from tests.interrupts import interrupted, problems

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows sends no SIGINT to a child")


def test_a_training_loop_that_is_interrupted_keeps_its_numbers(device: str) -> None:
    found = interrupted(device, 25, seed=0)
    assert problems(found) == []
    assert found["caught"] == 25
    assert found["replays"] > 25


@pytest.fixture
def noted(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A program's handler that raises, and what happened in order."""
    events: list[str] = []

    def handler(number: int, frame: object) -> None:
        events.append("handled")
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, handler)
    yield events
    assert signal.getsignal(signal.SIGINT) is handler, "the program's handler is back"
    signal.signal(signal.SIGINT, before)


def interrupt() -> None:
    signal.raise_signal(signal.SIGINT)


def test_what_comes_inside_is_raised_at_the_end(noted: list[str]) -> None:
    def block() -> None:
        with interrupts.held():
            with interrupts.held():
                interrupt()
                interrupt()
            noted.append("inner")
        noted.append("unreachable")

    with pytest.raises(KeyboardInterrupt):
        block()
    assert noted == ["inner", "handled"]


def test_a_part_may_be_interrupted(noted: list[str]) -> None:
    def block() -> None:
        with interrupts.held():
            try:
                with interrupts.allowed():
                    interrupt()
            finally:
                interrupt()
                noted.append("restored")

    with pytest.raises(KeyboardInterrupt):
        block()
    assert noted == ["handled", "restored", "handled"]


def test_what_waited_comes_where_a_part_may_be_interrupted(noted: list[str]) -> None:
    def block() -> None:
        with interrupts.held():
            interrupt()
            with interrupts.allowed():
                noted.append("unreachable")

    with pytest.raises(KeyboardInterrupt):
        block()
    assert noted == ["handled"]


def test_a_block_inside_that_part_holds_again(noted: list[str]) -> None:
    def block() -> None:
        with interrupts.held(), interrupts.allowed():
            with interrupts.held():
                interrupt()
                noted.append("inner")
            noted.append("unreachable")

    with pytest.raises(KeyboardInterrupt):
        block()
    assert noted == ["inner", "handled"]


def test_a_block_of_another_one_is_not_opened(noted: list[str]) -> None:
    def block() -> None:
        with interrupts.held():
            with interrupts.held(), interrupts.allowed():
                interrupt()
                noted.append("inner")
            noted.append("outer")

    with pytest.raises(KeyboardInterrupt):
        block()
    assert noted == ["inner", "outer", "handled"]


def test_other_threads_and_other_handlers_are_left_alone(noted: list[str]) -> None:
    def elsewhere() -> None:
        with interrupts.held(), interrupts.allowed():
            noted.append(str(signal.getsignal(signal.SIGINT) is not before))

    before = signal.getsignal(signal.SIGINT)
    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with interrupts.held():
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    signal.signal(signal.SIGINT, before)
    assert noted == ["False"]


def test_no_finaliser_of_ours_can_lose_one(device: str) -> None:
    """Python prints what is raised in a finaliser, and goes on."""
    x = torch.ones(4, device=device) + 1
    x.tolist()
    loaded = next(iter(state.default.programs.values()))[1]
    for thing in (x, x._storage, x._storage.node, x._storage.home, loaded):
        assert not hasattr(thing, "__del__"), type(thing)
