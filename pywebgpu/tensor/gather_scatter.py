"""Methods that read and write at computed positions: gather, scatter, index_, masked_, triangles, diagonals."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from importlib import import_module
from math import prod
from typing import TYPE_CHECKING, Any, Concatenate, Literal, ParamSpec, Self, TypeVar, overload

from pywebgpu import dtypes
from pywebgpu.composites import gathering, index_writes, indexing, masks, matrix, scattering
from pywebgpu.errors import DTypeError, ShapeError
from pywebgpu.ir.graph import Spec, thread_state
from pywebgpu.ops import indexing as ops
from pywebgpu.ops import pointwise
from pywebgpu.support.shapes import broadcast
from pywebgpu.tensor import index, overlap, subscripts
from pywebgpu.tensor.apply import apply, aten, called
from pywebgpu.tensor.base import TensorBase
from pywebgpu.tensor.memory_format import laid_out, same
from pywebgpu.tensor.methods import aliased, later, operand, require_tensor
from pywebgpu.tensor.reshaping import ReshapingMethods

if TYPE_CHECKING:
    from pywebgpu.step_capture.free_number import Number
    from pywebgpu.tensor.tensor import Tensor
    from pywebgpu.tensor.types import Operand

P = ParamSpec("P")
S = TypeVar("S", bound=TensorBase)


def _form(
    method: Callable[Concatenate[S, P], Tensor],
    *,
    reads_itself: bool = False,
    check: Callable[[TensorBase, object], None] = overlap.check_apart,
) -> Callable[Concatenate[S, P], Tensor]:
    """The form in place of a method.

    reads_itself: its gradient needs the value before the write, so that is copied. check: of each argument.
    """

    @functools.wraps(method)
    def written(self: S, /, *args: P.args, **options: P.kwargs) -> Tensor:
        for arg in (*args, *options.values()):
            check(self, arg)
        before: Any = self
        if reads_itself and thread_state.grad:
            before = self._new(pointwise.copy(self._node), self._storage.device)
        return self._written(method(before, *args, **options))  # type: ignore[return-value]

    written.__name__ = written.__qualname__ = f"{method.__name__}_"
    written.__doc__ = f"{method.__name__}, written into this tensor."
    return written


class GatherScatterMethods(index.Subscripts, ReshapingMethods):
    """Reading and writing by number and by mask."""

    __slots__ = ()

    # By number along an axis

    @aliased
    def gather(self, dim: int, index: Tensor, *, sparse_grad: bool = False) -> Tensor:
        """out[i][j] = self[index[i][j]][j] for dim 0."""
        return apply(gathering.gather, self, dim, index)

    @aliased
    def take_along_dim(self, indices: Tensor, dim: int | None = None) -> Tensor:
        """As gather, after broadcasting; None flattens both."""
        return apply(gathering.take_along_dim, self, indices, dim)

    @aliased
    def scatter(
        self,
        dim: int,
        index: Tensor,
        src: Operand | None = None,
        *,
        value: Number | None = None,
        reduce: str | None = None,
    ) -> Tensor:
        """A copy in which out[index[i][j]][j] = src[i][j] for dim 0; src may be a number."""
        source = value if src is None else src
        if source is None:
            raise TypeError("scatter() missing 1 required argument: 'src' or 'value'")
        scattered = apply(scattering.scatter, self, dim, index, operand(self, source), reduce=reduce)
        return scattered if isinstance(source, TensorBase) else called(scattered, "aten::scatter.1")

    @aliased
    def scatter_add(self, dim: int, index: Tensor, src: Tensor) -> Tensor:
        """A copy in which out[index[i][j]][j] += src[i][j] for dim 0."""
        return apply(scattering.scatter_add, self, dim, index, src)

    @aliased
    def scatter_reduce(self, dim: int, index: Tensor, src: Tensor, reduce: str, *, include_self: bool = True) -> Tensor:
        """A copy in which src is combined at the positions by sum, prod, mean, amax or amin."""
        return apply(scattering.scatter_reduce, self, dim, index, src, reduce, include_self=include_self)

    scatter_, scatter_add_ = _form(scatter, reads_itself=True), _form(scatter_add)
    scatter_reduce_ = _form(scatter_reduce, reads_itself=True)

    # Whole rows

    @aliased
    def index_select(self, dim: int, index: Tensor) -> Tensor:
        """Rows of an axis by number."""
        return apply(indexing.index_select, self, dim, index)

    @aliased
    def index_add(self, dim: int, index: Tensor, source: Tensor, *, alpha: float = 1) -> Tensor:
        """A copy in which out[index[i]] += alpha * source[i] along an axis."""
        return apply(index_writes.index_add, self, dim, index, source, alpha=alpha)

    @aliased
    def index_copy(self, dim: int, index: Tensor, source: Tensor) -> Tensor:
        """A copy in which out[index[i]] = source[i] along an axis."""
        return apply(index_writes.index_copy, self, dim, index, source)

    @aliased
    def index_reduce(
        self, dim: int, index: Tensor, source: Tensor, reduce: str, *, include_self: bool = True
    ) -> Tensor:
        """A copy in which rows of source are combined into theirs by prod, mean, amax or amin."""
        return apply(index_writes.index_reduce, self, dim, index, source, reduce, include_self=include_self)

    @aliased
    def index_fill(self, dim: int, index: Tensor, value: Operand) -> Tensor:
        """A copy in which out[index[i]] = value along an axis. Raises RuntimeError for a complex value."""
        number: object = value
        if isinstance(number, complex) and not self.is_complex():
            raise RuntimeError("index_fill_(): Converting complex Scalar to non-complex type is not supported")
        return apply(index_writes.index_fill, self, dim, index, value)

    index_add_, index_copy_ = _form(index_add), _form(index_copy)
    index_fill_ = _form(index_fill, check=overlap.check_rows)
    index_reduce_ = _form(index_reduce, reads_itself=True)

    # Flat positions

    @aliased
    def take(self, index: Tensor) -> Tensor:
        """Elements of the flattened tensor by number, in the shape of index."""
        return apply(gathering.take, self, index)

    def put(self, index: Tensor, source: Tensor, accumulate: bool = False) -> Tensor:
        """A copy in which flattened out[index[i]] = source[i], or += with accumulate."""
        written = apply(scattering.put_flat, self, index, source, accumulate=accumulate)
        return same(written, self) if self._path else written

    put_ = _form(put)

    # By mask

    @aliased
    def masked_fill(self, mask: Tensor, value: Operand) -> Tensor:
        """value where the mask holds, else this; both broadcast. Raises: DTypeError unless the mask is bool."""
        return apply(masks.masked_fill, self, mask, value)

    @aliased
    def masked_scatter(self, mask: Tensor, source: Tensor) -> Tensor:
        """Elements of source, in order, where the mask holds, else this. Raises: RangeError when source has too few."""
        return apply(masks.masked_scatter, self, mask, source)

    masked_fill_ = _form(masked_fill, check=overlap.check_rows)

    @aliased
    def masked_scatter_(self, mask: Tensor, source: Tensor) -> Tensor:
        """masked_scatter, written into this tensor. A source in the same memory is read while that is written."""
        if source._storage is self._storage and self.numel() and source.is_contiguous():
            source = overlap.read_while_written(self, mask, source)  # type: ignore[arg-type]
        return self._written(self.masked_scatter(mask, source))  # type: ignore[return-value]

    @aten("masked_select")
    def masked_select(self, mask: Tensor) -> Tensor:
        """The elements where the mask holds, as a vector. Reads their number from the device."""
        require_tensor("masked_select", "mask", 1, mask)
        if mask.dtype is not dtypes.bool_:
            raise DTypeError("masked_select: expected BoolTensor for mask")
        shape = broadcast(tuple(self.shape), tuple(mask.shape))
        grown, chosen = self.expand(shape), mask.expand(shape)
        return grown[chosen] if shape else grown.reshape(1)[chosen.reshape(1)]

    @overload
    def nonzero(self, *, as_tuple: Literal[False] = False) -> Tensor: ...
    @overload
    def nonzero(self, *, as_tuple: Literal[True]) -> tuple[Tensor, ...]: ...
    def nonzero(self, *, as_tuple: bool = False) -> Tensor | tuple[Tensor, ...]:
        """The coordinates of the elements that are not 0: (count, rank), or a vector an axis.

        Reads their number from the device.
        """
        node, device, shape = self._node, self._storage.device, tuple(self.shape)
        mask = node if node.spec.dtype is dtypes.bool_ else pointwise.cast(node, dtype=dtypes.bool_)
        positions = subscripts.nonzero_positions(indexing.shaped(mask, (prod(shape),)), device)
        if as_tuple:
            return tuple(self._new(part, device) for part in masks.coordinates(positions, shape) or [positions])
        count = positions.spec.shape[0]
        lines = [indexing.shaped(part, (count, 1)) for part in masks.coordinates(positions, shape)]
        if not lines:
            return self._new(pointwise.full(0, Spec((count, 0), dtypes.int64)), device)
        return laid_out(self._new(ops.cat(*lines, axis=1), device), (1, max(count, 1)))

    def argwhere(self) -> Tensor:
        """As nonzero."""
        return self.nonzero()

    # Triangles and diagonals

    @aliased
    def tril(self, diagonal: int = 0) -> Tensor:
        """This on and below a diagonal of its last two axes, 0 above. diagonal: how far above the main one."""
        return apply(matrix.tril, self, diagonal)

    @aliased
    def triu(self, diagonal: int = 0) -> Tensor:
        """This on and above a diagonal of its last two axes, 0 below. diagonal: how far above the main one."""
        return apply(matrix.triu, self, diagonal)

    tril_, triu_ = _form(tril), _form(triu)

    def trace(self) -> Tensor:
        """The sum of a matrix's diagonal."""
        return apply(matrix.trace, self)

    @aliased
    def diagflat(self, offset: int = 0) -> Tensor:
        """A matrix with all elements on its diagonal."""
        return apply(matrix.diagflat, self, offset)

    kron = later("pywebgpu.tensor.arrangement", "kron")

    def diag(self, diagonal: int = 0) -> Tensor:
        """(n,) -> a matrix with it on its diagonal; (n, m) -> its diagonal."""
        return apply(matrix.diag, self, diagonal)

    def diag_embed(self, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
        """The last axis on a diagonal of two new axes, 0 elsewhere."""
        return apply(matrix.diag_embed, self, offset, dim1, dim2)

    def fill_diagonal_(self, fill_value: float, wrap: bool = False) -> Self:
        """Writes a number onto the diagonal of a matrix, or of a tensor whose axes are all equal."""
        if self.ndim < 2:
            raise ShapeError("dimensions must larger than 1")
        if self.ndim > 2 and len(set(self.shape)) > 1:
            raise ShapeError("all dimensions of input must be of equal length")
        step, size = sum(_steps(tuple(self.shape))), prod(self.shape)
        last = size if wrap and self.ndim == 2 else min(size, min(self.shape) * step)
        flat = pointwise.iota(spec=Spec((size,), dtypes.int32), axis=0)
        on = pointwise.eq(pointwise.remainder(flat, pointwise.full(step, flat.spec)), pointwise.full(0, flat.spec))
        on = pointwise.bitwise_and(on, pointwise.lt(flat, pointwise.full(last, flat.spec)))
        return self._assign(masks.masked_fill(self._node, indexing.shaped(on, tuple(self.shape)), fill_value))

    # Parts replaced

    def diagonal_scatter(self, src: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
        """A copy whose diagonal is `src`."""
        return _part("diagonal", self, src, offset, dim1, dim2)

    @aliased
    def select_scatter(self, src: Tensor, dim: int, index: int) -> Tensor:
        """A copy whose row `index` is `src`."""
        return _part("select", self, src, dim, index)

    @aliased
    def slice_scatter(
        self, src: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
    ) -> Tensor:
        """A copy whose slice along an axis is `src`."""
        return _part("slice", self, src, dim, start, end, step)

    @aliased
    def repeat_interleave(
        self, repeats: Tensor | int, dim: int | None = None, *, output_size: int | None = None
    ) -> Tensor:
        """Each row `repeats` times in a row; a tensor of repeats without output_size has their sum read."""
        if not isinstance(repeats, TensorBase):
            return apply(matrix.repeat_interleave, self, repeats, dim)
        require_repeats(repeats)
        size = prod(self.shape) if dim is None else self.shape[dim] if self.ndim else 1
        total = None if output_size is None else operator.index(output_size)
        if total is None:
            every = 1 if repeats._node.spec.shape == (size,) else size
            total = int(repeats.sum().item()) * every
        return apply(matrix.repeat_interleave, self, repeats, dim, total)


def _part(name: str, *args: object) -> Tensor:
    return import_module("pywebgpu.tensor.copies").with_part(name, *args)  # type: ignore[no-any-return]


def _steps(shape: tuple[int, ...]) -> list[int]:
    return [prod(shape[axis + 1 :]) for axis in range(len(shape))]


def require_repeats(repeats: Tensor) -> None:
    if repeats.dtype not in (dtypes.int32, dtypes.int64):
        raise DTypeError(f"repeats has to be Long or Int tensor, got {repeats.dtype}")
    if repeats.numel() and repeats.min().item() < 0:
        raise ShapeError("repeats can not be negative")
