"""Pages of other hosts, written into a folder beside what npm has of them; each says in #said what its Python did."""

import json
import shutil
from collections.abc import Sequence
from pathlib import Path

from tests import wheel
from tools import lock_file

ROOT = Path(__file__).parents[2]
MODULES = Path(__file__).parent / "node_modules"
PYODIDES = {
    "0.26": MODULES / "pyodide-0.26",
    "0.27": MODULES / "pyodide-0.27",
    "0.28": MODULES / "pyodide-0.28",
    "0.29": MODULES / "pyodide-0.29",
    "314": ROOT / "node_modules" / "pyodide",
}
PROGRAM = f"""{wheel.TRAINING}
said = f"trained on {{model.weight.device.type}}"
"""
# The same where Python cannot wait: what it is told first, and the awaitable forms of all.
AWAITED = f"""
import pywebgpu as torch
from pywebgpu.cli import doctor

try:
    torch.ones(3)
    first = "nothing"
except RuntimeError as error:
    first = str(error)
await torch.webgpu.init()
{wheel.TRAINING.replace("loss.item()", "await loss.item_async()")}
await torch.save_async(model.state_dict(), "saved.pt")
back = torch.load("saved.pt", map_location="cpu")["weight"].tolist()
assert back == await model.weight.tolist_async()
assert sorted(await torch.randperm(5).tolist_async()) == [0, 1, 2, 3, 4]
there = ": ".join(doctor.examine().page.values())
said = f"{{first}} | {{x!r}} | {{there}} | trained on {{model.weight.device.type}}"
"""
NUMPY = """
import numpy

assert torch.from_numpy(numpy.arange(3.0)).sum().item() == 3.0
assert (torch.ones(3) * 2).numpy().tolist() == [2.0, 2.0, 2.0]
said = "with NumPy"
"""
HANDLERS = """
def read(event):
    document.getElementById("said").textContent = f"read {x.sum().item()}"

def plain(event):
    try:
        read(event)
    except RuntimeError as error:
        document.getElementById("said").textContent = str(error)

async def awaited(event):
    document.getElementById("said").textContent = f"awaited {await x.sum().item_async()}"
"""
BUTTONS = '<p id="said"></p><div id="loop"></div>' + "".join(
    f'<button id="{name}">{name}</button>' for name in ("plain", "wrapped", "awaited", "endless")
)
PAGE = """<!doctype html><meta charset="utf-8"><title>{title}</title>{body}
<script type="module">
const say = (text) => {{ document.getElementById("said").textContent = text; }};
try {{
  {script}
}} catch (error) {{
  say(error.stack);
  throw error;
}}
</script>"""
START = """const {{ loadPyodide }} = await import("{folder}/pyodide.mjs");
const python = await loadPyodide();
const program = {program};
await python.{load};
await python.runPythonAsync(program);"""
LISTEN = """
from js import document
from pyodide.ffi.wrappers import add_event_listener
from pywebgpu.display import stoppable

def endless(event):
    steps = stoppable(range(1_000_000), target="loop")
    for _ in steps:
        x.sum().item()
    document.getElementById("said").textContent = f"stopped {steps.stopped}"

wrapped = {"wrapped": torch.webgpu.handler(read), "endless": torch.webgpu.handler(endless)}
for name, function in {"plain": plain, "awaited": awaited, **wrapped}.items():
    add_event_listener(document.getElementById(name), "click", function)
document.getElementById("said").textContent = said
"""
PYSCRIPT = """<!doctype html><meta charset="utf-8"><title>PyScript</title>
<link rel="stylesheet" href="/pyscript/core.css"><script type="module" src="/pyscript/core.js"></script>
{body}<script type="py" {worker} config='{config}'>{program}</script>"""
WHEN = """
from pyscript import document, when

@when("click", "#plain")
def _(event):
    plain(event)

@when("click", "#wrapped")
@torch.webgpu.handler
def _(event):
    read(event)

@when("click", "#awaited")
async def _(event):
    await awaited(event)

document.getElementById("said").textContent = said
"""


def missing() -> str:
    return "" if MODULES.is_dir() else "no packages of playwright_tests/notebooks: make notebooks installs them"


def write_numpy(folder: Path, wheel: Path, numpy: Path) -> None:
    """A page whose Pyodide has NumPy: it trains before that is loaded, and shares arrays with it then."""
    shutil.copytree(PYODIDES["314"], folder / "numpy", ignore=shutil.ignore_patterns("*.map", "*.d.ts"))
    lock_file.add([numpy, wheel], folder / "numpy")
    start = START.format(folder="./numpy", load="loadPackagesFromImports(program)", program=json.dumps(PROGRAM))
    script = f"""{start}
  const more = {json.dumps(NUMPY)};
  await python.loadPackagesFromImports(more);
  await python.runPythonAsync(more);
  say(python.globals.get("said"));"""
    (folder / "numpy.html").write_text(PAGE.format(title="NumPy", body=BUTTONS, script=script), encoding="utf-8")


def write(folder: Path, wheel: Path, others: Sequence[Path]) -> None:
    """All pages. others: wheels beside the newest Pyodide: micropip, which PyScript asks for."""
    for version, package in PYODIDES.items():
        place = folder / version
        shutil.copytree(package, place, ignore=shutil.ignore_patterns("*.map", "*.d.ts"))
        lock_file.add([*(others if version == "314" else ()), wheel], place, package / "pyodide-lock.json")
        for name, program in {"": PROGRAM, "awaited-": AWAITED}.items():
            (folder / f"{name}page-{version}.html").write_text(_plain(version, program), encoding="utf-8")
            (folder / f"{name}worker-{version}.html").write_text(_worker(version, name), encoding="utf-8")
            (folder / f"{name}worker-{version}.mjs").write_text(_in_worker(version, program), encoding="utf-8")
    shutil.copytree(MODULES / "@pyscript" / "core" / "dist", folder / "pyscript")
    config = json.dumps({"interpreter": "/314/pyodide.mjs", "packages": ["pywebgpu"]})
    for name, worker in {"pyscript": "", "pyscript-worker": "worker"}.items():
        for before, program in {"": PROGRAM, "awaited-": AWAITED}.items():
            page = PYSCRIPT.format(body=BUTTONS, worker=worker, config=config, program=program + HANDLERS + WHEN)
            (folder / f"{before}{name}.html").write_text(page, encoding="utf-8")


def _plain(version: str, program: str) -> str:
    script = START.format(
        folder=f"./{version}", load='loadPackage("pywebgpu")', program=json.dumps(program + HANDLERS + LISTEN)
    )
    return PAGE.format(title=f"Pyodide {version}", body=BUTTONS, script=script)


def _worker(version: str, name: str) -> str:
    script = f'new Worker("./{name}worker-{version}.mjs", {{ type: "module" }}).onmessage = ({{ data }}) => say(data);'
    return PAGE.format(title=f"Pyodide {version} in a worker", body=BUTTONS, script=script)


def _in_worker(version: str, program: str) -> str:
    start = START.format(folder=f"./{version}", load="loadPackagesFromImports(program)", program=json.dumps(program))
    return start + '\npostMessage(python.globals.get("said"));\n'
