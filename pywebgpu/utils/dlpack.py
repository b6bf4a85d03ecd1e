"""torch.utils.dlpack: tensors of other libraries, and for them. Memory is copied: values lie on a device, or wait."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pywebgpu.tensor import create

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pywebgpu.tensor.factory_options import DeviceLike
    from pywebgpu.tensor.tensor import Tensor


def array_of(data: object) -> NDArray[Any]:
    """The array of another library's tensor, which may lie on its device."""
    import numpy as np

    given: Any = data
    return np.from_dlpack(given.detach().cpu() if hasattr(given, "detach") else given)  # PyTorch's has a gradient.


def from_dlpack(ext_tensor: object, *, device: DeviceLike = None, copy: bool | None = None) -> Tensor:
    """A tensor with a copy of another library's: whatever has DLPack's protocol."""
    if not hasattr(ext_tensor, "__dlpack__"):
        raise TypeError(f"from_dlpack needs an object with __dlpack__, got {type(ext_tensor).__name__}")
    return create.tensor(ext_tensor, device=device)


def to_dlpack(tensor: Tensor) -> object:
    """DLPack's capsule of a copy."""
    return capsule(tensor)


def capsule(tensor: Tensor, **options: object) -> object:
    """What other libraries ask a tensor for."""
    array: Any = tensor.numpy()
    return array.__dlpack__()


def device_of(tensor: Tensor) -> tuple[int, int]:
    """The host, in DLPack's numbers."""
    return 1, 0
