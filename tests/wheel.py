"""The wheel, built as `make wheel` builds it, without its environment of its own: the backend is installed."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def build(folder: Path) -> Path:
    """The wheel in `folder`; there is exactly one, and it is for every machine."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = folder.iterdir()
    assert wheel.name.endswith("-py3-none-any.whl"), wheel.name
    return wheel
