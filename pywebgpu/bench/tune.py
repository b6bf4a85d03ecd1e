"""`pywebgpu tune`: how this adapter runs the kernels of workloads the fastest, measured and kept.

A round launches every kernel of a workload's step in another way, and the device's clock says how long each took; so
there are as many rounds as the kernel with the most launches has. What beat the templates' own rules is measured
again, and kept where it still does.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pywebgpu import devices
from pywebgpu.bench import measure
from pywebgpu.bench.workloads import TOKENS, WORKLOADS, Step, Workload, checked, named
from pywebgpu.errors import CompileError, DeviceError
from pywebgpu.hosts import chromium, node
from pywebgpu.kernels import templates, tuning
from pywebgpu.kernels.launch import Case, Launch, Problem, Tuning
from pywebgpu.kernels.templates import matmul_staged
from pywebgpu.runtime import program_cache, state

ROUNDS = 24  # launches of a kernel that are tried, spread over all that there are
RUNS = 3  # of each round, after one that compiles; the fastest counts
GAIN = 0.95  # of the time by the template's rule: a launch that is not faster than this is no gain

HOSTS = ("native", "node", "chromium")

Times = dict[Case, float]  # nanoseconds of a step that kernels of a case took
Say = Callable[[str], None]


def main(arguments: Sequence[str]) -> int:
    """The command. Exits with 1 where the adapter has no clock."""
    parser = argparse.ArgumentParser(
        prog="pywebgpu tune", description="Measures how kernels are launched best on this adapter, and keeps that."
    )
    parser.add_argument("workloads", nargs="*", type=checked, metavar="WORKLOAD", help="those of bench; the small")
    parser.add_argument("--tokens", type=int, default=TOKENS, help=f"of distilgpt2 ({TOKENS})")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"launches tried a kernel ({ROUNDS}); 0: all")
    parser.add_argument("--host", choices=HOSTS, default="native", help="node, chromium: in Pyodide there")
    parser.add_argument("--out", metavar="FILE", default="", help="writes what was found there instead")
    options = parser.parse_args(arguments)
    names = options.workloads or list(WORKLOADS)
    command = ["-m", "pywebgpu", "tune", *names, "--rounds", str(options.rounds), "--tokens", str(options.tokens)]
    if options.host == "node":
        return node.run([*command, *(["--out", options.out] if options.out else [])])
    if options.host == "chromium":
        if not options.out:
            parser.error("what that browser keeps goes with it: say --out FILE, or call tune in a page of your own")
        status, table = chromium.run([*command, "--out", "table.json"], wanted="table.json")
        Path(options.out).write_bytes(table)
        return status
    try:
        tune(names, rounds=options.rounds, out=options.out, say=print, tokens=options.tokens)
    except DeviceError as error:
        print(f"pywebgpu tune: {error}", file=sys.stderr)
        return 1
    return 0


def tune(
    names: Sequence[str] = tuple(WORKLOADS),
    *,
    rounds: int = ROUNDS,
    out: str = "",
    say: Say = lambda line: None,
    tokens: int = TOKENS,
) -> Tuning:
    """The launches that were faster than the templates' own, by case. They are used from now on and by later processes.

    out: a file that has them instead.  It runs where Python can wait: natively, in Node, in a page's worker; after each
    workload it keeps what was found so far. Raises DeviceError without a clock.
    """
    device: Any = devices.open_device("webgpu")
    if not device.has_clock:
        raise DeviceError(f"{device.adapter} has no clock: it lacks timestamp-query")
    target = device.target
    was_stored, state.default.is_stored = state.default.is_stored, False
    best: Tuning = {}
    try:
        for name in names:
            measured = _Tuner(device, replace(target, tuning={}), named(name, tokens), say).run(rounds)
            best = tuning.merged([best, measured])
            device.target = target
            place = out
            if out:
                Path(out).write_text(tuning.to_text(best), encoding="utf-8")
            else:
                place = device.keep_tuning(tuning.merged([target.tuning, best]))
            say(f"{len(best)} launches of {device.adapter} {f'are in {place}' if place else 'are kept nowhere'}")
    finally:
        state.default.is_stored = was_stored
        device.target = replace(target, tuning=tuning.merged([target.tuning, best]))
        program_cache.clear()
    return best


class _Tuner:
    """One workload on a device. `target` is the device's without a tuning."""

    def __init__(self, device: Any, target: Any, workload: Workload, say: Say) -> None:
        self._device, self._target, self._say, self._name = device, target, say, workload.name
        device.target = target
        self._engine, self._step = measure.prepare(workload, device)

    def run(self, rounds: int) -> Tuning:
        problems, rule = self._measured({})
        launches = {case: _spread(self._launches(case, problem), rounds) for case, problem in problems.items()}
        best: dict[Case, tuple[float, Launch]] = {}
        for rank in range(1, max(map(len, launches.values()), default=0)):
            tried = {
                case: tried_launches[rank] for case, tried_launches in launches.items() if rank < len(tried_launches)
            }
            for case, time in self._tried(tried).items():
                if case in tried and time < best.get(case, (rule[case], None))[0]:
                    best[case] = time, tried[case]
        confirmed = self._confirmed({case: launch for case, (_, launch) in best.items()})
        self._say(f"{self._name}: {len(problems)} kinds of kernels, {len(confirmed)} of them faster than by rule")
        return confirmed

    def _launches(self, case: Case, problem: Problem) -> list[Launch]:
        template = next(candidate for candidate in templates.load_all() if candidate.name == case.template)
        return list(template.launches(problem, self._target))

    def _confirmed(self, best: Tuning) -> Tuning:
        """Those that are faster when all are measured once more, as are the rules."""
        _, rule = self._measured({})
        times = self._tried(best)
        confirmed = {case: launch for case, launch in best.items() if times.get(case, rule[case]) < GAIN * rule[case]}
        for case, launch in confirmed.items():
            before, after = rule[case] / 1e3, times[case] / 1e3
            self._say(
                f"  {case.template} {case.shape_class} {case.layout}: {before:.0f} us -> {after:.0f} us by {launch}"
            )
        return confirmed

    def _tried(self, tried: Tuning) -> Times:
        """Nothing where a driver refuses one of them."""
        try:
            return self._measured(tried)[1]
        except CompileError as error:
            self._say(f"  a round was refused: {str(error).splitlines()[0]}")
            return {}

    def _measured(self, tried: Mapping[Case, Launch]) -> tuple[dict[Case, Problem], Times]:
        """The cases of a step's kernels, each with a problem, and their times."""
        device = self._device
        device.target = replace(self._target, tuning=dict(tried))
        program_cache.clear()
        _run(self._step, self._engine)
        _run(self._step, self._engine)  # Optimizers have made their state in the first one.
        problems: dict[Case, Problem] = {}
        fastest: Times = {}
        for _ in range(RUNS):
            device.time(True)
            _run(self._step, self._engine)
            times: Times = {}
            for timing in device.timings():
                parts: dict[int, Case] = {}  # by slot of a product's parts, its case: who adds them up belongs to it
                for dispatch, (start, end) in zip(timing.program.steps, timing.spans, strict=True):
                    kernel = timing.program.kernels[dispatch.kernel]
                    name, problem = kernel.problem
                    case = Case(name, problem.shape_class(), problem.formats, problem.layout)
                    problems.setdefault(case, problem)
                    read = {parts[slot] for slot in dispatch.slots if slot in parts}
                    for read_case in (case, *read):
                        times[read_case] = times.get(read_case, 0.0) + end - start
                    if kernel.name.endswith(matmul_staged.PART):
                        parts[dispatch.slots[-1]] = case
            fastest = {case: min(time, fastest.get(case, time)) for case, time in times.items()}
            device.time(False)
        return problems, fastest


def _run(step: Step, engine: measure.Engine) -> None:
    kept = step()
    engine.submit()
    engine.wait()
    del kept


def _spread(launches: list[Launch], most: int) -> list[Launch]:
    """As many as there may be: the first ones, which templates expect most of, and fewer and fewer of the others."""
    if not most or len(launches) <= most:
        return launches
    last, step = len(launches) - 1, max(most - 1, 1)
    return [launches[index] for index in sorted({max(round(last * (n / step) ** 2), n) for n in range(most)})]
