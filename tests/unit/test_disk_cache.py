"""Programs on disk: a second process reads what the first one compiled, and never anything stale or broken."""

import ast
import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import pywebgpu as torch
from pywebgpu.devices.timing import Timing
from pywebgpu.inspector.plans import Plans
from pywebgpu.ir import origin
from pywebgpu.profiler import events
from pywebgpu.runtime import disk_cache, program_cache, state
from pywebgpu.settings import settings

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "pywebgpu"
SCRIPT = """
import json
import pywebgpu as torch
from pywebgpu import devices
from pywebgpu.runtime import executor, state
x = torch.ones(4, 4, device="null")
y = (x @ x).softmax(-1) * 2
executor.submit(devices.open_device("null"))
program = next(iter(state.default.programs.values()))[0]
print(json.dumps([state.default.counters["stored_hits"], [kernel.wgsl for kernel in program.kernels]]))
"""


TRAINING = """
import os
import pywebgpu as torch
torch.set_default_device("null")
model = torch.nn.Linear(4, 4)
optimizer = torch.optim.AdamW(model.parameters())
def step():
    optimizer.zero_grad()
    model(torch.ones(4, 4)).sum().backward()
    optimizer.step()
step()
step()
torch.webgpu.synchronize()
torch.visualize(step, os.environ["PYWEBGPU_CACHE"] + ".html")
"""


PROFILED = """
import json, os
import pywebgpu as torch
from pywebgpu.profiler import profile
torch.set_default_device(os.environ["DEVICE"])
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1))
optimizer = torch.optim.AdamW(model.parameters())
def step():
    optimizer.zero_grad()
    loss = model(torch.ones(32, 8)).square().mean()
    loss.backward()
    optimizer.step()
    return loss.item()
step()
with profile() as found:
    step()
print(json.dumps([(event.name, event.details) for event in found.events() if event.device]))
"""


def output(script: str, folder: Path, **changes: str) -> str:
    environment = os.environ | {"PYWEBGPU_CACHE": str(folder)} | changes
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, env=environment, capture_output=True, check=True)
    return done.stdout.decode()


def run(folder: Path, **changes: str) -> tuple[int, list[str]]:
    hits, kernels = json.loads(output(SCRIPT, folder, **changes))
    return hits, kernels


def test_the_second_process_compiles_nothing(tmp_path: Path) -> None:
    hits, kernels = run(tmp_path)
    assert (hits, len(list(tmp_path.glob("*.json"))) > 0) == (0, True)
    assert run(tmp_path) == (len(list(tmp_path.iterdir())), kernels)


def test_a_program_of_a_file_is_drawn_like_a_new_one(tmp_path: Path) -> None:
    pages = []
    for _ in range(2):
        output(TRAINING, tmp_path / "kept")
        pages.append((tmp_path / "kept.html").read_text(encoding="utf-8"))
    assert pages[0] == pages[1]


def test_a_program_of_a_file_is_profiled_like_a_new_one(device: str, tmp_path: Path) -> None:
    """Its slots are numbered otherwise than those of the graph's plan."""
    new, stored = (json.loads(output(PROFILED, tmp_path, DEVICE=device)) for _ in range(2))
    assert new == stored
    assert all(details["shapes"] for _, details in new)


def test_another_way_of_compiling_is_another_program(tmp_path: Path) -> None:
    run(tmp_path)
    hits, _ = run(tmp_path, PYWEBGPU_FUSE="0")
    assert hits == 0


@pytest.mark.one_in(2)
@pytest.mark.parametrize("text", ["", "{", '{"version": 0}', '{"version": 2}'])
def test_what_cannot_be_read_is_compiled_again(text: str, tmp_path: Path) -> None:
    _, kernels = run(tmp_path)
    for file in tmp_path.iterdir():
        file.write_text(text)
    assert run(tmp_path) == (0, kernels)
    assert run(tmp_path)[0] > 0


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The package's sources, to be changed."""
    for file in disk_cache.sources(PACKAGE):
        target = tmp_path / file.relative_to(PACKAGE)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(file, target)
    return tmp_path


