"""`pywebgpu bench --host chromium --peer jax-js`: other libraries' steps next to ours, in turns in one browser.

Each library has a page of its own and starts from equal weights. They take turns of a few steps, so that what else the
machine does meets them all, and every loss is held against PyTorch's, or against ours where that is not installed.
"""

from __future__ import annotations

import importlib
import json
import os
import statistics
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pywebgpu.bench import measure, torch_baseline, workloads
from pywebgpu.bench.workloads import Workload
from pywebgpu.errors import PywebgpuError
from pywebgpu.hosts import chromium, site

if TYPE_CHECKING:
    from playwright.sync_api import Browser

PEERS = {"jax-js": "@jax-js/jax", "tfjs": "@tensorflow/tfjs"}  # by name: the package that its folder installs
ROUNDS = 5
AGREE = 1e-4  # of a loss, or of 1 where it is smaller
TRAINED = tuple(name for name, workload in workloads.WORKLOADS.items() if workload.training)
CALL = "async (code) => await python.runPythonAsync(code)"
OURS = "import os, sys; sys.path.insert(0, os.getcwd()); from pywebgpu.bench import page_runner"

Samples = list[dict[str, Any]]  # what a Sample holds: ms, loss, counts


class CompareError(PywebgpuError, RuntimeError):
    """A peer is not installed, or computes something else. The message says which, and what to do."""


@dataclass(frozen=True, slots=True)
class Entrant:
    """A library in its page: `build` makes a workload ready, `run` does its next steps."""

    library: str
    build: Callable[[Workload], None]
    run: Callable[[str, int], Samples]


@dataclass(frozen=True, slots=True)
class Result:
    """A library's steady steps of one workload; times and counts as in a Measurement.

    ratio: the time next to the peer's, the median over the rounds; below 1 is faster than the peer.
    loss_error: the largest difference from the losses that all are held against.  load: the machine's before and after
    (see _load), and its cores.
    """

    name: str
    library: str
    host: str
    adapter: str
    ms: float
    ms_min: float
    ms_max: float
    first_ms: float
    ratio: float
    dispatches: int
    submits: int
    steps: int
    loss_first: float
    loss_last: float
    loss_error: float
    load: tuple[float, float, int]


def folder(name: str) -> Path:
    """Where a peer is installed. Raises CompareError where it is not."""
    path = site.PEERS / name.replace("-", "")
    if not path.is_dir():
        raise CompareError(f"{name}: peers are measured from a checkout of pywebgpu, and {path} is not there")
    if not (path / "node_modules" / PEERS[name] / "package.json").exists():
        raise CompareError(f"{name} is not installed: run make peers    (or, in {path}: npm ci)")
    return path


def run(name: str, chosen: Sequence[str], steps: int) -> list[Result]:
    """Measures workloads in this library, eager and compiled, and in a peer.

    Raises CompareError where the peer is missing or where losses differ, ChromiumError and SiteError.
    """
    results = []
    with _opened(name) as (entrants, adapter):
        for workload in [workloads.WORKLOADS[workload_name] for workload_name in chosen]:
            before = _load()
            samples, rounds = _turns(workload, entrants, steps)
            load = (before, _load(), os.cpu_count() or 1)
            errors = _errors(workload, samples)
            for library, taken in samples.items():
                ratio = _ratio(rounds[library], rounds[entrants[-1].library])
                facts: dict[str, Any] = {"host": "browser", "adapter": adapter, "load": load}
                facts |= {"ratio": ratio, "loss_error": errors[library]}
                results.append(Result(workload.name, library, **facts, **_numbers(taken)))
    return results


@contextmanager
def _opened(name: str) -> Iterator[tuple[list[Entrant], str]]:
    """This library twice, then the peer, and the adapter's name."""
    peer = folder(name)
    package = json.loads((peer / "node_modules" / PEERS[name] / "package.json").read_text(encoding="utf-8"))
    with chromium.served(chromium.Pages({})) as address, chromium.launched(software=False) as browser:
        eager, adapter = _ours(browser, address, "pywebgpu", is_compiled=False)
        compiled, _ = _ours(browser, address, "pywebgpu, compiled", is_compiled=True)
        theirs = _theirs(browser, f"{address}peers/{peer.name}/", f"{name} {package['version']}")
        yield [eager, compiled, theirs], adapter


