"""`make shim`: the wheel `pywebgpu-torch`, by which an environment without PyTorch has a distribution `torch`.

    python tools/torch_wheel.py dist

The wheel brings the record of that distribution, so that pip needs no other, and a finder for `import torch`. It has no
folder `torch`: nothing of a PyTorch that is there already is overwritten, and the finder then refuses to import either.
The record lists no files, so that pip refuses to install PyTorch over it.
"""

import importlib.metadata
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from pywebgpu import version  # noqa: E402
from pywebgpu.support.distribution import Distribution, of_torch  # noqa: E402
from pywebgpu.torch_api.torch_import import VERSION  # noqa: E402

PROJECT = """
[build-system]
requires = ["hatchling>=1.27,<2"]
build-backend = "hatchling.build"

[project]
name = "pywebgpu-torch"
version = "{own}"
description = "`import torch` is pywebgpu"
readme = "README.md"
requires-python = ">=3.11"
license = "MIT"
dependencies = ["pywebgpu=={own}"]

[tool.hatch.build.targets.wheel]
only-include = ["pywebgpu_torch.py", "pywebgpu_torch.pth"]

[tool.hatch.build.targets.wheel.force-include]
"record" = "pywebgpu_torch-{own}.data/purelib/torch-{torch}.dist-info"
"""


def build(output: Path) -> Path:
    """Writes the wheel into a folder, and gives its path."""
    torch = f"{VERSION}+pywebgpu.{version.own}"
    with TemporaryDirectory() as name:
        folder = Path(name)
        shutil.copytree(ROOT / "tools" / "shim", folder, dirs_exist_ok=True)
        (folder / "pyproject.toml").write_text(PROJECT.format(own=version.own, torch=torch), encoding="utf-8")
        (folder / "record").mkdir()
        distribution: importlib.metadata.Distribution = of_torch(torch)
        for file in Distribution.FILES:
            (folder / "record" / file).write_text(distribution.read_text(file) or "", encoding="utf-8")
        command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(output.resolve())]
        subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)
    (wheel,) = output.glob("pywebgpu_torch-*.whl")
    return wheel


if __name__ == "__main__":
    print(build(Path(sys.argv[1])))
