"""torch.sparse as far as graphs need it: coordinates and values (COO), products with dense matrices, gradients to both.

Whatever is not here sees the dense tensor, which is made when something first asks for it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from math import prod
from typing import TYPE_CHECKING, Any

from pywebgpu import devices, dtypes
from pywebgpu.errors import ShapeError
from pywebgpu.ops import pointwise
from pywebgpu.sparse import invariants
from pywebgpu.sparse.invariants import check_sparse_tensor_invariants as check_sparse_tensor_invariants
from pywebgpu.step_capture.capture import capture_state
from pywebgpu.support import closed_types, lazy
from pywebgpu.tensor import create, dispatch, functions, show
from pywebgpu.tensor.base import TensorBase
from pywebgpu.tensor.size import Size
from pywebgpu.tensor.tensor import Tensor

if TYPE_CHECKING:
    from pywebgpu.devices.base import Device
    from pywebgpu.dtypes import DType
    from pywebgpu.ir.graph import RowsNode
    from pywebgpu.runtime.storage import Storage
    from pywebgpu.tensor.factory_options import DeviceLike
    from pywebgpu.tensor.types import Operand

Axes = int | Sequence[int] | None
ZERO_STAYS = (
    "abs asin asinh atan atanh ceil erf erfinv expm1 floor frac log1p neg relu round sgn sign sin sinh sqrt square tan "
    "tanh trunc"
)


class SparseTensor(Tensor):
    """Values at coordinates, and zeros elsewhere. `indices` are (axes, count), `values` (count, *dense axes)."""

    __slots__ = ()
    __torch_function__ = staticmethod(dispatch.disabled)

    @property
    def _storage(self) -> Storage:  # type: ignore[override]
        return self.to_dense()._storage

    @property
    def shape(self) -> Size:
        return Size(self.__dict__["_size"])

    ndim = property(lambda self: len(self.shape))
    dtype = property(lambda self: self._values().dtype)
    device = property(lambda self: self._values().device)
    is_sparse = property(lambda self: True)
    layout = property(lambda self: closed_types.sparse_coo)
    is_leaf = property(lambda self: self._values().is_leaf)

    @property
    def requires_grad(self) -> bool:
        return self._values().requires_grad

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        self.requires_grad_(value)

    def requires_grad_(self, requires_grad: bool = True) -> SparseTensor:
        """Has a gradient flow to the values."""
        self._values().requires_grad_(requires_grad)
        return self

    @property
    def grad(self) -> Tensor | None:
        """The gradient of the values, at their coordinates."""
        found = self._values().grad
        return None if found is None else self._like(found)

    @grad.setter
    def grad(self, value: Tensor | None) -> None:
        self._values().grad = value._values() if isinstance(value, SparseTensor) else value

    def _indices(self) -> Tensor:
        return self.__dict__["_at"]  # type: ignore[no-any-return]

    def _values(self) -> Tensor:
        return self.__dict__["_held"]  # type: ignore[no-any-return]

    def _nnz(self) -> int:
        return int(self._values().shape[0])

    def is_coalesced(self) -> bool:
        return self.__dict__["_is_coalesced"]  # type: ignore[no-any-return]

    def sparse_dim(self) -> int:
        return int(self._indices().shape[0])

    def dense_dim(self) -> int:
        return self._values().ndim - 1

    def numel(self) -> int:
        return prod(self.shape)

    def dim(self) -> int:
        return len(self.shape)

    def indices(self) -> Tensor:
        """The coordinates. Raises RuntimeError where one may be there twice."""
        self._require_coalesced("indices")
        return self._indices()

    def values(self) -> Tensor:
        """The values. Raises RuntimeError where a coordinate may be there twice."""
        self._require_coalesced("values")
        return self._values()

    def _require_coalesced(self, name: str) -> None:
        if not self.is_coalesced():
            raise RuntimeError(f"Cannot get {name} on an uncoalesced tensor, please call .coalesce() first")

    def _flat(self) -> Tensor:
        """The coordinates as positions in the flattened sparse axes."""
        at = self._indices()
        found = create.zeros(at.shape[1], dtype=at.dtype, device=at.device)
        for axis, size in enumerate(self.shape[: self.sparse_dim()]):
            found = found * size + at[axis]
        return found

    def to_dense(self, dtype: DType | None = None, *, masked_grad: bool | None = None) -> Tensor:
        """The whole tensor."""
        dense = self.__dict__.get("_dense")
        if dense is None:
            values, count = self._values(), self.sparse_dim()
            zeros = values.new_zeros((prod(self.shape[:count]), *self.shape[count:]))
            dense = self.__dict__["_dense"] = zeros.index_add(0, self._flat(), values).reshape(self.shape).clone()
        return dense if dtype is None else dense.to(dtype)

    def coalesce(self) -> SparseTensor:
        """Each coordinate once, in order; reads which there are."""
        if self.is_coalesced():
            return self
        flat, inverse = self._flat().unique(return_inverse=True)
        values = self._values()
        summed = values.new_zeros((flat.shape[0], *values.shape[1:])).index_add(0, inverse, values)
        rows = []
        for size in reversed(self.shape[: self.sparse_dim()]):
            rows.append(flat % size)
            flat = flat.div(size, rounding_mode="floor")
        return _made(functions.stack(rows[::-1]), summed, self.shape, is_coalesced=True)

    def _like(self, values: Tensor) -> SparseTensor:
        return _made(self._indices(), values, self.shape, is_coalesced=self.is_coalesced())

    def to(self, *args: Any, **options: Any) -> SparseTensor:
        """The same on another device, or in another dtype."""
        values = self._values().to(*args, **options)
        at = self._indices().to(values.device)
        return _made(at, values, self.shape, is_coalesced=self.is_coalesced())

    def type_as(self, other: TensorBase) -> SparseTensor:
        return self.to(device=other.device, dtype=other.dtype)

    def cpu(self) -> SparseTensor:
        return self.to("cpu")

    def cuda(self, device: DeviceLike = None, non_blocking: bool = False) -> SparseTensor:
        return self.to(self._values().cuda(device).device)

    def float(self) -> SparseTensor:
        return self.to(dtypes.float32)

    def double(self) -> SparseTensor:
        return self.to(dtypes.float64)

    def detach(self) -> SparseTensor:
        return self._like(self._values().detach())

    def clone(self, *, memory_format: object = None) -> SparseTensor:
        return self._like(self._values().clone())

    def t(self) -> SparseTensor:
        """The matrix with its axes exchanged."""
        return self.transpose(0, 1)

    def transpose(self, dim0: int, dim1: int) -> SparseTensor:
        """Two sparse axes exchanged."""
        order = list(range(self.sparse_dim()))
        order[dim0], order[dim1] = order[dim1], order[dim0]
        shape = [self.shape[axis] for axis in order] + list(self.shape[len(order) :])
        return _made(functions.stack([self._indices()[axis] for axis in order]), self._values(), shape)

    T = property(lambda self: self.t())

    def to_sparse(self, *args: object, **options: object) -> SparseTensor:
        return self

    def matmul(self, other: Tensor) -> Tensor:
        return mm(self, other)

    mm = mv = matmul  # type: ignore[assignment]

    def __matmul__(self, other: object) -> Tensor:
        return mm(self, other) if isinstance(other, Tensor) else NotImplemented

    def __mul__(self, other: object) -> SparseTensor:
        """Each value times a number, or times what a dense tensor has at its coordinates."""
        return self._each("mul", other)

    __rmul__ = mul = __mul__  # type: ignore[assignment]

    def __truediv__(self, other: object) -> SparseTensor:
        return self._each("div", other)

    div = __truediv__  # type: ignore[assignment]

    def _each(self, name: str, other: object) -> SparseTensor:
        if isinstance(other, Tensor) and other.ndim:
            if isinstance(other, SparseTensor):
                other = other.to_dense()
            own = self.coalesce()
            other = other.expand(own.shape)[tuple(own._indices())]
            return own._like(getattr(own._values(), name)(other))
        return self._like(getattr(self._values(), name)(other))

    def __neg__(self) -> SparseTensor:
        return self._like(-self._values())

    def __add__(self, other: Operand) -> Tensor:
        """Sparse where both are."""
        if not isinstance(other, SparseTensor):
            return self.to_dense() + other
        at = functions.cat([self._indices(), other._indices()], 1)
        return _made(at, functions.cat([self._values(), other._values()]), self.shape)

    add = __add__  # type: ignore[assignment]

    def __radd__(self, other: Operand) -> Tensor:
        return self.to_dense() + other

    def __sub__(self, other: Operand) -> Tensor:
        given: Any = other
        result: Tensor = self + -given
        return result

    sub = __sub__  # type: ignore[assignment]

    def sum(self, dim: Axes = None, keepdim: bool = False, *, dtype: DType | None = None) -> Tensor:
        return sum(self, dim, dtype)

    def _assign(self, node: object) -> SparseTensor:
        raise NotImplementedError(
            "a sparse tensor is not written in place here: make a new one of its indices and values"
        )

    def _become(self, made: Tensor) -> SparseTensor:
        """Is what another is, in place."""
        if not isinstance(made, SparseTensor):
            raise NotImplementedError("a sparse tensor cannot become this in place: the result is dense")
        self.__dict__.pop("_dense", None)
        self.__dict__.update({name: value for name, value in made.__dict__.items() if name != "_dense"})
        return self

    def zero_(self) -> SparseTensor:
        """Has no values any more."""
        return self._become(_made(self._indices()[:, :0], self._values()[:0], self.shape, is_coalesced=True))

    def copy_(self, src: Operand, non_blocking: bool = False) -> SparseTensor:
        """The coordinates and values of another sparse tensor."""
        given: Any = src
        return self._become(given.to(self.dtype) if isinstance(given, SparseTensor) else given)

    def resize_as_(self, other: TensorBase) -> SparseTensor:
        """Has the shape of another; its coordinates stay."""
        return self._become(_made(self._indices(), self._values(), other.shape))

    def __repr__(self) -> str:
        values = self._values()
        parts = show.part(self._indices(), "indices=tensor(", 7), show.part(values, "values=tensor(", 7)
        told = {"device": self.device.type != "cpu" and repr(str(self.device)), "size": tuple(self.shape)}
        told |= {"nnz": self._nnz(), "dtype": not show.is_usual(self.dtype) and self.dtype}
        told |= {"layout": self.layout, "requires_grad": values.requires_grad}
        suffixes = [f"{name}={value}" for name, value in told.items() if value is not False]
        return show.with_suffixes("tensor(" + ",\n       ".join(parts), suffixes, newline=True)

    def __deepcopy__(self, memo: dict[int, Any]) -> SparseTensor:
        return self.clone()


def _on_values(name: str) -> Callable[[SparseTensor], SparseTensor]:
    def method(self: SparseTensor) -> SparseTensor:
        own = self.coalesce()
        return own._like(getattr(own._values(), name)())

    method.__name__, method.__doc__ = name, f"{name} of the values: what is 0 stays 0."
    return method


def _in_place(name: str) -> Callable[..., SparseTensor]:
    def method(self: SparseTensor, *args: Any, **options: Any) -> SparseTensor:
        return self._become(getattr(self, name)(*args, **options))

    method.__name__, method.__doc__ = f"{name}_", f"{name}, of this tensor itself."
    return method


for _name in ZERO_STAYS.split():
    setattr(SparseTensor, _name, _on_values(_name))
for _name in (*ZERO_STAYS.split(), "add", "sub", "mul", "div"):
    setattr(SparseTensor, f"{_name}_", _in_place(_name))


def _made(indices: Tensor, values: Tensor, shape: Sequence[int], *, is_coalesced: bool = False) -> SparseTensor:
    made = SparseTensor.__new__(SparseTensor)
    made._path, made._base, made._accumulator, made._cached = (), None, None, None
    made._flag, made._history, made._grad = False, None, None
    made.__dict__.update(_at=indices, _held=values, _size=tuple(shape), _is_coalesced=is_coalesced)
    return made


def of_rows(grad: RowsNode, device: Device) -> SparseTensor:
    """A gradient that is known by its rows."""
    indices, values = [], []
    for rows, held, padding in grad.parts:
        at, value = Tensor._new(pointwise.copy(rows), device).long(), Tensor._new(held, device)
        if padding is not None and capture_state.capture is None:  # Else they are there, as zeros.
            kept = at.ne(padding)
            at, value = at[kept], value[kept]
        indices.append(at)
        values.append(value)
    at, value = (parts[0] if len(parts) == 1 else functions.cat(parts) for parts in (indices, values))
    return _made(at.unsqueeze(0), value, grad.spec.shape)


def sparse_coo_tensor(
    indices: object = None,
    values: object = None,
    size: Sequence[int] | None = None,
    *,
    dtype: DType | None = None,
    device: str | devices.device | None = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
    is_coalesced: bool | None = None,
) -> SparseTensor:
    """A tensor of coordinates, one a column, and their values."""
    if values is None:  # An empty one, of a size.
        size = Size(indices if size is None else size)  # type: ignore[arg-type]
        count = len(size)
        indices, values = create.zeros(count, 0, dtype=dtypes.int64, device=device), create.zeros(0, device=device)
    held = values if isinstance(values, Tensor) else create.tensor(values, device=device)
    held = held.to(device=device or held.device, dtype=dtype or held.dtype)
    at = (indices if isinstance(indices, Tensor) else create.tensor(indices, dtype=dtypes.int64)).to(held.device)
    if at.ndim == 1:
        at = at.unsqueeze(0)
    if at.ndim != 2 or at.shape[1] != held.shape[0]:
        raise ShapeError(
            f"number of dimensions must be sparse_dim ({at.shape[0]}) + dense_dim, and indices and values must have "
            f"same nnz, but got nnz from indices: {at.shape[-1]}, nnz from values: {held.shape[0]}"
        )
    if size is None:
        size = (*(int(n) + 1 for n in at.amax(1).tolist()), *held.shape[1:])
    if len(size) != at.shape[0] + held.ndim - 1:
        raise ShapeError(
            f"'len(size) == sparse_dim + dense_dim' is not satisfied: len(size) = {len(size)}, sparse_dim = "
            f"{at.shape[0]}, dense_dim = {held.ndim - 1}"
        )
    invariants.check_coordinates(at, size, check_invariants)
    made = _made(at.to(dtypes.int64), held, tuple(size), is_coalesced=bool(is_coalesced))
    return made.requires_grad_() if requires_grad else made


def FloatTensor(indices: object, values: object, size: Sequence[int] | None = None) -> SparseTensor:
    """The older name of sparse_coo_tensor."""
    return sparse_coo_tensor(indices, values, size)


def to_sparse(
    tensor: Tensor, sparse_dim: int | None = None, *, layout: object = None, **options: object
) -> SparseTensor:
    """The elements that are not 0, whose coordinates are read."""
    if layout is closed_types.sparse_csr:
        return import_module("pywebgpu.sparse.csr").to_sparse_csr(tensor)  # type: ignore[no-any-return]
    if layout not in (None, closed_types.sparse_coo):
        raise NotImplementedError(
            f"layout {layout} is not here: coordinates and values are (torch.sparse_coo), or rows (torch.sparse_csr)"
        )
    count = tensor.ndim if sparse_dim is None else int(sparse_dim)
    mask = tensor != 0
    if count < tensor.ndim:
        mask = mask.flatten(count).any(-1)
    at = mask.nonzero().t()
    return _made(at, tensor[tuple(at)], tensor.shape, is_coalesced=True)


def mm(mat1: Tensor, mat2: Tensor, reduce: str | None = None) -> Tensor:
    """A product, one of whose factors is sparse: rows of the other, by values, added at their coordinates."""
    if not isinstance(mat1, SparseTensor):
        return mm(mat2.t(), mat1.t()).t() if isinstance(mat2, SparseTensor) else mat1.matmul(mat2)
    if isinstance(mat2, SparseTensor):
        return to_sparse(mm(mat1, mat2.to_dense()))
    if mat1.ndim != 2 or mat1.dense_dim() or mat1.shape[1] != mat2.shape[0]:
        raise ShapeError(f"mat1 and mat2 shapes cannot be multiplied ({tuple(mat1.shape)} and {tuple(mat2.shape)})")
    if reduce is not None:
        return import_module("pywebgpu.sparse.csr").reduced(mat1, mat2, reduce)  # type: ignore[no-any-return]
    rows, columns = mat1._indices()
    if mat2.ndim == 1:
        return mat2.new_zeros(mat1.shape[0]).index_add(0, rows, mat1._values() * mat2[columns])
    parts = mat1._values().unsqueeze(1) * mat2.index_select(0, columns)
    return parts.new_zeros(mat1.shape[0], mat2.shape[1]).index_add(0, rows, parts)


spmm = mm


def addmm(mat: Tensor, mat1: Tensor, mat2: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """beta mat + alpha mat1 @ mat2"""
    return beta * mat + alpha * mm(mat1, mat2)


def sum(input: SparseTensor, dim: Axes = None, dtype: DType | None = None) -> Tensor:
    """The sum, a number; or sparse along the axes that are left."""
    held = input._values() if dtype is None else input._values().to(dtype)
    if dim is None:
        return held.sum()
    gone = {int(axis) % input.ndim for axis in (dim if isinstance(dim, tuple | list) else (dim,))}
    count = input.sparse_dim()
    dense = [axis - count + 1 for axis in gone if axis >= count]
    kept = [axis for axis in range(count) if axis not in gone]
    held = held.sum(dense) if dense else held
    shape = [n for axis, n in enumerate(input.shape) if axis not in gone]
    if not kept:
        return held.sum(0)
    return _made(functions.stack([input._indices()[axis] for axis in kept]), held, shape).coalesce()


def softmax(input: SparseTensor, dim: int, *, dtype: DType | None = None) -> SparseTensor:
    """Softmax along an axis of a matrix; what is not there takes no part."""
    return _normalised(input, dim, dtype, is_log=False)


def log_softmax(input: SparseTensor, dim: int, *, dtype: DType | None = None) -> SparseTensor:
    """Its logarithm."""
    return _normalised(input, dim, dtype, is_log=True)


def _normalised(input: SparseTensor, dim: int, dtype: DType | None, *, is_log: bool) -> SparseTensor:
    if input.ndim != 2 or input.dense_dim():
        raise NotImplementedError("sparse softmax is of matrices here: use to_dense()")
    own = input.coalesce() if dtype is None else input.coalesce().to(dtype)
    row, held = own._indices()[1 - dim % 2], own._values()
    empty = held.new_zeros(own.shape[1 - dim % 2])
    most = empty.index_reduce(0, row, held.detach(), "amax", include_self=False)
    moved = held - most[row]
    total = empty.index_add(0, row, moved.exp())[row]
    return own._like(moved - total.log() if is_log else moved.exp() / total)


def coalesce(tensor: Tensor) -> SparseTensor:
    raise RuntimeError("coalesce expected sparse coordinate tensor layout but got Strided")


def indices(tensor: Tensor) -> Tensor:
    raise RuntimeError("indices expected sparse coordinate tensor layout but got Strided")


def values(tensor: Tensor) -> Tensor:
    raise RuntimeError("values expected sparse tensor layout but got Strided")


def is_coalesced(tensor: Tensor) -> bool:
    raise RuntimeError("is_coalesced expected sparse coordinate tensor layout but got Strided")


def sparse_dim(tensor: Tensor) -> int:
    return 0


def dense_dim(tensor: Tensor) -> int:
    return tensor.ndim


def to_dense(tensor: Tensor, dtype: DType | None = None, *, masked_grad: bool | None = None) -> Tensor:
    """The tensor itself: it is dense."""
    return tensor if dtype is None else tensor.to(dtype)


def sampled_addmm(*args: Any, **options: Any) -> SparseTensor:
    """A product at the places of a sparse matrix alone: see csr.py."""
    return import_module("pywebgpu.sparse.csr").sampled_addmm(*args, **options)  # type: ignore[no-any-return]


__getattr__ = lazy.absent(__name__)
