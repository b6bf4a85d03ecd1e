"""Holds the hosts against PyTorch: the same cases in each of them, and one table of what passed.

    python -m tests conformance [--hosts cpu,native,node,chromium] [--all] [--shared] [AREA...] [-k PATTERN]

Inputs are drawn and references computed here. Hosts with NumPy run the cases in this process; to the others cases go
by name, inputs and results as bytes, and everything is compared here.
"""

import argparse
import functools
import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from fnmatch import fnmatch
from typing import Any

import numpy as np
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

from tests.cases import run
from tests.cases.case import Case, arrays
from tests.cases.tables import AREAS, RAISING, TABLES
from tests.hosts import packing
from tests.hosts.host import HOSTS, Host
from tests.hosts.stand_in import call_key, draw_key
from tests.oracle import oracle

WITHOUT_NUMPY = "needs pywebgpu.devices.cpu"  # what who asks for device cpu is told where stand_in.py is NumPy
EVERY = 25  # without --all: one case in so many, and the first of each first word of a name
SHARED = 2  # with --shared: of those, one in so many

Tables = dict[str, dict[str, Case]]  # the cases of each area, by name


@dataclass(frozen=True)
class Failure:
    """A case that raised: the names of all classes of the exception, and its text."""

    kinds: Sequence[str]
    text: str

    @classmethod
    def of(cls, error: Exception) -> "Failure":
        return cls([kind.__name__ for kind in type(error).__mro__], str(error))


Outcome = run.Result | Failure | None
Outcomes = Callable[[str, Case], Outcome]  # by area and case


@dataclass
class Count:
    passed: int = 0
    failed: list[str] = field(default_factory=list)
    skipped: Counter[str] = field(default_factory=Counter)  # by reason

    def __str__(self) -> str:
        return f"{self.passed} / {len(self.failed)} / {self.skipped.total()}"


def choose(areas: Sequence[str], pattern: str, *, all_cases: bool) -> Tables:
    """The cases to run. Which ones depends on the tables only."""
    tables: Tables = {}
    for area in areas:
        words: set[str] = set()
        tables[area] = {}
        for number, case in enumerate(TABLES[area]):
            word = case.name.split("_")[0]
            if fnmatch(case.name, pattern) and (all_cases or word not in words or number % EVERY == 0):
                tables[area][case.name] = case
            words.add(word)
    return tables


def share(tables: Tables, index: int, count: int) -> Tables:
    """The part of the cases that one of `count` hosts takes."""
    return {area: dict(list(table.items())[index::count]) for area, table in tables.items()}


def conformance(hosts: Sequence[Host], tables: Tables, *, shared: bool = False) -> dict[str, dict[str, Count]]:
    """What each host makes of the cases, by host and area. shared: each case is run by one of the hosts."""
    of_host = {host.name: share(tables, index, len(hosts)) if shared else tables for index, host in enumerate(hosts)}
    with Recorder() as recorder:
        expected = {
            area: {name: reference(area, case) for name, case in table.items()} for area, table in tables.items()
        }
    found = {}
    apart = [host for host in hosts if host.name not in ("cpu", "native")]
    # Python in a page or in Node has one core: the hosts take theirs side by side.
    with ThreadPoolExecutor(max(len(apart), 1)) as threads:
        waiting = {host.name: threads.submit(there, host, of_host[host.name], recorder.draws) for host in apart}
        for host in hosts:
            get = waiting[host.name].result() if host.name in waiting else here(host)
            counts = {area: Count() for area in tables}
            for area, table in of_host[host.name].items():
                for name, case in table.items():
                    judge(counts[area], case, get(area, case), expected[area][name], host)
            found[host.name] = counts
    return found


@contextmanager
def quiet() -> Iterator[None]:
    """No advice to users, and the only attention of PyTorch's that can be differentiated twice."""
    with oracle.quiet(), sdpa_kernel(SDPBackend.MATH):
        yield


def reference(area: str, case: Case) -> run.Result | Exception | None:
    with quiet():
        return run.failure(case, torch, "cpu") if area in RAISING else run.run(case, torch, "cpu")


def here(host: Host) -> Outcomes:
    """Runs cases in this process."""

    def outcome(area: str, case: Case) -> Outcome:
        if host.device not in case.devices:
            return None
        try:
            with quiet():
                return run.run(case, oracle.library(), host.device)
        except Exception as error:
            return Failure.of(error)

    return outcome


def there(host: Host, tables: Tables, draws: dict[str, Any]) -> Outcomes:
    """Runs all cases in a host without NumPy, by inside.py."""
    chosen = {
        area: {name: arrays(case) for name, case in table.items() if host.device in case.devices}
        for area, table in tables.items()
    }
    start = time.monotonic()
    job = packing.packed({"device": host.device, "inputs": chosen, "draws": draws})
    data = host.results("inside.py", "job", "results", result="results", job=job)
    print(f"{host.name}: {time.monotonic() - start:.0f} s", flush=True)
    found = packing.unpacked(data, lambda dtype, shape, data: np.frombuffer(data, dtype).reshape(shape))

    def outcome(area: str, case: Case) -> Outcome:
        given = found[area].get(case.name)
        if given is None:
            return None
        if "error" in given:
            return Failure(given["error"], given["text"])
        return run.Result(tuple(map(leaf, given["outputs"])), tuple(map(leaf, given["gradients"])))

    return outcome


