"""Workers that run tests, a process and its children each: what hangs or crashes is the result of one test."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
IMPORT_SECONDS = 120
GONE = ("Crash", "Hang")  # types of failures that end the worker
UNIT = 300  # tests of one process: what they leave behind does not add up


@dataclass(frozen=True, slots=True)
class Setting:
    """Where the source lies, which library plays torch, the device whose tests run, and a test's time in seconds."""

    folder: Path
    library: str
    device: str
    seconds: float


class Worker:
    """A process with one file of tests imported. Raises ImportError, with what it says as `.args[0]`."""

    def __init__(self, setting: Setting, file: str) -> None:
        self.scratch = tempfile.TemporaryDirectory(prefix="upstream-", ignore_cleanup_errors=True)
        environment = os.environ | {
            "PYTHONPATH": str(ROOT),
            "PYWEBGPU_DEVICE": "cpu",
            "PYTORCH_TESTING_DEVICE_ONLY_FOR": {"webgpu": "privateuse1"}.get(setting.device, setting.device),
            "TMPDIR": self.scratch.name,
            "OMP_NUM_THREADS": "1",
        }
        command = [sys.executable, "-m", "tests.upstream.worker"]
        self.process = subprocess.Popen(
            [*command, str(setting.folder), setting.library, file, setting.device],
            cwd=self.scratch.name,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            start_new_session=True,
        )
        self.lines: queue.Queue[str | None] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()
        first = self.line(IMPORT_SECONDS)
        if not first or "cannot" in first:
            self.end()
            raise ImportError(
                first["cannot"] if first else {"type": "Crash", "message": "while imported", "frames": []}
            )
        self.tests: list[str] = first["tests"]

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.put(line)
        self.lines.put(None)

    def line(self, seconds: float) -> dict[str, Any] | None:
        """The next line; None of a process that ended. Raises queue.Empty after some seconds."""
        line = self.lines.get(timeout=seconds)
        return None if line is None else json.loads(line)

    def send(self, names: Sequence[str]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(list(names)) + "\n")
        self.process.stdin.flush()

    def end(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.scratch.cleanup()


def listed(setting: Setting, file: str) -> list[str]:
    """All tests of a file. Raises ImportError."""
    worker = Worker(setting, file)
    worker.end()
    return worker.tests


def run(setting: Setting, file: str, names: Sequence[str]) -> Iterator[dict[str, Any]]:
    """What became of tests of a file, as the worker says it."""
    left = list(names)
    while left:
        try:
            worker = Worker(setting, file)
        except (ImportError, queue.Empty) as error:
            state = error.args[0] if error.args else {"type": "Hang", "message": "while imported", "frames": []}
            yield from ({"end": name, "status": "failed", **state, "imported": False} for name in left)
            return
        try:
            worker.send(left)
            is_alive = True
            while left and is_alive:
                result = _result(worker, left.pop(0), setting.seconds)
                is_alive = result["type"] not in GONE if "type" in result else True
                yield result
        finally:
            worker.end()


def _result(worker: Worker, name: str, seconds: float) -> dict[str, Any]:
    try:
        while (line := worker.line(seconds)) is not None:
            if line.get("end") == name:
                return line
        kind, message = "Crash", f"status {worker.process.wait()}"
    except queue.Empty:
        kind, message = "Hang", f"more than {seconds} seconds"
    worker.end()
    return {"end": name, "status": "failed", "type": kind, "message": message, "frames": []}


def run_all(setting: Setting, files: dict[str, list[str]], jobs: int) -> Iterator[tuple[str, dict[str, Any]]]:
    """What became of tests of many files, in some processes side by side: the file, and what its worker says."""
    units = [(file, names[at : at + UNIT]) for file, names in files.items() for at in range(0, len(names), UNIT)]
    results: queue.Queue[tuple[str, dict[str, Any]] | None] = queue.Queue()

    def work(unit: tuple[str, list[str]]) -> None:
        for result in run(setting, *unit):
            results.put((unit[0], result))

    with ThreadPoolExecutor(jobs) as pool:
        futures = [pool.submit(work, unit) for unit in units]
        for _ in range(sum(len(names) for _, names in units)):
            while True:
                with contextlib.suppress(queue.Empty):
                    result = results.get(timeout=1)
                    break
                for future in futures:
                    if future.done():
                        future.result()  # Raises what went wrong in a thread.
            assert result is not None
            yield result
