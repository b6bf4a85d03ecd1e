"""Saving where Python cannot wait for the device: all values are read first, then they are written as always."""

from __future__ import annotations

import copy
import io
import pickle
from typing import BinaryIO

from pywebgpu.io import state
from pywebgpu.tensor import tensor


class _Finder(pickle.Pickler):
    """Finds the tensors that an object holds, and writes nothing of them."""

    def __init__(self) -> None:
        super().__init__(io.BytesIO())
        self.found: dict[int, tensor.Tensor] = {}

    def persistent_id(self, obj: object) -> str | None:
        if not isinstance(obj, tensor.Tensor):
            return None
        self.found[id(obj)] = obj
        return "tensor"


async def save_async(obj: object, f: state.Path | BinaryIO) -> None:
    """As save, also where Python cannot wait. Tensors are saved as ones of device cpu.

    Raises: TypeError for what cannot be pickled.
    """
    finder = _Finder()
    try:
        finder.dump(obj)
    except Exception as error:
        raise TypeError(f"save_async(): needs what can be pickled, as a state_dict() is: {error}") from None
    read: dict[int, object] = {}
    for key, original in finder.found.items():
        value = await original.detach().cpu_async()
        value = value if type(original) is tensor.Tensor else type(original)(value)
        read[key] = value.requires_grad_(original.requires_grad)
    state.save(copy.deepcopy(obj, read), f)
