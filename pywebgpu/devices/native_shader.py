"""Shader modules by the driver's own function: wgpu-py's always lets Naga count each loop, and check each index.

With neither, the text of a product of 4096 x 4096 runs at 41 TFLOP/s on an H200, and at 32 with both.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pywebgpu.kernels.kernel import Checks

if TYPE_CHECKING:
    from wgpu import GPUDevice, GPUShaderModule

try:  # These are not in wgpu-py's public interface.
    from wgpu.backends.wgpu_native import ffi, lib
    from wgpu.backends.wgpu_native._api import GPUShaderModule as _Module
    from wgpu.backends.wgpu_native._api import libf

    _create: Any = libf.wgpuDeviceCreateShaderModuleTrusted
    _kind: Any = lib.WGPUSType_ShaderSourceWGSL
except (ImportError, AttributeError):
    _create = None


def module(gpu: GPUDevice, code: str, label: str, checks: Checks) -> GPUShaderModule:
    """The module of a kernel's text. Raises what wgpu-py does."""
    if checks is Checks.ALL or _create is None:
        return gpu.create_shader_module(code=code, label=label)
    own: Any = gpu
    text, name = (ffi.new("char []", text_part.encode()) for text_part in (code, label))
    source = ffi.new("WGPUShaderSourceWGSL *")
    source.chain.sType, source.code.data, source.code.length = _kind, text, len(text) - 1
    descriptor = ffi.new("WGPUShaderModuleDescriptor *")
    descriptor.nextInChain = ffi.cast("WGPUChainedStruct *", source)
    descriptor.label.data, descriptor.label.length = name, len(name) - 1
    return _Module(label, _create(own._internal, descriptor, checks.value), gpu)
