"""`pywebgpu chromium SCRIPT`: runs a script in Pyodide in a page of Chromium without a window, by Playwright.

The script sees a copy of the working folder, and what it writes there comes back. Playwright is imported only when a
browser starts, which others drive, too: `launched`, `served`, `start_python`; `run` gives a script some files alone.
"""

from __future__ import annotations

import argparse
import glob
import io
import json
import os
import sys
import threading
import zipfile
from base64 import b64decode
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pywebgpu.errors import PywebgpuError
from pywebgpu.hosts import page_files, script, serve, site, working_folder
from pywebgpu.support import installation

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page, Playwright

PACKAGE = Path(__file__).parents[1]
NO_PLAYWRIGHT = "Playwright is not installed: pip install playwright==1.65.2"
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
SILENCED = ("quic", "background-networking", "component-update", "sync")  # nothing but the page uses the network
SOFTWARE = ("--use-webgpu-adapter=swiftshader",)
HARDWARE = ("--ignore-gpu-blocklist", "--enable-features=Vulkan", "--use-angle=vulkan", "--disable-vulkan-surface")
MEMORY = ("--enable-precise-memory-info", "--enable-blink-features=ForceEagerMeasureMemory")  # told when asked
GPU_NODES = ("/dev/dri/renderD*", "/dev/nvidia[0-9]*", "/dev/dxg")

START = """async ({ modules, env }) => {
  const { loadPyodide } = await import(`${modules}pyodide.mjs`);
  const python = await loadPyodide({ indexURL: modules, env });
  const stream = (name) => {
    const decoder = new TextDecoder();
    return (bytes) => {
      globalThis.said = globalThis.say(name, decoder.decode(bytes, { stream: true }));
      return bytes.length;
    };
  };
  python.setStdin({ error: true });
  python.setStdout({ write: stream("stdout"), isatty: false });
  python.setStderr({ write: stream("stderr"), isatty: false });
  python.unpackArchive(await (await fetch("/files.zip")).arrayBuffer(), "zip");
  python.unpackArchive(await (await fetch("/folder.zip")).arrayBuffer(), "zip", { extractDir: "/" });
  const { origin } = globalThis.location;
  globalThis.pywebgpuPackages = (name, version, file) => `${origin}/modules/${name}@${version}/${file}`;
  globalThis.python = python;
}"""

IN_FOLDER = """async ({ command, folder }) => {
  const home = python.FS.cwd();
  python.FS.mkdirTree(folder);
  python.FS.chdir(folder);
  const names = python.toPy({ __name__: "pywebgpu.hosts.script", __file__: "hosts/script.py" });
  const file = `${home}/pywebgpu/hosts/script.py`;
  python.runPython(python.FS.readFile(file, { encoding: "utf8" }), { globals: names });
  python.runPython("import sys; sys.path[:] = [entry for entry in sys.path if entry]");
  names.set("arguments", python.toPy([`${home}/pywebgpu`, command]));
  const status = await python.runPythonAsync("run(*arguments)", { globals: names });
  await globalThis.said;
  return status;
}"""
# The files of the folder as text: which are new, or not as they were.
CHANGED = """({ folder, known }) => {
  const names = python.toPy({ folder, known });
  const code = `
import base64, hashlib, json, os
found = {}
for place, folders, files in os.walk(folder):
    for name in files:
        path = os.path.join(place, name)
        data = open(path, "rb").read()
        if "__pycache__" not in path and known.get(path) != hashlib.sha256(data).hexdigest():
            found[path] = base64.b64encode(data).decode()
json.dumps(found)`;
  return python.runPython(code, { globals: names });
}"""
SCRIPT = """async ({ command, wanted }) => {
  const names = python.toPy({ __name__: "pywebgpu.hosts.script", __file__: "hosts/script.py" });
  python.runPython(python.FS.readFile("pywebgpu/hosts/script.py", { encoding: "utf8" }), { globals: names });
  names.set("arguments", python.toPy([`${python.FS.cwd()}/pywebgpu`, command]));
  const status = await python.runPythonAsync("run(*arguments)", { globals: names });
  await globalThis.said;
  return { status, data: wanted && status === 0 ? python.FS.readFile(wanted).toBase64() : "" };
}"""


