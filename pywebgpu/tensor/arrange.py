"""Methods that pick and arrange elements: diagonals, triangles, uneven splits, changes of shape in place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pywebgpu import dtypes, shapes
from pywebgpu.compose import arithmetic
from pywebgpu.errors import RangeError, ShapeError
from pywebgpu.graph.ir import Node, Spec
from pywebgpu.ops import indexing, movement, pointwise
from pywebgpu.tensor.base import TensorBase, apply, as_tuple
from pywebgpu.tensor.conversion import ConversionMethods
from pywebgpu.tensor.movement import cat


class ArrangeMethods(ConversionMethods):
    """Elements of a tensor in other places."""

    __slots__ = ()

    # Splits

    def split_with_sizes(self, split_sizes: Sequence[int], dim: int = 0) -> tuple[Any, ...]:
        return self.split(list(split_sizes), dim)

    def tensor_split(self, indices_or_sections: Any, dim: int = 0) -> tuple[Any, ...]:
        """Parts of nearly equal size, or parts that end at the given places."""
        n = self.shape[shapes.axis(dim, self.ndim)]
        if isinstance(indices_or_sections, TensorBase):
            indices_or_sections = indices_or_sections.tolist()  # type: ignore[attr-defined]
        if isinstance(indices_or_sections, int):
            count = indices_or_sections
            if count < 1:
                raise ShapeError(f"number of sections must be larger than 0, got {count}")
            short, longer = divmod(n, count)
            return self.split([short + 1] * longer + [short] * (count - longer), dim)
        ends = [0, *(slice(None, at).indices(n)[1] for at in indices_or_sections), n]
        return tuple(
            self.narrow(dim, start, max(end - start, 0)) for start, end in zip(ends, ends[1:], strict=False)
        )

    def hsplit(self, indices_or_sections: Any) -> tuple[Any, ...]:
        return self.tensor_split(indices_or_sections, 0 if self.ndim == 1 else 1)

    def vsplit(self, indices_or_sections: Any) -> tuple[Any, ...]:
        return self.tensor_split(indices_or_sections, 0)

    def dsplit(self, indices_or_sections: Any) -> tuple[Any, ...]:
        return self.tensor_split(indices_or_sections, 2)

    # Diagonals and triangles

    def tril(self, diagonal: int = 0) -> Any:
        """The matrix with 0 above a diagonal."""
        return apply(_triangle, self, diagonal, False)

    def triu(self, diagonal: int = 0) -> Any:
        """The matrix with 0 below a diagonal."""
        return apply(_triangle, self, diagonal, True)

    def tril_(self, diagonal: int = 0) -> Any:
        return self._written(self.tril(diagonal))

    def triu_(self, diagonal: int = 0) -> Any:
        return self._written(self.triu(diagonal))

    def diag(self, diagonal: int = 0) -> Any:
        """The diagonal of a matrix, or the matrix with a vector as its diagonal."""
        if self.ndim == 2:
            return self.diagonal(diagonal).clone()
        if self.ndim != 1:
            raise ShapeError(f"diag(): Supports 1D or 2D tensors. Got {self.ndim}D")
        return self.diag_embed(diagonal)

    def diag_embed(self, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Any:
        """Matrices with the last axis as their diagonal."""
        made = apply(_embedded, self, offset)
        return made.movedim((-2, -1), (dim1, dim2)) if (dim1, dim2) != (-2, -1) else made

    def diagflat(self, offset: int = 0) -> Any:
        return self.reshape(-1).diag_embed(offset)

    def trace(self) -> Any:
        """The sum of the diagonal of a matrix."""
        if self.ndim != 2:
            raise ShapeError("trace: expected a matrix")
        return self.diagonal().sum()

    def fill_diagonal_(self, fill_value: Any, wrap: bool = False) -> Any:
        """Writes a number on the diagonal."""
        if self.ndim < 2 or (self.ndim > 2 and len(set(self.shape)) != 1):
            raise ShapeError("all dimensions of input must be of equal length")
        step = sum(self.shape[1:][at:].numel() if at else self.shape[1:].numel() for at in range(self.ndim - 1)) + 1
        count = min(self.shape) if not wrap else -(-self.numel() // step)
        flat = self.view(-1)._sliced(0, 0, count, step)
        flat.fill_(fill_value)
        return self

    # Copies in another order

    def rot90(self, k: int = 1, dims: Sequence[int] = (0, 1)) -> Any:
        """A quarter turn, k times, in the plane of two axes."""
        a, b = dims
        if k % 4 == 0:
            return self.clone()
        if k % 4 == 2:
            return self.flip(a, b)
        turned = self.flip(b if k % 4 == 1 else a)
        return turned.transpose(a, b).clone()

    def repeat_interleave(self, repeats: Any, dim: int | None = None, *, output_size: int | None = None) -> Any:
        """Each element several times: a number for all, or one an element."""
        if dim is None:
            return self.reshape(-1).repeat_interleave(repeats, 0, output_size=output_size)
        at = shapes.axis(dim, self.ndim)
        if isinstance(repeats, TensorBase) and repeats.numel() == 1:
            repeats = int(repeats)  # type: ignore[call-overload]
        if isinstance(repeats, int):
            if repeats < 0:
                raise RuntimeError("Repeats must be non-negative")
            grown = self.unsqueeze(at + 1).expand(*self.shape[: at + 1], repeats, *self.shape[at + 1 :])
            return grown.reshape(*self.shape[:at], self.shape[at] * repeats, *self.shape[at + 1 :]).clone()
        counts = repeats.tolist()
        if len(counts) != self.shape[at]:
            raise RuntimeError("repeats must have the same size as input along dim")
        parts = [self.narrow(at, i, 1) for i, count in enumerate(counts) for _ in range(count)]
        return cat(parts, at) if parts else self.narrow(at, 0, 0).clone()

    def as_strided(self, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None) -> Any:
        """Elements at computed places of the tensor's memory, as a copy."""
        whole = self if self.is_contiguous() or self._base is None else self._base
        flat: Any = whole.reshape(-1)  # type: ignore[attr-defined]
        offset = self.storage_offset() if storage_offset is None else storage_offset
        return apply(_strided, flat, tuple(size), tuple(stride), offset)

    def sum_to_size(self, *size: Any) -> Any:
        """Sums over the axes along which a tensor of `size` would broadcast to this one."""
        wanted = as_tuple(size)
        lead = self.ndim - len(wanted)
        fits = lead >= 0 and all(n in (1, m) for n, m in zip(wanted, self.shape[lead:], strict=True))
        if not fits:
            raise ShapeError(f"size {{{list(wanted)}}} is not expandable to size {{{list(self.shape)}}}.")
        axes = [*range(lead), *(lead + a for a, n in enumerate(wanted) if n == 1 and self.shape[lead + a] != 1)]
        return self.sum(axes, keepdim=True).reshape(wanted) if axes else self

    # Transposed

    def adjoint(self) -> Any:
        return self.mT

    H = property(lambda self: self.t())
    mH = property(lambda self: self.mT)  # noqa: N815 - PyTorch's name

    # In place: the tensor becomes a view of itself

    def _become(self, view: Any) -> Any:
        self._path, self._cached = view._path, None
        if self._base is None and self._path:
            self._base = None if self._detached else view._base
        return self

    def squeeze_(self, dim: Any = None) -> Any:
        return self._become(self.squeeze(dim))

    def unsqueeze_(self, dim: int) -> Any:
        return self._become(self.unsqueeze(dim))

    def transpose_(self, dim0: int, dim1: int) -> Any:
        return self._become(self.transpose(dim0, dim1))

    swapaxes_ = swapdims_ = transpose_

    def t_(self) -> Any:
        return self._become(self.t())


