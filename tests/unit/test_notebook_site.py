"""What the site of `make lite` is made of, before JupyterLite builds it."""

import json
import zipfile
from pathlib import Path

import pytest

from tools import notebook_site

LOCK = {
    "info": {"abi_version": "2026_0", "arch": "wasm32", "python": "3.14.2"},
    "packages": {
        name: {
            "name": name,
            "version": "1.0",
            "file_name": f"{name}-1.0-py3-none-any.whl",
            "sha256": "",
            "imports": [name],
            "depends": needs,
        }
        for name, needs in {"ipython": ["prompt_toolkit"], "prompt-toolkit": [], "numpy": []}.items()
    },
}

NEEDS = "Requires-Dist: ipython>=6\nRequires-Dist: jupyterlab_widgets~=3.0\n"
NEEDS += "Requires-Dist: uvicorn; sys_platform != 'emscripten'\n"
NEEDS += "Requires-Dist: typing_extensions; python_version < '3.12'\nRequires-Dist: pytest; extra == 'test'\n"


def wheel(folder: Path, name: str, needs: str = "") -> Path:
    made = folder / f"{name}-1.0-py3-none-any.whl"
    with zipfile.ZipFile(made, "w") as archive:
        archive.writestr(f"{name}/__init__.py", "")
        archive.writestr(f"{name}-1.0.dist-info/METADATA", f"Name: {name}\nVersion: 1.0\nSummary: one\n{needs}")
    return made


@pytest.fixture
def lite(tmp_path: Path) -> Path:
    pyodide, wheels = tmp_path / "pyodide", tmp_path / "wheels"
    for folder in (pyodide, wheels):
        folder.mkdir()
    (pyodide / "pyodide-lock.json").write_text(json.dumps(LOCK), encoding="utf-8")
    (pyodide / "package.json").write_text('{"version": "314.0.7"}', encoding="utf-8")
    (pyodide / "pyodide.mjs").touch()
    widgets = wheel(wheels, "ipywidgets", NEEDS)
    others = [wheel(wheels, "ipython", "Requires-Dist: lexers\n"), widgets]
    notebook_site.fill(tmp_path / "lite", wheel(wheels, "pywebgpu"), others, pyodide / "pyodide-lock.json")
    return tmp_path / "lite"


def test_python_and_the_wheels_lie_in_it(lite: Path) -> None:
    names = {path.name for path in (lite / "static" / "pyodide").iterdir()}
    assert names >= {"pyodide.mjs", *(f"{name}-1.0-py3-none-any.whl" for name in ("ipython", "ipywidgets", "pywebgpu"))}


def test_the_lock_file_names_them_and_where_the_others_are(lite: Path) -> None:
    packages = json.loads((lite / "static" / "pyodide" / "pyodide-lock.json").read_text(encoding="utf-8"))["packages"]
    assert packages["pywebgpu"]["imports"] == ["pywebgpu"]
    assert packages["ipython"]["file_name"] == "ipython-1.0-py3-none-any.whl"
    assert packages["ipython"]["depends"] == ["prompt_toolkit"]
    assert len(packages["ipython"]["sha256"]) == 64
    assert packages["ipywidgets"]["depends"] == ["ipython"]
    assert packages["numpy"]["file_name"] == "https://cdn.jsdelivr.net/pyodide/v314.0.7/full/numpy-1.0-py3-none-any.whl"


def test_the_kernel_is_loaded_with_all_that_it_needs() -> None:
    assert notebook_site.needed(["ipython"], LOCK["packages"]) == ["ipython", "prompt-toolkit"]
