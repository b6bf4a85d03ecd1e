"""Puts a wheel into a distribution of Pyodide: a folder with the wheel, a lock file that names it, and a recipe.

    python tools/distribution.py dist/pywebgpu-….whl dist/pyodide

`loadPyodide({ lockFileURL: ".../pyodide-lock.json" })` then knows the wheel by its name: `loadPackage("pywebgpu")`,
`loadPackagesFromImports(source)`. Other packages of the lock file come from Pyodide's own address.
"""

import argparse
import json
import re
import shutil
import sys
import zipfile
from collections.abc import Sequence
from email.parser import Parser
from hashlib import sha256
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).parents[1]
LOCK = ROOT / "node_modules" / "pyodide" / "pyodide-lock.json"
CDN = "https://cdn.jsdelivr.net/pyodide/v{version}/full/"
# What ipywidgets asks for on behalf of pages: files of a site, not of its Python.
IN_A_BROWSER = {"jupyterlab-widgets", "widgetsnbextension"}
RECIPE = """\
package:
  name: {name}
  version: {version}
  top-level:
    - {imports}
source:
  url: {url}
  sha256: {sha256}
about:
  home: {home}
  PyPI: https://pypi.org/project/{name}
  summary: {summary}
  license: {license}
test:
  imports:
    - {imports}
"""


class DistributionError(ValueError):
    """The wheel cannot be part of it. The message says why."""


def make(wheel: Path, folder: Path, lock: Path = LOCK, others: Sequence[Path] = ()) -> None:
    """Writes the folder. Raises DistributionError for a wheel that Pyodide cannot load.

    others: wheels that lie beside it, instead of those that the lock file has of these packages, and further ones.
    """
    description = json.loads((lock.parent / "package.json").read_text(encoding="utf-8"))
    found = json.loads(lock.read_text(encoding="utf-8"))
    packages = found["packages"]
    cdn = CDN.format(version=description["version"])
    for one in packages.values():
        if "://" not in one["file_name"]:
            one["file_name"] = cdn + one["file_name"]
    folder.mkdir(parents=True, exist_ok=True)
    for file in (*sorted(others), wheel):
        metadata, entry = describe(file, found["info"])
        known = packages.get(str(entry["name"]), {})
        if known.get("version") == entry["version"]:  # Pyodide builds some without what they cannot use.
            entry |= {"depends": known["depends"], "imports": known["imports"]}
        packages[str(entry["name"])] = entry
        shutil.copy(file, folder / file.name)
    for name, one in packages.items():
        if missing := [needed for needed in map(normal, one["depends"]) if needed not in packages]:
            raise DistributionError(f"{name} needs {', '.join(missing)}, which the lock file has not")
    (folder / "pyodide-lock.json").write_text(json.dumps(found, sort_keys=True), encoding="utf-8")
    (folder / "meta.yaml").write_text(recipe(metadata, entry), encoding="utf-8")


def describe(wheel: Path, info: dict[str, str]) -> tuple[dict[str, str], dict[str, object]]:
    """What the wheel says of itself, and its entry of the lock file."""
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
    tops = {name.split("/")[0].removesuffix(".py") for name in names if ".dist-info/" not in name}
    entry = {
        "name": normal(message["Name"]), "version": message["Version"], "file_name": wheel.name, "install_dir": "site",
        "sha256": sha256(wheel.read_bytes()).hexdigest(), "package_type": "package", "imports": sorted(tops),
        "depends": sorted(depends), "unvendored_tests": False, "tool": {},
    }  # fmt: skip
    return dict(message.items()), entry


def check_tag(name: str, info: dict[str, str]) -> None:
    """Raises DistributionError for a wheel of another Python, or of another machine, than the lock file's."""
    python, _, platform = name.removesuffix(".whl").split("-")[-3:]
    own = f"cp{''.join(info['python'].split('.')[:2])}"
    pythons = {"py3", own}
    machine = f"{info['abi_version']}_{info['arch']}"
    platforms = {"any", f"pyodide_{machine}", f"pyemscripten_{machine}"}
    if pythons.isdisjoint(python.split(".")) or platforms.isdisjoint(platform.split(".")):
        raise DistributionError(f"{name} is not for Pyodide's Python {info['python']} and ABI {info['abi_version']}")


def recipe(metadata: dict[str, str], entry: dict[str, object]) -> str:
    """A recipe of pyodide-build, for Pyodide's own distribution."""
    name, version, file = entry["name"], entry["version"], entry["file_name"]
    return RECIPE.format(
        name=name, version=version, sha256=entry["sha256"], summary=metadata["Summary"], imports=name,
        license=metadata.get("License-Expression", "MIT"), home=f"https://pypi.org/project/{name}",
        url=f"https://files.pythonhosted.org/packages/py3/{str(name)[0]}/{name}/{file}",
    )  # fmt: skip


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("wheel", type=Path)
    parser.add_argument("folder", type=Path)
    options = parser.parse_args()
    try:
        make(options.wheel, options.folder)
    except DistributionError as error:
        print(f"distribution: {error}", file=sys.stderr)
        return 2
    print(options.folder / "pyodide-lock.json")
    return 0


if __name__ == "__main__":
    sys.exit(main())
