"""Methods that pick and arrange elements: diagonals, triangles, uneven splits, changes of shape in place."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from itertools import pairwise
from math import prod
from typing import TYPE_CHECKING, Any, Self

from pywebgpu import dtypes
from pywebgpu.dtypes import DType
from pywebgpu.errors import ShapeError
from pywebgpu.ir.graph import thread_state
from pywebgpu.ir.observer import changed
from pywebgpu.ops import pointwise
from pywebgpu.support import shapes
from pywebgpu.support.closed_types import channels_last, channels_last_3d, preserve_format
from pywebgpu.tensor import from_data
from pywebgpu.tensor.apply import called
from pywebgpu.tensor.base import TensorBase
from pywebgpu.tensor.conversion import ConversionMethods
from pywebgpu.tensor.history import History
from pywebgpu.tensor.layout import order_of, strides_of
from pywebgpu.tensor.memory_format import all_of, in_memory, of_order, suggested
from pywebgpu.tensor.methods import aliased, also_named
from pywebgpu.tensor.movement import cat
from pywebgpu.tensor.size import as_tuple

if TYPE_CHECKING:
    from pywebgpu.tensor.tensor import Tensor
    from pywebgpu.tensor.types import Dims, Sizes


class ReshapingMethods(ConversionMethods):
    """Elements of a tensor in other positions."""

    __slots__ = ()

    # Splits

    @aliased
    def split_with_sizes(self, split_sizes: Sequence[int], dim: int = 0) -> tuple[Tensor, ...]:
        """Parts of the sizes in a list, along an axis."""
        return self.split(list(split_sizes), dim)

    @also_named(
        sections="indices_or_sections",
        indices="indices_or_sections",
        tensor_indices_or_sections="indices_or_sections",
    )
    def tensor_split(self, indices_or_sections: Tensor | Sizes, dim: int = 0) -> tuple[Tensor, ...]:
        """Parts of nearly equal size, or parts that end at the given positions."""
        if not self.ndim:
            raise ShapeError("tensor_split expected at least a 1-dimensional tensor, but got a tensor with 0 dims")
        axis = shapes.axis(dim, self.ndim)
        n = self.shape[axis]
        if isinstance(indices_or_sections, TensorBase):
            if indices_or_sections.dtype is not dtypes.int64:
                raise RuntimeError(
                    "tensor_split expected tensor_indices_or_sections to have dtype of long, but got "
                    f"{indices_or_sections.dtype.title}"
                )
            if indices_or_sections.ndim > 1:
                raise ShapeError(
                    "tensor_split expected tensor_indices_or_sections to be a zero-dimensional or one-dimensional "
                    f"tensor, but got a tensor with {indices_or_sections.ndim} dims"
                )
            indices_or_sections = indices_or_sections.tolist()
        indices_or_sections = shapes.plain(indices_or_sections)
        if isinstance(indices_or_sections, int):
            count = indices_or_sections
            if count < 1:
                raise ShapeError(f"number of sections must be larger than 0, got {count}")
            short, longer = divmod(n, count)
            return self._parts(axis, [short + 1] * longer + [short] * (count - longer))
        ends = [0, *(slice(None, stop).indices(n)[1] for stop in indices_or_sections), n]
        return tuple(self.narrow(dim, start, max(end - start, 0)) for start, end in pairwise(ends))

    @also_named(sections="indices_or_sections", indices="indices_or_sections")
    def hsplit(self, indices_or_sections: Tensor | Sizes) -> tuple[Tensor, ...]:
        """Parts along the second axis; of a vector along its only one."""
        return self._evenly("hsplit", indices_or_sections, 0 if self.ndim == 1 else 1, 1)

    @also_named(sections="indices_or_sections", indices="indices_or_sections")
    def vsplit(self, indices_or_sections: Tensor | Sizes) -> tuple[Tensor, ...]:
        """Parts along the first axis."""
        return self._evenly("vsplit", indices_or_sections, 0, 2)

    @also_named(sections="indices_or_sections", indices="indices_or_sections")
    def dsplit(self, indices_or_sections: Tensor | Sizes) -> tuple[Tensor, ...]:
        """Parts along the third axis."""
        return self._evenly("dsplit", indices_or_sections, 2, 3)

    def _evenly(self, name: str, sections: Tensor | Sizes, dim: int, rank: int) -> tuple[Tensor, ...]:
        if self.ndim < rank:
            raise ShapeError(
                f"torch.{name} requires a tensor with at least {rank} dimension, but got a tensor with {self.ndim} "
                "dimensions!"
            )
        sections = shapes.plain(sections)
        if isinstance(sections, int) and (sections == 0 or self.shape[dim] % sections):
            raise ShapeError(
                f"torch.{name} attempted to split along dimension {dim}, but the size of the dimension "
                f"{self.shape[dim]} is not divisible by the split_size {sections}!"
            )
        return self.tensor_split(sections, dim)

    # Copies in another order

    def rot90(self, k: int = 1, dims: Sequence[int] = (0, 1)) -> Tensor:
        """A quarter turn, k times, in the plane of two axes."""
        return import_module("pywebgpu.tensor.numeric").rot90(self, k, dims)  # type: ignore[no-any-return]

    def as_strided(self, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None) -> Tensor:
        """Elements of the tensor's memory at an offset, and from there at steps along each axis. A view."""
        return import_module("pywebgpu.tensor.copies").strided(self, size, stride, storage_offset)  # type: ignore[no-any-return]

    def as_strided_(self, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None) -> Self:
        """Becomes a view of its memory by steps."""
        return self._become(self.as_strided(size, stride, storage_offset))

    def sum_to_size(self, *sizes: Any, size: Sizes = ()) -> Tensor:
        """Sums over the axes along which a tensor of the size would broadcast to this one."""
        wanted = as_tuple(sizes or (size,))
        if not wanted:
            return self.sum()
        lead = self.ndim - len(wanted)
        fits = lead >= 0 and all(n in (1, m) for n, m in zip(wanted, self.shape[lead:], strict=True))
        if not fits:
            raise ShapeError(f"size {{{list(wanted)}}} is not expandable to size {{{list(self.shape)}}}.")
        axes = [*range(lead), *(lead + a for a, n in enumerate(wanted) if n == 1 and self.shape[lead + a] != 1)]
        return self.sum(axes, keepdim=True).reshape(wanted) if axes else self  # type: ignore[return-value]

    def view(self, *shape: Any, **named: Any) -> Tensor:
        """Another shape, or dtype, of the same memory. Where that is no memory of the host, another dtype is a copy of
        the same bits."""
        shape = shape or ((named["dtype"],) if "dtype" in named else ())
        if len(shape) != 1 or not isinstance(shape[0], DType):
            return super().view(*shape, **named)
        dtype = shape[0]
        if dtype is self.dtype:
            return self.detach()
        if dtype.itemsize != self.dtype.itemsize:
            _check_sizes(self, dtype)
        if not hasattr(self._storage.device, "hold"):  # Its values are no arrays.
            return self._bits_as(dtype)
        memory = import_module("pywebgpu.tensor.host_memory")
        shown: Tensor | None = memory.viewed(self, dtype)
        if shown is None:
            shown = self._bits_as(dtype)
            memory.keep_alike(shown, self)
        return shown

    def _bits_as(self, dtype: DType) -> Tensor:
        if dtype.itemsize != 4 or self.dtype.itemsize != 4:
            return self._reread(dtype)
        return self._new(pointwise.bitcast(self._node, dtype=dtype), self._storage.device)

    def _reread(self, dtype: DType) -> Tensor:
        """The bits read as elements of another size, on the host: the last axis becomes longer, or shorter."""
        have, want = self.dtype.itemsize, dtype.itemsize
        shape = self.shape if have == want else (*self.shape[:-1], self.shape[-1] * have // want)
        device = self._storage.device
        return self._new(from_data.from_bytes(self._bytes(), dtype, shape, device), device)

    def ndimension(self) -> int:
        """How many axes it has."""
        return self.ndim

    swapaxes = swapdims = aliased(ConversionMethods.transpose)

    def resolve_conj(self) -> Tensor:
        """The tensor itself: no view waits to be conjugated, or negated."""
        return self  # type: ignore[return-value]

    resolve_neg = resolve_conj

    # Transposed

    def adjoint(self) -> Tensor:
        """The last two axes exchanged, and conjugated."""
        transposed: Tensor = self.mT.conj()
        return transposed

    @property
    def H(self) -> Tensor:
        """The matrix transposed and conjugated."""
        if self.ndim not in (0, 2):
            raise ShapeError(f"tensor.H is only supported on matrices (2-D tensors). Got {self.ndim}-D tensor.")
        return called(self.t().conj(), "aten::transpose")

    @property
    def mH(self) -> Tensor:
        """Matrices of the last two axes, transposed and conjugated."""
        return self.adjoint()

    # In position: the tensor becomes another view, or leaves its history

    def detach_(self) -> Self:
        """Forgets the history of this tensor, which shares its storage still."""
        if self._base is not None:
            raise RuntimeError("Can't detach views in-place. Use detach() instead.")
        if self.requires_grad:
            self._flag, self._accumulator, self._cached, self._history = False, None, None, History(self._path)
            changed()
        return self

    def resize_(self, *sizes: Any, size: Sizes = (), memory_format: object = None) -> Self:
        """Another shape of the same memory, from where the tensor starts; where that ends, of new memory.

        Raises RuntimeError for a leaf that wants a gradient, for memory_format=preserve_format, and for a shape whose
        sizes or strides overflow.
        """
        if self.requires_grad and not thread_state.inference:
            raise RuntimeError("cannot resize variables that require grad")
        shape, storage_shape = as_tuple(sizes or (size,)), self._storage.node.spec.shape
        if shape == tuple(self.shape) and memory_format is None:
            return self
        start, count = self.storage_offset(), prod(shape)
        if (start + count) * self.dtype.itemsize >= 1 << 63:
            raise RuntimeError(f"Storage size calculation overflowed with sizes={list(shape)}")
        if memory_format is preserve_format:
            raise RuntimeError("Unsupported memory format Preserve")
        order = order_of(memory_format, shape)
        steps = shapes.strides(shape) if order is None else of_order(shape, order)
        if prod([max(n, 1) for n in shape]) >= 1 << 63:
            raise RuntimeError("Stride calculation overflowed")
        if start + count > prod(storage_shape):
            if self._storage.is_shared:
                raise RuntimeError("Trying to resize storage that is not resizable: an array shows it")
            rest = self.new_empty(start + count - prod(storage_shape))
            self.data = cat([in_memory(all_of(self)), rest])
        flat = in_memory(all_of(self))
        shown = flat._sliced(0, start, count).view(shape)
        return self._show(shown if order is None else shown.as_strided(shape, steps))

    @aliased
    def resize_as_(self, the_template: TensorBase, *, memory_format: object = None) -> Self:
        """Takes the shape of another; with preserve_format its memory format, too."""
        if memory_format is not preserve_format:
            return self.resize_(the_template.shape, memory_format=memory_format)
        order = suggested(the_template)
        kinds = {4: channels_last, 5: channels_last_3d}
        return self.resize_(the_template.shape, memory_format=None if order is None else kinds[the_template.ndim])

    def _become(self, view: Tensor) -> Self:
        """Is what a view of it is, in place."""
        self._check_writable()
        return self._show(view)

    @aliased
    def squeeze_(self, dim: Dims = None) -> Self:
        """Loses axes of size 1."""
        return self._become(self.squeeze(dim))

    @aliased
    def unsqueeze_(self, dim: int) -> Self:
        """Gets one more axis, of size 1."""
        return self._become(self.unsqueeze(dim))

    @aliased
    def transpose_(self, dim0: int, dim1: int) -> Self:
        """Exchanges two of its axes."""
        return self._become(self.transpose(dim0, dim1))

    swapaxes_ = swapdims_ = transpose_

    def t_(self) -> Self:
        """Exchanges the axes of a matrix."""
        return self._become(self.t())


def _check_sizes(x: TensorBase, dtype: DType) -> None:
    """Raises RuntimeError where elements of another size would not begin and end with those of `x`."""
    what = f"to view {x.dtype.title} as {dtype.title} (different element sizes)"
    steps, start = strides_of(x)
    if not steps:
        raise RuntimeError(f"self.dim() cannot be 0 {what}")
    if steps[-1] != 1 and x.shape[-1] != 1:
        raise RuntimeError(f"self.stride(-1) must be 1 {what}, but got {steps[-1]}")
    ratio = dtype.itemsize // x.dtype.itemsize
    numbers = [("size(-1)", x.shape[-1]), ("storage_offset()", start)]
    numbers += [(f"stride({axis})", step) for axis, step in enumerate(steps[:-1])]
    for name, number in numbers:
        if ratio and number % ratio:
            raise RuntimeError(f"self.{name} must be divisible by {ratio} {what}, but got {number}")
