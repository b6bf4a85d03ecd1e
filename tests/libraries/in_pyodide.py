"""Libraries in Pyodide: their wheels, as Node finds them in a folder and a page by micropip.

Pure wheels come from the index by pip. What is compiled in them is left out, where libraries can do without. What
Pyodide itself compiles, NumPy above all, is taken from the folder of its wheels that PYWEBGPU_PYODIDE_WHEELS names.
"""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
import zipfile
from collections.abc import Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

from pywebgpu.hosts import chromium, site
from tests import devices

ROOT = Path(__file__).parents[2]
WHEELS = os.environ.get("PYWEBGPU_PYODIDE_WHEELS", "")
COMPILED = ("numpy", "regex", "pillow", "scipy", "xxhash")
# What the libraries ask for, without what is here by itself: torch, safetensors, tokenizers, psutil.
_PURE = (
    "huggingface_hub==2.4.0 httpx2==2.16.2 httpx2-jsfetch==1.0 httpcore2==2.16.2 h11==0.16.0 anyio==4.16.0 idna==3.20 "
    "truststore==0.10.5 click==8.5.1 filelock==4.3.1 fsspec==2026.9.0 packaging==26.4 pyyaml==6.0.4 tqdm==4.70.1 "
    "typing_extensions==4.16.0 jinja2==3.1.6 markupsafe==3.0.4 requests==2.34.2 urllib3 certifi charset-normalizer "
    "networkx==3.7 pyparsing"
)
PURE = _PURE.split()
HOSTS = ("node", "chromium")
INSIDE = ROOT / "tests" / "libraries" / "inside.py"
SHARED = ROOT / "tests" / "scripts"
SUBSTITUTES = ROOT / "tests" / "libraries" / "substitutes"  # of packages that the folder of wheels may lack
INSTALL = """async ({ compiled, pure }) => {
  await python.loadPackage(compiled, { messageCallback: () => undefined });
  const names = python.toPy({ pure });
  await python.runPythonAsync("import micropip; await micropip.install(pure, deps=False)", { globals: names });
}"""


def why_missing(host: str) -> str:
    """Why libraries cannot run in a host; "" where they can."""
    if not WHEELS:
        return "PYWEBGPU_PYODIDE_WHEELS names no folder of Pyodide's wheels, and libraries need NumPy"
    return devices.why_no_node() or (chromium.why_missing() if host == "chromium" else "")


def prepare(cache: Path, wanted: Sequence[str]) -> list[Path]:
    """The wheels: pure ones of these requirements and of PURE, then Pyodide's own."""
    own = [next(iter(sorted(Path(WHEELS).glob(f"{name}-*.whl"))), None) for name in COMPILED]
    return [*_pure(cache / "wheels", [*wanted, *PURE]), *(wheel for wheel in own if wheel)]


def _pure(folder: Path, names: Sequence[str]) -> list[Path]:
    """Wheels without compiled files; those of other names stay in the folder, for other runs."""
    folder.mkdir(parents=True, exist_ok=True)
    noted = folder / "downloaded.txt"
    known = dict(line.split("\t") for line in noted.read_text().splitlines()) if noted.exists() else {}
    if missing := [name for name in names if name not in known]:
        for name in missing:
            temporary = folder / "new"
            command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary=:all:"]
            subprocess.run([*command, "--python-version=3.14", "--dest", str(temporary), name], check=True)
            (wheel,) = temporary.glob("*.whl")
            known[name] = _without_compiled(wheel, folder).name
            wheel.unlink()
        noted.write_text("".join(f"{name}\t{file}\n" for name, file in known.items()))
    return [folder / known[name] for name in names]


