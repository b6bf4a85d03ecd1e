"""Pyodide's end of `pytest --pywebgpu-host node,chromium`: a session of pytest that runs the tests it is asked for.

The other end is remote_tests.py. A request names a test, and the one after it; the reply holds pytest's own reports.
"""

from __future__ import annotations

import base64
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pytest

MARK = "\x1epywebgpu "  # before a line of the protocol, where prints take the same way
LARGEST = 8 << 20  # bytes of a file that is brought back
Files = dict[str, tuple[int, int]]


class Server:
    """A plugin of that session. receive: the next request as JSON, "" at the end. send: takes a reply."""

    def __init__(self, job: dict[str, Any], receive: Callable[[], str], send: Callable[[str], None]) -> None:
        self.job, self.receive, self.send = job, receive, send
        self.reports: list[object] = []
        self.broken: dict[str, str] = {}  # files that could not be collected

    def configure(self, config: pytest.Config) -> None:
        """After pytest's own plugins: what would print has nobody to speak to, since the other end reports."""
        self.config = config
        config.pluginmanager.unregister(name="terminalreporter")

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.broken[report.nodeid.partition("::")[0]] = str(report.longrepr)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.reports.append(self.config.hook.pytest_report_to_serializable(config=self.config, report=report))

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        items = {item.nodeid: item for item in session.items}
        self.send(json.dumps({"ready": len(items)}))
        while request := self.receive():
            wanted = json.loads(request)
            item, following = items.get(wanted["test"]), items.get(wanted["next"])
            self.reports = []
            before = self._files()
            if item is not None:
                item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            why = self.broken.get(wanted["test"].partition("::")[0], "it is not among the tests that were found there")
            reply = {"reports": self.reports, "missing": "" if item is not None else why, "files": self._new(before)}
            self.send(json.dumps(reply, default=str))
        return True

    def _files(self) -> Files:
        """The files of the program, where they are not this machine's own."""
        if not self.job["carried"]:
            return {}
        contents = {}
        for path in Path(self.job["root"]).rglob("*"):
            if path.is_file() and "__pycache__" not in path.parts:
                state = path.stat()
                contents[str(path)] = state.st_mtime_ns, state.st_size
        return contents

    def _new(self, before: Files) -> dict[str, str]:
        changed = [path for path, state in self._files().items() if before.get(path) != state and state[1] <= LARGEST]
        return {path: base64.b64encode(Path(path).read_bytes()).decode() for path in changed}


def serve(job: dict[str, Any], receive: Callable[[], str], send: Callable[[str], None]) -> int:
    """Runs the session until there are no more requests; what pytest.main returns."""
    sys.path.insert(0, job["bundle"])
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    os.chdir(job["cwd"])
    import pytest

    class Plugin(Server):
        @pytest.hookimpl(trylast=True)
        def pytest_configure(self, config: pytest.Config) -> None:
            self.configure(config)

    return int(pytest.main(job["arguments"], plugins=[Plugin(job, receive, send)]))


def main(arguments: list[str]) -> int:
    """In Node: requests and replies are lines of the standard streams."""
    stdin, stdout = sys.stdin, sys.stdout

    def send(text: str) -> None:
        stdout.write(f"\n{MARK}{text}\n")
        stdout.flush()

    return serve(json.loads(arguments[0]), lambda: stdin.readline().strip(), send)


def in_page(job: str) -> int:
    """In a page, whose JavaScript has `nextRequest` and `reply`."""
    import js
    from pyodide.ffi import run_sync

    return serve(json.loads(job), lambda: str(run_sync(js.nextRequest())), lambda text: js.reply(text))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
