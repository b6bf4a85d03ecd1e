"""`python -m tests fuzz-steps`: random programs, recorded as Python runs against compiled and against PyTorch.

A program is its seed: `--seed S --count 1` runs it again. What fails is made smaller and printed whole.
"""

from __future__ import annotations

import argparse
import functools
import gc
import os
import random
import sys
import time
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

from pywebgpu.errors import CaptureError
from tests.fuzz.programs import drawn, interrupts, training, world
from tests.fuzz.programs.program import GLOBALS, source
from tests.unit.replays import audited

NEAR = 2e-3  # to PyTorch: what was drawn may divide by a variance that is nearly 0
ROUNDING = (1e-6, -1e-5)  # of float32, after a few operations
CANCELLED = (1e-4, -1e-4)  # the same where a variance is a difference of squares
LAST_BIT = 1e-7  # Kernels of a GPU round alike only where they are the same: a compiled step may fuse otherwise.
CHUNK = 25  # programs that a process is handed at once
REPORTED = 500  # programs between two lines that say how far it is
INTERRUPTED = 10  # programs of which one is interrupted
TRIES = 60  # smaller programs that are tried


def difference(one: drawn.Recipe, device: str, *, peer: bool = True) -> str | None:
    """What differs between the worlds in this program; None where nothing does. Errors of a compiled step differ too."""
    import pywebgpu

    program = drawn.program(one)
    eager = world.run(program, one.scope, pywebgpu, device, compiled=False, reading=one.reading)
    try:
        with audited(one.audit):
            compiled = world.run(program, one.scope, pywebgpu, device, compiled=True, reading=one.reading)
    except CaptureError as error:
        return None if drawn.refuses(one) else f"compiled: {error}"
    except Exception as error:  # As a program's own errors are seen, this is one of the harness or of a capture.
        return f"compiled: {type(error).__name__}: {error}"
    found = world.compared(eager, compiled, world.EXACT, same_library=True)
    if found is not None and not (device != "cpu" and _is_off(pywebgpu, eager, one, device, LAST_BIT, world.EXACT)):
        return f"compiled: {found}"
    if compiled.counted("recompiles") and not any(compiled.reasons()):
        return "compiled: recorded again without a reason"
    if compiled.counted("differences") and not drawn.writes(one):
        return f"audit: {compiled.reasons()}"
    if one.seed % INTERRUPTED == 0 and not (drawn.writes(one) or drawn.refuses(one)):
        with audited("0"):
            found = interrupts.found(program, one.scope, device, random.Random(one.seed))
        if found is not None:
            return f"interrupt: {found}"
    text = source(program, one.scope)
    has_float64 = any(word in text for word in ("double", "float64"))  # which is cpu's alone
    is_alone = program.alone or (device != "cpu" and has_float64) or _normalizes_noise(text)
    if peer and not is_alone:
        import torch

        theirs = world.run(program, one.scope, torch, device, compiled=False, reading=one.reading)
        found = world.compared(eager, theirs, NEAR, same_library=False)
        roundings = ROUNDING + CANCELLED * ("centered=True" in text)
        if any(_is_off(torch, theirs, one, device, by, NEAR) for by in roundings if found is not None):
            found = None
    return None if found is None else f"PyTorch: {found}"


def _normalizes_noise(text: str) -> bool:
    """Whether batches may have equal rows when they are normalized: then the rounding of the mean alone is left."""
    return "BatchNorm" in text and any(part in text for part in ("fill_(k)", "torch.where(x > number"))


def _is_off(library: Any, run: world.Run, one: drawn.Recipe, device: str, nudge: float, tolerance: float) -> bool:
    """Whether a library is that far from itself where the data is off by so little: rounding decides what comes out."""
    nudged = world.run(drawn.program(one), one.scope, library, device, compiled=False, reading=one.reading, nudge=nudge)
    return world.compared(run, nudged, tolerance, same_library=True) is not None


def shrunk(one: drawn.Recipe, device: str, kind: str) -> drawn.Recipe:
    """The smallest recipe found that fails in the same way."""
    tries = TRIES
    candidates = drawn.smaller(one)
    while candidates and tries:
        tries -= 1
        smaller = candidates.pop(0)
        if _kind(_safely(smaller, device)) == kind:
            one, candidates = smaller, drawn.smaller(smaller)
    return one


def _safely(one: drawn.Recipe, device: str) -> str | None:
    try:
        return difference(one, device)
    except Exception as error:
        return f"eager: {type(error).__name__}: {error}"


def _kind(found: str | None) -> str:
    return "" if found is None else found.partition(":")[0]


def failure(seed: int, device: str, *, shrink: bool = True, wide: bool = True) -> str | None:
    """The report of a program that fails. wide: all that can be drawn is."""
    one = drawn.recipe(seed, wide=wide)
    found = _safely(one, device)
    if found is None:
        return None
    small = shrunk(one, device, _kind(found)) if shrink else one
    names = ", ".join(part.name for part in (small.skeleton, *small.parts))
    again = _safely(small, device)
    said = found if small is one else f"{found}\n{again}"
    said += "" if again else "\n(not so when it ran once more)"
    return f"--- seed {seed} ({names}; read {small.reading}, PYWEBGPU_AUDIT={small.audit})\n{said}\n{source(drawn.program(small), small.scope)}"


def chunk(seeds: Iterable[int], device: str, *, shrink: bool = True, wide: bool = True) -> list[str]:
    """The reports of the programs that fail."""
    prepare()
    reports = []
    for seed in seeds:
        set_aside()
        reports.append(failure(seed, device, shrink=shrink, wide=wide))
    return [report for report in reports if report is not None]


@functools.cache
def prepare() -> None:
    """Imports what libraries import at their first update."""
    import torch

    import pywebgpu

    torch.set_num_threads(1)
    for library in (torch, pywebgpu):
        world.run(training.WRITTEN[0], GLOBALS, library, "cpu", compiled=False)


def set_aside() -> None:
    """A capture collects garbage: what was there before the program needs no look each time."""
    gc.collect()
    gc.freeze()


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests fuzz-steps", description=__doc__)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0, help="of the first program")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--most", type=int, default=20, help="failures after which it ends")
    parser.add_argument("--no-shrink", action="store_true")
    parser.add_argument("--print", action="store_true", help="only show the programs")
    given = parser.parse_args(arguments)
    seeds = range(given.seed, given.seed + given.count)
    if given.print:
        for seed in seeds:
            one = drawn.recipe(seed)
            print(f"--- seed {seed}\n{source(drawn.program(one), one.scope)}")
        return 0
    return run(seeds, given)


def run(seeds: range, given: argparse.Namespace) -> int:
    start, done, failed = time.monotonic(), 0, 0
    chunks = [seeds[at : at + CHUNK] for at in range(0, len(seeds), CHUNK)]
    with ProcessPoolExecutor(given.jobs, mp_context=get_context("spawn")) as pool:
        waiting = [pool.submit(chunk, part, given.device, shrink=not given.no_shrink) for part in chunks]
        for part, future in zip(chunks, waiting, strict=True):
            for report in future.result():
                failed += 1
                print(report, flush=True)
            done += len(part)
            if done % REPORTED == 0:
                print(f"{done} of {len(seeds)}, {failed} failed", flush=True)
            if failed >= given.most:
                pool.shutdown(cancel_futures=True)
                break
    took = time.monotonic() - start
    print(f"{done} programs on {given.device}, {failed} failed, {took:.0f} s, {done / took:.1f} a second")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