def leaf(value: Any) -> Any:
    if isinstance(value, dict) and "values" in value:
        return run.Value(value["dtype"], value["values"], value["requires_grad"])
    if isinstance(value, dict) and "complex" in value:
        return complex(*value["complex"])
    return value


def judge(count: Count, case: Case, found: Outcome, expected: run.Result | Exception | None, host: Host) -> None:
    """Adds a case to the counts."""
    if host.device not in case.devices:
        count.skipped[f"they have no meaning on device {host.device}"] += 1
    elif isinstance(found, Failure) and ("Missing" in found.kinds or WITHOUT_NUMPY in found.text):
        count.skipped["they need NumPy itself"] += 1
    elif isinstance(expected, Exception):
        wanted = "RuntimeError" if isinstance(expected, NotImplementedError) else type(expected).__name__
        if isinstance(found, Failure) and wanted in found.kinds and found.text:
            count.passed += 1
        else:
            count.failed.append(f"{case.name}: {found}, where PyTorch raises {expected!r}")
    elif isinstance(found, run.Result) and isinstance(expected, run.Result):
        try:
            run.check(case, found, expected, engine(host))
            count.passed += 1
        except AssertionError as error:
            count.failed.append(str(error))
    else:
        count.failed.append(f"{case.name}: {found or 'the host gives nothing'}")


@functools.cache
def engine(host: Host) -> str:
    """What executes kernels there, by the names of tests/cases/tolerance.py."""
    if host.name in ("cpu", "native"):
        return oracle.engine(host.device)
    return "swiftshader" if oracle.engine("webgpu") in ("lavapipe", "swiftshader") else "gpu"


class Recorder:
    """Stands for numpy.random.default_rng while references are computed, and keeps what was drawn."""

    def __init__(self) -> None:
        self.draws: dict[str, Any] = {}
        self._real = np.random.default_rng

    def __enter__(self) -> "Recorder":
        np.random.default_rng = lambda seed: _Recording(self._real(seed), seed, self.draws)  # type: ignore[assignment]
        return self

    def __exit__(self, *_: object) -> None:
        np.random.default_rng = self._real


class _Recording:
    def __init__(self, real: np.random.Generator, seed: int, draws: dict[str, Any]) -> None:
        self._real, self._seed, self._draws, self._calls = real, seed, draws, []

    def __getattr__(self, method: str) -> Any:
        def draw(*args: Any, **options: Any) -> Any:
            found = getattr(self._real, method)(*args, **options)
            self._calls.append(call_key(method, args, options))
            self._draws[draw_key(self._seed, self._calls)] = np.asarray(found)
            return found

        return draw


def table(found: dict[str, dict[str, Count]]) -> str:
    """Host by host and area by area: how many cases passed, failed, and were skipped; then why they were."""
    areas = list(next(iter(found.values())))
    rows = [["passed / failed / skipped", *found]]
    rows += [[area, *(str(counts[area]) for counts in found.values())] for area in areas]
    totals = {host: total(counts) for host, counts in found.items()}
    rows.append(["all", *map(str, totals.values())])
    lines = [f"{name:25}" + "".join(f"{cell:>16}" for cell in cells) for name, *cells in rows]
    reasons = [f"{host}: {n} skipped: {why}" for host, count in totals.items() for why, n in count.skipped.items()]
    return "\n".join([*lines, *reasons])


def total(counts: dict[str, Count]) -> Count:
    whole = Count()
    for count in counts.values():
        whole.passed += count.passed
        whole.failed += count.failed
        whole.skipped += count.skipped
    return whole


def main(arguments: Sequence[str]) -> bool:
    """Prints what failed, then the table. False where something failed, or where a host is missing on CI."""
    parser = argparse.ArgumentParser(prog="python -m tests conformance", description=__doc__.split("\n")[0])
    parser.add_argument("areas", nargs="*", metavar="AREA", help=f"all if none; there are {', '.join(AREAS)}")
    parser.add_argument("--hosts", default=",".join(HOSTS), help="with commas between; default: %(default)s")
    parser.add_argument("--all", action="store_true", help=f"every case, and not one in {EVERY}")
    parser.add_argument(
        "--shared", action="store_true", help=f"one case in {SHARED} of these, and each on one of the hosts"
    )
    parser.add_argument("-k", default="", metavar="PATTERN", help="only cases whose name holds it, and all of those")
    options = parser.parse_args(arguments)
    asked = options.hosts.split(",")
    unknown = [*(set(asked) - set(HOSTS)), *(set(options.areas) - set(AREAS))]
    if unknown:
        parser.error(f"there is no host or area {', '.join(sorted(unknown))}")
    missing = {name: why for name in asked if (why := HOSTS[name].missing())}
    for name, why in missing.items():
        print(f"not tested on {name}: {why}")
    hosts = [HOSTS[name] for name in asked if name not in missing]
    passed = not (missing and os.environ.get("CI"))
    if hosts:
        tables = choose(options.areas or AREAS, f"*{options.k}*", all_cases=options.all or bool(options.k))
        tables = share(tables, 0, SHARED) if options.shared else tables
        found = conformance(hosts, tables, shared=options.shared)
        for host, counts in found.items():
            for failure in total(counts).failed:
                print(f"FAILED {host}: {failure[:300]}")
                passed = False
        print(table(found))
    return passed


if __name__ == "__main__":
    sys.exit(not main(sys.argv[1:]))
