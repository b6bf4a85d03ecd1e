"""Makes a distribution of Pyodide with pywebgpu in it, by pyodide-build: a folder with the wheel and a lock file.

    python tools/distribution.py dist/pyodide

`loadPyodide({ lockFileURL: ".../pyodide-lock.json" })` then knows the wheel by its name: `loadPackage("pywebgpu")`,
`loadPackagesFromImports(source)`. Other packages of the lock file come from Pyodide's own address.

pyodide-build wants a cross-build environment, which it would fetch from GitHub. A pure package needs no headers,
libraries and compilers of it, so this makes one of npm's Pyodide: its versions, and how its Python was configured. What
has C in it cannot be built with that.

`pyodide py-compile` then leaves bytecode in the wheel and no source, which is imported in a third of the time. It
compiles for the Python that runs it, so it runs in that Pyodide itself, in Node.
"""

import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
if str(ROOT) not in sys.path:  # This file is run as it is.
    sys.path.insert(0, str(ROOT))

from pywebgpu.support import installation  # noqa: E402
from tools import lock_file  # noqa: E402

TOOLS = ROOT / ".venv-pyodide"  # tools/setup.sh pyodide makes it.
RECIPES = Path("tools", "recipes")
BYTECODE = """\
const [pyodide, tools, folder] = process.argv.slice(2);
const { loadPyodide } = await import(pyodide);
const python = await loadPyodide();
for (const [name, path] of [["/tools", tools], ["/folder", folder]]) {
  python.FS.mkdirTree(name);
  python.mountNodeFS(name, path);
}
python.runPython(`
import sys
sys.dont_write_bytecode = True
sys.path.append("/tools")
from pyodide_build.cli.py_compile import main
main(["/folder", "--silent"], standalone_mode=False)
`);
process.exit(0);
"""  # Of a folder with a wheel and a lock file.
CONFIGURATION = "_sysconfigdata__emscripten_wasm32-emscripten"
# What pyodide-build asks `make` for; the rest follows from it, or is for compilers.
VARIABLES = """\
export PYODIDE_VERSION = {version}
export PYODIDE_ABI_VERSION = {abi_version}
export PYODIDE_EMSCRIPTEN_VERSION = {emscripten}
export PYVERSION = {python}
export PYMAJOR = {major}
export PYMINOR = {minor}
export PYMICRO = {micro}
export PLATFORM_TRIPLET = wasm32-emscripten
export SYSCONFIG_NAME = {configuration}
export CPYTHONINSTALL = $(PYODIDE_ROOT)/cpython
export TARGETINSTALLDIR = $(CPYTHONINSTALL)
export PYTHONINCLUDE = $(CPYTHONINSTALL)/include
.output_vars:
\t@env
"""


class DistributionError(ValueError):
    """There is no distribution. The message says why."""


def missing() -> str:
    """Why pyodide-build cannot run here; "" where it can."""
    if not (TOOLS / "bin" / "pyodide").is_file():
        return "pyodide-build is not installed: tools/setup.sh pyodide does it, with Python 3.12 or newer"
    if not lock_file.LOCK.is_file():
        return "npm's pyodide is not installed: tools/setup.sh modules does it"
    try:
        installation.find_node()
    except installation.InstallationError as error:
        return str(error)
    return ""


def make(folder: Path) -> None:
    """Builds the recipe, and writes the folder. Raises DistributionError where pyodide-build is missing, or fails."""
    if reason := missing():
        raise DistributionError(reason)
    with tempfile.TemporaryDirectory() as temporary:
        work = Path(temporary)
        _write_environment(work / "environment.tar")
        _run(work, "xbuildenv", "install", "--url", (work / "environment.tar").as_uri())
        _copy_sources(work / "sources")
        recipes, built = work / "sources" / RECIPES, work / "built"
        options = ["--recipe-dir", recipes, "--build-dir", work / "build", "--install", "--install-dir", built]
        _run(work, "build-recipes", "pywebgpu", *map(str, options))
        _compile(work, built)
        entries = json.loads((built / "pyodide-lock.json").read_text(encoding="utf-8"))["packages"]
        lock = lock_file.read()
        lock["packages"] |= entries
        folder.mkdir(parents=True, exist_ok=True)
        for entry in entries.values():
            shutil.copy(built / entry["file_name"], folder)
        lock_file.write(lock, folder)


