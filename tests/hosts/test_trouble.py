"""What goes wrong in Node is an exception of the right class, whose text names the cause, and the process goes on."""

import json
import re

import pytest

from tests import devices
from tests.hosts.test_node import run, script

pytestmark = pytest.mark.skipif(bool(devices.why_no_node()), reason=devices.why_no_node())

# What a case may use. `forge` changes the WGSL of the Programs that are loaded from then on.
PRELUDE = """
import json
from dataclasses import replace
import js
from pyodide.ffi import to_js
import pywebgpu as torch
from pywebgpu import devices
from pywebgpu.compiler import wire

original = wire.to_json

def forge(old, new):
    wire.to_json = lambda program: original(replace(program, kernels=tuple(
        replace(kernel, wgsl=kernel.wgsl.replace(old, new)) for kernel in program.kernels)))

def gpu():
    return devices.open_device("webgpu")._bridge.bridge.gpu
"""
# A last line that raises; the class of the exception; what its text names.
CASES = {
    "a shader that does not compile": (
        "forge('sqrt(', 'nothing('); torch.arange(5.0).sqrt().tolist()",
        "CompileError",
        r"sqrt.*: the shader does not compile: line \d+:\d+: unresolved call target 'nothing'\n +\d+ .*nothing\(",
    ),
    "a workgroup larger than allowed": (
        "forge('@workgroup_size(', '@workgroup_size(4096 + '); torch.arange(5.0).floor().tolist()",
        "CompileError",
        r"floor.*workgroup",
    ),
    "what the device refuses": (
        "gpu().createBuffer(to_js({'size': 4, 'usage': 129}, dict_converter=js.Object.fromEntries)); "
        "torch.webgpu.synchronize()",
        "DeviceError",
        r"webgpu: .*usage",
    ),
    "an index that only the kernel sees": (
        "torch.arange(4.0)[torch.randint(5, 6, (2,))].tolist()",
        "IndexError",
        r"index 5 is out of bounds for dimension with size 4",
    ),
    "a sum that does not fit in 32 bits": (
        "torch.tensor([2**31 - 1, 1]).sum().tolist()",
        "OverflowError",
        r"sum: a result does not fit, since webgpu stores int64 as int32",
    ),
    "a number that does not fit in 32 bits": (
        "torch.tensor([1]) + 10**10",
        "OverflowError",
        r"10000000000 is out of range: webgpu stores int64 as int32",
    ),
    "a device that is gone": (
        "x = torch.ones(3) + 1; gpu().destroy(); x.tolist(); torch.webgpu.synchronize(); x.tolist()",
        "DeviceLostError",
        r"the device is gone",
    ),
    "a dtype that WGSL lacks": ("torch.ones(3).double()", "TypeError", r'no float64.*device="cpu"'),
    "shapes that do not fit": (
        "torch.ones(5, 7) @ torch.ones(5, 4)",
        "RuntimeError",
        r"5, 7.*5, 4|5x7 and 5x4",
    ),
    "a value larger than the device can bind": ("torch.rand(1 << 40).tolist()", "RuntimeError", r"bytes"),
}


@pytest.fixture(scope="module")
def raised(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[list[str], str, list[float]]]:
    """Of each case, in one process: the classes of the exception, its text, and what a tensor gives afterwards."""
    folder = tmp_path_factory.mktemp("trouble")
    loop = f"""
found = {{}}
for name, (code, *_) in {CASES!r}.items():
    found[name] = [], "nothing was raised"
    try:
        exec(code)
    except Exception as error:
        found[name] = [kind.__name__ for kind in type(error).__mro__], str(error)
    wire.to_json = original
    if "gone" in name:
        devices.close("webgpu")
    found[name] += (torch.ones(2) * 3).tolist(),
print(json.dumps(found))
"""
    done = run(script(folder, PRELUDE + loop), cwd=folder)
    assert done.returncode == 0, done.stderr
    found: dict[str, tuple[list[str], str, list[float]]] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("name", CASES)
def test_trouble_is_told_by_class_and_cause(name: str, raised: dict[str, tuple[list[str], str, list[float]]]) -> None:
    _, kind, text = CASES[name]
    kinds, said, after = raised[name]
    assert kind in kinds, f"{kinds[:1]}: {said}"
    assert re.search(text, said, re.DOTALL), said
    assert after == [3.0, 3.0]
