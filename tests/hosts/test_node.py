"""`pywebgpu node SCRIPT`: what a script sees of its process is what plain Python shows it."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pywebgpu.support import installation
from tests import devices

ROOT = Path(__file__).parents[2]


pytestmark = pytest.mark.skipif(bool(devices.why_no_node()), reason=devices.why_no_node())


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "pywebgpu", "node", *arguments]


def run(*arguments: str, **options: object) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    return subprocess.run(command(*arguments), capture_output=True, text=True, env=environment, check=False, **options)


def script(folder: Path, text: str, name: str = "script.py") -> str:
    (folder / name).write_text(text, encoding="utf-8")
    return name


def test_streams_arguments_and_status(tmp_path: Path) -> None:
    text = """
import sys
print("out", sys.argv, __name__, __file__)
print("err", input(), file=sys.stderr)
print(sys.stdin.read(), end="")
sys.exit(7)
"""
    done = run(script(tmp_path, text), "one", "--two", cwd=tmp_path, input="first\nsecond\nthird\n")
    assert done.stdout == f"out ['script.py', 'one', '--two'] __main__ {tmp_path}/script.py\nsecond\nthird\n"
    assert done.stderr == "err first\n"
    assert done.returncode == 7


def test_files_folders_and_environment(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    script(tmp_path / "sub", "VALUE = 5", "beside.py")
    text = """
import os, pathlib, beside
pathlib.Path("written.txt").write_text(f"{beside.VALUE} {os.environ['SOME_WORD']} {os.getcwd()}")
print(pathlib.Path("given.txt").read_text(), sorted(os.listdir(".")))
"""
    (tmp_path / "given.txt").write_text("given")
    os.environ["SOME_WORD"] = "word"
    done = run(f"sub/{script(tmp_path / 'sub', text)}", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "given ['given.txt', 'sub', 'written.txt']\n"
    assert (tmp_path / "written.txt").read_text() == f"5 word {tmp_path}"


def test_a_traceback_shows_the_script_only(tmp_path: Path) -> None:
    done = run(script(tmp_path, "def f():\n    raise ValueError('wrong')\n\n\nf()\n"), cwd=tmp_path)
    assert done.returncode == 1
    assert done.stderr == (
        "Traceback (most recent call last):\n"
        f'  File "{tmp_path}/script.py", line 5, in <module>\n    f()\n    ~^^\n'
        f"  File \"{tmp_path}/script.py\", line 2, in f\n    raise ValueError('wrong')\n"
        "ValueError: wrong\n"
    )


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    ("text", "status", "stderr"),
    [
        ("raise SystemExit", 0, ""),
        ("raise SystemExit('no')", 1, "no\n"),
        ("import os; os._exit(4)", 4, ""),
        ("import atexit, sys; atexit.register(print, 'last', file=sys.stderr); sys.exit(2)", 2, "last\n"),
    ],
)
def test_ways_to_exit(tmp_path: Path, text: str, status: int, stderr: str) -> None:
    done = run("-c", text, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (status, stderr)


def test_a_module_runs(tmp_path: Path) -> None:
    script(tmp_path, "import sys; print(__name__, sys.argv[1:])", "program.py")
    assert run("-m", "program", "x", cwd=tmp_path).stdout == "__main__ ['x']\n"


@pytest.mark.parametrize("waiting", ["while True: pass", "while True: torch.ones(3).sum().item()"])
def test_interrupt_is_keyboard_interrupt(tmp_path: Path, waiting: str) -> None:
    text = f"""
import pywebgpu as torch
try:
    print("ready", flush=True)
    {waiting}
except KeyboardInterrupt:
    print("interrupted", flush=True)
    raise
"""
    name = script(tmp_path, text.replace(f"    {waiting}", "    " + waiting.replace(": ", ":\n        ")))
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    child = subprocess.Popen(
        command(name), cwd=tmp_path, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "ready\n"
    time.sleep(0.5)
    child.send_signal(signal.SIGINT)
    out, err = child.communicate(timeout=60)
    assert out == "interrupted\n"
    assert err.endswith("KeyboardInterrupt\n")
    assert child.returncode == -signal.SIGINT


def test_webgpu_is_the_default_and_reading_waits(tmp_path: Path) -> None:
    text = """
import pywebgpu as torch
x = torch.arange(6).reshape(2, 3)
print(x.device, x.tolist(), x.float().mean().item(), x.cpu().tolist())
print(x)
"""
    done = run(script(tmp_path, text), cwd=tmp_path)
    printed = "tensor([[0, 1, 2],\n        [3, 4, 5]], device='webgpu')"
    assert done.stdout == f"webgpu [[0, 1, 2], [3, 4, 5]] 2.5 [[0, 1, 2], [3, 4, 5]]\n{printed}\n", done.stderr
    assert done.stderr == ""


def test_a_handler_of_events_may_read_where_javascript_calls_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PYWEBGPU_TRACEBACKS")
    text = """
import asyncio
from pyodide.code import run_js
from pyodide.ffi import create_proxy, run_sync
import pywebgpu as torch

