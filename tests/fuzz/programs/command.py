"""`python -m tests fuzz-steps`: random programs, recorded as Python runs against compiled and against PyTorch.

A program is its seed: `--seed S --count 1` runs it again. What fails is made smaller and printed whole. With `--out FILE`
each seed that ran is a line of JSON there, a run begins after those that are there, and ends with what failed by construct.
"""

from __future__ import annotations

import argparse
import collections
import functools
import gc
import json
import os
import random
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import pywebgpu
from pywebgpu.errors import CaptureError, CaptureWarning
from tests.fuzz.programs import drawn, interrupts, training, workers, world
from tests.fuzz.programs.program import GLOBALS, source
from tests.unit.replays import audited

NEAR = 2e-3  # to PyTorch: what was drawn may divide by a variance that is nearly 0
ROUNDING = (1e-6, -1e-5)  # of float32, after a few operations
CANCELLED = (1e-4, -1e-4)  # the same where a variance is a difference of squares
LAST_BIT = 1e-7  # Kernels of a GPU round alike only where they are the same: a compiled step may fuse otherwise.
REPORTED = 500  # programs between two lines that say how far it is
THAWED = 50  # programs after which garbage is looked for in all that there is
INTERRUPTED = 10  # programs of which one is interrupted
TRIES = 60  # smaller programs that are tried


def difference(one: drawn.Recipe, device: str, *, peer: bool = True) -> str | None:
    """What differs between the worlds in this program; None where nothing does. Errors of a compiled step differ too."""
    program = drawn.program(one)
    eager = world.run(program, one.scope, pywebgpu, device, compiled=False, reading=one.reading)
    try:
        with audited(one.audit):
            compiled = world.run(program, one.scope, pywebgpu, device, compiled=True, reading=one.reading)
    except CaptureError as error:
        return None if drawn.refuses(one) else f"compiled: {error}"
    except CaptureWarning:  # The program makes warnings errors, and an ordinary function has none to give.
        return None
    except MemoryError:
        raise
    except Exception as error:  # As a program's own errors are seen, this is one of the harness or of a capture.
        return f"compiled: {type(error).__name__}: {error}"
    rounding = world.compared(eager, compiled, world.EXACT, same_library=True)
    if rounding is not None and _is_random(eager, one, device):
        return None
    # A norm over flat parameters rounds otherwise than one over each, which differences and small divisors enlarge.
    off: tuple[float, ...] = (LAST_BIT,) if device != "cpu" else ()
    if "clip_grad_norm_" in source(program, one.scope):
        off = (LAST_BIT, -LAST_BIT, 1e-6, -1e-6)
    if rounding is not None and not any(_is_off(pywebgpu, eager, one, device, by, world.EXACT) for by in off):
        return f"compiled: {rounding}"
    if compiled.counted("recompiles") and not any(compiled.reasons()):
        return "compiled: recorded again without a reason"
    if compiled.counted("differences") and not drawn.writes(one):
        return f"audit: {compiled.reasons()}"
    # Where rounding alone differs, what an interrupted call left cannot be told from a part of it.
    if one.seed % INTERRUPTED == 0 and not (rounding or drawn.writes(one) or drawn.refuses(one)):
        with audited("0"):
            found = interrupts.found(program, one.scope, device, random.Random(one.seed))
        if found is not None:
            return f"interrupt: {found}"
    found = None
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


def _is_random(eager: world.Run, one: drawn.Recipe, device: str) -> bool:
    """Whether a program is another one each time, as where memory addresses decide."""
    kept = []
    for _ in range(3):
        kept.append([bytearray(64) for _ in range(1000)])  # Else what it makes is where it was before.
        again = world.run(drawn.program(one), one.scope, pywebgpu, device, compiled=False, reading=one.reading)
        if world.compared(eager, again, world.EXACT, same_library=True) is not None:
            return True
    return False


def _is_off(library: Any, run: world.Run, one: drawn.Recipe, device: str, nudge: float, tolerance: float) -> bool:
    """Whether a library is that far from itself where the data is off by so little: rounding decides what comes out."""
    nudged = world.run(drawn.program(one), one.scope, library, device, compiled=False, reading=one.reading, nudge=nudge)
    return world.compared(run, nudged, tolerance, same_library=True) is not None


def shrunk(one: drawn.Recipe, device: str, kind: str, goes_on: Callable[[], None] = lambda: None) -> drawn.Recipe:
    """The smallest recipe found that fails in the same way. goes_on: called before each that is tried."""
    tries = TRIES
    candidates = drawn.smaller(one)
    while candidates and tries:
        tries -= 1
        goes_on()
        smaller = candidates.pop(0)
        if _kind(_safely(smaller, device)) == kind:
            one, candidates = smaller, drawn.smaller(smaller)
    return one


def _safely(one: drawn.Recipe, device: str) -> str | None:
    try:
        return difference(one, device)
    except MemoryError as error:
        return f"memory: {error}"
    except Exception as error:
        return f"eager: {type(error).__name__}: {error}"


def _kind(found: str | None) -> str:
    return "" if found is None else found.partition(":")[0]


@dataclass(frozen=True, slots=True)
class Failure:
    """kind: which worlds differ, or what there was too much of. constructs: the parts of the program."""

    kind: str
    constructs: tuple[str, ...]
    text: str


