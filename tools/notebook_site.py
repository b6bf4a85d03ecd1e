"""`make lite`: a JupyterLite site of plain files, where `import pywebgpu` needs no install.

    python tools/notebook_site.py dist/pywebgpu-….whl dist/lite

Pyodide is npm's, and its lock file names the wheel; what the kernel is made of (IPython and what that needs) comes from
Python's index in the lock file's versions. Compiled packages, such as NumPy, stay at Pyodide's own address.
"""

import argparse
import json
import shutil
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from tools import lock_file  # noqa: E402

KERNEL = ("micropip", "ipython", "jedi")  # What it loads from Pyodide's packages.
FURTHER = ("comm==0.2.3", "ipywidgets==8.1.8")  # What they lack: the kernel's messages, sliders and buttons.
AT_ONCE = {"loadPyodideOptions": {"packages": ["micropip", "comm", "jedi", "ipython"]}}  # one after another else
SETTINGS = {
    "jupyter-lite-schema-version": 0,
    "jupyter-config-data": {
        "appName": "pywebgpu",
        "litePluginSettings": {"@jupyterlite/pyodide-kernel-extension:kernel": AT_ONCE},
    },
}


def build(wheel: Path, output: Path, wheels: Path) -> None:
    """Writes the site. wheels: a folder where what was downloaded is kept."""
    with TemporaryDirectory() as name:
        lite = Path(name)
        fill(lite, wheel, download(wheels))
        shutil.rmtree(output, ignore_errors=True)  # It would keep what a build before had.
        command = [sys.executable, "-m", "jupyterlite_core", "build", "--lite-dir", str(lite), "--no-sourcemaps"]
        command += ["--no-unused-shared-packages", "--apps", "lab", "--apps", "repl", "--apps", "notebooks"]
        command += ["--contents", str(ROOT / "notebooks"), "--output-dir", str(output.resolve())]
        subprocess.run(command, cwd=lite, check=True, stdout=subprocess.DEVNULL)


def fill(lite: Path, wheel: Path, others: Iterable[Path], lock: Path = lock_file.LOCK) -> None:
    """What JupyterLite makes a site of: its settings, and the Pyodide beside `lock` with a lock file of ours."""
    pyodide = lite / "static" / "pyodide"
    shutil.copytree(lock.parent, pyodide, ignore=shutil.ignore_patterns("*.map", "*.html", "*.d.ts"))
    lock_file.add([*others, wheel], pyodide, lock)
    (lite / "jupyter-lite.json").write_text(json.dumps(SETTINGS), encoding="utf-8")


def download(
    folder: Path, lock: Path = lock_file.LOCK, names: Sequence[str] = KERNEL, further: Sequence[str] = FURTHER
) -> list[Path]:
    """The wheels of these packages in the lock file's versions, and of further ones, from the index or the folder."""
    found = json.loads(lock.read_text(encoding="utf-8"))
    packages, machine = found["packages"], f"{found['info']['abi_version']}_{found['info']['arch']}"
    wanted = [f"{name}=={packages[name]['version']}" for name in needed(names, packages)] + list(further)
    options = ["--no-deps", "--only-binary=:all:", "--python-version=3.14", "--implementation=cp"]
    options += ["--abi=cp314", "--abi=none", "--platform=any", f"--platform=pyemscripten_{machine}"]
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet", "download", *options]
    note = folder / "wanted.txt"
    text = "\n".join(wanted)
    if not note.is_file() or note.read_text(encoding="utf-8") != text:
        shutil.rmtree(folder, ignore_errors=True)
        subprocess.run([*command, "--dest", str(folder), *wanted], check=True)
        note.write_text(text, encoding="utf-8")
    return sorted(folder.glob("*.whl"))


def needed(names: Iterable[str], packages: dict[str, dict]) -> list[str]:
    """These packages of a lock file and all that they need."""
    found: dict[str, None] = {}
    waiting = list(names)
    while waiting:
        name = lock_file.normal(waiting.pop())
        if name not in found:
            found[name] = None
            waiting += packages[name]["depends"]
    return sorted(found)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("wheel", type=Path)
    parser.add_argument("output", type=Path)
    options = parser.parse_args()
    build(options.wheel, options.output, ROOT / "build" / "kernel")
    print(options.output / "lab" / "index.html")
    return 0


if __name__ == "__main__":
    sys.exit(main())
