"""What goes wrong in Pyodide is an exception of the right class, whose text names the cause, and all goes on."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

import pywebgpu as torch
from pywebgpu import devices
from pywebgpu.compiler import wire
from pywebgpu.compiler.program import Program

pytestmark = pytest.mark.pywebgpu_host("node", "chromium")
Forge = Callable[[str, str], None]


@pytest.fixture
def forge(monkeypatch: pytest.MonkeyPatch) -> Forge:
    """Changes the WGSL of the Programs that are loaded from then on."""
    original = wire.to_json

    def change(old: str, new: str) -> None:
        def forged(program: Program) -> str:
            kernels = [replace(kernel, wgsl=kernel.wgsl.replace(old, new)) for kernel in program.kernels]
            return original(replace(program, kernels=tuple(kernels)))

        monkeypatch.setattr(wire, "to_json", forged)

    return change


@pytest.fixture(autouse=True)
def goes_on() -> Iterator[None]:
    yield
    assert (torch.ones(2) * 3).tolist() == [3.0, 3.0]


def gpu() -> Any:
    device: Any = devices.open_device("webgpu")
    return device._bridge.bridge.gpu


def refused_by_the_device(_: Forge) -> None:
    from pyodide.code import run_js

    run_js("(gpu) => gpu.createBuffer({ size: 4, usage: 129 })")(gpu())
    torch.webgpu.synchronize()


def bad_shader(forge: Forge) -> None:
    forge("sqrt(", "nothing(")
    torch.arange(5.0).sqrt().tolist()


def large_workgroup(forge: Forge) -> None:
    forge("@workgroup_size(", "@workgroup_size(4096 + ")
    torch.arange(5.0).floor().tolist()


NO_SHADER = r"sqrt.*: the shader does not compile: line \d+:\d+: unresolved call target 'nothing'\n +\d+ .*nothing\("
SHORT = r"sum: a result does not fit, since webgpu stores int64 as int32"
LONG = r"10000000000 is out of range: webgpu stores int64 as int32"


@pytest.mark.parametrize(
    ("wrong", "kind", "text"),
    [
        pytest.param(bad_shader, torch.errors.CompileError, NO_SHADER, id="a shader that does not compile"),
        pytest.param(large_workgroup, torch.errors.CompileError, "floor(.|\n)*workgroup", id="a large workgroup"),
        pytest.param(refused_by_the_device, torch.errors.DeviceError, "webgpu: (.|\n)*usage", id="a buffer's usage"),
        pytest.param(
            lambda _: torch.arange(4.0)[torch.randint(5, 6, (2,))].tolist(),
            IndexError,
            "index 5 is out of bounds for dimension with size 4",
            id="an index that only the kernel sees",
        ),
        pytest.param(lambda _: torch.tensor([2**31 - 1, 1]).sum().tolist(), OverflowError, SHORT, id="a large sum"),
        pytest.param(lambda _: torch.tensor([1]) + 10**10, OverflowError, LONG, id="a large number"),
        pytest.param(lambda _: torch.ones(3).double(), TypeError, 'no float64.*device="cpu"', id="a dtype"),
        pytest.param(lambda _: torch.ones(5, 7) @ torch.ones(5, 4), RuntimeError, "5x7 and 5x4", id="shapes"),
        pytest.param(lambda _: torch.rand(1 << 40).tolist(), RuntimeError, "bytes", id="a large value"),
    ],
)
def test_trouble_is_told_by_class_and_cause(
    wrong: Callable[[Forge], object], kind: type[Exception], text: str, forge: Forge
) -> None:
    with pytest.raises(kind, match=text):
        wrong(forge)


def test_a_device_that_is_gone_is_told() -> None:
    x = torch.ones(3) + 1
    gpu().destroy()
    for _ in (1, 2):
        with pytest.raises(torch.errors.DeviceLostError, match="the device is gone"):
            x.tolist()
    devices.close("webgpu")
