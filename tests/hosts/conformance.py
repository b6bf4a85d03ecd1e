"""Holds a host against PyTorch: draws inputs and computes references here, runs the cases there, compares here.

python -m tests.hosts.conformance [AREA...] [-k PATTERN]
"""

import importlib
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

from tests.cases import run
from tests.cases.case import Case, arrays
from tests.hosts import packing
from tests.hosts.stand_in import call_key, draw_key
from tests.oracle.oracle import quiet

CASES = Path(run.__file__).parent
AREAS = sorted(
    name
    for name in (path.stem for path in CASES.glob("*.py"))
    if hasattr(importlib.import_module(f"tests.cases.{name}"), "CASES")
)
FAIL = {"errors", "misuse"}  # areas whose cases must raise

Start = Callable[[Sequence[str]], int]  # runs a Python script with its arguments in the host, and waits


@dataclass
class Count:
    passed: int = 0
    failed: list[str] = field(default_factory=list)
    skipped: int = 0


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


def conformance(start: Start, device: str, engine: str, areas: Sequence[str], pattern: str) -> dict[str, Count]:
    """Counts by area. `engine` is a name of tests/cases/tolerance.py; `pattern` picks cases by name."""
    counts = {area: Count() for area in areas}
    job: dict[str, Any] = {"device": device, "areas": {}, "inputs": {}}
    expected: dict[tuple[str, str], run.Result | Exception | None] = {}
    tables: dict[str, dict[str, Case]] = {}
    inputs = {area: {} for area in areas}
    for area in areas:
        cases = [case for case in importlib.import_module(f"tests.cases.{area}").CASES if fnmatch(case.name, pattern)]
        tables[area] = {case.name: case for case in cases if device in case.devices}
        counts[area].skipped = len(cases) - len(tables[area])
        inputs[area] = {name: arrays(case) for name, case in tables[area].items()}
    with Recorder() as recorder, quiet(), sdpa_kernel(SDPBackend.MATH):
        run_arrays, run.arrays = (
            run.arrays,
            lambda case: [array.copy() for array in inputs[_area(tables, case)][case.name]],
        )
        for area in areas:
            for name, case in tables[area].items():
                expected[area, name] = _reference(case, must_fail=area in FAIL)
        run.arrays = run_arrays
    job |= {"areas": {area: list(tables[area]) for area in areas}, "inputs": inputs, "draws": recorder.draws}
    found = _run_there(start, job)
    for area in areas:
        for name, case in tables[area].items():
            _judge(counts[area], case, found[area].get(name), expected[area, name], engine)
    return counts


def _area(tables: dict[str, dict[str, Case]], case: Case) -> str:
    return next(area for area, table in tables.items() if table.get(case.name) is case)


def _reference(case: Case, *, must_fail: bool) -> run.Result | Exception | None:
    return run.failure(case, torch, "cpu") if must_fail else run.run(case, torch, "cpu")


def _run_there(start: Start, job: dict[str, Any]) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        job_file, results_file = Path(folder) / "job", Path(folder) / "results"
        packing.write(job_file, job)
        status = start([str(Path(__file__).with_name("inside.py")), str(job_file), str(results_file)])
        if status:
            raise RuntimeError(f"the host ended with status {status}")
        return packing.read(results_file, lambda dtype, shape, data: np.frombuffer(data, dtype).reshape(shape))


def _judge(count: Count, case: Case, found: Any, expected: Any, engine: str) -> None:
    if found is None:
        count.failed.append(f"{case.name}: the host gives nothing")
    elif "Missing" in found.get("error", ()):
        count.skipped += 1  # It is about NumPy's own arrays.
    elif isinstance(expected, Exception):
        wanted = "RuntimeError" if isinstance(expected, NotImplementedError) else type(expected).__name__
        if wanted in found.get("error", ()) and found["text"]:
            count.passed += 1
        else:
            count.failed.append(f"{case.name}: {found}, where PyTorch raises {expected!r}")
    elif "error" in found:
        count.failed.append(f"{case.name}: {found['error'][0]}: {found['text']}")
    else:
        result = run.Result(tuple(map(_leaf, found["outputs"])), tuple(map(_leaf, found["gradients"])))
        try:
            run.check(case, result, expected, engine)
            count.passed += 1
        except AssertionError as error:
            count.failed.append(str(error))


def _leaf(value: Any) -> Any:
    if isinstance(value, dict) and "values" in value:
        return run.Value(value["dtype"], value["values"], value["requires_grad"])
    return value


def table(host: str, counts: dict[str, Count]) -> str:
    """Area by area: how many cases passed, failed, and had no meaning there."""
    lines = [f"{host:12} {'passed':>7} {'failed':>7} {'skipped':>8}"]
    rows = [(area, count.passed, len(count.failed), count.skipped) for area, count in counts.items()]
    rows.append(("all", *(sum(row[column] for row in rows) for column in (1, 2, 3))))
    return "\n".join(
        [*lines, *(f"{name:12} {passed:7} {failed:7} {skipped:8}" for name, passed, failed, skipped in rows)]
    )


def main(arguments: Sequence[str]) -> bool:
    """The tables in Node: prints what failed, and counts by area."""
    pattern = "*"
    areas = list(arguments)
    if "-k" in areas:
        at = areas.index("-k")
        pattern = f"*{areas[at + 1]}*"
        del areas[at : at + 2]
    start = lambda command: subprocess.run([sys.executable, "-m", "pywebgpu", "node", *command], check=False).returncode  # noqa: E731
    counts = conformance(start, "webgpu", "swiftshader", areas or AREAS, pattern)
    for area, count in counts.items():
        for failure in count.failed:
            print(f"FAILED {area}: {failure[:300]}")
    print(table("node", counts))
    return not any(count.failed for count in counts.values())


if __name__ == "__main__":
    sys.exit(not main(sys.argv[1:]))
