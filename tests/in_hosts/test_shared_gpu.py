"""The device that tensors are computed on serves a program's own WebGPU work, too."""

from typing import Any

import pytest

import pywebgpu as torch
from pywebgpu.errors import DeviceError

COPY_DST, MAP_READ = 8, 1


def test_a_program_makes_buffers_on_the_device_that_computes(pywebgpu_host: str) -> None:
    x = torch.ones(4, device="webgpu")
    gpu: Any = torch.webgpu.gpu()
    if pywebgpu_host == "native":
        buffer = gpu.create_buffer(size=16, usage=COPY_DST | MAP_READ)
    else:
        from js import Object
        from pyodide.ffi import to_js

        descriptor = to_js({"size": 16, "usage": COPY_DST | MAP_READ}, dict_converter=Object.fromEntries)
        buffer = gpu.createBuffer(descriptor)
    assert buffer.size == 16
    buffer.destroy()
    assert (x + 1).tolist() == [2.0] * 4


def test_other_devices_have_none() -> None:
    with pytest.raises(DeviceError, match="device null has no GPUDevice"):
        torch.webgpu.gpu("null")
