"""Programs written for PyTorch run without a change: `pywebgpu run`, and `import pywebgpu.as_torch`."""

import itertools
import operator
import os
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from pywebgpu.cli import run
from pywebgpu.torch_api import stand_ins, torch_version

ROOT = Path(__file__).parents[2]
SCRIPT = """
import sys

import torch
import torch.backends.cudnn as cudnn
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.utils import _pair
from torch.optim.adam import Adam
from torch.optim.lr_scheduler import StepLR
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

cudnn.benchmark = True
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
with torch.no_grad():
    for p in net.parameters():
        p.copy_(torch.linspace(-0.5, 0.5, p.numel()).reshape(p.shape))
net = nn.DataParallel(net).to(device)
x = torch.linspace(-1, 1, 64).reshape(16, 4)
y = x.sum(1, keepdim=True)
optimizer = Adam(net.parameters(), lr=1e-2)
schedule = StepLR(optimizer, 2, 0.5)
for epoch in range(3):
    for a, b in DataLoader(TensorDataset(x, y), batch_size=8):
        a, b = a.to(device), b.to(device)
        optimizer.zero_grad()
        loss = F.mse_loss(net(a), b)
        loss.backward()
        optimizer.step()
    schedule.step()
    print(epoch, f"{loss.item():.3f}")
print(list(net.state_dict())[0], _pair(3), isinstance(nn.BatchNorm2d(2), _BatchNorm), sys.argv[1:])
print(dist.is_initialized(), DistributedSampler.__name__)

# A number of the host stands beside tensors of the device, on either side.
one, a = torch.tensor(2.0), x[:2].to(device)
for found in (one - a, one**a, one < a, torch.add(one, a, alpha=2), torch.maximum(one, a), torch.lerp(a, a + 1, one),
              F.mse_loss(a.mean(), one), a.clone().fill_(one), sum([one, a.sum()])):
    print(f"{found.float().sum().item():.3f}", found.device == a.device)
# A type of tensors says where they are; a file, where they were.
FloatTensor = torch.cuda.FloatTensor if torch.cuda.is_available() else torch.FloatTensor
print(isinstance(FloatTensor(2, 3), FloatTensor), a.type(FloatTensor).device == a.device)
print(a.type(torch.LongTensor).device)
found = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else torch.device("cpu")
print(found.type == device.type, torch.zeros(2, device=found).device == a.device)
torch.save({"net": net, "x": x}, "net.pt")
for where in (None, "cpu", lambda storage, location: storage):
    read = torch.load("net.pt", map_location=where, weights_only=False)
    print(where is None and next(read["net"].parameters()).device == a.device, read["x"].device)
with torch.backends.cudnn.flags(enabled=False), torch.autograd.profiler.record_function("two"):
    print(type(x), type(next(net.parameters())), torch.backends.cudnn.version() or 0)
# What saves nothing can be gone through twice.
h = torch.ones(2, requires_grad=True)
moved = h.to(device)
for _ in range(2):
    (moved * a[0, :2]).sum().backward()
print([f"{g:.3f}" for g in h.grad.tolist()])
if torch.cuda.is_available():
    torch.cuda.set_rng_state_all(torch.cuda.get_rng_state_all())
    torch.cuda.reset_peak_memory_stats()
    assert torch.cuda.memory_summary() and torch.cuda.mem_get_info()[0] > 0
"""


