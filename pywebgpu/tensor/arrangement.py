"""Functions of several tensors that few programs call: stacks, grids, combinations, products over named axes."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from math import comb
from typing import Any, Protocol, overload

from pywebgpu.composites import einsum as products
from pywebgpu.composites import joining
from pywebgpu.errors import ShapeError
from pywebgpu.ir.graph import LARGE
from pywebgpu.tensor import dispatch, functions, outputs
from pywebgpu.tensor.apply import apply, aten, called
from pywebgpu.tensor.base import TensorBase
from pywebgpu.tensor.functions import cat, stack
from pywebgpu.tensor.methods import named_by_numpy, require_tensor
from pywebgpu.tensor.tensor import Tensor


def _some(name: str, tensors: Sequence[Any]) -> list[Any]:
    listed = functions.listed(name, tensors)
    if not listed:
        raise RuntimeError(f"{name} expects a non-empty TensorList")
    return listed


def hstack(tensors: Sequence[Any], *, out: Tensor | None = None) -> Tensor:
    """Joins along the second axis, vectors along the first."""
    parts = [atleast_1d(t) for t in _some("hstack", tensors)]
    return cat(parts, 0 if parts[0].ndim == 1 else 1, out=out)


def vstack(tensors: Sequence[Any], *, out: Tensor | None = None) -> Tensor:
    """Joins along the first axis; a vector is a row."""
    return cat([atleast_2d(t) for t in _some("vstack", tensors)], 0, out=out)


def dstack(tensors: Sequence[Any], *, out: Tensor | None = None) -> Tensor:
    """Joins along the third axis."""
    return cat([atleast_3d(t) for t in _some("dstack", tensors)], 2, out=out)


def column_stack(tensors: Sequence[Any], *, out: Tensor | None = None) -> Tensor:
    """Joins along the second axis; a vector is a column."""
    return cat(
        [t.reshape(t.numel(), 1) if t.ndim <= 1 else t for t in functions.listed("column_stack", tensors)], 1, out=out
    )


@aten("block_diag")
def block_diag(*tensors: Tensor) -> Tensor:
    """A matrix with the given matrices on its diagonal, 0 elsewhere."""
    parts = [atleast_2d(t) for t in tensors]
    width = sum(t.shape[1] for t in parts)
    rows, left = [], 0
    for part in parts:
        rows.append(apply(joining.pad_constant, part, (left, width - left - part.shape[1])))
        left += part.shape[1]
    return cat(rows, 0)


class _AtLeast(Protocol):
    """A function of a tensor, or of several."""

    @overload
    def __call__(self, tensor: Tensor, /) -> Tensor: ...
    @overload
    def __call__(self, tensor: Tensor, other: Tensor, /, *tensors: Tensor) -> tuple[Tensor, ...]: ...
    @overload
    def __call__(self, tensors: Sequence[Tensor], /) -> tuple[Tensor, ...]: ...


def _of_each(function: Callable[[Tensor], Tensor]) -> _AtLeast:
    """The function for one tensor; for several, or a sequence of them, a tuple of its results."""

    def call(*tensors: Any) -> Tensor | tuple[Tensor, ...]:
        if len(tensors) == 1 and isinstance(tensors[0], TensorBase):
            return function(tensors[0])  # type: ignore[arg-type]
        if len(tensors) == 1 and isinstance(tensors[0], str):
            raise TypeError("expected tensors, or a sequence of them, but got a str")
        return tuple(function(t) for t in (tensors[0] if len(tensors) == 1 else tensors))

    call.__name__, call.__qualname__, call.__doc__ = function.__name__, function.__qualname__, function.__doc__
    return call  # type: ignore[return-value]


@_of_each
def atleast_1d(tensor: Tensor) -> Tensor:
    """A view of at least one axis; of several tensors, a tuple of them."""
    return tensor if tensor.ndim else tensor.reshape(1)


@_of_each
def atleast_2d(tensor: Tensor) -> Tensor:
    """A view of at least two axes: a new one comes first. Of several tensors, a tuple of them."""
    return tensor if tensor.ndim >= 2 else tensor.reshape(1, tensor.numel())


@_of_each
def atleast_3d(tensor: Tensor) -> Tensor:
    """A view of at least three axes: (n,) becomes (1, n, 1), and (m, n) becomes (m, n, 1)."""
    if tensor.ndim >= 3:
        return tensor
    return tensor.unsqueeze(-1) if tensor.ndim == 2 else tensor.reshape(1, tensor.numel(), 1)


def meshgrid(*tensors: Any, indexing: str = "ij") -> tuple[Any, ...]:
    """Coordinates of a grid: one tensor an axis. indexing "xy" swaps the first two axes."""
    listed = list(tensors[0]) if len(tensors) == 1 and not isinstance(tensors[0], TensorBase) else list(tensors)
    if indexing not in ("ij", "xy"):
        raise RuntimeError(f'torch.meshgrid: indexing must be one of "xy" or "ij", but received: {indexing}')
    if not listed:
        raise RuntimeError("meshgrid expects a non-empty TensorList")
    if any(t.ndim > 1 for t in listed):
        raise RuntimeError("torch.meshgrid: Expected 0D or 1D tensor in the tensor list")
    if any(t.dtype is not listed[0].dtype for t in listed):
        raise RuntimeError("meshgrid expects all tensors to have the same dtype")
    swap = indexing == "xy" and len(listed) >= 2
    if swap:
        listed[0], listed[1] = listed[1], listed[0]
    shape = [t.numel() for t in listed]
    grids = [
        t.reshape([-1 if a == axis else 1 for a in range(len(shape))]).expand(shape) for axis, t in enumerate(listed)
    ]
    if swap:
        grids[0], grids[1] = grids[1], grids[0]
    return tuple(grids)


def cartesian_prod(*tensors: Tensor) -> Tensor:
    """All combinations of the elements of vectors, a row each."""
    for tensor in tensors:
        if tensor.ndim != 1:
            raise ShapeError(f"cartesian_prod: Expect a 1D vector, but got shape {[*tensor.shape]}")
    if len(tensors) == 1:
        return tensors[0]
    return stack([grid.reshape(-1) for grid in meshgrid(*tensors)], 1)


@named_by_numpy
def combinations(input: Tensor, r: int = 2, with_replacement: bool = False) -> Tensor:
    """All choices of r elements of a vector, in order, a row each."""
    if input.ndim != 1:
        raise ShapeError(f"Expect a 1D vector, but got shape {list(input.shape)}")
    if r == 0:
        return input.new_zeros(0)
    n = input.numel()
    count = comb(n + r - 1 if with_replacement else n, r) if n else 0
    if count * r > LARGE:
        raise ShapeError(f"combinations: {count} choices of {r} elements are too many")
    choose = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    chosen = choose(range(n), r)
    return stack([stack([input[i] for i in row]) for row in chosen]) if count else input.new_zeros(0, r)


@named_by_numpy
@outputs.writable()
def kron(input: Tensor, other: Tensor) -> Tensor:
    """Kronecker's product: every element of `input` times the whole of `other`, laid out in blocks."""
    require_tensor("kron", "other", 2, other)
    rank = max(input.ndim, other.ndim)
    own, others = ((1,) * (rank - x.ndim) + tuple(x.shape) for x in (input, other))
    left = input.reshape([n for size in own for n in (size, 1)])
    right = other.reshape([n for size in others for n in (1, size)])
    blocks: Tensor = left.mul(right).reshape([m * n for m, n in zip(own, others, strict=True)])
    return called(blocks, "kron")


def tensordot(
    a: Tensor, b: Tensor, dims: Tensor | int | Sequence[Sequence[int]] = 2, out: Tensor | None = None
) -> Tensor:
    """Sums products over axes of both."""
    if isinstance(dims, TensorBase):
        listed: Any = dims
        dims = listed.tolist()
    return outputs.finished("tensordot", apply(products.tensordot, a, b, dims), out, a, b)


def chain_matmul(*matrices: Tensor, out: Tensor | None = None) -> Tensor:
    """a @ b @ c @ ..., from the left."""
    if not matrices:
        raise RuntimeError("chain_matmul(): Expected one or more matrices")
    for matrix in matrices:
        if matrix.ndim != 2:
            raise ShapeError(f"Tensor dimension is {matrix.ndim}, expected 2 instead.")
    product = functools.reduce(lambda a, b: a.matmul(b), matrices)
    return outputs.finished("chain_matmul", product, out, *matrices)


row_stack = vstack
globals().update(dispatch.all_public(globals(), __name__))