class ChromiumError(PywebgpuError, RuntimeError):
    """There is no Playwright, no browser for it, or no Pyodide. The message says what to install."""


class Pages(site.Site):
    """An empty page, an archive of the library and of files, and Pyodide."""

    def __init__(self, files: Mapping[str, bytes], everything: Mapping[str, bytes] | None = None) -> None:
        """files: by their names beside the library. whole: by their whole paths. Raises ChromiumError, SiteError."""
        try:
            modules = installation.find_modules(("pyodide",)).path
        except installation.InstallationError as error:
            raise ChromiumError(str(error)) from None
        super().__init__(replace(site.find_folders(cdn=True), modules=modules))
        self._own = {
            "": site.File(b"<!doctype html><title>pywebgpu</title>", "text/html", '"page"'),
            "files.zip": site.File(_archive(files), "application/zip", '"files"'),
            "folder.zip": site.File(_packed(everything or {}), "application/zip", '"folder"'),
            "favicon.ico": site.File(b"", "image/x-icon", '"icon"'),
        }

    def file(self, address: str) -> site.File | None:
        return self._own.get(address) or super().file(address)


def main(arguments: Sequence[str]) -> int:
    """The command: exits as the script does."""
    usage = "%(prog)s [--software] (SCRIPT | -m MODULE | -c CODE) ..."
    parser = argparse.ArgumentParser(prog="pywebgpu chromium", description=__doc__, usage=usage)
    parser.add_argument("--software", action="store_true", help="the adapter that the CPU plays, though there is a GPU")
    options, command = parser.parse_known_args(arguments[:1])
    command += arguments[1:]
    run_it = partial(run_here, command, software=options.software)
    errors = ChromiumError, site.SiteError, working_folder.FolderError
    return script.status_of("chromium", parser, command, run_it, *errors)


def run_here(command: Sequence[str], *, software: bool = False) -> int:
    """Runs SCRIPT, -m MODULE or -c CODE in a copy of the working folder, and brings back what changed in it."""
    folder = Path.cwd()
    files = working_folder.files(folder)
    known = {path: sha256(data).hexdigest() for path, data in files.items()}
    with served(Pages({}, files)) as address, launched(software=software) as browser:
        page = start_python(browser, address)
        status = int(page.evaluate(IN_FOLDER, {"command": list(command), "folder": folder.as_posix()}))
        changed = json.loads(page.evaluate(CHANGED, {"folder": folder.as_posix(), "known": known}))
    for path, data in changed.items():
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_bytes(b64decode(data))
    return status


@contextmanager
def launched(*, software: bool) -> Iterator[Any]:
    """A Browser of Playwright; where `software` is asked for, or no GPU is seen, with the adapter inside Chromium.

    Chromium is what PYWEBGPU_CHROMIUM names, Playwright's own, or the system's. Raises ChromiumError, also where a
    page's process ends while one waits for it.
    """
    try:
        from playwright.sync_api import Error, sync_playwright
    except ImportError:
        raise ChromiumError(NO_PLAYWRIGHT) from None
    with sync_playwright() as playwright:
        path = _executable(playwright)
        browser = playwright.chromium.launch(executable_path=path, args=_arguments(software=software))
        watch, ends = browser.new_browser_cdp_session(), list[dict[str, Any]]()
        watch.on("Target.targetCrashed", lambda end: ends.append(end))
        watch.send("Target.setDiscoverTargets", {"discover": True})
        try:
            yield browser
        except Error as error:
            if "Target crashed" not in str(error):
                raise
            watch.send("Browser.getVersion")  # What Chromium told before its answer has arrived with it.
            raise ChromiumError(_crashed(browser, ends)) from error
        finally:
            browser.close()


