"""nn.DataParallel over the one device that there is: the module itself, under the names that programs and files use."""

from typing import Any

from pywebgpu import lazy as _lazy
from pywebgpu.nn.module import Module


class DataParallel(Module):
    """Calls `module`. Its parameters are named "module.…", as PyTorch names them."""

    def __init__(self, module: Module, device_ids: object = None, output_device: object = None, dim: int = 0) -> None:
        super().__init__()
        self.dim, self.module = dim, module
        self.device_ids, self.output_device = device_ids or [], output_device

    def forward(self, *inputs: Any, **options: Any) -> Any:
        return self.module(*inputs, **options)


def data_parallel(module: Module, inputs: Any, *rest: Any, module_kwargs: dict[str, Any] | None = None) -> Any:
    """module(*inputs)"""
    return module(*(inputs if isinstance(inputs, tuple) else (inputs,)), **module_kwargs or {})


class DistributedDataParallel(Module):
    """Not here: there is one process."""

    def __init__(self, module: Module, *args: Any, **options: Any) -> None:
        raise NotImplementedError("DistributedDataParallel: there is one process and one device; use the module itself")


__getattr__ = _lazy.absent(__name__)
