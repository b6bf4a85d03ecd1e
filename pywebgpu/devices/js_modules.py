"""The bridge's own files as modules of the JavaScript around Pyodide.

They lie in Python's file system, where no page can import them, so each becomes a data: address, and the addresses of
the files that it imports are written into it first. A worker that has imported some itself leaves them, as promises, in
the global `pywebgpuModules`.
"""

from __future__ import annotations

import base64
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyodide.code import run_js

if TYPE_CHECKING:
    from pyodide.ffi import JsProxy

_IMPORT = re.compile(r'^(import\b[^"]*|export\b[^"]*\bfrom )"\./([\w.]+)"', re.MULTILINE)
_HERE = Path(__file__).parents[1]
CDN = "https://cdn.jsdelivr.net"
# The first of these modules that is there.
FIRST = """async (addresses) => {
  const [address, ...others] = [...addresses];
  return others.length ? import(address).catch(() => import(others[0])) : import(address);
}"""
_loaded: dict[str, Any] = {}


def folder() -> Path:
    """Inside the package once installed, beside it in a checkout."""
    inside = _HERE / "js_bridge"
    return inside if inside.is_dir() else _HERE.parent / "js_bridge"


async def load(name: str) -> JsProxy:
    """The module of a file of the bridge; the same one every time."""
    if name not in _loaded:
        there = run_js("(name) => globalThis.pywebgpuModules?.[name]")(name)
        _loaded[name] = await (there or run_js("(address) => import(address)")(address(name)))
    return _loaded[name]


async def package(name: str, version: str, file: str) -> JsProxy:
    """A file of a package of npm as a module: from where the host's `pywebgpuPackages` says, or from the network."""
    if name not in _loaded:
        here = run_js("(...part) => globalThis.pywebgpuPackages?.(...part)")(name, version, file)
        addresses = [here, f"{CDN}/npm/{name}@{version}/{file}"]
        _loaded[name] = await run_js(FIRST)([there for there in addresses if there])
    return _loaded[name]


def evaluate(text: str) -> Any:
    """What a text of JavaScript gives."""
    return run_js(text)


def address(name: str) -> str:
    """A file as a data: address that needs no other file."""
    text = (folder() / name).read_text(encoding="utf-8")
    text = _IMPORT.sub(lambda match: f'{match[1]}"{address(match[2])}"', text)
    return "data:text/javascript;base64," + base64.b64encode(text.encode()).decode()
