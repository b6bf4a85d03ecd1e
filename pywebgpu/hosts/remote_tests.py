"""This machine's end of `pytest --pywebgpu-host node,chromium`: a process for each host, which is asked test by test.

pytest's own reports come back, so values, exceptions, tracebacks and prints are shown as those of any test.
"""

from __future__ import annotations

import base64
import importlib.util
import json
import os
import queue
import re
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from pywebgpu.hosts.test_server import MARK

PACKAGE = Path(__file__).parents[1]
NEEDED = ("_pytest", "pytest", "py", "pluggy", "iniconfig", "packaging", "pygments", "pytest_pywebgpu")  # pytest, there
COMMANDS = {"node": ("pywebgpu", "node", "-m", "pywebgpu.hosts.test_server"), "chromium": ("pywebgpu.hosts.test_page",)}
RESULTS = Path("test-results", "pywebgpu")
START = 120.0  # seconds in which a host starts: they are no test's


class HostError(RuntimeError):
    """A host's process ended, or did not answer."""


class Remote:
    """The plugin: tests of node and chromium run there."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.sessions: dict[str, Session] = {}
        self.failed: dict[str, str] = {}  # hosts that do not start, and why
        self.folder = ""

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
        host = host_of(item)
        if host not in COMMANDS:
            return None
        following = nextitem.nodeid if nextitem is not None and host_of(nextitem) == host else ""
        item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        for report in self._reports(host, item, following):
            item.ihook.pytest_runtest_logreport(report=report)
        item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        return True

    def pytest_unconfigure(self) -> None:
        for session in self.sessions.values():
            session.close()
        if self.folder:
            shutil.rmtree(self.folder, ignore_errors=True)

    def _reports(self, host: str, item: pytest.Item, following: str) -> Iterator[pytest.TestReport]:
        try:
            session = self._session(host, item.session)
            reply = session.ask({"test": item.nodeid, "next": following})
        except HostError as error:
            if host in self.sessions:
                self.sessions.pop(host).close()
            yield _failure(item, f"{host}: {error}")
            return
        if reply["missing"]:
            yield _failure(item, f"{host} has no such test: {reply['missing']}")
        sections = self._written(host, item, reply["files"]) + session.said()
        for data in reply["reports"]:
            report = self.config.hook.pytest_report_from_serializable(config=self.config, data=data)
            report.sections = [(name, text) for name, text in report.sections]  # JSON has no tuples.
            report.user_properties = [(name, value) for name, value in report.user_properties]
            report.location = item.location
            if isinstance(report.longrepr, list):
                report.longrepr = tuple(report.longrepr)
            if report.when == "call":
                report.sections += sections
            yield report

    def _session(self, host: str, tests: pytest.Session) -> Session:
        """Raises HostError, at once where the host did not start before."""
        if host in self.failed:
            raise HostError(self.failed[host])
        if host not in self.sessions:
            try:
                self.sessions[host] = Session(host, self._job(host, tests))
            except HostError as error:
                self.failed[host] = "it did not start, see the first of these tests"
                raise HostError(f"it did not start: {error}") from None
        return self.sessions[host]

    def _written(self, host: str, item: pytest.Item, files: dict[str, str]) -> list[tuple[str, str]]:
        """Keeps what a test wrote where this machine cannot see it; a section of the report says where."""
        root = self.config.rootpath
        lines = []
        for path, data in files.items():
            place = root / RESULTS / host / re.sub(r"[^-.\w]+", "_", item.nodeid) / os.path.relpath(path, root)
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(base64.b64decode(data))
            lines.append(str(place.relative_to(root)))
        return [(f"Files written in {host}", "\n".join(lines))] if lines else []

    def _job(self, host: str, session: pytest.Session) -> dict[str, Any]:
        config = self.config
        option = config.option
        if not self.folder:
            self.folder = tempfile.mkdtemp(prefix="pywebgpu-tests-")
            _bundle(Path(self.folder), [*NEEDED, *config.getoption("--pywebgpu-with")])
        files = dict.fromkeys(str(item.path) for item in session.items if host_of(item) == host)
        ini = [] if config.inipath is None else ["-c", str(config.inipath)]
        arguments = [
            *files, *ini, "--rootdir", str(config.rootpath), "-o", "addopts=", "-o", "required_plugins=", "-p",
            "no:cacheprovider", "-p", "no:faulthandler", "-W", "ignore::pytest.PytestConfigWarning", "-p",
            "pytest_pywebgpu", "--pywebgpu-host", host, f"--tb={option.tbstyle}", f"--import-mode={option.importmode}",
            f"--capture={'no' if option.capture == 'no' else 'sys'}", *["-v"] * max(0, option.verbose),
            *(["-l"] if option.showlocals else []),
        ]  # fmt: skip
        return {
            "bundle": self.folder, "root": str(config.rootpath), "cwd": str(config.invocation_params.dir),
            "arguments": arguments, "carried": host == "chromium", "software": option.pywebgpu_software,
            "timeout": option.pywebgpu_timeout,
        }  # fmt: skip


class Session:
    """A process that runs tests of one host. Raises HostError where it does not start."""

    def __init__(self, host: str, job: dict[str, Any]) -> None:
        self.host, self.timeout = host, float(job["timeout"])
        paths = [str(PACKAGE.parent), os.environ.get("PYTHONPATH", "")]
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(path for path in paths if path)}
        command = [sys.executable, "-m", *COMMANDS[host], json.dumps(job)]
        self._child = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            encoding="utf-8", errors="replace", env=environment, start_new_session=True,
        )  # fmt: skip
        self._lines: queue.Queue[str | None] = queue.Queue()
        self._said: list[str] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        try:
            self._reply(max(self.timeout, START))
        except HostError:
            self.close()
            raise

    def ask(self, request: dict[str, str]) -> dict[str, Any]:
        assert self._child.stdin is not None
        with suppress(OSError):  # It ended; its last words follow.
            self._child.stdin.write(f"{json.dumps(request)}\n")
            self._child.stdin.flush()
        return self._reply(self.timeout)

    def said(self) -> list[tuple[str, str]]:
        """What was printed past pytest's capturing since the last time, as a section of a report."""
        text, self._said = "".join(self._said).strip("\n"), []
        return [(f"Output of {self.host}", text)] if text else []

    def close(self) -> None:
        """Ends the process: by the end of its requests, or by force."""
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        for end in (self._child.stdin.close, self._child.terminate, self._child.kill):
            with suppress(OSError, subprocess.TimeoutExpired):
                end()
                self._child.wait(10)
                break
        self._reader.join()
        self._child.stdout.close()

    def _read(self) -> None:
        assert self._child.stdout is not None
        for line in self._child.stdout:
            self._lines.put(line)
        self._lines.put(None)

    def _reply(self, seconds: float) -> dict[str, Any]:
        while True:
            try:
                line = self._lines.get(timeout=seconds)
            except queue.Empty:
                self._child.terminate()
                raise HostError(f"no answer in {seconds:g} s (--pywebgpu-timeout)") from None
            if line is None:
                status, words = self._child.wait(), "".join(self._said).strip()
                raise HostError(f"its process ended with status {status}\n{words}")
            if line.startswith(MARK):
                reply: dict[str, Any] = json.loads(line.removeprefix(MARK))
                return reply
            self._said.append(line)


