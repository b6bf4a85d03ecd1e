"""The hosts: what each computes on, and how a script of the tests runs in it."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pywebgpu.hosts import chromium
from tests import devices
from tests.hosts import chromium as page

ROOT = Path(__file__).parents[2]
# A script and its arguments, files for its working folder, the name of one to bring back: the status and that file.
Run = Callable[[Sequence[str], Mapping[str, bytes], str], tuple[int, bytes]]


@dataclass(frozen=True)
class Host:
    """`device` is what scripts compute on there; `missing()` says why it cannot run here, or ""."""

    name: str
    device: str
    run: Run
    missing: Callable[[], str]

    def results(self, script: str, *arguments: str, result: str, **given: bytes) -> bytes:
        """Runs a script of this folder. Returns the file `result` that it writes. Raises where it fails."""
        status, data = self.run([str(Path(__file__).with_name(script)), *arguments], given, result)
        assert status == 0, f"{script} ended with status {status} in {self.name}"
        return data


def in_process(*command: str) -> Run:
    """A process of this machine: `command` and the script."""

    def run(script: Sequence[str], given: Mapping[str, bytes], wanted: str = "") -> tuple[int, bytes]:
        devices.prepare_environment()
        with tempfile.TemporaryDirectory() as folder:
            for name, data in given.items():
                (Path(folder) / name).write_bytes(data)
            environment = os.environ | {"PYTHONPATH": str(ROOT)}
            status = subprocess.run(
                [sys.executable, *command, *script], cwd=folder, env=environment, check=False
            ).returncode
            return status, (Path(folder) / wanted).read_bytes() if wanted and status == 0 else b""

    return run


def in_chromium(script: Sequence[str], given: Mapping[str, bytes], wanted: str = "") -> tuple[int, bytes]:
    return page.run(script, dict(given), wanted)


def _why_no_chromium() -> str:
    return chromium.why_missing() or devices.why_no_node()


ALL = (
    Host("cpu", "cpu", in_process(), lambda: ""),
    Host("native", "webgpu", in_process(), devices.why_no_webgpu),
    Host("node", "webgpu", in_process("-m", "pywebgpu", "node"), devices.why_no_node),
    Host("chromium", "webgpu", in_chromium, _why_no_chromium),
)
HOSTS = {host.name: host for host in ALL}
