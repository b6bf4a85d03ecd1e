"""The Tensor class: torch's methods and operators, one line each, over functions of nodes."""

from __future__ import annotations

import array
from typing import Any

from pywebgpu import devices, dtypes, realize
from pywebgpu.compose import arithmetic
from pywebgpu.dtypes import DType
from pywebgpu.tensor import gradient
from pywebgpu.tensor.base import apply
from pywebgpu.tensor.movement import MovementMethods


class Tensor(MovementMethods):
    """A lazy array on a device. See torch.Tensor for what each method does; the differences are in docs/torch.md."""

    __slots__ = ()
    __hash__ = object.__hash__

    @classmethod
    def _class(cls) -> Any:
        return Tensor

    # Gradients

    def backward(
        self,
        gradient_: Any = None,
        retain_graph: bool | None = None,
        create_graph: bool = False,
        inputs: Any = None,
    ) -> None:
        """Accumulates the gradients of this tensor into the leaves that it came from."""
        gradient.backward(self, gradient_, retain_graph, create_graph, inputs)

    # Reading

    def item(self) -> bool | int | float:
        """The only element, as a Python number. Waits for the device."""
        if self.numel() != 1:
            raise RuntimeError(f"a Tensor with {self.numel()} elements cannot be converted to Scalar")
        return _numbers(self._bytes(), self.dtype)[0]

    def tolist(self) -> Any:
        flat = _numbers(self._bytes(), self.dtype)
        for n in reversed(self.shape[1:]):
            flat = [flat[i : i + n] for i in range(0, len(flat), n)] if n else [[]] * (self.numel() // max(n, 1))
        return flat if self.ndim else flat[0]

    def tobytes(self) -> bytes:
        """The elements as little-endian bytes of the dtype, in row-major order."""
        return self._bytes()

    def numpy(self) -> Any:
        """A NumPy array with a copy of the elements."""
        import numpy as np

        if self.requires_grad:
            raise RuntimeError("Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.")
        if self.dtype is dtypes.bfloat16:
            raise TypeError("Got unsupported ScalarType BFloat16")
        return np.frombuffer(bytearray(self._bytes()), self.dtype.name).reshape(self.shape)

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        found = self.numpy()
        return found if dtype is None else found.astype(dtype)

    # Arithmetic

    def add(self, other: Any, *, alpha: float = 1) -> Any:
        return apply(arithmetic.add, self, other, alpha)

    def sub(self, other: Any, *, alpha: float = 1) -> Any:
        return apply(arithmetic.sub, self, other, alpha)

    def mul(self, other: Any) -> Any:
        return apply(arithmetic.mul, self, other)

    def div(self, other: Any, *, rounding_mode: str | None = None) -> Any:
        return apply(arithmetic.div, self, other, rounding_mode)

    __add__, __sub__, __mul__, __truediv__ = add, sub, mul, div


def _numbers(data: bytes, dtype: DType) -> list[Any]:
    if dtype is dtypes.float16:
        import struct

        return list(struct.unpack(f"<{len(data) // 2}e", data))
    if dtype is dtypes.bfloat16:
        words = array.array("I", [h << 16 for h in array.array("H", data)])
        return array.array("f", words.tobytes()).tolist()
    if dtype is dtypes.bool_:
        return [b != 0 for b in data]
    return array.array(dtype.code, data).tolist()


_ = devices, realize
