"""Processes that run one program after another, each within a time and a memory.

A program that takes too much of either ends its process and is reported; the other programs go on in a new one.
"""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from multiprocessing import connection, get_context
from typing import Any

SECONDS = 300.0  # that a program may take until it shows that it goes on, on a machine with much else to do
MEMORY = 3 << 30  # bytes that a process may take beside what it starts with
RENEWED = 400  # programs after which a process is a new one: what programs leave does not add up
GROWN = 600 << 20  # bytes by which it has grown before that

Answer = tuple[int, Any]  # the number of a program, and what is said of it
Run = Callable[[int, Callable[[], None]], Any]  # of a program; it calls the function to show that it goes on


@dataclass
class Worker:
    process: Any
    pipe: Any
    number: int | None = None  # of the program that it runs
    since: float = field(default_factory=time.monotonic)  # when it was last heard of
    is_grown: bool = False
    n_done: int = 0

    def start(self, number: int) -> None:
        self.number, self.since = number, time.monotonic()
        self.pipe.send(number)

    def end(self) -> None:
        self.process.kill()
        self.process.join()
        self.pipe.close()


def answers(
    run: Run, prepare: Callable[[], None], failed: Callable[[str], Any], numbers: list[int], jobs: int
) -> Iterator[Answer]:
    """What `run` says of each number, as it comes; what `failed` makes of a reason where a process ended instead."""
    waiting = list(reversed(numbers))
    workers = [_started(run, prepare) for _ in range(min(jobs, len(numbers)))]
    try:
        while waiting or any(worker.number is not None for worker in workers):
            for at, worker in enumerate(workers):
                if worker.number is None and (worker.is_grown or worker.n_done >= RENEWED):
                    worker.end()
                    worker = workers[at] = _started(run, prepare)
                if worker.number is None and waiting:
                    worker.start(waiting.pop())
            busy = {worker.pipe: worker for worker in workers if worker.number is not None}
            for pipe in connection.wait([*busy], timeout=1.0):
                yield from _answer(busy[pipe], failed)
            for worker in busy.values():
                if worker.number is not None and time.monotonic() - worker.since > SECONDS:
                    yield _ended(worker, failed(f"time: it runs for more than {SECONDS:.0f} s"))
    finally:
        for worker in workers:
            worker.end()


def _answer(worker: Worker, failed: Callable[[str], Any]) -> Iterator[Answer]:
    try:
        kind, said = worker.pipe.recv()
    except (EOFError, OSError):
        worker.process.join()
        yield _ended(worker, failed(f"died: its process ended with {worker.process.exitcode}"))
        return
    worker.since = time.monotonic()
    if kind == "goes on":
        return
    number, worker.number = worker.number, None
    assert number is not None
    worker.n_done += 1
    worker.is_grown = said[1]
    yield number, said[0]


def _ended(worker: Worker, said: Any) -> Answer:
    assert worker.number is not None
    number, worker.number, worker.is_grown = worker.number, None, True
    worker.process.kill()
    return number, said


def _started(run: Run, prepare: Callable[[], None]) -> Worker:
    here, there = get_context("spawn").Pipe()
    process = get_context("spawn").Process(target=_serve, args=(there, run, prepare), daemon=True)
    process.start()
    there.close()
    return Worker(process, here)


def _serve(pipe: Any, run: Run, prepare: Callable[[], None]) -> None:
    """The process: a number comes, and what is said of it goes back with whether the process should end."""
    prepare()
    pipe.send(("goes on", None))
    taken, resident = _bytes()
    resource.setrlimit(resource.RLIMIT_DATA, (taken + MEMORY, taken + MEMORY))
    while True:
        try:
            number = pipe.recv()
        except (EOFError, OSError):
            return
        said = run(number, lambda: pipe.send(("goes on", None)))
        pipe.send(("done", (said, _bytes()[1] - resident > GROWN)))


def _bytes() -> tuple[int, int]:
    """Of this process: its private writable memory, and what of all its memory is resident.

    A driver of a GPU reserves address space by the tens of gigabytes: a limit of that would end any process.
    """
    with open("/proc/self/statm") as file:
        _, resident, _, _, _, private, _ = map(int, file.read().split())
    page = os.sysconf("SC_PAGE_SIZE")
    return private * page, resident * page
