"""nn.DataParallel over the one device that there is: the module itself, under the names that programs and files use."""

from collections.abc import Sequence
from typing import Any

from pywebgpu.nn.channel_norm import _BatchNorm
from pywebgpu.nn.module import Module
from pywebgpu.support import lazy as _lazy
from pywebgpu.tensor.functions import cat


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


def scatter(inputs: object, target_gpus: Sequence[object], dim: int = 0) -> Sequence[object]:
    """[inputs]: the whole for one device; of a nest, one nest. Raises NotImplementedError for several devices."""
    _require_one(target_gpus)
    return (inputs,) if hasattr(inputs, "chunk") else [inputs]


def gather(outputs: Sequence[Any], target_device: object, dim: int = 0) -> object:
    """Results of several calls as one: tensors joined along `dim`, and dicts and sequences of them likewise."""
    first = outputs[0]
    if first is None:
        return None
    if isinstance(first, dict):
        if any(len(first) != len(output) for output in outputs):
            raise ValueError("All dicts must have the same number of keys")
        return type(first)((key, gather([output[key] for output in outputs], target_device, dim)) for key in first)
    if hasattr(first, "dim"):
        return cat(
            [output.reshape(1) if output.dim() == 0 else output for output in outputs], 0 if first.dim() == 0 else dim
        )
    parts = (gather(part, target_device, dim) for part in zip(*outputs, strict=True))
    return type(first)(*parts) if hasattr(first, "_fields") else type(first)(parts)


def replicate(network: Module, devices: Sequence[object], detach: bool = False) -> list[Module]:
    """[network]. Raises NotImplementedError for several devices, and for a detached copy."""
    _require_one(devices)
    if detach:
        raise NotImplementedError("replicate: use copy.deepcopy for a module that no gradient reaches")
    return [network]


def parallel_apply(
    modules: Sequence[Module],
    inputs: Sequence[object],
    kwargs_tup: Sequence[dict[str, Any]] | None = None,
    devices: object = None,
) -> list[object]:
    """Each module called with its inputs, one after the other."""
    if len(modules) != len(inputs):
        raise AssertionError(f"The number of modules {len(modules)} is not equal to the number of inputs {len(inputs)}")
    outputs = []
    for module, inputs_of_module, options in zip(modules, inputs, kwargs_tup or [{}] * len(modules), strict=True):
        outputs.append(
            module(
                *(inputs_of_module if isinstance(inputs_of_module, list | tuple) else (inputs_of_module,)), **options
            )
        )
    return outputs


def _require_one(devices: Sequence[object]) -> None:
    if len(devices) != 1:
        raise NotImplementedError(f"there is one device: {len(devices)} were asked for; use the module itself")


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
            converted = cls(module.num_features, module.eps, module.momentum, module.affine, module.track_running_stats)
            for held, own in ((module._parameters, converted._parameters), (module._buffers, converted._buffers)):
                own.update(held)  # type: ignore[arg-type]
            converted.process_group, converted.training = process_group, module.training
            return converted
        for name, child in module.named_children():
            module.add_module(name, cls.convert_sync_batchnorm(child, process_group))
        return module


__getattr__ = _lazy.absent(__name__)
