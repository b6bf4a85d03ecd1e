"""The command: what it says when it is called with too little, or with what is not there."""

import socket
from pathlib import Path

import pytest

from pywebgpu import cli, version


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


def test_names_of_workloads_stand_apart_from_their_text(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli.main(["bench", "--help"])
    assert "  resnet18-224  " in capsys.readouterr().out
