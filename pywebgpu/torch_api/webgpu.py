"""torch.webgpu: what torch.cuda is for CUDA. Also what `accelerator` and `memory` are made of."""

from __future__ import annotations

from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING

from pywebgpu import devices
from pywebgpu.devices import adapters
from pywebgpu.errors import DeviceError, DeviceLostError
from pywebgpu.runtime import executor

if TYPE_CHECKING:
    from pywebgpu.tensor.factory_options import DeviceLike


def is_available() -> bool:
    """Whether device webgpu can run here."""
    return not adapters.problem()


def device_count() -> int:
    """How many adapters there are."""
    return len([adapter for adapter in adapters.adapters() if adapter.is_complete])


def current_device() -> int:
    """The number of the adapter in use, which is 0."""
    return 0


def get_device_name(device: DeviceLike = None) -> str:
    """The adapter's name."""
    complete = [adapter for adapter in adapters.adapters() if adapter.is_complete]
    index = devices.device("webgpu" if device is None else device).index or 0
    if index >= len(complete):
        raise RuntimeError(f"there is no adapter {index}: {adapters.problem() or f'only {len(complete)} were found'}")
    return complete[index].name


async def init() -> None:
    """Opens device webgpu, which a browser does asynchronously. Where Python can wait, its first use does it."""
    await devices.open_device_async("webgpu")


def __getattr__(name: str) -> object:
    if name != "handler":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module("pywebgpu.torch_api.handlers").handler


def gpu(device: DeviceLike = None) -> object:
    """The GPUDevice that computes, wgpu-py's or the page's, for other work on the same GPU: `gpu().queue`.

    Raises DeviceError for a device that has none, as "cpu".
    """
    opened = devices.open_device("webgpu" if device is None else device)
    if not hasattr(opened, "gpu"):
        raise DeviceError(f"webgpu.gpu(): device {opened.name} has no GPUDevice")
    return opened.gpu


async def synchronize_async(device: DeviceLike = None) -> None:
    """As synchronize, also where Python cannot wait."""
    opened = devices.open_device(device)
    executor.submit(opened, everyone=True)
    await opened.synchronize_async()


def synchronize(device: DeviceLike = None) -> None:
    """Runs all that is pending on a device, and waits until it is done."""
    opened = devices.open_device(device)
    executor.submit(opened, everyone=True)
    opened.synchronize()


def recover(device: DeviceLike = None) -> bool:
    """Opens device webgpu again where it was lost; whether it was.

    New tensors work from then on, and what is computed is compiled anew. What was on the device is gone: a tensor of it
    raises DeviceLostError where its value is needed, until it was written as a whole, which `load_state_dict`,
    `copy_`, `zero_` and `utils.Checkpointer` do. Raises DeviceError where the adapter does not come back.
    """
    opened = devices.open_device("webgpu" if device is None else device)
    if not opened.is_gone:
        with suppress(DeviceLostError):
            opened.synchronize()
    if opened.is_gone:
        opened.reopen()
        executor.forget(opened)
        return True
    return False


async def recover_async(device: DeviceLike = None) -> bool:
    """As recover, also where Python cannot wait."""
    opened = await devices.open_device_async("webgpu" if device is None else device)
    if not opened.is_gone:
        with suppress(DeviceLostError):
            await opened.synchronize_async()
    if opened.is_gone:
        await opened.reopen_async()
        executor.forget(opened)
        return True
    return False
