"""nn.DataParallel over the one device that there is: the module itself, under the names that programs and files use."""

from typing import Any

from pywebgpu import lazy as _lazy
from pywebgpu.nn.module import Module
from pywebgpu.nn.norm import _BatchNorm


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


class SyncBatchNorm(_BatchNorm):
    """Batch normalization over all processes, of which there is one here. Shapes: (n, c, ...)."""

    ranks = (2, 3, 4, 5)

    def __init__(self, *args: Any, process_group: object = None, **kwargs: Any) -> None:
        if len(args) > 5:
            args, process_group = (*args[:5], *args[6:]), args[5]
        super().__init__(*args, **kwargs)
        self.process_group = process_group

    @classmethod
    def convert_sync_batchnorm(cls, module: Module, process_group: object = None) -> Module:
        """The same model with SyncBatchNorm in place of each batch normalization."""
        if isinstance(module, _BatchNorm) and not isinstance(module, cls):
            made = cls(module.num_features, module.eps, module.momentum, module.affine, module.track_running_stats)
            for held, own in ((module._parameters, made._parameters), (module._buffers, made._buffers)):
                own.update(held)  # type: ignore[arg-type]
            made.process_group, made.training = process_group, module.training
            return made
        for name, child in module.named_children():
            module.add_module(name, cls.convert_sync_batchnorm(child, process_group))
        return module


__getattr__ = _lazy.absent(__name__)
