"""The command: what it says when it is called with too little, or with what is not there."""

import socket
import subprocess
import sys
from pathlib import Path

import pytest

from pywebgpu import cli, version
from pywebgpu.bench import workloads

ROOT = Path(__file__).parents[2]


def test_without_a_command_it_lists_them(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([]) == 0
    said = capsys.readouterr().out
    assert all(f"  {name} " in said for name in cli._COMMANDS)


def test_it_says_its_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"pywebgpu {version.__version__}\n"


@pytest.mark.parametrize("command", ["run", "node"])
def test_a_missing_script_is_named(command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([command, str(tmp_path / "nowhere.py")]) == 2
    assert f"pywebgpu {command}: can't open file '{tmp_path}/nowhere.py': No such file" in capsys.readouterr().err
    assert cli.main([command, str(tmp_path)]) == 2
    assert "that is a folder" in capsys.readouterr().err


def test_a_busy_port_is_told_with_a_way_out(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert cli.main(["serve", "--cdn", "--port", str(port)]) == 2
    assert f"another program has port {port}; --port 0 takes a free one" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["bench", "tune"])
def test_a_wrong_workload_is_answered_with_all_that_there_are(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli.main([command, "nosuch"])
    assert f"there are {', '.join((*workloads.WORKLOADS, *workloads.LARGE))}\n" in capsys.readouterr().err


# What is run in another process: its arguments, then what it prints last on which stream.
RUNS = {
    "the version once": (["run", "{folder}/version.py"], f"2.13.0+pywebgpu.{version.__version__}"),
    "a missing module": (["run", "-m", "nosuch"], "ImportError: No module named nosuch"),
    "the program's own lines": (
        ["run", "{folder}/fails.py"],
        'Traceback (most recent call last):\n  File "{folder}/fails.py", line 1, in <module>\n    1 / 0\n'
        "    ~~^~~\nZeroDivisionError: division by zero",
    ),
    "the arguments of a program": (["export", "{folder}/given.py:parts", "out", "3"], "['{folder}/given.py', '3']"),
}


@pytest.mark.parametrize("name", RUNS)
def test_programs_see_their_own_names_alone(name: str, tmp_path: Path) -> None:
    (tmp_path / "version.py").write_text("import torch; print(torch.__version__)")
    (tmp_path / "fails.py").write_text("1 / 0")
    (tmp_path / "given.py").write_text("import sys\ndef parts(arguments): sys.exit(str(sys.argv))")
    arguments, said = RUNS[name]
    command = [sys.executable, "-m", "pywebgpu", *(word.format(folder=tmp_path) for word in arguments)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.stdout + done.stderr).strip() == said.format(folder=tmp_path)


def test_names_of_workloads_stand_apart_from_their_text(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli.main(["bench", "--help"])
    assert "  resnet18-224  " in capsys.readouterr().out