def host_of(item: pytest.Item) -> str:
    """Where a test runs; see pytest_pywebgpu.py."""
    callspec = getattr(item, "callspec", None)
    host = callspec.params.get("pywebgpu_host", "") if callspec else ""
    return host if isinstance(host, str) else ""


def _failure(item: pytest.Item, text: str) -> pytest.TestReport:
    return pytest.TestReport(item.nodeid, item.location, dict.fromkeys(item.keywords, 1), "failed", text, "call")


def _bundle(folder: Path, names: list[str]) -> None:
    """Copies modules of this Python, by name. Raises UsageError for one that is not Python alone, or not there."""
    for name in names:
        spec = importlib.util.find_spec(name)
        if name == "py" and spec is None:  # Of some releases of pytest.
            continue
        if spec is None or spec.origin is None or not spec.origin.endswith(".py"):
            raise pytest.UsageError(f"--pywebgpu-with: there is no module {name} of Python alone in this environment")
        source = Path(spec.origin)
        if spec.submodule_search_locations is None:
            shutil.copy(source, folder / source.name)
        elif any(source.parent.rglob("*.so")):
            raise pytest.UsageError(f"--pywebgpu-with: {name} is compiled for this machine; Pyodide needs Python alone")
        else:
            shutil.copytree(source.parent, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
