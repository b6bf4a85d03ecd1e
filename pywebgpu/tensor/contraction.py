"""Methods that sum products: matrix products of every rank."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from pywebgpu.composites import einsum, linear
from pywebgpu.ir.graph import thread_state, used
from pywebgpu.tensor.apply import apply
from pywebgpu.tensor.base import TensorBase
from pywebgpu.tensor.methods import aliased, node_of, require_tensor
from pywebgpu.tensor.movement import MovementMethods
from pywebgpu.tensor.reduction import ReductionMethods

if TYPE_CHECKING:
    from pywebgpu.tensor.tensor import Tensor


class ContractionMethods(MovementMethods, ReductionMethods):
    """matmul and its relatives."""

    __slots__ = ()

    @aliased
    def matmul(self, other: Tensor) -> Tensor:
        """The matrix product by rank: vectors dot, matrices multiply, further leading axes are batches."""
        if not isinstance(other, TensorBase):
            raise TypeError(f"matmul(): argument 'other' (position 1) must be Tensor, not {type(other).__name__}")
        if used.autocast is not None and thread_state.autocast:
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

    def dot(self, tensor: Tensor) -> Tensor:
        """(n) x (n) -> ()"""
        return apply(linear.dot, self, tensor)

    @aliased
    def inner(self, other: Tensor) -> Tensor:
        """The sum of products over the last axis of both."""
        return apply(einsum.inner, self, other)

    def outer(self, vec2: Tensor) -> Tensor:
        """(m), (n) -> (m, n)"""
        require_tensor("outer", "vec2", 2, vec2)
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
        return importlib.import_module("pywebgpu.linalg").matrix_power(self, n)  # type: ignore[no-any-return]

    @aliased
    def cross(self, other: Tensor, dim: int | None = None) -> Tensor:
        """The vector product along an axis of size 3."""
        return importlib.import_module("pywebgpu.tensor.numeric").cross(self, other, dim)  # type: ignore[no-any-return]