x, seen = torch.arange(4.0), []
click = create_proxy(lambda handler: handler())
called = run_js("(click, handler) => click(handler)")

def show():
    seen.append(x.sum().item())

try:
    called(click, create_proxy(show))
except Exception as error:
    print(error)
for _ in range(2):
    called(click, create_proxy(torch.webgpu.handler(show)))
called(click, create_proxy(torch.webgpu.handler(lambda: torch.ones(2, 3) @ torch.ones(4))))
while len(seen) < 2:
    run_sync(asyncio.sleep(0.1))
print(seen)
"""
    done = run(script(tmp_path, text), cwd=tmp_path)
    assert "torch.webgpu.handler(function)" in done.stdout
    assert done.stdout.endswith("\n[6.0, 6.0]\n")
    assert done.stderr.count("File ") == 1  # The program's own line, and none of the library.
    assert done.stderr.splitlines()[-1].startswith("pywebgpu.errors.ShapeError")


def test_a_missing_script_is_told_as_python_tells_it(tmp_path: Path) -> None:
    done = run("nowhere.py", cwd=tmp_path)
    assert done.returncode != 0
    assert "No such file or directory: 'nowhere.py'" in done.stderr


def test_nothing_is_imported_from_the_working_folder(tmp_path: Path) -> None:
    """As with plain Python, which imports from the folder of the script."""
    (tmp_path / "elsewhere").mkdir()
    names = ("runpy", "atexit", "json", "pywebgpu")
    for name in names:
        script(tmp_path, f"raise SystemExit('planted {name}')", f"{name}.py")
    script(tmp_path / "elsewhere", f"import sys, {', '.join(names)}; print('' in sys.path)")
    words = [sys.executable, "-P", *command("elsewhere/script.py")[1:]]  # -P: the outer Python does not either.
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(words, capture_output=True, text=True, env=environment, check=False, cwd=tmp_path)
    assert (done.stdout, done.stderr) == ("False\n", "")


def test_a_planted_node_is_not_run(tmp_path: Path) -> None:
    """Neither in the working folder nor above it, whether it is Node or one of the packages."""
    planted = tmp_path / "node_modules"
    inner = tmp_path / "project"
    inner.mkdir()
    for name in installation.BINARIES.values():
        (planted / name / "bin").mkdir(parents=True)
        (planted / name / "bin" / "node").write_text(f"#!/bin/sh\ntouch {tmp_path}/run\n")
        (planted / name / "bin" / "node").chmod(0o755)
    for name, file in (("pyodide", "pyodide.mjs"), ("webgpu", "index.js")):
        (planted / name).mkdir()
        (planted / name / file).write_text(f"import fs from 'fs'; fs.writeFileSync('{tmp_path}/run', '');")
        (planted / name / "package.json").write_text('{"type": "module"}')
    for folder in (tmp_path, inner):
        done = run("-c", "print('right')", cwd=folder)
        assert (done.stdout, done.stderr) == ("right\n", "")
    assert not (tmp_path / "run").exists()


def test_memory_that_was_kept_is_restored_and_made_anew_where_it_is_damaged(tmp_path: Path) -> None:
    modules = installation.find_modules().path
    for name in ("pyodide", "webgpu"):
        (tmp_path / name).symlink_to(modules / name)
    kept = tmp_path / ".cache" / "pywebgpu"
    kept.mkdir(parents=True)
    version = json.loads((modules / "pyodide" / "package.json").read_text(encoding="utf-8"))["version"]
    file = kept / f"pyodide-{version}.snapshot"
    file.write_bytes(b"damaged" * 1000)
    job = json.dumps({"modules": str(tmp_path), "package": str(ROOT / "pywebgpu"), "packages": [], "interrupts": None})
    code = "import os, random; print(os.environ['SOME_WORD'], random.random())"
    words = [*devices.node_command(), "--no-warnings", str(ROOT / "js_bridge" / "node.mjs"), job, "-c", code]
    said, made = [], []
    for word in ("one", "two"):
        environment = os.environ | {"SOME_WORD": word}
        said += subprocess.run(words, capture_output=True, text=True, env=environment, check=True).stdout.splitlines()
        made.append(file.stat().st_mtime_ns)
    assert [line.split()[0] for line in said] == ["one", "two"]
    assert said[0].split()[1] != said[1].split()[1]
    assert made[0] == made[1]
    assert list(kept.iterdir()) == [file]


def test_output_keeps_its_order(tmp_path: Path) -> None:
    """Both streams into one file, as with plain Python: each line goes out when it is whole, or flushed."""
    text = "import sys\nfor i in range(3):\n    print('out', i, flush=True)\n    print('err', i, file=sys.stderr)\n"
    name = script(tmp_path, text)
    done = subprocess.run(
        command(name), cwd=tmp_path, env=os.environ | {"PYTHONPATH": str(ROOT)}, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
    )  # fmt: skip
    assert done.stdout == "".join(f"out {i}\nerr {i}\n" for i in range(3))