def _ours(browser: Browser, address: str, library: str, *, is_compiled: bool) -> tuple[Entrant, str]:
    page = chromium.start_python(browser, address)
    page.evaluate(CALL, f"{OURS}; ours = page_runner.Turns(is_compiled={is_compiled})")

    def build(workload: Workload) -> None:
        page.evaluate(CALL, f"ours.build({workload.name!r})")

    def run(name: str, steps: int) -> Samples:
        text = "async (code) => JSON.parse(await python.runPythonAsync(code))"
        samples: Samples = page.evaluate(text, f"ours.run({name!r}, {steps})")
        return samples

    return Entrant(library, build, run), page.evaluate(CALL, "ours.adapter")


def _theirs(browser: Browser, address: str, library: str) -> Entrant:
    page = browser.new_page()
    page.set_default_timeout(0)
    page.goto(f"{address}index.html")
    page.evaluate("async () => { globalThis.bench = await bench; }")

    def build(workload: Workload) -> None:
        training, known = workload.training, page.evaluate("() => bench.trained")
        if training is None or workload.name not in known:
            raise CompareError(f"{library} has no {workload.name} here: only {', '.join(known)}")
        start = training.as_data(importlib.import_module("pywebgpu"))
        page.evaluate("async ([name, start]) => await bench.build(name, start)", [workload.name, start])

    def run(name: str, steps: int) -> Samples:
        samples: Samples = page.evaluate("async ([name, steps]) => await bench.run(name, steps)", [name, steps])
        return samples

    return Entrant(library, build, run)


def _turns(
    workload: Workload, entrants: list[Entrant], steps: int
) -> tuple[dict[str, Samples], dict[str, list[float]]]:
    """All samples by library, and the median ms of each round. Every other round goes the other way about."""
    samples: dict[str, Samples] = {}
    rounds: dict[str, list[float]] = {entrant.library: [] for entrant in entrants}
    for entrant in entrants:
        entrant.build(workload)
        samples[entrant.library] = entrant.run(workload.name, measure.WARM_UP)
    n = min(ROUNDS, steps)
    for turn in range(n):
        share = steps * (turn + 1) // n - steps * turn // n
        for entrant in entrants[:: -1 if turn % 2 else 1]:
            taken = entrant.run(workload.name, share)
            samples[entrant.library] += taken
            rounds[entrant.library].append(statistics.median(sample["ms"] for sample in taken))
    return samples, rounds


def _load() -> float:
    """The mean number of running processes in the last minute; 0 where the system does not tell."""
    return round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else 0.0


def _ratio(ours: list[float], theirs: list[float]) -> float:
    return round(statistics.median(a / b for a, b in zip(ours, theirs, strict=True)), 4)


def _numbers(samples: Samples) -> dict[str, Any]:
    taken = [measure.Sample(sample["ms"], sample["ms"], sample["counts"], sample["loss"]) for sample in samples]
    numbers = measure.summary(taken)
    del numbers["host_ms"]
    counts = [sample.counts for sample in taken[measure.WARM_UP :]]
    return numbers | {
        kind: statistics.median_low([counted[kind] for counted in counts]) for kind in ("dispatches", "submits")
    }


def _errors(workload: Workload, samples: dict[str, Samples]) -> dict[str, float]:
    """How far each library's losses are from PyTorch's, or from ours. Raises CompareError where that is far."""
    losses = {library: [sample["loss"] for sample in taken] for library, taken in samples.items()}
    reference = next(iter(losses.values()))
    expected = torch_baseline.losses(workload, len(reference)) or reference
    errors = {}
    for library, library_losses in losses.items():
        for step, (ours, theirs) in enumerate(zip(library_losses, expected, strict=True)):
            if not abs(ours - theirs) <= AGREE * max(abs(theirs), 1.0):  # So written, it tells of NaN as well.
                wrong = f"the loss of {library} in step {step} is {ours:.7g}, not {theirs:.7g}"
                raise CompareError(f"{workload.name}: {wrong}")
        errors[library] = max(abs(ours - theirs) for ours, theirs in zip(library_losses, expected, strict=True))
    return errors