def _triangle(x: Node, diagonal: int, upper: bool) -> Node:
    rank = len(x.spec.shape)
    if rank < 2:
        raise ShapeError("tril or triu: input tensor must have at least 2 dimensions")
    places = Spec(x.spec.shape, dtypes.int32)
    row, column = pointwise.iota(spec=places, axis=rank - 2), pointwise.iota(spec=places, axis=rank - 1)
    apart = pointwise.sub(column, row)
    kept = (pointwise.ge if upper else pointwise.le)(apart, arithmetic.like(apart, diagonal))
    return pointwise.where(kept, x, arithmetic.like(x, 0))


def _embedded(x: Node, offset: int) -> Node:
    """(..., n) -> (..., n + |offset|, n + |offset|): every element n + 1 further on than the one before it."""
    *lead, count = x.spec.shape
    n = count + abs(offset)
    start = offset if offset >= 0 else -offset * n
    flat = movement.place(
        x,
        shape=(*lead, n * n),
        starts=(*(0,) * len(lead), start),
        steps=(*(1,) * len(lead), n + 1),
    )
    return movement.reshape(flat, shape=(*lead, n, n))


def _strided(x: Node, size: shapes.Shape, stride: shapes.Shape, offset: int) -> Node:
    if len(size) != len(stride):
        raise RuntimeError("mismatch in length of strides and shape")
    last = offset + sum((n - 1) * step for n, step in zip(size, stride, strict=True))
    if 0 not in size and last >= x.spec.shape[0]:
        raise RangeError(f"as_strided: place {last} is outside of a memory of {x.spec.shape[0]} elements")
    places = Spec(size, dtypes.int32)
    at = pointwise.full(offset, places)
    for axis, step in enumerate(stride):
        along = pointwise.iota(spec=places, axis=axis)
        at = pointwise.add(at, pointwise.mul(along, arithmetic.like(along, step)))
    count = 1
    for n in size:
        count *= n
    rows = movement.reshape(x, shape=(x.spec.shape[0], 1))
    taken = indexing.take(rows, movement.reshape(at, shape=(count,)))
    return movement.reshape(taken, shape=size)


