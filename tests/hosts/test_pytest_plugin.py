"""`pytest --pywebgpu-host`: a program's own tests in each host, and what comes back of them; `pywebgpu chromium`."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from pywebgpu.hosts import chromium
from tests.hosts.host import HOSTS

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "ci"
WRONG = """
import os, sys, time
import pytest
import pywebgpu as torch

def helper(x):
    return x @ torch.ones(4, 5)

def test_wrong_shape():
    print("printed before")
    helper(torch.ones(2, 3))

def test_wrong_value(tmp_path, pywebgpu_host):
    x = torch.ones(3)
    assert x.sum().item() == 4

def test_writes():
    with open("written.txt", "w") as file:
        file.write("by the test")

@pytest.mark.pywebgpu_host("native")
def test_elsewhere(): ...

@pytest.mark.skip(reason="not now")
def test_skipped(): ...
"""
BESIDE = """
import sys
import pytest

if sys.platform != "emscripten":
    from playwright.sync_api import sync_playwright

    @pytest.fixture(scope="session", autouse=True)
    def playwright():
        with sync_playwright() as found:
            yield found
"""
ENDS = """
import os
def test_ends(): os._exit(3)
def test_never_ends():
    while True: pass
def test_goes_on(): assert True
"""


def run(folder: Path, *arguments: str) -> tuple[int, str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "PYWEBGPU_T"))}
    environment |= {"PYTHONPATH": str(ROOT), "COLUMNS": "120"}
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *arguments]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A copy of the template repository."""
    shutil.copytree(EXAMPLE, tmp_path / "repository")
    return tmp_path / "repository"


@pytest.mark.parametrize("host", ["cpu", "node", "chromium"])
def test_tests_of_a_repository_run_there_and_tell_all(repository: Path, host: str) -> None:
    if missing := HOSTS[host].missing():
        pytest.skip(missing)
    (repository / "tests" / "test_wrong.py").write_text(WRONG, encoding="utf-8")
    status, said = run(repository, "--pywebgpu-host", host, "-rA")
    assert status == 1, said
    assert "2 failed, 5 passed, 2 skipped" in said, said
    assert f"PASSED tests/test_model.py::test_it_learns[{host}]" in said
    assert "losses 0." in said  # What a test that passes printed.
    assert "printed before" in said
    assert "tests/test_wrong.py:11:" in said  # The traceback, and none of the library's own frames in it.
    assert "tests/test_wrong.py:7: ShapeError" in said
    assert "/composites/" not in said
    assert "mat1 and mat2 shapes cannot be multiplied" in said
    assert "assert 3.0 == 4" in said
    assert "not now" in said
    written = list(repository.rglob("written.txt"))
    assert [path.read_text() for path in written] == ["by the test"]
    if host == "chromium":
        where = written[0].relative_to(repository)
        assert where.parts[:3] == ("test-results", "pywebgpu", "chromium")
        assert str(where) in said


def test_a_host_that_ends_fails_one_test_alone_in_node(repository: Path) -> None:
    if missing := HOSTS["node"].missing():
        pytest.skip(missing)
    (repository / "tests" / "test_ends.py").write_text(ENDS, encoding="utf-8")
    arguments = ["tests/test_ends.py", "--pywebgpu-host", "node", "--pywebgpu-timeout", "4"]
    status, said = run(repository, *arguments)
    assert status == 1
    assert "2 failed, 1 passed" in said, said
    assert "node: its process ended with status 3" in said
    assert "node: no answer in 4 s (--pywebgpu-timeout)" in said


def test_async_tests_run_beside_fixtures_of_playwright(repository: Path) -> None:
    pytest.importorskip("playwright.sync_api")
    (repository / "conftest.py").write_text(BESIDE, encoding="utf-8")
    status, said = run(repository, "--pywebgpu-host", "cpu")
    assert status == 0, said
    assert "4 passed" in said


def test_without_the_option_nothing_changes(repository: Path) -> None:
    status, said = run(repository, "-k", "comes_back", "-v")
    assert status == 0, said
    assert "tests/test_model.py::test_it_comes_back_from_a_file PASSED" in said


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("--pywebgpu-host", "moon"), "there is no moon; there are native, cpu, node, chromium"),
        (("--pywebgpu-host", "node", "--pywebgpu-with", "numpy"), "numpy is compiled for this machine"),
        (("--pywebgpu-host", "node", "--pywebgpu-with", "nowhere"), "there is no module nowhere"),
    ],
)
def test_mistakes_are_told(repository: Path, arguments: tuple[str, ...], text: str) -> None:
    status, said = run(repository, "-k", "learns", *arguments)
    assert status != 0
    assert text in said


def test_a_script_runs_in_chromium_as_in_its_folder(tmp_path: Path) -> None:
    if missing := HOSTS["chromium"].missing():
        pytest.skip(missing)
    text = """
import os, sys, pathlib, beside
import pywebgpu as torch
print("out", sys.argv, __name__, os.getcwd(), torch.ones(3).sum().item(), torch.get_default_device())
pathlib.Path("new/written.txt").parent.mkdir()
pathlib.Path("new/written.txt").write_text(pathlib.Path("given.txt").read_text() + str(beside.VALUE))
print("err", file=sys.stderr)
sys.exit(7)
"""
    (tmp_path / "script.py").write_text(text, encoding="utf-8")
    (tmp_path / "beside.py").write_text("VALUE = 5", encoding="utf-8")
    (tmp_path / "given.txt").write_text("given ", encoding="utf-8")
    command = [sys.executable, "-m", "pywebgpu", "chromium", "script.py", "one", "--two"]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.stdout == f"out ['script.py', 'one', '--two'] __main__ {tmp_path} 3.0 webgpu\n", done.stderr
    assert (done.returncode, done.stderr) == (7, "err\n")
    assert (tmp_path / "new" / "written.txt").read_text() == "given 5"


def test_a_page_that_ends_tells_how_in_chromium() -> None:
    if missing := HOSTS["chromium"].missing():
        pytest.skip(missing)
    text = r"^the page's process ended: killed by signal 9 \(DEBUG=pw:browser .*\)\nlast words$"
    with pytest.raises(chromium.ChromiumError, match=text):
        end_a_page()


def end_a_page() -> None:
    with chromium.launched(software=True) as browser:
        page = browser.new_page()
        page.evaluate("console.error('last words')")
        found = browser.new_browser_cdp_session().send("SystemInfo.getProcessInfo")
        for process in found["processInfo"]:
            if process["type"] == "renderer":
                os.kill(process["id"], signal.SIGKILL)
        page.evaluate("new Promise(() => {})")
