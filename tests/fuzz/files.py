"""Damaged files: each is loaded, or refused with a documented error, within a second of work and 256 MB.

`python -m tests fuzz-files [--count 100000] [--seed 0]` damages files of every format that this library reads, in
processes that may take no more. A failure is told with its number; `--only NUMBER` repeats it with its traceback.
"""

import argparse
import json
import multiprocessing
import os
import random
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import Any
from unittest import mock

from pywebgpu import devices
from pywebgpu.compiler import serialization, wire
from pywebgpu.errors import CompileError
from pywebgpu.exporter import player
from pywebgpu.io import safetensors, state, torchfile
from tests.fuzz import mutations

ROOT = Path(__file__).parents[2]
MAX_SECONDS = 1.0  # of the processor: others may work on this machine
MAX_BYTES = 256 << 20
STUCK_SECONDS = 120.0  # without a finished file: the alarm does not end what runs in C
BATCH = 50

Files = dict[str, list[bytes]]
Document = tuple[bytes, bytes]


class TooSlow(BaseException):
    """A file took longer than it may."""


@dataclass(slots=True)
class Report:
    """What became of the files, by format."""

    loaded: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)
    slowest: float = 0.0

    def add(self, other: "Report") -> None:
        self.loaded += other.loaded
        self.refused += other.refused
        self.failures += other.failures
        self.slowest = max(self.slowest, other.slowest)

    def __str__(self) -> str:
        lines = [f"{name:12} {self.loaded[name]:7} loaded {self.refused[name]:7} refused" for name in FORMATS]
        return "\n".join([*lines, f"slowest: {self.slowest * 1000:.0f} ms", *self.failures])


# The whole files


def whole_files() -> Files:
    """Files of every format, by its name. Only this needs PyTorch."""
    import torch

    base = torch.arange(24.0)
    value = {
        "model": torch.nn.Linear(3, 2).state_dict(),
        "views": [base.reshape(4, 6).T, base[3:9], base[:1].expand(5)],
        "kinds": [torch.ones(2, dtype=torch.bfloat16), torch.tensor(3), torch.nn.Parameter(torch.zeros(1))],
        "rest": {"epoch": 3, "name": "café", "range": (1, 2.5, None, True), "set": {1, 2}, "bytes": b"\0\xff"},
    }
    archive, stream = BytesIO(), BytesIO()
    torch.save(value, archive)
    torch.save(value, stream, _use_new_zipfile_serialization=False)
    ours = state.load(BytesIO(archive.getvalue()), "cpu")
    checkpoint = BytesIO()
    state.save_checkpoint(ours, checkpoint)
    plain = safetensors.save({"a": ours["views"][0], "b": ours["kinds"][1], "c": ours["kinds"][0]}, {"by": "us"})
    table = json.loads((ROOT / "tests" / "cases" / "broken_exports.json").read_text(encoding="utf-8"))
    parts = [json.dumps(table["program"]).encode(), safetensors.save(_weights(table))]
    programs = [json.dumps(step["program"]).encode() for step in table["program"]["programs"].values()]
    files = {"safetensors": [plain], "checkpoint": [checkpoint.getvalue()], "archive": [archive.getvalue()]}
    return files | {"stream": [stream.getvalue()], "export": parts, "cache": programs}


def _weights(table: dict[str, Any]) -> dict[str, Any]:
    from pywebgpu.tensor import create

    return {
        name: create.tensor(data, device="cpu").reshape(shape).float()
        for name, (_, shape, data) in table["weights"].items()
    }


# A format: how a file of it is damaged, and loaded


def damaged(name: str, files: Files, draw: random.Random) -> Any:
    """A file of a format with something wrong in it; of an export both."""
    data = draw.choice(files[name])
    others = [one for some in files.values() for one in some]
    if name == "export":
        return _damaged_export(files[name], others, draw)
    if draw.randrange(2):
        return mutations.of_bytes(data, others, draw)
    match name:
        case "safetensors" | "checkpoint":
            return mutations.of_header(data, draw)
        case "archive":
            return mutations.of_archive(data, draw)
        case "stream":
            return mutations.of_stream(data, 5, draw)
        case _:
            return mutations.text_of(mutations.of_json(json.loads(data), draw))


def _damaged_export(parts: list[bytes], others: list[bytes], draw: random.Random) -> Document:
    program, weights = parts
    match draw.randrange(8):
        case 0:
            return program, mutations.of_bytes(weights, others, draw)
        case 1:
            return program, mutations.of_header(weights, draw)
        case 2:
            return mutations.of_bytes(program, others, draw), weights
        case _:
            return mutations.text_of(mutations.of_json(json.loads(program), draw)), weights


def load_file(data: bytes, folder: Path) -> None:
    (folder / "file").write_bytes(data)
    state.load(folder / "file", "cpu")


def load_export(data: Document, folder: Path) -> None:
    (folder / "program.json").write_bytes(data[0])
    (folder / "weights.safetensors").write_bytes(data[1])
    player.load_program(folder, "null")
    devices.open_device("null").loaded.clear()  # type: ignore[attr-defined]


