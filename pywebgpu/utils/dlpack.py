"""torch.utils.dlpack: tensors of other libraries, and for them. On device cpu memory is shared, elsewhere copied."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pywebgpu.tensor import sources
from pywebgpu.tensor.methods import named_by_numpy

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pywebgpu.tensor.factory_options import DeviceLike
    from pywebgpu.tensor.tensor import Tensor


def array_of(data: object) -> NDArray[Any]:
    """The array of another library's tensor, which may lie on its device."""
    import numpy as np

    source: Any = data
    return np.from_dlpack(source.detach().cpu() if hasattr(source, "detach") else source)  # PyTorch's has a gradient.


def from_dlpack(ext_tensor: object, *, device: DeviceLike = None, copy: bool | None = None) -> Tensor:
    """A tensor of another library's memory: of whatever has DLPack's protocol, or of a capsule.

    copy: True: a copy; False: never one, or ValueError.
    """
    if not (hasattr(ext_tensor, "__dlpack__") or sources.is_capsule(ext_tensor)):
        raise TypeError(f"from_dlpack needs an object with __dlpack__, got {type(ext_tensor).__name__}")
    imported = sources.of_dlpack(ext_tensor)
    moved: Tensor = imported if device is None else imported.to(device)
    if copy is False and moved is not imported:
        raise ValueError(f"cannot move (i.e. copy) the tensor from {imported.device} to {moved.device} without copying")
    return moved.clone() if copy and moved is imported else moved


@named_by_numpy
def to_dlpack(tensor: Tensor) -> object:
    """DLPack's capsule of a tensor."""
    return capsule(tensor)


def capsule(tensor: Tensor, **options: object) -> object:
    """What other libraries ask a tensor for."""
    if not isinstance(options.get("stream"), int | None):
        raise TypeError("stream must be ``int`` or ``none``")
    if tensor.is_meta:
        raise BufferError("Cannot pack tensors on meta")
    if tensor.requires_grad:
        raise BufferError("Can't export tensors that require gradient, use tensor.detach()")
    array: Any = tensor.numpy()
    return array.__dlpack__()


def device_of(tensor: Tensor) -> tuple[int, int]:
    """The host, in DLPack's numbers."""
    return 1, 0
