"""`python -m tests loops [NAMES] [--steps N]`: training loops as people write them, on device cpu and under PyTorch.

Both libraries have one thread and take turns of a few steps, so that what else the machine does meets both. A step's
time is that of the process's processor, the median over all steps after the first few; a loop's ratio is ours over
PyTorch's. The curves of both agree, or the command fails.
"""

import argparse
import gc
import statistics
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch as theirs

import pywebgpu
from tests.loops import characters, generative, images, sequences, small, workloads
from tests.loops.start import Loop, Step

LOOPS: tuple[Loop, ...] = (
    *characters.LOOPS, *sequences.LOOPS, *images.LOOPS, *generative.LOOPS, *small.LOOPS
)  # fmt: skip

WARM_UP = 6  # steps that are compiled, and audited
TURN = 0.03  # seconds of a turn, about
ROUNDS = 12
TOLERANCE = 1e-3  # of a loss, or of 1 where it is smaller
ROUGHLY = 0.25  # where each library draws its own numbers: of the mean


@dataclass(frozen=True, slots=True)
class Result:
    """Milliseconds of a step, the first step's, and the largest difference of the curves."""

    name: str
    ours: float
    theirs: float
    first: float
    error: float
    agrees: bool

    @property
    def ratio(self) -> float:
        return self.ours / self.theirs


def built(loop: Loop, torch: Any) -> Step:
    torch.manual_seed(0)
    return loop.build(torch)


def curves(loop: Loop, steps: int) -> tuple[list[float], list[float]]:
    """The losses of some steps here and under PyTorch."""
    return tuple([step() for _ in range(steps)] for step in (built(loop, pywebgpu), built(loop, theirs)))


def difference(loop: Loop, ours: Sequence[float], torchs: Sequence[float]) -> tuple[float, bool]:
    """How far two curves are apart, and whether that is nothing but rounding or chance."""
    if loop.draws:
        mean = statistics.fmean(torchs)
        error = abs(statistics.fmean(ours) - mean) / max(1.0, abs(mean))
        return error, error < ROUGHLY
    error = max(abs(a - b) / max(1.0, abs(b)) for a, b in zip(ours, torchs, strict=True))
    return error, error < TOLERANCE


def timed(step: Step, times: list[float], losses: list[float], count: int) -> None:
    for _ in range(count):
        start = time.process_time()
        losses.append(step())
        times.append((time.process_time() - start) * 1e3)


def measure(loop: Loop, rounds: int = ROUNDS) -> Result:
    steps = [built(loop, torch) for torch in (pywebgpu, theirs)]
    times: list[list[float]] = [[], []]
    losses: list[list[float]] = [[], []]
    for at, step in enumerate(steps):
        timed(step, times[at], losses[at], WARM_UP)
    first = times[0][0]
    count = max(2, int(TURN * 1e3 / max(min(times[1]), 0.01)))
    for turn in range(rounds):
        for at in (0, 1) if turn % 2 else (1, 0):
            timed(steps[at], times[at], losses[at], count)
    ours, torchs = (statistics.median(one[WARM_UP:]) for one in times)
    length = min(12, len(losses[0]))
    error, agrees = difference(loop, losses[0][:length], losses[1][:length])
    return Result(loop.name, ours, torchs, first, error, agrees)


def table(results: Sequence[Result]) -> str:
    lines = [f"{'loop':26}{'ours ms':>9}{'torch ms':>10}{'ratio':>7}{'first ms':>10}{'error':>9}"]
    for one in sorted(results, key=lambda one: -one.ratio):
        wrong = "" if one.agrees else "  DIFFERS"
        numbers = f"{one.ours:9.3f}{one.theirs:10.3f}{one.ratio:7.2f}{one.first:10.1f}{one.error:9.1e}"
        lines.append(f"{one.name:26}{numbers}{wrong}")
    ratios = [one.ratio for one in results]
    lines.append(f"{len(results)} loops: {statistics.median(ratios):.2f} in the middle, {max(ratios):.2f} the worst")
    return "\n".join(lines)


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests loops", description=__doc__)
    parser.add_argument("names", nargs="*", help="loops; all if none")
    parser.add_argument("--workloads", action="store_true", help="instead: those of `python -m pywebgpu bench`")
    parser.add_argument("--compiled", action="store_true", help="of workloads: ours captured by compile")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    options = parser.parse_args(arguments)
    pywebgpu.set_default_device("cpu")
    theirs.set_num_threads(1)
    gc.collect()
    gc.freeze()  # Nobody imports both, so nobody's collections walk through PyTorch's objects and ours.
    every = LOOPS
    if options.workloads:
        every = tuple(workloads.loop(name, compiled=options.compiled) for name in workloads.NAMES)
    chosen = [loop for loop in every if not options.names or loop.name in options.names]
    results = []
    for loop in chosen:
        results.append(measure(loop, options.rounds))
        one = results[-1]
        print(
            f"{one.name:26}{one.ours:9.3f}{one.theirs:10.3f}{one.ratio:7.2f}  {one.error:.1e}",
            file=sys.stderr,
            flush=True,
        )
    print(table(results))
    return 0 if all(one.agrees for one in results) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
