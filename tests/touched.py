"""How many files an addition touches, by examples that are made in a copy of the library and computed there.

`python -m tests touched` prints each kind of addition and its files, but for those that golden --update
writes; tests/unit/test_touched.py holds their numbers.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
COPIED = ("pywebgpu", "tests", "js_bridge")


@dataclass(frozen=True, slots=True)
class Edit:
    """Text that is put before the first line that begins with `before`, or at the end of a file."""

    file: str
    text: str
    before: str = ""

    def apply(self, root: Path) -> None:
        path = root / self.file
        content = path.read_text("utf-8")
        place = content.index(self.before) if self.before else len(content)
        path.write_text(content[:place] + self.text + content[place:], "utf-8")


@dataclass(frozen=True, slots=True)
class Example:
    """edits: an addition as CONTRIBUTING.md describes it.  check: a program that shows that it works."""

    edits: tuple[Edit, ...]
    check: str

    @property
    def files(self) -> list[str]:
        return sorted({edit.file for edit in self.edits})


CHECK = """
import pywebgpu as torch
x = torch.tensor([-1.5, 0.5, 2.0], device="cpu", requires_grad=True)
assert torch.{name}(x).tolist() == x.{name}().tolist() == [-3.375, 0.125, 8.0]
torch.{name}(x).sum().backward()
assert x.grad.tolist() == [6.75, 0.75, 12.0]
y = x.detach().clone()
assert y.{name}_().tolist() == y.tolist() == [-3.375, 0.125, 8.0]
torch.{name}(torch.ones(70, 3, device="null")).sum()
from tests.cases import pointwise
assert any(case.name == "{name}" for case in pointwise.CASES)
"""
CASE = """case("{name}", lambda torch, x: torch.{name}(x) if hasattr(torch, "{name}") else x * x * x, uniform(3, 7))
"""
EXAMPLES = {
    "elementwise op": Example(
        (
            Edit(
                "pywebgpu/ops/pointwise.py",
                """
cubed: Pointwise = Pointwise(
    "cubed",
    wgsl="({0} * {0} * {0})",
    reference=lambda xp, a: a * a * a,
    vjp=(lambda g, out, a: mul(g, add(mul(a, a), add(mul(a, a), mul(a, a)))),),
    surface=Surface("cubed", Takes.REAL),
)
""",
            ),
            Edit("tests/cases/pointwise.py", CASE.format(name="cubed")),
        ),
        CHECK.format(name="cubed"),
    ),
    "function made of ops": Example(
        (
            Edit(
                "pywebgpu/composites/elementwise.py",
                '''

@shown("cube", Takes.UNARY)
def cube(x: Node) -> Node:
    """x * x * x"""
    return pointwise.mul(x, pointwise.mul(x, x))
''',
            ),
            Edit("tests/cases/pointwise.py", CASE.format(name="cube")),
        ),
        CHECK.format(name="cube"),
    ),
    "module": Example(
        (
            Edit(
                "pywebgpu/nn/activation.py",
                '''

class Cubed(_Plain):
    """x * x * x"""

    @staticmethod
    def forward(input: Tensor) -> Tensor:
        return input * input * input
''',
            ),
            Edit("pywebgpu/nn/__init__.py", "Cubed ", "CELU "),
            Edit("tests/cases/modules.py", '"Cubed": {}, ', '"Hardswish": {}'),
        ),
        """
import pywebgpu as torch
assert torch.nn.Cubed()(torch.tensor([2.0], device="cpu")).tolist() == [8.0]
""",
    ),
}


def run(example: Example) -> None:
    """Makes an addition in a copy and runs its check. Raises CalledProcessError where it fails."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        for name in COPIED:
            shutil.copytree(ROOT / name, root / name, ignore=shutil.ignore_patterns("__pycache__"))
        for edit in example.edits:
            edit.apply(root)
        environment = os.environ | {"PYTHONPATH": folder, "PYTHONDONTWRITEBYTECODE": "1", "PYWEBGPU_VERIFY": "1"}
        subprocess.run([sys.executable, "-c", example.check], cwd=folder, env=environment, check=True)


def main() -> bool:
    for kind, example in EXAMPLES.items():
        run(example)
        print(f"{kind:22}{len(example.files)} files: {', '.join(example.files)}")
    return True
