"""`make pyodide`: the wheel in a lock file of Pyodide, loaded by its name and by what a program imports."""

import json
import subprocess
from pathlib import Path

import pytest

from tests import devices, wheel
from tools import distribution

ROOT = Path(__file__).parents[2]
PROGRAM = """
import { pathToFileURL } from "node:url";
const [folder, modules, bridge] = process.argv.slice(2);
const { offerWebGPU } = await import(pathToFileURL(`${bridge}/dawn.mjs`));
await offerWebGPU(pathToFileURL(`${modules}/webgpu/index.js`).href);
const { loadPyodide } = await import(pathToFileURL(`${modules}/pyodide/pyodide.mjs`));
const lock = { lockFileURL: `${folder}/pyodide-lock.json`, packageBaseUrl: `${folder}/` };
const step = `
STEP
f"{model.weight.device} {'site-packages' in torch.__file__}"`;
for (const load of [(python) => python.loadPackage("pywebgpu"), (python) => python.loadPackagesFromImports(step)]) {
  const python = await loadPyodide({ ...lock }); // It changes what it is given.
  const found = await load(python);
  console.log(found.map(({ name }) => name).join(), await python.runPythonAsync(step));
}
process.exit(0);
""".replace("STEP", wheel.TRAINING)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if devices.why_no_node():
        pytest.skip(devices.why_no_node())
    place = tmp_path_factory.mktemp("distribution")
    distribution.make(wheel.build(tmp_path_factory.mktemp("dist")), place)
    return place


def test_a_page_loads_it_by_name_and_by_imports_in_node(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "load.mjs").write_text(PROGRAM, encoding="utf-8")
    arguments = [str(folder), str(ROOT / "node_modules"), str(ROOT / "js_bridge")]
    command = [*devices.node_command(), "--no-warnings", str(tmp_path / "load.mjs"), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    lines = [line for line in done.stdout.splitlines() if line.startswith("pywebgpu")]
    assert lines == ["pywebgpu webgpu True"] * 2, done.stdout + done.stderr


def test_all_other_packages_stay(folder: Path) -> None:
    before = json.loads(distribution.LOCK.read_text(encoding="utf-8"))["packages"]
    after = json.loads((folder / "pyodide-lock.json").read_text(encoding="utf-8"))["packages"]
    assert after.keys() == before.keys() | {"pywebgpu"}
    assert after["numpy"]["file_name"].startswith("https://cdn.jsdelivr.net/pyodide/v")
    assert after["numpy"] | {"file_name": ""} == before["numpy"] | {"file_name": ""}
    assert after["pywebgpu"]["imports"] == ["pytest_pywebgpu", "pywebgpu"]
    assert after["pywebgpu"]["depends"] == []
    assert after["pywebgpu"]["sha256"] in (folder / "meta.yaml").read_text(encoding="utf-8")


def test_the_recipe_is_one_of_pyodide_build(folder: Path) -> None:
    spec = pytest.importorskip("pyodide_build.recipe.spec", reason="the extra pyodide needs Python 3.12")
    recipe = spec.MetaConfig.from_yaml(folder / "meta.yaml")
    assert recipe.package.name == recipe.test.imports[0] == "pywebgpu"


def test_the_lock_file_is_as_pyodide_s_own_tool_writes_it(folder: Path) -> None:
    lock = pytest.importorskip("pyodide_lock", reason="the extra pyodide needs Python 3.12")
    utils = pytest.importorskip("pyodide_lock.utils")
    found = lock.PyodideLockSpec.from_json(folder / "pyodide-lock.json")
    (made,) = folder.glob("*.whl")
    own = utils.add_wheels_to_spec(lock.PyodideLockSpec.from_json(distribution.LOCK), [made], base_path=folder)
    assert own.packages.keys() == found.packages.keys()
    assert own.packages["pywebgpu"] == found.packages["pywebgpu"]


OTHERS = ("cp313-cp313-pyodide_2026_0_wasm32", "cp314-cp314-linux_x86_64", "cp314-cp314-pyodide_2025_0_wasm32")


@pytest.mark.parametrize("tag", OTHERS)
def test_wheels_of_other_machines_are_refused(tag: str) -> None:
    info = {"python": "3.14.2", "abi_version": "2026_0", "arch": "wasm32"}
    with pytest.raises(distribution.DistributionError, match="is not for Pyodide's Python"):
        distribution.check_tag(f"a-1-{tag}.whl", info)
    distribution.check_tag("a-1-py3-none-any.whl", info)
    distribution.check_tag("a-1-cp314-cp314-pyemscripten_2026_0_wasm32.whl", info)
