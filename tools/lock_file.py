"""Lock files of Pyodide with further wheels in them, whichever Pyodide: what `make lite` and tests of hosts need."""

import json
import re
import shutil
import zipfile
from collections.abc import Sequence
from email.parser import Parser
from hashlib import sha256
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement

ROOT = Path(__file__).parents[1]
LOCK = ROOT / "node_modules" / "pyodide" / "pyodide-lock.json"
CDN = "https://cdn.jsdelivr.net/pyodide/v{version}/full/"
# What ipywidgets asks for on behalf of pages: files of a site, not of its Python.
IN_A_BROWSER = {"jupyterlab-widgets", "widgetsnbextension"}


class LockError(ValueError):
    """The wheel cannot be part of it. The message says why."""


def add(wheels: Sequence[Path], folder: Path, lock: Path = LOCK) -> None:
    """Writes a folder with the wheels, and a lock file which has them instead of its own ones of these packages.

    Raises LockError for a wheel that Pyodide cannot load.
    """
    spec = read(lock)
    packages = spec["packages"]
    folder.mkdir(parents=True, exist_ok=True)
    for file in wheels:
        entry = describe(file, spec["info"])
        known = packages.get(str(entry["name"]), {})
        if known.get("version") == entry["version"]:  # Pyodide builds some without what they cannot use.
            entry |= {"depends": known["depends"], "imports": known["imports"]}
        packages[str(entry["name"])] = entry
        shutil.copy(file, folder / file.name)
    for name, entry in packages.items():
        if missing := [needed for needed in map(normal, entry["depends"]) if needed not in packages]:
            raise LockError(f"{name} needs {', '.join(missing)}, which the lock file has not")
    write(spec, folder)


def read(lock: Path = LOCK) -> dict[str, Any]:
    """The lock file of npm's Pyodide in that folder; what it names comes from Pyodide's own address."""
    version = json.loads((lock.parent / "package.json").read_text(encoding="utf-8"))["version"]
    spec: dict[str, Any] = json.loads(lock.read_text(encoding="utf-8"))
    for entry in spec["packages"].values():
        if "://" not in entry["file_name"]:
            entry["file_name"] = CDN.format(version=version) + entry["file_name"]
    return spec


def write(spec: dict[str, Any], folder: Path) -> None:
    (folder / "pyodide-lock.json").write_text(json.dumps(spec, sort_keys=True), encoding="utf-8")


def describe(wheel: Path, info: dict[str, str]) -> dict[str, object]:
    """A wheel's entry of the lock file."""
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        (file,) = (name for name in names if name.endswith(".dist-info/METADATA"))
        message = Parser().parsestr(archive.read(file).decode())
    check_tag(wheel.name, info)
    version = info["python"]
    here = {"sys_platform": "emscripten", "platform_system": "Emscripten", "platform_machine": "wasm32", "extra": ""}
    here |= {"python_version": ".".join(version.split(".")[:2]), "python_full_version": version}
    asked = map(Requirement, message.get_all("Requires-Dist", []))
    depends = {normal(one.name) for one in asked if one.marker is None or one.marker.evaluate(here)} - IN_A_BROWSER
    tops = {name.split("/")[0].removesuffix(".pyc").removesuffix(".py") for name in names if ".dist-info/" not in name}
    return {
        "name": normal(message["Name"]), "version": message["Version"], "file_name": wheel.name, "install_dir": "site",
        "sha256": sha256(wheel.read_bytes()).hexdigest(), "package_type": "package", "imports": sorted(tops),
        "depends": sorted(depends), "unvendored_tests": False, "tool": {},
    }  # fmt: skip


def check_tag(name: str, info: dict[str, str]) -> None:
    """Raises LockError for a wheel of another Python, or of another machine, than the lock file's."""
    python, _, platform = name.removesuffix(".whl").split("-")[-3:]
    own = f"cp{''.join(info['python'].split('.')[:2])}"
    pythons = {"py3", own}
    machine = f"{info['abi_version']}_{info['arch']}"
    platforms = {"any", f"pyodide_{machine}", f"pyemscripten_{machine}"}
    if pythons.isdisjoint(python.split(".")) or platforms.isdisjoint(platform.split(".")):
        raise LockError(f"{name} is not for Pyodide's Python {info['python']} and ABI {info['abi_version']}")


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