def _crashed(browser: Browser, ends: Sequence[Mapping[str, Any]]) -> str:
    """What is known of pages whose processes ended: by which signal, and what stood last in their consoles."""
    signals = [f"{end['status']} by signal {end['errorCode']}" for end in ends]
    pages = [page for context in browser.contexts for page in context.pages]
    said = [message.text for page in pages for message in page.console_messages()][-5:]
    return "\n".join(
        [f"the page's process ended: {', '.join(signals)} (DEBUG=pw:browser shows all that Chromium writes)", *said]
    )


def why_missing() -> str:
    """Why there is no browser; "" where there is one."""
    try:
        from playwright.sync_api import sync_playwright

        with sync_playwright() as playwright:
            _executable(playwright)
    except ImportError:
        return NO_PLAYWRIGHT
    except ChromiumError as error:
        return str(error)
    return ""


def _executable(playwright: Playwright) -> str:
    own = playwright.chromium.executable_path
    candidates = [os.environ.get("PYWEBGPU_CHROMIUM"), own, *map(installation.on_path, NAMES)]
    path: str | None = next((candidate for candidate in candidates if candidate and Path(candidate).exists()), None)
    if path is None:
        raise ChromiumError("no Chromium; install one: apt-get install chromium, or playwright install chromium")
    return path


def _arguments(*, software: bool) -> list[str]:
    sees_gpu = sys.platform != "linux" or any(glob.glob(pattern) for pattern in GPU_NODES)
    adapter = HARDWARE if sees_gpu and not software and sys.platform == "linux" else ()
    arguments = [
        "--enable-unsafe-webgpu",
        *MEMORY,
        *(adapter if sees_gpu and not software else SOFTWARE),
    ]
    is_root = hasattr(os, "geteuid") and os.geteuid() == 0
    arguments += ["--no-first-run", *(f"--disable-{name}" for name in SILENCED)]
    return [*arguments, "--no-sandbox"] if is_root else arguments


@contextmanager
def served(pages: site.Site) -> Iterator[str]:
    """The address at which a thread serves pages."""
    with serve.start(0, pages) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield serve.address(server)
        finally:
            server.shutdown()
            thread.join()


def run(
    command: Sequence[str], *, files: Mapping[str, bytes] | None = None, wanted: str = "", software: bool = False
) -> tuple[int, bytes]:
    """Runs SCRIPT, -m MODULE or -c CODE with its arguments; what it prints goes to this Python's streams.

    `files` and `wanted` are names in its working folder: what it is given, and what to bring back. Returns its exit
    status and the bytes of that file. Raises ChromiumError and SiteError.
    """
    with served(Pages(files or {})) as address, launched(software=software) as browser:
        page = start_python(browser, address)
        result = page.evaluate(SCRIPT, {"command": list(command), "wanted": wanted})
    return int(result["status"]), b64decode(result["data"])


def start_python(browser: Browser, address: str) -> Page:
    """A new page of Pages where Pyodide has started, by the name `python`; the archive's files are where it works."""
    env = {name: value for name, value in os.environ.items() if name.startswith("PYWEBGPU_")}
    page = browser.new_page()
    page.set_default_timeout(0)
    page.expose_function("say", _say)
    page.goto(address)
    page.evaluate(START, {"modules": f"/modules/pyodide@{site.PYODIDE}/", "env": env})
    return page


def _say(stream: str, text: str) -> None:
    print(text, end="", file=sys.stderr if stream == "stderr" else sys.stdout, flush=True)


def _archive(files: Mapping[str, bytes]) -> bytes:
    """The library and files."""
    bridge = {path.name: path for path in site.find_folders(cdn=True).bridge.glob("*.mjs")}
    members = {f"js_bridge/{name}": path for name, path in bridge.items()}
    members |= {path.relative_to(PACKAGE).as_posix(): path for path in PACKAGE.rglob("*.*")}
    carried = {name: path for name, path in members.items() if name.endswith(page_files.CARRIED)}
    return _packed({**{f"pywebgpu/{name}": path.read_bytes() for name, path in carried.items()}, **files})


def _packed(files: Mapping[str, bytes]) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_STORED) as archive:
        for name, data in files.items():
            archive.writestr(name.lstrip("/"), data)
    return packed.getvalue()