def _without_compiled(wheel: Path, folder: Path) -> Path:
    """A wheel that any Python may load."""
    name, version = wheel.name.split("-")[:2]
    pure = folder / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(wheel) as given, zipfile.ZipFile(pure, "w", zipfile.ZIP_DEFLATED) as kept:
        for file in given.namelist():
            data = given.read(file)
            if file.endswith(".dist-info/WHEEL"):
                data = re.sub(rb"(?m)^Tag: .*\n?", b"", data).rstrip() + b"\nTag: py3-none-any\n"
            if not re.search(r"\.(so|pyd|dylib)(\.|$)|\.libs/", file) and not file.endswith("/RECORD"):
                kept.writestr(file, data)
        about = next(file for file in given.namelist() if file.endswith(".dist-info/METADATA"))
        kept.writestr(about.replace("METADATA", "RECORD"), "")
    return pure


def run(host: str, device: str, script: Path, wheels: Sequence[Path], cache: Path) -> tuple[list[str], str]:
    """What a script prints in a host, and what it raised."""
    return (_in_node if host == "node" else _in_chromium)(device, script, wheels, cache)


def _in_node(device: str, script: Path, wheels: Sequence[Path], cache: Path) -> tuple[list[str], str]:
    folder = _unpacked(cache / "pyodide", wheels)
    work = cache / "work" / script.stem / "node"
    work.mkdir(parents=True, exist_ok=True)
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    words = [sys.executable, "-m", "pywebgpu", "node", str(INSIDE), device, str(script)]
    words += map(str, (folder, SHARED, SUBSTITUTES))
    done = subprocess.run(
        words, cwd=work, env=environment | {"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False
    )
    return done.stdout.splitlines(), "" if done.returncode == 0 else _last(done.stderr) or f"status {done.returncode}"


def _unpacked(folder: Path, wheels: Sequence[Path]) -> Path:
    """A folder of what the wheels hold."""
    folder.mkdir(parents=True, exist_ok=True)
    noted = folder / "unpacked.txt"
    known = noted.read_text().split() if noted.exists() else []
    for wheel in wheels:
        if wheel.name not in known:
            zipfile.ZipFile(wheel).extractall(folder)
            known.append(wheel.name)
    noted.write_text("\n".join(known))
    return folder


class _Pages(chromium.Pages):
    """Also serves wheels."""

    def __init__(self, files: Mapping[str, bytes], wheels: Sequence[Path]) -> None:
        super().__init__(files)
        self._wheels = {f"wheels/{wheel.name}": wheel for wheel in wheels}

    def file(self, address: str) -> site.File | None:
        if wheel := self._wheels.get(address):
            return site.File(wheel.read_bytes(), "application/zip", f'"{wheel.name}"')
        return super().file(address)


def _in_chromium(device: str, script: Path, wheels: Sequence[Path], cache: Path) -> tuple[list[str], str]:
    micropip = next(Path(WHEELS).glob("micropip-*.whl"))
    paths = (script, INSIDE, *SHARED.glob("*.py"), *SUBSTITUTES.glob("*.py"))
    files = {path.relative_to(ROOT).as_posix(): path.read_bytes() for path in paths}
    out, error = io.StringIO(), io.StringIO()
    pages = chromium.served(_Pages(files, [*wheels, micropip]))
    with pages as address, chromium.launched(software=True) as browser, redirect_stdout(out), redirect_stderr(error):
        page = chromium.start_python(browser, address)
        compiled = [micropip, *(wheel for wheel in wheels if "none-any" not in wheel.name)]
        pure = [wheel for wheel in wheels if wheel not in compiled]
        page.evaluate(INSTALL, {"compiled": _addresses(address, compiled), "pure": _addresses(address, pure)})
        inside, *rest = (path.relative_to(ROOT).as_posix() for path in (INSIDE, script, SHARED, SUBSTITUTES))
        command = [inside, device, *rest]
        status = int(page.evaluate(chromium.SCRIPT, {"command": command, "wanted": ""})["status"])
    return out.getvalue().splitlines(), "" if status == 0 else _last(error.getvalue()) or f"status {status}"


def _addresses(address: str, wheels: Sequence[Path]) -> list[str]:
    return [f"{address}/wheels/{wheel.name}" for wheel in wheels]


def _last(text: str) -> str:
    """What was raised: the traceback's end."""
    lines = [line for line in text.strip().splitlines() if not re.fullmatch(r"\d+\.\d s", line)]
    return "\n".join(lines[-40:])