def failure(
    one: drawn.Recipe, device: str, *, shrink: bool = True, goes_on: Callable[[], None] = lambda: None
) -> Failure | None:
    """What there is to say of a program that fails, once it was made smaller."""
    found = _safely(one, device)
    if found is None:
        return None
    goes_on()
    small = shrunk(one, device, _kind(found), goes_on) if shrink and _kind(found) != "memory" else one
    constructs = tuple(part.name for part in (small.skeleton, *small.parts))
    again = _safely(small, device) if shrink else found
    said = found if small is one else f"{found}\n{again}"
    said += "" if again else "\n(not so when it ran once more)"
    names = ", ".join(constructs)
    first = f"--- seed {one.seed} ({names}; read {small.reading}, PYWEBGPU_AUDIT={small.audit})"
    return Failure(_kind(found), constructs, f"{first}\n{said}\n{source(drawn.program(small), small.scope)}")


def chunk(seeds: Iterable[int], device: str, *, wide: bool = True) -> list[str]:
    """The reports of the programs that fail. wide: all that can be drawn is."""
    prepare()
    failures = []
    for seed in seeds:
        set_aside()
        failures.append(failure(drawn.recipe(seed, wide=wide), device))
    return [found.text for found in failures if found is not None]


@functools.cache
def prepare() -> None:
    """Imports what libraries import at their first update, and names that they import when somebody asks.

    What programs make of a name that was not there yet would stay.
    """
    import torch

    torch.set_num_threads(1)
    for library in (torch, pywebgpu):
        world.run(training.WRITTEN[0], GLOBALS, library, "cpu", compiled=False)
    for module in (pywebgpu, pywebgpu.nn, pywebgpu.nn.functional, pywebgpu.optim):
        for name in dir(module):
            getattr(module, name, None)


def set_aside() -> None:
    """A capture collects garbage: what was there before the program needs no look each time."""
    gc.collect()
    gc.freeze()


@dataclass(frozen=True)
class Job:
    """Runs the program of a seed in a process of many.

    audit: of all programs, but of those that write to what outlives the call, which is for audits to see; None as each
    was drawn.
    """

    device: str
    shrink: bool
    audit: str | None

    def __call__(self, seed: int, goes_on: Callable[[], None]) -> Failure | None:
        if seed % THAWED == 0:
            gc.unfreeze()  # What became garbage since it was set aside is found in this way alone.
        set_aside()
        try:
            one = drawn.recipe(seed)
        except MemoryError as error:
            return lost(f"memory: {error}")
        goes_on()
        if self.audit is not None and not drawn.writes(one):
            one = replace(one, audit=self.audit)
        return failure(one, self.device, shrink=self.shrink, goes_on=goes_on)


def lost(reason: str) -> Failure:
    """Of a program that ended its process, of which nothing else is known."""
    return Failure(_kind(reason), (), reason)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests fuzz-steps", description=__doc__)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0, help="of the first program")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--most", type=int, default=20, help="failures after which it ends")
    parser.add_argument(
        "--audit",
        help="PYWEBGPU_AUDIT of all programs that write to nothing that outlives the call; else as it was drawn",
    )
    parser.add_argument("--out", type=Path, help="a file of what was seen, by which a later run goes on")
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
    start = time.monotonic()
    before = written(given.out)
    failed = [record for seed, record in before.items() if record["kind"] and seed in seeds]
    job = Job(given.device, not given.no_shrink, given.audit)
    left = [seed for seed in seeds if seed not in before]
    n_before = len(failed)
    done = 0
    for done, (seed, found) in enumerate(workers.answers(job, prepare, lost, left, given.jobs), 1):
        record = {"seed": seed, **(asdict(found) if found else {"kind": ""})}
        if given.out is not None:
            with given.out.open("a") as file:
                file.write(json.dumps(record) + "\n")
        if found is not None:
            failed.append(record)
            print(found.text if found.constructs else f"--- seed {seed}\n{found.text}", flush=True)
        if done % REPORTED == 0:
            print(f"{done} of {len(left)}, {len(failed) - n_before} failed", flush=True)
        if len(failed) - n_before >= given.most:
            break
    took = time.monotonic() - start
    print("".join(f"{line}\n" for line in summary(failed)), end="")
    print(f"{done} programs on {given.device}, {len(failed)} failed, {took:.0f} s, {done / took:.1f} a second")
    return 1 if failed else 0


def written(path: Path | None) -> dict[int, dict[str, Any]]:
    """What earlier runs saw, by seed. A line that an interrupt cut off is none."""
    lines = [] if path is None or not path.exists() else path.read_text().splitlines()
    whole = [json.loads(line) for line in lines if line.endswith("}")]
    return {record["seed"]: record for record in whole}


def summary(failed: list[dict[str, Any]]) -> list[str]:
    """How many programs failed, by kind and by what is in them once they are small, and the first seeds of each."""
    seeds: dict[tuple[str, str], list[int]] = collections.defaultdict(list)
    for record in failed:
        seeds[record["kind"], ", ".join(record.get("constructs", ())[1:])].append(record["seed"])
    common = sorted(seeds.items(), key=lambda item: -len(item[1]))
    return [f"{len(found):5} {kind}: {names} ({', '.join(map(str, found[:5]))})" for (kind, names), found in common]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