def test_a_copy_of_the_compiler_has_its_fingerprint(copy: Path) -> None:
    assert disk_cache.fingerprint(copy) == disk_cache.fingerprint(PACKAGE)


KINDS = [
    *disk_cache.FILES,
    *(f"{folder}/{next((PACKAGE / folder).glob('*.py')).name}" for folder in disk_cache.FOLDERS),
]


@pytest.mark.parametrize("name", [*KINDS, "kernels/templates/rows.py", "compiler/wire.py", "compiler/passes/lower.py"])
def test_an_edit_is_another_fingerprint(name: str, copy: Path) -> None:
    """Of the same size and with the same time, as files of two wheels may have."""
    before, file = disk_cache.fingerprint(copy), copy / name
    text, known = file.read_bytes(), file.stat()
    file.write_bytes(text[:-1] + b" " if text else b" ")
    os.utime(file, ns=(known.st_atime_ns, known.st_mtime_ns))
    assert disk_cache.fingerprint(copy) != before


@pytest.mark.parametrize("name", ["kernels/library/a.wgsl", "kernels/deep/b.py", "kernels/c.json"])
def test_a_file_more_is_another_fingerprint(name: str, copy: Path) -> None:
    before, file = disk_cache.fingerprint(copy), copy / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("x")
    found = disk_cache.fingerprint(copy)
    assert found != before
    file.write_text("y")
    assert disk_cache.fingerprint(copy) != found


def test_the_fingerprint_is_of_all_that_the_compiler_imports() -> None:
    """But for captured steps, whose free numbers are no part of a Program."""
    covered = {file.relative_to(PACKAGE).as_posix() for file in disk_cache.sources(PACKAGE)}
    missing = {name for name in imported("compiler/driver.py") if name not in covered}
    assert {name for name in missing if not name.startswith("step_capture/")} == set()


def imported(start: str) -> set[str]:
    """The files of the package that one imports, with those that they import."""
    waiting, seen = [start], set[str]()
    while waiting:
        name = waiting.pop()
        if name not in seen:
            seen.add(name)
            waiting += [found for module in modules(PACKAGE / name) if (found := file_of(module))]
    return seen


def modules(file: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return found


def file_of(module: str) -> str:
    """The package's file of a module's name; "" where there is none, and for the package itself."""
    package, _, rest = module.partition(".")
    path = rest.replace(".", "/")
    names = [f"{path}.py", f"{path}/__init__.py"] if package == "pywebgpu" and rest else []
    return next((name for name in names if (PACKAGE / name).is_file()), "")


def test_a_folder_that_cannot_be_written_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert run(tmp_path / "file")[0] == 0


def kernels_of_a_step() -> list[tuple[object, ...]]:
    """What the profiler says of each kernel of a training step, in a process that ran the step before."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(*(torch.nn.Linear(4, 4) for _ in range(3))).to("null")
    optimizer = torch.optim.AdamW(model.parameters())

    def step() -> None:
        optimizer.zero_grad()
        model(torch.ones(2, 4, device="null")).softmax(-1).square().sum().backward()
        optimizer.step()

    step()
    step()
    plans = Plans()
    origin.watch(plans)
    try:
        step()
    finally:
        origin.unwatch(plans)
    program, _, _ = next(reversed(state.default.programs.values()))
    spans = [(at, at + 1) for at in range(len(program.steps))]
    timing = Timing(program, 0.0, 1.0, spans)
    return [(event.name, *event.details.items()) for event in events.of_device("null", [timing], plans)]


def test_the_profiler_says_of_a_stored_program_what_it_said_of_it_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A Program that came from a file numbers its slots in another way."""
    for module in (program_cache, disk_cache):
        monkeypatch.setattr(module, "settings", replace(settings, cache=str(tmp_path)))
    found, hits = [], []
    for _ in range(2):
        monkeypatch.setattr(state, "default", state.Runtime())
        found.append(kernels_of_a_step())
        hits.append(state.default.counters["stored_hits"])
    assert hits[0] == 0 < hits[1]
    assert found[0] == found[1]
    assert len(found[0]) > 5