def _write_environment(archive: Path) -> None:
    """A cross-build environment, as far as pure packages need one."""
    package = lock_file.LOCK.parent
    info = json.loads(lock_file.LOCK.read_text(encoding="utf-8"))["info"]
    version = json.loads((package / "package.json").read_text(encoding="utf-8"))["version"]
    major, minor, micro = info["python"].split(".")
    root = archive.parent / "xbuildenv" / "pyodide-root"
    configuration = root / "cpython" / "sysconfigdata"
    configuration.mkdir(parents=True)
    (root / "dist").mkdir()
    shutil.copy(lock_file.LOCK, root / "dist")
    with zipfile.ZipFile(package / "python_stdlib.zip") as library:
        library.extract(f"{CONFIGURATION}.py", configuration)
    variables = VARIABLES.format(
        version=version, emscripten=info["platform"].removeprefix("emscripten_").replace("_", "."), major=major,
        minor=minor, micro=micro, configuration=CONFIGURATION, python=info["python"], abi_version=info["abi_version"],
    )  # fmt: skip
    (root / "Makefile.envs").write_text(variables, encoding="utf-8")
    (root.parent / "requirements.txt").touch()  # No package of it has parts for another machine.
    with tarfile.open(archive, "w") as made:
        made.add(root.parent, "xbuildenv")


def _copy_sources(folder: Path) -> None:
    """The files that a wheel is made of, and the recipe: pyodide-build copies all that lies beside them."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    parts = project["tool"]["hatch"]["build"]["targets"]["wheel"]["only-include"]
    for part in map(Path, (*parts, "pyproject.toml", "README.md", "LICENSE", RECIPES)):
        (folder / part).parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / part).is_dir():
            shutil.copytree(ROOT / part, folder / part, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / part, folder / part)


def _compile(work: Path, folder: Path) -> None:
    """Has `pyodide py-compile` replace the wheels of a folder, and their entries in its lock file."""
    (tools,) = (TOOLS / "lib").glob("python3*/site-packages")
    script = work / "bytecode.mjs"
    script.write_text(BYTECODE, encoding="utf-8")
    pyodide = (lock_file.LOCK.parent / "pyodide.mjs").as_uri()
    node = str(installation.find_node().path)
    command = [node, "--no-warnings", str(script), pyodide, str(tools), str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise DistributionError(f"pyodide py-compile failed:\n{done.stdout + done.stderr}")


def _run(work: Path, *command: str) -> None:
    """Runs pyodide-build, which finds its own command on the path. What it builds with lies in its environment."""
    environment = os.environ | {
        "PATH": f"{TOOLS / 'bin'}{os.pathsep}{os.environ['PATH']}",
        "PYODIDE_XBUILDENV_PATH": str(work / "environments"),
        "SKIP_EMSCRIPTEN_VERSION_CHECK": "1",
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": str(TOOLS / "wheels"),
    }
    environment.pop("PYTHONPATH", None)
    program = str(TOOLS / "bin" / "pyodide")
    done = subprocess.run([program, *command], cwd=work, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        logs = "".join(path.read_text(encoding="utf-8") for path in work.glob("sources/tools/recipes/*/build.log"))
        raise DistributionError(f"pyodide {' '.join(command)} failed:\n{logs or done.stdout + done.stderr}")


def main(arguments: list[str]) -> int:
    try:
        make(Path(arguments[0]))
    except DistributionError as error:
        print(f"distribution: {error}", file=sys.stderr)
        return 2
    print(Path(arguments[0]) / "pyodide-lock.json")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] or ["dist/pyodide"]))
