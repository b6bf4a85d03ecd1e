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
    """Text that is put before the first place of `before`, or at the end of a file, which may be a new one."""

    file: str
    text: str
    before: str = ""

    def apply(self, root: Path) -> None:
        path = root / self.file
        content = path.read_text("utf-8") if path.exists() else ""
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

class Cubed(FunctionLayer):
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


PAGE = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
OP, _, TEMPLATE = PAGE.partition("```python\n")[2].partition("```")[0].partition("class RmsTemplate")
IMPORTS, _, OP = OP.partition("\n\n")
EXAMPLES |= {
    "template": Example(
        (
            Edit(
                "pywebgpu/composites/rms.py",
                "\n".join([line for line in IMPORTS.splitlines() if "pywebgpu.kernels" not in line] + [OP]),
            ),
            Edit(
                "pywebgpu/kernels/templates/rms.py",
                f"{IMPORTS}\nfrom pywebgpu.composites.rms import rms\n\n\nclass RmsTemplate{TEMPLATE}",
            ),
            Edit("pywebgpu/kernels/templates/__init__.py", "    rms,\n", "    rows,\n"),
            Edit("pywebgpu/kernels/templates/__init__.py", "    Entry(rms.RmsTemplate),\n", "    Entry(pack."),
        ),
        """
import pywebgpu as torch
from pywebgpu.composites.rms import rms
from pywebgpu.tensor.apply import apply
x = torch.arange(12.0, device="cpu").reshape(3, 4)
rows, factors = apply(rms, x, eps=1e-6)
torch.testing.assert_close(rows * (x.square().mean(1, keepdim=True) + 1e-6).sqrt(), x)
x = torch.ones(70, 300, device="null")
rows, factors = apply(rms, x, eps=1e-6)
assert [kernel.name for kernel in torch.explain(rows).kernels] == ["rms"]
""",
    ),
    "dtype": Example(
        (
            Edit(
                "pywebgpu/dtypes.py",
                """int12 = _dtype("int12", "Twelve", Kind.INT, 2, "i32", formats.I16, "h", -(2**11), 2**11 - 1)
""",
                "int32 = ",
            ),
            Edit("pywebgpu/dtypes.py", "int12, ", "int32, int64, uint16"),
            Edit("pywebgpu/ops/special.py", '"int12": "int16", ', '"bfloat16": "float32"'),
            Edit("js_bridge/values.mjs", "int12: Int16Array,\n  ", "int16: Int16Array"),
        ),
        """
import pywebgpu as torch
x = torch.tensor([-2048, 5, 2047], dtype=torch.int12, device="cpu")
assert (x.dtype, x.element_size(), x.tolist()) == (torch.int12, 2, [-2048, 5, 2047])
assert (x // 2).dtype is torch.int12
assert (x // 2).tolist() == [-1024, 2, 1023]
assert (x + torch.tensor([1, 1, 1], device="cpu")).tolist() == [-2047, 6, 2048]
assert torch.explain(torch.ones(70, device="null", dtype=torch.int12) * 3).kernels
""",
    ),
    "device": Example(
        (
            Edit(
                "pywebgpu/devices/mirror.py",
                """from pywebgpu.devices.cpu import CpuDevice


class MirrorDevice(CpuDevice):
    def __init__(self) -> None:
        super().__init__()
        self.name = "mirror"


def open_device(index: int = 0) -> MirrorDevice:
    return MirrorDevice()
""",
            ),
            Edit("pywebgpu/devices/__init__.py", '"mirror": "mirror",\n    ', '"null": "null"'),
        ),
        """
import pywebgpu as torch
model = torch.nn.Linear(2, 1, device="mirror")
model(torch.ones(3, 2, device="mirror")).sum().backward()
assert (str(model.weight.grad.device), model.weight.grad.tolist()) == ("mirror", [[3.0, 3.0]])
assert torch.ones(3).to("mirror").cpu().tolist() == [1.0, 1.0, 1.0]
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