def output(*command: str, folder: Path = ROOT) -> str:
    environment = os.environ | {"PYTHONPATH": str(ROOT), "PYWEBGPU_DEVICE": "cpu"}
    done = subprocess.run(
        [sys.executable, *command], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_program_prints_what_pytorch_prints(tmp_path: Path, device: str) -> None:
    (tmp_path / "program.py").write_text(SCRIPT)
    expected = output("program.py", "--rate", "1", folder=tmp_path)
    assert output("-m", "pywebgpu", "run", "--device", device, "program.py", "--rate", "1", folder=tmp_path) == expected
    if device == "cpu":
        module = output("-m", "pywebgpu", "run", "--device", device, "-m", "program", "--rate", "1", folder=tmp_path)
        assert module == expected


@pytest.mark.parametrize(
    ("arguments", "own"),
    [
        (["--device", "cpu", "a.py", "--device", "x"], ["--device", "cpu"]),
        (["-m", "a", "-m", "b"], ["-m", "a"]),
        (["a.py", "-m"], []),
    ],
)
def test_what_follows_the_program_is_its_own(arguments: list[str], own: list[str]) -> None:
    assert run._split(arguments) == (own, arguments[len(own) :])


FACTS = """
import pywebgpu.as_torch
import torch
x = torch.ones(2).to("cuda")
assert torch.cuda.is_available() and x.is_cuda and str(x.device) == "cuda" and x.device.type == "cuda", x.device
assert x.cuda().device == torch.device("cuda:0") == torch.ones(2, device="mps").to("cuda").device
assert torch.ones(2, device=0).is_cuda and x.cpu().to(0).is_cuda and torch.nn.Linear(1, 1).to(0).weight.is_cuda
assert torch.device(0) == torch.device("cuda", 0)
assert torch.ones(2).device == torch.device("cpu") and x.cpu().device.type == "cpu"
try:
    x + torch.ones(2)
except RuntimeError as error:
    assert "cuda and cpu" in str(error), error
else:
    raise AssertionError("two devices met")
try:
    torch.ones(2, device="cuda:1")
except RuntimeError as error:
    assert "ordinal" in str(error), error
assert torch.cuda.device_count() == 1
torch.cuda.synchronize()
assert torch.__version__ >= "2.13" and torch.__version__ >= (2, 13) and torch.__version__ < "2.100"
# What libraries ask before they import it.
import importlib.metadata, importlib.util
assert importlib.metadata.version("torch") == torch.__version__ == torch.version.__version__
assert importlib.metadata.distribution("torch").metadata["Name"] == "torch"
assert "torch" in importlib.metadata.packages_distributions()
assert importlib.util.find_spec("torch") and importlib.util.find_spec("torch.distributed")
assert torch.__name__ == "torch" and "Conv2d" in vars(torch.nn) and "Adam" in torch.optim.__dict__
assert type(torch.__version__) is torch.torch_version.TorchVersion
"""
HIDDEN = """
import pywebgpu.as_torch
import torch
assert not torch.cuda.is_available() and torch.ones(2).device.type == "cpu" == torch.get_default_device().type
assert torch.device("cuda:1").type == "cuda" and torch.device("mps") != torch.device("xpu")
for name in ("cuda", "xpu", "hpu"):
    try:
        torch.ones(2, device=name)
    except RuntimeError as error:
        assert name in str(error).lower(), error
    else:
        raise AssertionError(name)
import functorch
assert functorch.vmap(lambda x: x * 2)(torch.ones(2)).tolist() == [2, 2]
"""


def test_a_program_that_hides_gpus_finds_none() -> None:
    environment = os.environ | {"PYTHONPATH": str(ROOT), "CUDA_VISIBLE_DEVICES": "", "PYWEBGPU_DEVICE": "null"}
    subprocess.run([sys.executable, "-c", HIDDEN], env=environment, check=True)


VERSIONS = "1.0 1 2.13.0 2.13.0+cpu 2.13.0+cpu.1 2.14.0a0 2.14.0a0+git1 2.14.0.dev2024 2.14rc1 2.14.post1 2.9 parrot"


def test_versions_are_ordered_as_pytorchs() -> None:
    for one, other in itertools.product(VERSIONS.split(), repeat=2):
        for compare in (operator.lt, operator.le, operator.eq, operator.ge, operator.gt):
            expected = compare(torch.torch_version.TorchVersion(one), other)
            assert compare(torch_version.TorchVersion(one), other) is expected, (one, other, compare)


def test_cuda_is_the_device_that_was_chosen() -> None:
    output("-c", FACTS)


def names() -> list[str]:
    """The public modules of PyTorch, three deep."""
    found = []

    def walk(path: str, prefix: str, depth: int) -> None:
        for module in pkgutil.iter_modules([path]):
            if not module.name.startswith("_") and (depth or module.name != "testing"):
                found.append(prefix + module.name)
                if module.ispkg and depth < 2:
                    walk(f"{path}/{module.name}", f"{prefix}{module.name}.", depth + 1)

    walk(torch.__path__[0], "torch.", 0)
    return found


def test_every_public_module_of_pytorch_imports(tmp_path: Path) -> None:
    assert len(names()) > 300
    (tmp_path / "all.py").write_text("\n".join(["import pywebgpu.as_torch", *(f"import {name}" for name in names())]))
    output("all.py", folder=tmp_path)


def test_what_is_not_there_says_why_when_it_is_used() -> None:
    code = """
import pywebgpu as torch
assert not torch.distributed.is_available()
for use in (torch.distributed.init_process_group, torch.nested.nested_tensor, torch.jit.fork):
    try:
        use("x")
    except NotImplementedError as error:
        assert "is not here: " in str(error), error
    else:
        raise AssertionError(use)
assert torch.jit.script(len) is len
assert not isinstance(3, torch.futures.Future)
assert not hasattr(torch, "no_such_name") and not hasattr(torch.nn, "no_such_name")
"""
    output("-c", code)


def test_tensors_stay_on_the_chosen_device_until_one_is_asked_for() -> None:
    program = """
import pywebgpu.as_torch
import torch
first = torch.ones(2)
second = (first * 2).to(first.device)
print(first.device, second.device, torch.nn.Linear(2, 2).weight.device, torch.get_default_device())
torch.device("cuda")
print(torch.ones(2).device, first.device)
"""
    environment = os.environ | {"PYTHONPATH": str(ROOT), "PYWEBGPU_DEVICE": "null"}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "cuda cuda cuda cuda\ncpu cuda\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("place = 'cuda' if torch.cuda.is_available() else 'cpu'\nprint(x.to(place).device, x.device)", "cuda cpu"),
        ("from own import place\nprint(x.to(place()).device, x.device)", "cuda cpu"),
        ("print(x.double().device, x.device)", "cpu cpu"),
        ("print(x.device)  # not .cuda()", "cuda"),
    ],
)
def test_what_a_program_makes_before_it_asks_for_a_device_is_where_it_expects_it(
    tmp_path: Path, text: str, expected: str
) -> None:
    (tmp_path / "own.py").write_text("import torch\ndef place(): return torch.ones(1).cuda().device\n")
    (tmp_path / "program.py").write_text(f"import torch\nx = torch.ones(2)\n{text}\n")
    environment = os.environ | {"PYTHONPATH": str(ROOT), "PYWEBGPU_DEVICE": "null"}
    command = [sys.executable, "-m", "pywebgpu", "run", "--device", "null", "program.py"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.stdout == f"{expected}\n", done.stderr


@pytest.mark.parametrize("name", ["nn.utils.prune.L1Unstructured", "nn.functional.relu", "nn.modules.linear.Linear"])
def test_a_class_or_a_function_is_imported_as_no_module(name: str) -> None:
    """Else importing it, as mock.patch tries, would put a module in its place."""
    assert stand_ins.module(name) is None


def test_tensors_that_outlive_their_modules_end_silently() -> None:
    program = "import sys, pywebgpu as t\nsys.kept = t.ones(3, device='cpu') * 2\nprint(sys.kept.sum().item())"
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("6.0\n", "")


CONSTANTS = """
import torch
TABLE = torch.tensor([0.1, 0.2], dtype=getattr(torch, "float" + "64"))
"""
USER = """
import sys, torch
sys.path.append(sys.argv[1])
from constants import TABLE
print(TABLE.device, TABLE.dtype, TABLE.to(torch.ones(2)).device, torch.empty(0, dtype=TABLE.dtype).device)
print((torch.ones(3) - TABLE[0]).dtype, (TABLE[0] * torch.ones(3)).device == torch.ones(1).device)
def attempt():
    try:
        torch.zeros(1, dtype=TABLE.dtype)
    except TypeError as error:
        print("has no" in str(error))
with torch.ones(1).device:
    attempt()
torch.set_default_device(torch.ones(1).device)
attempt()
"""


def test_a_library_has_constants_of_float64_where_no_program_names_a_device(tmp_path: Path) -> None:
    for folder, text in (("library/constants.py", CONSTANTS), ("program/user.py", USER)):
        (tmp_path / folder).parent.mkdir()
        (tmp_path / folder).write_text(text)
    printed = output(
        "-m", "pywebgpu", "run", "--device", "null", str(tmp_path / "program/user.py"), str(tmp_path / "library")
    )
    assert printed == "cpu torch.float64 cuda cpu\ntorch.float32 True\nTrue\nTrue\n"
