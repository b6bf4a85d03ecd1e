"""A tensor's value on another device: bytes through the host. Its gradient takes the same way back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pywebgpu.composites import bounds
from pywebgpu.devices.base import Device, check_supported
from pywebgpu.ir import graph
from pywebgpu.ir.graph import Custom, Node, thread_state
from pywebgpu.ops import pointwise
from pywebgpu.runtime import executor
from pywebgpu.runtime.storage import Storage
from pywebgpu.tensor.base import TensorBase

if TYPE_CHECKING:
    from pywebgpu.tensor.tensor import Tensor

moved: Custom = Custom("ToCopyBackward0")


class _Back:
    """Brings the gradient of a moved value to where the value came from."""

    __slots__ = ("source", "target")

    def __init__(self, source: Device, target: Device) -> None:
        self.source, self.target = source, target

    def backward(self, grads: list[Node | None]) -> Sequence[Node | None]:
        return [None if grad is None else _move(grad, self.target, self.source) for grad in grads]

    def release(self) -> bool:
        return True


def transfer(tensor: TensorBase, device: Device) -> Tensor:
    """A copy on `device`. Waits for the device that it comes from."""
    return tensor._new(_move(tensor._node, tensor._storage.device, device), device)


async def transfer_async(tensor: TensorBase, device: Device) -> Tensor:
    """As transfer, also where Python cannot wait."""
    storage = _leaving(tensor._node, tensor._storage.device, device)
    arrived = _arrive(tensor._node, storage, device, await executor.read_async(storage))
    return tensor._new(arrived, device)


def _move(node: Node, source: Device, target: Device) -> Node:
    if not target.has_values:
        return _arrive(node, Storage(node, source), target, b"")
    storage = _leaving(node, source, target)
    return _arrive(node, storage, target, executor.read(storage))


def _leaving(node: Node, source: Device, target: Device) -> Storage:
    """The value to read. Raises TypeError for a dtype that the target lacks."""
    check_supported(node.spec.dtype, target)
    return Storage(node if node.buffer is not None else pointwise.copy(node), source)


def _arrive(node: Node, storage: Storage, target: Device, data: bytes) -> Node:
    """The value there, of which `data` are the bytes."""
    arrived = graph.data(node.spec, target.upload(data, node.spec))
    if thread_state.observer is not None:
        thread_state.observer.note_upload(arrived.buffer, data)
    known = bounds.known_range(node)
    if known is not None and known.exact:  # Row numbers stay known to fit.
        arrived.attrs = {"low": known.low, "high": known.high}
    if not (node.requires and thread_state.grad):
        return arrived
    result = moved(arrived, storage.node, call=_Back(storage.device, target), index=0, outputs=1)
    result.buffer = arrived.buffer  # Walks of one device's graph stop here; only the gradient goes on.
    return result
