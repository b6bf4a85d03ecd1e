"""Methods that sum products: matrix products of every rank."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from pywebgpu import shapes
from pywebgpu.composites import creation, linear
from pywebgpu.ir.graph import used
from pywebgpu.tensor.apply import apply
from pywebgpu.tensor.base import TensorBase
from pywebgpu.tensor.methods import node_of
from pywebgpu.tensor.movement import MovementMethods
from pywebgpu.tensor.reduction import ReductionMethods

if TYPE_CHECKING:
    from pywebgpu.tensor.tensor import Tensor


class ContractionMethods(MovementMethods, ReductionMethods):
    """matmul and its relatives."""

    __slots__ = ()

    def matmul(self, other: Tensor) -> Tensor:
        """The matrix product by rank: vectors dot, matrices multiply, further leading axes are batches."""
        if not isinstance(other, TensorBase):
            raise TypeError(f"matmul(): argument 'other' (position 1) must be Tensor, not {type(other).__name__}")
        if used.autocast is not None:
            return apply(linear.matmul, self, other)
        return self._new(linear.matmul(self._node, node_of(self, other)), self._storage.device)

    def mm(self, mat2: Tensor) -> Tensor:
        """(m, k) x (k, n) -> (m, n)"""
        return apply(linear.mm, self, mat2)

    def bmm(self, mat2: Tensor) -> Tensor:
        """(b, m, k) x (b, k, n) -> (b, m, n)"""
        return apply(linear.bmm, self, mat2)

    def mv(self, vec: Tensor) -> Tensor:
        """(m, k) x (k) -> (m)"""
        return apply(linear.mv, self, vec)

    def dot(self, other: Tensor) -> Tensor:
        """(n) x (n) -> ()"""
        return apply(linear.dot, self, other)

    def inner(self, other: Tensor) -> Tensor:
        """The sum of products over the last axis of both."""
        return apply(linear.inner, self, other)

    def outer(self, vec2: Tensor) -> Tensor:
        """(m), (n) -> (m, n)"""
        return apply(linear.outer, self, vec2)

    ger = outer

    def addmm(self, mat1: Tensor, mat2: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
        """beta self + alpha mat1 mat2"""
        return apply(linear.addmm, self, mat1, mat2, beta=beta, alpha=alpha)

    def addmv(self, mat: Tensor, vec: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
        """beta self + alpha mat vec"""
        return apply(linear.addmv, self, mat, vec, beta=beta, alpha=alpha)

    def addr(self, vec1: Tensor, vec2: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
        """beta self + alpha outer(vec1, vec2)"""
        return apply(linear.addr, self, vec1, vec2, beta=beta, alpha=alpha)

    def baddbmm(self, batch1: Tensor, batch2: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
        """beta self + alpha batch1 batch2"""
        return apply(linear.baddbmm, self, batch1, batch2, beta=beta, alpha=alpha)

    def addbmm(self, batch1: Tensor, batch2: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
        """beta self + alpha (the sum over the batch of batch1 batch2)"""
        return apply(linear.addbmm, self, batch1, batch2, beta=beta, alpha=alpha)

    def matrix_power(self, n: int) -> Tensor:
        """The n-fold matrix product of a square matrix with itself, by squaring."""
        if self.ndim < 2 or self.shape[-1] != self.shape[-2]:
            raise RuntimeError(
                f"linalg.matrix_power: A must be batches of square matrices, but they are {list(self.shape)}"
            )
        if n < 0:
            inverse: Tensor = importlib.import_module("pywebgpu.linalg").inv(self)
            return inverse.matrix_power(-n)
        if n == 0:
            return self._new(creation.eye(self.shape[-1], self.shape[-1], self.dtype), self._storage.device).expand(
                self.shape
            )
        power: Any = self
        result: Any = None
        while n:
            if n & 1:
                result = power if result is None else result.matmul(power)
            n >>= 1
            power = power.matmul(power) if n else power
        return result  # type: ignore[no-any-return]

    def cross(self, other: Tensor, dim: int | None = None) -> Tensor:
        """The vector product along an axis of size 3."""
        shape = shapes.broadcast(tuple(self.shape), tuple(other.shape))
        at = next((a for a, n in enumerate(shape) if n == 3), -1) if dim is None else dim
        if not shape or shape[at] != 3:
            raise RuntimeError(f"linalg.cross: inputs dimension {at} must have length 3. Got {list(shape)}")
        x, y = self.expand(shape), other.expand(shape)
        return x.roll(-1, at).mul(y.roll(-2, at)).sub(x.roll(-2, at).mul(y.roll(-1, at)))
