"""The wheel pywebgpu-torch, installed by pip as users do: what pip and programs then find as torch."""

import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import numpy
import pytest

from tests import wheel
from tools import torch_wheel

PROGRAM = """
import importlib.metadata
import torch, torch.nn.functional
from torch import nn
assert importlib.metadata.version("torch") == torch.__version__, torch.__version__
x = torch.ones(2, 3, requires_grad=True)
nn.Linear(3, 1)(x).sum().backward()
print(torch.__name__, sys.modules["pywebgpu"] is torch, x.grad.shape)
"""


class Environment:
    """An environment of its own, with this library and NumPy."""

    def __init__(self, folder: Path) -> None:
        venv.create(folder, with_pip=True, symlinks=True)
        self.python = folder / "bin" / "python"
        paths = {"base": str(folder), "platbase": str(folder)}
        self.packages = Path(sysconfig.get_path("purelib", "venv", paths))
        (self.packages / "numpy.pth").write_text(str(folder / "numpy"), encoding="utf-8")
        (folder / "numpy").mkdir()
        theirs = Path(numpy.__file__).parents[1]
        for path in theirs.glob("numpy*"):
            (folder / "numpy" / path.name).symlink_to(path)

    def pip(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [str(self.python), "-m", "pip", "--disable-pip-version-check", *arguments]
        return subprocess.run(command, check=False, capture_output=True, text=True)

    def run(self, program: str) -> subprocess.CompletedProcess[str]:
        """-P: not the folder of the tests, in which there is another pywebgpu."""
        command = [str(self.python), "-P", "-c", "import sys\n" + program]
        return subprocess.run(command, check=False, capture_output=True, text=True, env={"PYWEBGPU_DEVICE": "cpu"})


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    built = tmp_path_factory.mktemp("wheels")
    environment = Environment(tmp_path_factory.mktemp("environment") / "venv")
    wheels = [str(wheel.build(built / "library")), str(torch_wheel.build(built / "torch"))]
    installed = environment.pip("install", "--no-index", *wheels)
    assert installed.returncode == 0, installed.stderr
    return environment


def test_import_torch_is_this_library(environment: Environment) -> None:
    done = environment.run(PROGRAM)
    assert done.stdout.split("\n")[0] == "torch True torch.Size([2, 3])", done.stderr


def test_functorch_may_be_imported_first(environment: Environment) -> None:
    done = environment.run("import functorch, torch\nprint(functorch.vmap(torch.exp)(torch.zeros(2)).tolist())")
    assert done.stdout == "[1.0, 1.0]\n", done.stderr


def test_pip_needs_no_other_torch(environment: Environment, tmp_path: Path) -> None:
    assert environment.pip("check").returncode == 0
    (tmp_path / "dependent.py").write_text("", encoding="utf-8")
    (tmp_path / "pyproject.toml").write_text(
        '[build-system]\nrequires = []\nbuild-backend = "hatchling.build"\n'
        '[project]\nname = "dependent"\nversion = "1"\ndependencies = ["torch>=2.2"]\n',
        encoding="utf-8",
    )
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    installed = environment.pip("install", "--no-index", *map(str, tmp_path.glob("*.whl")))
    assert installed.returncode == 0, installed.stderr


def test_beside_pytorch_it_is_refused(environment: Environment) -> None:
    theirs = environment.packages / "torch"
    theirs.mkdir()
    (theirs / "__init__.py").write_text("", encoding="utf-8")
    done = environment.run("import torch")
    assert done.returncode != 0
    assert "ImportError: PyTorch and pywebgpu-torch are both installed" in done.stderr
    (theirs / "__init__.py").unlink()
    theirs.rmdir()


def test_once_it_is_removed_nothing_is_left(environment: Environment) -> None:
    assert environment.pip("uninstall", "--yes", "pywebgpu-torch").returncode == 0
    assert [path.name for path in environment.packages.iterdir() if "torch" in path.name] == []
    assert "No module named 'torch'" in environment.run("import torch").stderr
