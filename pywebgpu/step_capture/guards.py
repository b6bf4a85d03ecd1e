"""The state that a step takes for granted: tensors that it did not make, and gradients that it found.

What Python code can see by names and attributes is in survey.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from pywebgpu.devices.base import Device
from pywebgpu.runtime.storage import Storage, whole_of
from pywebgpu.step_capture.capture import Capture, OwnReference
from pywebgpu.step_capture.gradients import GivenGradients
from pywebgpu.tensor.base import TensorBase

Guard = Callable[[], str | None]  # None, or the reason
Held = tuple[Any, Storage, Storage, Any]  # a weak reference to a tensor, its storage, the whole of that, its traits


def all_of(capture: Capture, seen: list[Held], arguments: GivenGradients) -> list[Guard]:
    """What a step found: gradients, and tensors that it did not make."""
    known = arguments.leaves
    gradients = [_gradient(leaf, grad) for leaf, grad, read in capture.leaves() if read and id(leaf) not in known]
    return [*capture.guards, arguments.changed, *gradients, _tensors(seen)]


def of_device(device: Device) -> Guard:
    """That it was not lost since: what was loaded on it is gone then, and so are the constants of the step."""
    generation = device.generation
    return lambda: None if device.generation == generation else "the device was lost and opened again"


def owned(module: object) -> Iterator[TensorBase]:
    """The parameters and the buffers of a module itself."""
    for group in ("_parameters", "_buffers"):
        yield from (tensor for tensor in module.__dict__.get(group, {}).values() if tensor is not None)


def _tensors(seen: list[Held]) -> Guard:
    """Tensors that the step read or wrote are there, have their memory, and want a gradient or not, as before."""

    def guard() -> str | None:
        for ref, storage, whole_storage, traits in seen:
            tensor = ref()
            if tensor is None:
                return "a tensor that it reads is gone"
            if tensor._storage is not storage or whole_of(storage) is not whole_storage:
                return f"a tensor of shape {list(tensor.shape)} has other data"
            alike = tensor._flag is traits[0] and tensor._accumulator is None and tensor._path is traits[2]
            alike = alike and whole_storage.node.requires is traits[3]
            if not alike and tensor._traits() != traits:
                titles = ("requires_grad", "hooks", "offset and strides", "history")
                names = zip(titles, tensor._traits(), traits, strict=True)
                what = next(name for name, now, was in names if now != was)
                return f"a tensor of shape {list(tensor.shape)} has other {what}"
        return None

    return guard


def _memory(tensor: TensorBase | None) -> tuple[Storage, Any] | None:
    return None if tensor is None else (tensor._storage, tensor._path)


def _gradient(leaf: TensorBase, grad: TensorBase | None) -> Guard:
    memory, held = _memory(grad), OwnReference(leaf)

    def guard() -> str | None:
        leaf = held()
        if leaf is None:
            return "a tensor that it reads is gone"
        now = leaf._grad
        if _memory(now) == memory:
            return None
        words = "a parameter of shape {} had {} and has {} when the step begins"
        kinds = ["no gradient" if gradient is None else "a gradient" for gradient in (grad, now)]
        return words.format(list(leaf.shape), kinds[0], kinds[1] if kinds[0] != kinds[1] else "another one")

    return guard