def load_cached(data: bytes, folder: Path) -> None:
    """With its seal, so that what is inside is looked at; and without, which is refused."""
    file = folder / "program.json"
    file.write_bytes(data)
    try:
        serialization.load_sealed(file)
    except CompileError:
        file.write_bytes(serialization._digest(file, data) + data)
        program = serialization.load_sealed(file)
        json.loads(wire.to_json(program))
        return
    raise AssertionError("it was read without its seal")


Loader = Callable[[Any, Path], None]
TORCH: tuple[type[Exception], ...] = (torchfile.TorchFileError, safetensors.SafetensorError)
FORMATS: dict[str, tuple[Loader, tuple[type[Exception], ...]]] = {
    "safetensors": (load_file, TORCH),  # The first bytes tell which format a file is said to have.
    "checkpoint": (load_file, TORCH),
    "archive": (load_file, TORCH),
    "stream": (load_file, TORCH),
    "export": (load_export, (player.PlayError, CompileError)),
    "cache": (load_cached, (CompileError,)),
}


def tried(number: int, files: Files, folder: Path, seed: int) -> tuple[str, bool]:
    """Damages and loads one file; whether it was loaded. Raises what is not documented."""
    name = list(FORMATS)[number % len(FORMATS)]
    load, documented = FORMATS[name]
    data = damaged(name, files, random.Random(f"{seed} {number}"))
    try:
        load(data, folder)
    except documented:
        return name, False
    return name, True


# Processes


def run(count: int, seed: int = 0, workers: int | None = None) -> Report:
    """Tries `count` files."""
    files, report = whole_files(), Report()
    context = multiprocessing.get_context("spawn")
    n_workers = workers or max(1, min(os.cpu_count() or 1, 8))
    results = context.Queue()
    numbers = [context.Value("q", first) for first in range(n_workers)]
    running = [
        context.Process(
            target=_work, args=(range(first, count, n_workers), files, seed, results, numbers[first]), daemon=True
        )
        for first in range(n_workers)
    ]
    # Reading files needs no GPU, and looking for one takes longer than a thousand of them.
    with mock.patch.dict(os.environ, PYWEBGPU_DEVICE="cpu"):
        for process in running:
            process.start()
    left, seen, since = set(range(n_workers)), [-1] * n_workers, [time.monotonic()] * n_workers
    while left:
        while not results.empty():
            report.add(results.get())
        for at in list(left):
            if numbers[at].value != seen[at]:
                seen[at], since[at] = numbers[at].value, time.monotonic()
            if not running[at].is_alive() and numbers[at].value < 0:
                left.discard(at)
            elif not running[at].is_alive() or time.monotonic() - since[at] > STUCK_SECONDS:
                report.failures.append(f"file {seen[at]} of seed {seed}: it ended the process, or never came to an end")
                running[at].kill()
                left.discard(at)
        time.sleep(0.05)
    while not results.empty():
        report.add(results.get())
    return report


def _work(numbers: range, files: Files, seed: int, results: Any, current: Any) -> None:
    """One process: batches of files, each within its limits."""
    _limit_memory(MAX_BYTES)
    memory = "/dev/shm"  # Files of a disk would take longer than reading them.
    with tempfile.TemporaryDirectory(dir=memory if os.path.isdir(memory) else None) as folder:
        report = Report()
        for at, number in enumerate(numbers):
            current.value = number
            start = time.process_time()
            try:
                with _alarm(MAX_SECONDS):
                    name, is_loaded = tried(number, files, Path(folder), seed)
                (report.loaded if is_loaded else report.refused)[name] += 1
            except (Exception, TooSlow) as error:
                report.failures.append(f"file {number} of seed {seed}: {type(error).__name__}: {str(error)[:200]}")
            report.slowest = max(report.slowest, time.process_time() - start)
            if at % BATCH == BATCH - 1:
                results.put(report)
                report = Report()
        results.put(report)
    results.close()
    results.join_thread()
    current.value = -1


def _limit_memory(n_bytes: int) -> None:
    """From now on the process may take so much more. Only Linux tells how much it has."""
    if sys.platform == "linux":
        import resource

        pages = int(Path("/proc/self/statm").read_text().split()[0])
        most = pages * resource.getpagesize() + n_bytes
        resource.setrlimit(resource.RLIMIT_AS, (most, most))


@contextmanager
def _alarm(seconds: float) -> Iterator[None]:
    """Raises TooSlow in the block after so much work of the processor; nothing where the system has no such alarm."""
    if not hasattr(signal, "setitimer"):
        yield
        return

    def ring(*arguments: Any) -> None:
        raise TooSlow(f"longer than {seconds} s")

    signal.signal(signal.SIGPROF, ring)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests fuzz-files", description=__doc__)
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", type=int, help="the number of one file")
    options = parser.parse_args(arguments)
    if options.only is not None:
        with tempfile.TemporaryDirectory() as folder:
            try:
                print(*tried(options.only, whole_files(), Path(folder), options.seed))
            except Exception:
                traceback.print_exc()
        return 0
    start = time.monotonic()
    report = run(options.count, options.seed)
    seconds = time.monotonic() - start
    print(report)
    rate = options.count / seconds
    print(f"{options.count} files in {seconds:.0f} s, {rate:.0f} a second; {len(report.failures)} failed")
    return 1 if report.failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
