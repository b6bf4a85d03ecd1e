"""Views and movements of tensors. A method that torch documents as a view shares the storage here too."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from operator import index as whole
from typing import TYPE_CHECKING, Any, overload

from pywebgpu.composites import joining
from pywebgpu.dtypes import Kind
from pywebgpu.errors import RangeError, ShapeError
from pywebgpu.ops import movement, pointwise, reduction
from pywebgpu.support import closed_types, shapes
from pywebgpu.tensor import layout
from pywebgpu.tensor.apply import apply, aten, called
from pywebgpu.tensor.base import TensorBase
from pywebgpu.tensor.layout import strides_of
from pywebgpu.tensor.memory_format import formatted
from pywebgpu.tensor.methods import aliased, require_tensor
from pywebgpu.tensor.size import as_tuple

if TYPE_CHECKING:
    from pywebgpu.tensor.size import Size
    from pywebgpu.tensor.tensor import Tensor


class MovementMethods(TensorBase):
    """Methods that change the shape and no element."""

    __slots__ = ()

    # Facts of the layout

    @overload
    def size(self, dim: None = None) -> Size: ...
    @overload
    def size(self, dim: int) -> int: ...
    def size(self, dim: int | None = None) -> Size | int:
        """The shape, or the size of an axis."""
        return self.shape if dim is None else self.shape[shapes.axis(dim, self.ndim)]

    def dim(self) -> int:
        """How many axes it has."""
        return self.ndim

    def numel(self) -> int:
        """How many elements it has."""
        return prod(self._spec_node().spec.shape)

    def nelement(self) -> int:
        """How many elements it has."""
        return self.numel()

    @overload
    def stride(self, dim: None = None) -> tuple[int, ...]: ...
    @overload
    def stride(self, dim: int) -> int: ...
    def stride(self, dim: int | None = None) -> tuple[int, ...] | int:
        """Steps in memory from one element of an axis to the next."""
        steps = strides_of(self)[0]
        return steps if dim is None else steps[shapes.axis(dim, self.ndim)]

    def storage_offset(self) -> int:
        """Where its first element lies in its memory."""
        self._settle()
        return strides_of(self)[1]

    def is_contiguous(self, *, memory_format: object = None) -> bool:
        """Whether elements lie in the order of its axes, or in that of a memory format."""
        order = layout.FORMATS.get(memory_format, range(self.ndim))
        return len(order) == self.ndim and layout.is_dense(self.shape, strides_of(self)[0], order)

    # Reshapes

    def view(self, *shape: Any, **named: Any) -> Tensor:
        """The same elements in another shape, sharing memory. Raises RuntimeError where memory would have to move."""
        new = shapes.resolve(as_tuple(shape, named), self.numel())
        if not self._reshape_is_view(new):
            raise ShapeError(
                "view size is not compatible with input tensor's size and stride (at least one dimension spans across "
                "two contiguous subspaces). Use .reshape(...) instead."
            )
        return called(self._view(movement.reshape, shape=new), "view")

    def reshape(self, *shape: Any, **named: Any) -> Tensor:
        """As view where that is possible, else a copy."""
        new = shapes.resolve(as_tuple(shape, named), self.numel())
        if self._reshape_is_view(new):
            return called(self._view(movement.reshape, shape=new), "view")
        return called(self._new(movement.reshape(self._node, shape=new), self._storage.device), "aten::_unsafe_view")

    def _reshape_is_view(self, new: shapes.Shape) -> bool:
        if not self._path or all(op is movement.reshape for op, _ in self._path):
            return True
        path = tuple([(op, *attrs.items()) for op, attrs in self._path])
        return layout.is_view(self._storage.node.spec.shape, path, new)

    @aliased
    def view_as(self, other: TensorBase) -> Tensor:
        """A view in the shape of another."""
        require_tensor("view_as", "other", 1, other)
        return self.view(other.shape)

    @aliased
    def reshape_as(self, other: TensorBase) -> Tensor:
        """The elements in the shape of another."""
        require_tensor("reshape_as", "other", 1, other)
        return self.reshape(other.shape)

    def contiguous(self, *, memory_format: object = None) -> Tensor:
        """The tensor itself where its elements lie in order, or in that of a memory format; else such a copy."""
        layout.order_of(memory_format, self.shape)
        if self.is_contiguous(memory_format=memory_format):
            return self  # type: ignore[return-value]  # Tensors are of that class.
        if memory_format is closed_types.preserve_format:
            raise RuntimeError("preserve memory format is unsupported by the contiguous operator")
        return self.clone(memory_format=closed_types.contiguous_format if memory_format is None else memory_format)

    def clone(self, *, memory_format: object = None) -> Tensor:
        """A copy with its own memory, in the order of its own or of a memory format; the gradient flows back."""
        copy = self._new(pointwise.copy(self._node), self._storage.device)
        return formatted(copy, self, memory_format)

    def flatten(self, start_dim: int = 0, end_dim: int = -1) -> Tensor:
        """Some axes as one; all of them if none are named."""
        start, end = shapes.axis(start_dim, self.ndim), shapes.axis(end_dim, self.ndim)
        if start > end:
            raise ShapeError("flatten() has invalid args: start_dim cannot come after end_dim")
        if self.ndim == 0:
            return self.reshape(1)
        if start == end:
            return self  # type: ignore[return-value]  # Tensors are of that class.
        return self.reshape(*self.shape[:start], prod(self.shape[start : end + 1]), *self.shape[end + 1 :])

    def ravel(self) -> Tensor:
        """All axes as one."""
        return self.contiguous().reshape(-1)

    @aliased
    def unflatten(self, dim: int, sizes: Sequence[int]) -> Tensor:
        """An axis as several."""
        if not hasattr(dim, "__index__"):
            raise TypeError(f"unflatten(): argument 'dim' (position 1) must be int, not {type(dim).__name__}")
        if not self.ndim:
            raise RangeError(f"Dimension specified as {dim} but tensor has no dimensions")
        if not len(sizes):
            raise ShapeError("unflatten: sizes must be non-empty")
        axis = shapes.axis(dim, self.ndim)
        try:
            parts = shapes.resolve(sizes, self.shape[axis])
        except ShapeError as error:
            if not str(error).startswith("shape '"):
                raise
            raise ShapeError(
                f"unflatten: Provided sizes {list(sizes)} don't multiply up to the size of dim {axis} "
                f"({self.shape[axis]}) in the input tensor"
            ) from None
        return self.reshape(*self.shape[:axis], *parts, *self.shape[axis + 1 :])

    @aliased
    def squeeze(self, dim: int | Sequence[int] | None = None) -> Tensor:
        """A view without axes of size 1."""
        if dim is None:
            drop = {a for a, n in enumerate(self.shape) if n == 1}
        else:
            dim = shapes.plain(dim)
            axes = (dim,) if isinstance(dim, int) else dim
            drop = {a for a in shapes.axes(axes, self.ndim) if self.shape[a] == 1} if len(axes) else set()
        squeezed = self._view(movement.reshape, shape=tuple(n for a, n in enumerate(self.shape) if a not in drop))
        return called(squeezed, "squeeze" if dim is None else "squeeze_dim")

    @aliased
    def unsqueeze(self, dim: int) -> Tensor:
        """A view with one more axis, of size 1."""
        axis = shapes.axis(dim, self.ndim + 1)
        return self._view(movement.reshape, shape=(*self.shape[:axis], 1, *self.shape[axis:]))

    # Permutations

    def permute(self, *dims: Any, **named: Any) -> Tensor:
        """The axes in another order."""
        order = tuple(shapes.axis(d, self.ndim) for d in as_tuple(dims, named))
        if len(order) != self.ndim:
            raise ShapeError(
                f"permute(sparse_coo): number of dimensions in the tensor input does not match the "
                f"length of the desired "
                f"ordering of dimensions i.e. input.dim() = {self.ndim} is not equal to len(dims) = {len(order)}"
            )
        if sorted(order) != list(range(self.ndim)):
            raise ShapeError("permute(): duplicate dims are not allowed.")
        return called(self._view(movement.permute, order=order), "permute")

    def transpose(self, dim0: int, dim1: int) -> Tensor:
        """Two axes exchanged."""
        a, b = shapes.axis(dim0, self.ndim), shapes.axis(dim1, self.ndim)
        if self.ndim == 0:
            return self._view(movement.reshape, shape=())
        order = list(range(self.ndim))
        order[a], order[b] = b, a
        return called(self._view(movement.permute, order=tuple(order)), "transpose")

    swapaxes = swapdims = transpose

    def t(self) -> Tensor:
        """The two axes of a matrix exchanged."""
        if self.ndim > 2:
            raise ShapeError(f"t() expects a tensor with <= 2 dimensions, but self is {self.ndim}D")
        transposed = self.transpose(0, 1) if self.ndim == 2 else self._view(movement.reshape, shape=tuple(self.shape))
        return called(transposed, "t")

    @property
    def T(self) -> Tensor:
        """All axes in the opposite order."""
        return called(self._view(movement.permute, order=tuple(reversed(range(self.ndim)))), "permute")

    @property
    def mT(self) -> Tensor:
        """Matrices of the last two axes, transposed."""
        if self.ndim == 1:
            raise ShapeError(
                f"tensor.mT is only supported on matrices or batches of matrices. Got {self.ndim}-D tensor."
            )
        return self.transpose(-2, -1) if self.ndim else self.transpose(0, 0)

    def movedim(self, source: int | Sequence[int], destination: int | Sequence[int]) -> Tensor:
        """Some axes moved to other positions."""
        source, destination = shapes.plain(source), shapes.plain(destination)
        come = [source] if isinstance(source, int) else list(source)
        go = [destination] if isinstance(destination, int) else list(destination)
        if len(come) != len(go):
            raise ShapeError("movedim: Invalid source or destination dims: they must have the same number of elements")
        for name, dims in (("source", come), ("destination", go)):
            if len({shapes.axis(d, self.ndim) for d in dims}) != len(dims):
                raise ShapeError(f"movedim: repeated dim in `{name}` ({dims})")
        moved = {shapes.axis(d, self.ndim): shapes.axis(s, self.ndim) for s, d in zip(come, go, strict=True)}
        rest = iter(a for a in range(self.ndim) if a not in moved.values())
        return self.permute(*[moved[a] if a in moved else next(rest) for a in range(self.ndim)])

    moveaxis = movedim

    # Growing

    def expand(self, *sizes: Any, **named: Any) -> Tensor:
        """Axes of size 1 grow, new axes come in front; -1 keeps an axis. No memory is copied."""
        new = list(as_tuple(sizes, named))
        missing = len(new) - self.ndim
        if missing < 0:
            raise ShapeError(
                f"expand({self.dtype}{list(self.shape)}, size={new}): the number of sizes provided "
                f"({len(new)}) must be "
                f"greater or equal to the number of dimensions in the tensor ({self.ndim})"
            )
        padded = (1,) * missing + tuple(self.shape)
        for a, (want, have) in enumerate(zip(new, padded, strict=True)):
            if want == -1 and a >= missing:
                new[a] = have
            elif want < 0 or (have not in (1, want)):
                raise ShapeError(
                    f"The expanded size of the tensor ({want}) must match the existing size ({have}) at non-singleton "
                    f"dimension {a}.  Target sizes: {new}.  Tensor sizes: {list(self.shape)}"
                )
        grown = self if not missing else self._view(movement.reshape, shape=padded)
        return called(grown._view(reduction.expand, shape=tuple(new)), "expand")

    @aliased
    def expand_as(self, other: TensorBase) -> Tensor:
        """A view grown to the shape of another."""
        require_tensor("expand_as", "other", 1, other)
        return self.expand(*other.shape)

    def broadcast_to(self, *size: Any, **named: Any) -> Tensor:
        """A view grown to a shape."""
        return self.expand(*as_tuple(size, named))

    def repeat(self, *sizes: Any, **named: Any) -> Tensor:
        """Copies of the tensor side by side along each axis."""
        times = as_tuple(sizes, named)
        if len(times) < self.ndim:
            raise ShapeError(
                "Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor"
            )
        own = (1,) * (len(times) - self.ndim) + tuple(self.shape)
        pairs = tuple(n for t, size in zip(times, own, strict=True) for n in (t, size))
        spread = self.reshape(tuple(n for size in own for n in (1, size))).expand(pairs)
        flat = movement.reshape(spread._node, shape=tuple(t * n for t, n in zip(times, own, strict=True)))
        return called(self._new(flat, self._storage.device), "repeat")

    def tile(self, *dims: Any, **named: Any) -> Tensor:
        """Copies of it side by side."""
        times = as_tuple(dims, named)
        return self.repeat((1,) * (self.ndim - len(times)) + times)

    # Parts

    def _sliced(self, dim: int, start: int, length: int, step: int = 1) -> Tensor:
        ones = [1] * self.ndim
        starts, sizes = [0] * self.ndim, list(self.shape)
        starts[dim], sizes[dim], ones[dim] = start, length, step
        return self._view(movement.slice_, starts=tuple(starts), sizes=tuple(sizes), steps=tuple(ones))

    @aliased
    def narrow(self, dim: int, start: int, length: int) -> Tensor:
        """A view of some elements along an axis."""
        if self.ndim == 0:
            raise ShapeError("narrow() cannot be applied to a 0-dim tensor.")
        if isinstance(start, TensorBase):
            start_tensor: Any = start
            if start_tensor.ndim or start_tensor.dtype.kind is not Kind.INT:
                raise ShapeError("start must be an 0-dim integral Tensor.")
            start = int(start_tensor.item())
        start, length = whole(start), whole(length)
        axis = shapes.axis(dim, self.ndim)
        n = self.shape[axis]
        if length < 0:
            raise ShapeError("narrow(): length must be non-negative.")
        if not -n <= start <= n:
            raise RangeError(f"start out of range (expected to be in range of [{-n}, {n}], but got {start})")
        start += n if start < 0 else 0
        if length < 0 or start + length > n:
            raise ShapeError(f"start ({start}) + length ({length}) exceeds dimension size ({n}).")
        return self._sliced(axis, start, length)

    @aliased
    def select(self, dim: int, index: int) -> Tensor:
        """The elements at a position of an axis, without it."""
        if self.ndim == 0:
            raise RangeError("select() cannot be applied to a 0-dim tensor.")
        axis, index = shapes.axis(dim, self.ndim), whole(index)
        n = self.shape[axis]
        if not -n <= index < n:
            raise RangeError(
                f"select(): index {index} out of range for tensor of size {list(self.shape)} at dimension {axis}"
            )
        return called(self._sliced(axis, index % n, 1).squeeze(axis), "select")

    def split(self, split_size: int | Sequence[int], dim: int = 0) -> tuple[Tensor, ...]:
        """Parts of one size, or of the sizes in a list, along an axis."""
        if not self.ndim:
            raise ShapeError("split expects at least a 1-dimensional tensor")
        axis = shapes.axis(dim, self.ndim)
        n, split_size = self.shape[axis], shapes.plain(split_size)
        if isinstance(split_size, int):
            if split_size < 0 or (split_size == 0 and n):
                raise ShapeError(f"split expects split_size be non-negative, but got split_size={split_size}")
            parts = [min(split_size, n - s) for s in range(0, n, max(split_size, 1))] or [0]
        else:
            parts = list(split_size)
            if sum(parts) != n:
                raise ShapeError(
                    f"split_with_sizes expects split_sizes to sum exactly to {n} (input tensor's size "
                    f"at dimension {axis}), "
                    f"but got split_sizes={parts}"
                )
        name = "split" if isinstance(split_size, int) else "aten::split_with_sizes"
        return _of_several([called(part, name) for part in self._parts(axis, parts)])

    def _parts(self, axis: int, sizes: Sequence[int]) -> tuple[Tensor, ...]:
        starts = [sum(sizes[:i]) for i in range(len(sizes))]
        return tuple(self._sliced(axis, start, size) for start, size in zip(starts, sizes, strict=True))

    @aliased
    def chunk(self, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
        """So many parts of about one size, along an axis."""
        if chunks < 1:
            raise ShapeError(f"chunk expects `chunks` to be greater than 0, got: {chunks}")
        n = self.shape[shapes.axis(dim, self.ndim)]
        return self.split(-(-n // chunks) if n else [0] * chunks, dim)

    @aliased
    def unbind(self, dim: int = 0) -> tuple[Tensor, ...]:
        """The slices along an axis, without it."""
        axis = shapes.axis(dim, self.ndim)
        return _of_several([called(self.select(axis, i), "unbind") for i in range(self.shape[axis])])

    @aten("unfold")
    def unfold(self, dimension: int, size: int, step: int) -> Tensor:
        """Windows of `size` elements, `step` apart, as a new last axis. A view."""
        size, step = whole(size), whole(step)
        axis = shapes.axis(dimension, self.ndim)
        if self.ndim == 0 and size in (0, 1) and step > 0:
            return self.reshape(1)[:size]
        if self.ndim == 0 or size > self.shape[axis]:
            raise ShapeError(
                f"maximum size for tensor at dimension {axis} is {self.shape[axis] if self.ndim else 1} "
                f"but size is {size}"
            )
        if size < 0:
            raise ShapeError(f"size is {size} but must be >= 0")
        if step <= 0:
            raise ShapeError(f"step is {step} but must be > 0")
        return self._view(movement.window, axis=axis, size=size, step=step, dilation=1)

    @aten("diagonal")
    def diagonal(self, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
        """The elements (i, i + offset) of two axes, as a last axis. A view."""
        a, b = shapes.axis(dim1, self.ndim), shapes.axis(dim2, self.ndim)
        if a == b:
            raise ShapeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
        offset = whole(offset)
        rest = [axis for axis in range(self.ndim) if axis not in (a, b)]
        rows, columns = self.shape[a], self.shape[b]
        count = max(0, min(rows, columns - offset) if offset >= 0 else min(rows + offset, columns))
        square = self.permute(*rest, a, b)
        flat = square._view(movement.reshape, shape=(*square.shape[:-2], rows * columns))
        start = offset if offset >= 0 else -offset * columns
        return flat._sliced(flat.ndim - 1, min(start, rows * columns), count, columns + 1)

    # Copies in another order

    @aten("flip")
    def flip(self, *dims: Any, **named: Any) -> Tensor:
        """The order along some axes reversed."""
        if not dims and not named:
            raise TypeError('flip() missing 1 required positional arguments: "dims"')
        axes = as_tuple(dims, named)
        flipped_axes = shapes.axes(axes, self.ndim) if axes else ()
        return formatted(
            self._new(pointwise.copy(movement.flip(self._node, axes=flipped_axes)), self._storage.device), self
        )

    def fliplr(self) -> Tensor:
        """The order of columns reversed."""
        if self.ndim < 2:
            raise ShapeError("Input must be >= 2-d.")
        return self.flip(1)

    def flipud(self) -> Tensor:
        """The order of rows reversed."""
        if self.ndim < 1:
            raise ShapeError("Input must be >= 1-d.")
        return self.flip(0)

    @aten("roll")
    def roll(self, shifts: int | Sequence[int], dims: int | Sequence[int] | None = None) -> Tensor:
        """Elements moved along axes; what leaves at an end comes in at the other."""
        if dims is None:
            return self.reshape(-1).roll(shifts, 0).reshape(self.shape)
        shifts, dims = shapes.plain(shifts), shapes.plain(dims)
        moves = [shifts] if isinstance(shifts, int) else list(shifts)
        axes = [dims] if isinstance(dims, int) else list(dims)
        if not moves:
            raise ShapeError("`shifts` required")
        if not axes and len(moves) == 1:
            return self.roll(moves[0])
        if len(moves) != len(axes):
            raise ShapeError(f"shifts and dimensions must align. shifts: {len(moves)}, dims:{len(axes)}")
        out: Tensor | None = None
        for move, dim in zip(moves, axes, strict=True):
            n = self.shape[shapes.axis(dim, self.ndim)]
            if n:
                source = self if out is None else out
                out = cat([source.narrow(dim, n - move % n, move % n), source.narrow(dim, 0, n - move % n)], dim)
        return self.clone() if out is None else out


def _of_several(views: Sequence[Tensor]) -> tuple[Tensor, ...]:
    for view in views:
        view._of_several = (
            view._storage.counted
        )  # No write to one is recorded: what the others show would need another history.
    return tuple(views)


def cat(tensors: Sequence[TensorBase], dim: int = 0) -> Tensor:
    """Joins tensors along an axis. Shapes: equal but for that axis. Raises RuntimeError where they are not."""
    return apply(joining.cat, list(tensors), dim)
