"""A tensor's value on another device: bytes through the host. Its gradient takes the same way back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pywebgpu import realize
from pywebgpu.compose import bounds
from pywebgpu.devices.base import Device, check_supported
from pywebgpu.graph import ir
from pywebgpu.graph.ir import Custom, Node, recording
from pywebgpu.ops import pointwise
from pywebgpu.realize import Storage
from pywebgpu.tensor.base import TensorBase

moved: Custom = Custom("ToCopyBackward0")


class _Back:
    """Brings the gradient of a moved value to where the value came from."""

    __slots__ = ("source", "target")

    def __init__(self, source: Device, target: Device) -> None:
        self.source, self.target = source, target

    def backward(self, grads: list[Node | None]) -> Sequence[Node | None]:
        return [None if grad is None else _move(grad, self.target, self.source) for grad in grads]

    def release(self) -> None: ...


def transfer(tensor: TensorBase, device: Device) -> Any:
    """A copy on `device`. Waits for the device that it comes from."""
    return tensor._new(_move(tensor._node, tensor._storage.device, device), device)


def _move(node: Node, source: Device, target: Device) -> Node:
    if target.target.wgsl:
        check_supported(node.spec.dtype, target.name)
    storage = Storage(node if node.buffer is not None else pointwise.copy(node), source)
    arrived = ir.data(node.spec, target.upload(realize.read(storage), node.spec))
    known = bounds.known_range(node)
    if known is not None and known.exact:  # Row numbers stay known to fit.
        arrived.attrs = {"low": known.low, "high": known.high}
    if not (node.requires and recording.grad):
        return arrived
    result = moved(arrived, storage.node, call=_Back(source, target), index=0, outputs=1)
    result.buffer = arrived.buffer  # Walks of one device's graph stop here; only the gradient goes on.
    return result
