"""The process between remote_tests.py and a page: opens Chromium, and passes requests and replies on."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from pywebgpu.hosts import chromium, working_folder
from pywebgpu.hosts.test_server import MARK

SERVE = """(job) => {
  const inbox = [];
  let wake;
  const waited = () => new Promise((found) => (wake = found));
  globalThis.nextRequest = () => (inbox.length ? Promise.resolve(inbox.shift()) : waited());
  globalThis.ask = (request) => new Promise((found) => {
    globalThis.reply = found;
    if (wake) wake(request); else inbox.push(request);
    wake = undefined;
  });
  const first = new Promise((found) => (globalThis.reply = found));
  const names = python.toPy({});
  names.set("job", job);
  const code = "from pywebgpu.hosts import test_server; test_server.in_page(job)";
  const running = python.runPythonAsync(code, { globals: names });
  globalThis.ended = running.then((status) => `pytest ended with ${status}`, String);
  return Promise.race([first, ended]);
}"""
ASK = "(request) => Promise.race([globalThis.ask(request), globalThis.ended])"


def main(arguments: list[str]) -> int:
    job = json.loads(arguments[0])
    files = working_folder.files(Path(job["root"])) | working_folder.files(Path(job["bundle"]))
    pages = chromium.Pages({}, files)
    with chromium.served(pages) as address, chromium.launched(software=job["software"]) as browser:
        page = chromium.start_python(browser, address)
        _tell(page.evaluate(SERVE, json.dumps(job)))
        for line in sys.stdin:
            _tell(page.evaluate(ASK, line.strip()))
    return 0


def _tell(reply: str) -> None:
    if not reply.startswith("{"):
        sys.exit(reply)
    print(f"\n{MARK}{reply}", flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
