"""torch.sparse as far as graphs need it: coordinates and values (COO), products with dense matrices, gradients to both.

Whatever is not here sees the dense tensor, which is made when something first asks for it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from math import prod
from typing import TYPE_CHECKING, Any, Self

from pywebgpu import devices, dtypes
from pywebgpu.dtypes import Kind
from pywebgpu.errors import ShapeError
from pywebgpu.ir.graph import thread_state, used
from pywebgpu.ops import pointwise
from pywebgpu.sparse import invariants
from pywebgpu.sparse.invariants import check_sparse_tensor_invariants as check_sparse_tensor_invariants
from pywebgpu.support import closed_types, lazy
from pywebgpu.tensor import create, dispatch, functions, show
from pywebgpu.tensor.base import TensorBase
from pywebgpu.tensor.size import Size, as_tuple
from pywebgpu.tensor.tensor import Tensor

if TYPE_CHECKING:
    from pywebgpu.devices.base import Device
    from pywebgpu.dtypes import DType
    from pywebgpu.ir.graph import Node, RowsNode
    from pywebgpu.runtime.storage import Storage
    from pywebgpu.tensor.factory_options import DeviceLike
    from pywebgpu.tensor.types import Operand

Axes = int | Sequence[int] | None
ZERO_STAYS = (
    "abs absolute angle arcsin arcsinh arctan arctanh asin asinh atan atanh ceil conj conj_physical deg2rad erf erfinv "
    "expm1 fix floor frac isinf isnan isneginf isposinf log1p nan_to_num neg negative positive rad2deg relu round sgn "
    "sign signbit sin sinh sqrt square tan tanh trunc"
)

UNORDERED = ("neg", "negative", "positive", "conj_physical")  # In place they take coordinates in any order.
ALIASES = {"absolute": "abs", "fix": "trunc"} | {f"arc{name}": f"a{name}" for name in ("sin", "sinh", "tan", "tanh")}


class SparseTensor(Tensor):
    """Values at coordinates, and zeros elsewhere. `indices` are (axes, count), `values` (count, *dense axes)."""

    __slots__ = ()

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """A function of sparse tensors: the method of its name, a rule, or that of the dense tensor."""
        return import_module("pywebgpu.sparse.rules").call(func, types, args, kwargs or {})

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

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Has a gradient flow to the values."""
        self._values().requires_grad_(requires_grad)
        return self

    @property
    def grad(self) -> Tensor | None:
        """The gradient of the values, at their coordinates: once where a coordinate is there twice."""
        grad = self._values().grad
        if grad is None or self.layout is not closed_types.sparse_coo or self.is_coalesced():
            return None if grad is None else self._like(grad)
        flat, inverse = self._flat().unique(return_inverse=True)
        picked = grad.new_zeros((flat.shape[0], *grad.shape[1:])).index_copy(0, inverse, grad)
        return made(self._unflattened(flat), picked, self.shape, is_coalesced=True)

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
        coords = self._indices()
        positions = create.zeros(coords.shape[1], dtype=coords.dtype, device=coords.device)
        for axis, size in enumerate(self.shape[: self.sparse_dim()]):
            positions = positions * size + coords[axis]
        return positions

    def to_dense(self, dtype: DType | None = None, *, masked_grad: bool | None = None) -> Tensor:
        """The whole tensor."""
        dense = self.__dict__.get("_dense")
        if dense is None:
            values, count = self._values(), self.sparse_dim()
            total = _added(values, self._flat(), prod(self.shape[:count]))
            dense = self.__dict__["_dense"] = total.reshape(self.shape).clone()
        return dense if dtype is None else dense.to(dtype)

    def coalesce(self) -> SparseTensor:
        """Each coordinate once, in order; reads which there are."""
        if self.is_coalesced():
            return self
        flat, inverse = self._flat().unique(return_inverse=True)
        values = self._values()
        summed = _added(values, inverse, flat.shape[0])
        return made(self._unflattened(flat), summed, self.shape, is_coalesced=True)

    def _unflattened(self, flat: Tensor) -> Tensor:
        """Positions in the flattened sparse axes as coordinates."""
        count, rows = flat.shape[0], []
        for size in reversed(self.shape[: self.sparse_dim()]):
            rows.append(flat % max(size, 1))
            flat = flat.div(max(size, 1), rounding_mode="floor")
        return functions.stack(rows[::-1]) if rows else self._indices()[:, :count]

    def _coalesced_(self, coalesced: bool) -> SparseTensor:
        """Says whether each coordinate is there once, in order."""
        self.__dict__["_is_coalesced"] = coalesced
        return self

    def _as_coo(self) -> SparseTensor:
        return self

    def _like(self, values: Tensor) -> SparseTensor:
        return made(self._indices(), values, self.shape, is_coalesced=self.is_coalesced())

    def to(self, *args: Any, **options: Any) -> SparseTensor:
        """The same on another device, or in another dtype."""
        values = self._values().to(*args, **options)
        positions = self._indices().to(values.device)
        if values.is_meta and not self._values().is_meta:  # It has no coordinates there, as it has no values.
            values, positions = values[:0], positions[:, :0]
        return made(positions, values, self.shape, is_coalesced=self.is_coalesced())

    def new(self, *args: Any, device: DeviceLike = None) -> SparseTensor:
        """new(), new(sizes), new(indices, values[, sizes]): another one, of this dtype, on this device."""
        own = self.device
        if device is not None and devices.device(device) != own:
            raise RuntimeError(
                f"legacy constructor expects device type: {own.type} but device type: {device} was passed"
            )
        if args and isinstance(args[0], Tensor) and len(args) in (2, 3):
            return sparse_coo_tensor(args[0], args[1].to(self.dtype), *args[2:])
        if args and not isinstance(args[0], int | Size):
            raise TypeError(
                "SparseTensor.new(sequence) only accepts sizes.  Please use torch.sparse_coo_tensor() or construct a "
                "strided tensor and convert it to sparse via to_sparse."
            )
        return sparse_coo_tensor(as_tuple(args or (0,)), dtype=self.dtype, device=own)

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
        """The matrix with its axes exchanged; what has fewer of them is itself."""
        if self.sparse_dim() > 2 or self.dense_dim():
            raise RuntimeError(
                f"t() expects a tensor with <= 2 sparse and 0 dense dimensions, but got {self.sparse_dim()} sparse and "
                f"{self.dense_dim()} dense dimensions"
            )
        return self if self.ndim < 2 else self.transpose(0, 1)

    def select(self, dim: int, index: int) -> Tensor:
        """What has one index along an axis; sparse while a sparse axis is left."""
        (dim,), count = _axes(dim, self.ndim), self.sparse_dim()
        size, shape = self.shape[dim], [*self.shape[:dim], *self.shape[dim + 1 :]]
        if not -size <= index < size:
            raise IndexError(f"select(): index {index} out of range for tensor of size {list(self.shape)} at dim {dim}")
        if dim >= count:
            return made(self._indices(), self._values().select(dim - count + 1, index), shape)
        own = self.coalesce()
        positions, is_there = own._indices(), own._indices()[dim] == index % size
        if count == 1:
            return own._values()[is_there].sum(0)
        left = functions.stack([positions[axis] for axis in range(count) if axis != dim])
        return made(left[:, is_there], own._values()[is_there], shape, is_coalesced=True)

    select_copy = select

    def transpose(self, dim0: int, dim1: int) -> SparseTensor:
        """Two sparse axes exchanged, or two dense ones."""
        count, (dim0, dim1) = self.sparse_dim(), _axes((dim0, dim1), self.ndim)
        if min(dim0, dim1) >= count:
            sizes = list(self.shape)
            sizes[dim0], sizes[dim1] = sizes[dim1], sizes[dim0]
            values = self._values().transpose(dim0 - count + 1, dim1 - count + 1)
            return made(self._indices(), values, sizes, is_coalesced=self.is_coalesced())
        order = list(range(count))
        order[dim0], order[dim1] = order[dim1], order[dim0]
        shape = [self.shape[axis] for axis in order] + list(self.shape[len(order) :])
        return made(functions.stack([self._indices()[axis] for axis in order]), self._values(), shape)

    T = property(lambda self: self.t())

    def to_sparse(self, sparse_dim: int | None = None, **options: Any) -> SparseTensor:
        """The same in another layout."""
        return import_module("pywebgpu.sparse.compressed").converted(self, sparse_dim, **options)  # type: ignore[no-any-return]

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
        own = self
        if isinstance(other, SparseTensor) and self.ndim == 0 and other.ndim and name == "mul":
            return other._each(name, self)
        if isinstance(other, SparseTensor) and not other.ndim:
            other = other.to_dense()
        if isinstance(other, Tensor) and other.ndim:
            own = self.coalesce() if self.layout is closed_types.sparse_coo else self
            other = _picked(other.to_dense().expand(own.shape), own)
        return own._like(getattr(own._values(), name)(other))

    def __neg__(self) -> SparseTensor:
        return self._like(-self._values())

    def __add__(self, other: Operand, *, alpha: Any = 1) -> Tensor:
        """Sparse where both are, in the layout of the first."""
        if not isinstance(other, SparseTensor):
            return self.to_dense().add(other, alpha=alpha)
        if self.shape != other.shape:
            raise ShapeError(f"add: expected sizes of both to be the same, but {self.shape} != {other.shape}")
        a, b = self._as_coo(), other._as_coo()
        right = b._values() if alpha == 1 else b._values() * alpha
        kind = functions.result_type(a._values(), right)
        positions = functions.cat([a._indices(), b._indices()], 1)
        both = made(positions, functions.cat([a._values().to(kind), right.to(kind)]), self.shape)
        return both if self.layout is closed_types.sparse_coo else both.to_sparse(**self._layout_options())

    def _layout_options(self) -> dict[str, Any]:
        """What makes another tensor of this one's layout."""
        return {"layout": self.layout}

    add = __add__  # type: ignore[assignment]

    def __radd__(self, other: Operand) -> Tensor:
        return self.to_dense() + other

    def __sub__(self, other: Operand, *, alpha: Any = 1) -> Tensor:
        own: Any = self  # Python's operator takes no alpha, the method does.
        return own.__add__(other, alpha=-alpha)  # type: ignore[no-any-return]

    sub = __sub__  # type: ignore[assignment]

    def sum(self, dim: Axes = None, keepdim: bool = False, *, dtype: DType | None = None) -> Tensor:
        if dtype is None and self.dtype.kind is not Kind.FLOAT:
            dtype = dtypes.int64
        return sum(self, dim, dtype, keepdim=keepdim)

    def norm(self, p: Any = 2, dim: Axes = None, keepdim: bool = False, dtype: DType | None = None) -> Tensor:
        """The norm of the values."""
        if keepdim:
            raise RuntimeError("norm_sparse currently does not support keepdim=True")
        if dtype is not None and p == "fro":
            raise ValueError("dtype argument is not supported in frobenius norm")
        if dtype is not None:
            raise RuntimeError("norm_sparse currently does not support 'dtype' argument")
        if dim is not None and set(_axes(dim, self.ndim)) != set(range(self.ndim)):
            raise RuntimeError("norm_sparse currently only supports full reductions")
        return self._as_coo().coalesce()._values().norm(p)

    def sparse_mask(self, mask: SparseTensor) -> SparseTensor:
        """Its values at the coordinates of another."""
        return sparse_mask(self.to_dense(), mask)

    def _written(self, result: Tensor) -> Self:
        """What a form in place came to that was called by Tensor, so computed of the dense tensor."""
        name = result._node.op.name
        if self.layout is not closed_types.sparse_coo:
            return super()._written(result)
        if name not in (
            *ZERO_STAYS.split(),
            "where",
            "copy",
        ):  # nan_to_num ends in one, ceil of whole numbers in the other.
            raise NotImplementedError(
                f"a sparse tensor is not written in place by {name}: make a new one of its values"
            )
        if self.is_coalesced():
            return self._take(sparse_mask(Tensor._new(result._node, self._values()._storage.device), self))
        if name in UNORDERED:
            return self._take(getattr(self, name)())
        raise RuntimeError(f"{name}_ requires coalesced input")

    def _assign(self, node: Node) -> Self:
        """A write in place, which is computed of the dense tensor: what is not at a coordinate has to stay 0.

        Raises NotImplementedError for coordinates in any order, as PyTorch does.
        """
        if self.layout is closed_types.sparse_coo:
            raise NotImplementedError("a sparse tensor is not written in place so: make a new one of its values")
        dense = Tensor._new(node, self._values()._storage.device)
        result = sparse_mask(dense, self)
        if int(dense.count_nonzero()) != int(result._values().count_nonzero()):
            raise NotImplementedError(
                "a sparse tensor gets no new coordinates in place here: make a new one of its indices and values"
            )
        return self._become(result)

    def _become(self, result: Tensor) -> Self:
        """Is what another is, in place."""
        if not isinstance(result, SparseTensor):
            raise NotImplementedError("a sparse tensor cannot become this in place: the result is dense")
        self.__dict__.pop("_dense", None)
        self.__dict__.update({name: value for name, value in result.__dict__.items() if name != "_dense"})
        return self

    def _take(self, result: Tensor) -> Self:
        """Is a result in place, in its own dtype. Raises RuntimeError where that cannot hold it."""
        if not functions.can_cast(result.dtype, self.dtype):
            raise RuntimeError(
                f"result type {result.dtype.title} can't be cast to the desired output type {self.dtype.title}"
            )
        is_wanted = self.requires_grad
        self._become(result.to(self.dtype))
        if is_wanted and not self.requires_grad:
            self.requires_grad_()
        return self

    def zero_(self) -> Self:
        """Has no values any more."""
        return self._become(made(self._indices()[:, :0], self._values()[:0], self.shape, is_coalesced=True))

    def copy_(self, src: Operand, non_blocking: bool = False) -> Self:
        """The coordinates and values of another sparse tensor."""
        source: Any = src
        return self._become(source.to(self.dtype) if isinstance(source, SparseTensor) else source)

    def resize_as_(self, the_template: TensorBase, *, memory_format: object = None) -> Self:
        """Has the shape of another; its coordinates stay."""
        return self._become(made(self._indices(), self._values(), the_template.shape))

    def __repr__(self) -> str:
        return shown(self, {"indices": self._indices(), "values": self._values()})

    def __deepcopy__(self, memo: dict[int, Any]) -> SparseTensor:
        return self.clone()


def shown(tensor: SparseTensor, parts: dict[str, Tensor]) -> str:
    """The text of a tensor that is made of parts."""
    facts: dict[str, object] = {
        "device": not tensor._values().is_cpu and repr(str(tensor.device)),
        "size": tuple(tensor.shape),
    }
    facts |= {"nnz": tensor._nnz(), "dtype": not show.is_usual(tensor.dtype) and tensor.dtype}
    facts |= {"layout": tensor.layout, "requires_grad": tensor.requires_grad}
    suffixes = [f"{name}={value}" for name, value in facts.items() if value is not False]
    texts = [show.part(part, f"{name}=tensor(", 7) for name, part in parts.items()]
    is_newline = tensor.layout is closed_types.sparse_coo
    return show.with_suffixes("tensor(" + ",\n       ".join(texts), suffixes, newline=is_newline)


def _on_values(name: str) -> Callable[..., SparseTensor]:
    def method(self: SparseTensor, *args: Any, **options: Any) -> SparseTensor:
        own = self.coalesce() if self.layout is closed_types.sparse_coo else self
        return own._like(getattr(own._values(), name)(*args, **options))

    method.__name__, method.__doc__ = name, f"{name} of the values: what is 0 stays 0."
    return method


def _in_place(name: str) -> Callable[..., SparseTensor]:
    known = ALIASES.get(name, name)

    def method(self: SparseTensor, *args: Any, **options: Any) -> SparseTensor:
        is_ordered = self.layout is not closed_types.sparse_coo or self.is_coalesced()
        if not is_ordered and name in ZERO_STAYS.split() and name not in UNORDERED:
            raise RuntimeError(f"{known}_ requires coalesced input")
        return self._take(getattr(self, name)(*args, **options))

    method.__name__, method.__doc__ = f"{name}_", f"{name}, of this tensor itself."
    return method


for _name in ZERO_STAYS.split():
    setattr(SparseTensor, _name, _on_values(_name))
for _name in (*ZERO_STAYS.split(), "add", "sub", "mul", "div"):
    if hasattr(Tensor, f"{_name}_"):
        setattr(SparseTensor, f"{_name}_", _in_place(_name))


def _added(values: Tensor, rows: Tensor, count: int) -> Tensor:
    """Values at their rows; those of one row are added up."""
    if values.dtype is dtypes.bool_:
        return _added(values.to(dtypes.int32), rows, count) != 0
    return values.new_zeros((count, *values.shape[1:])).index_add(0, rows, values)


def made(indices: Tensor, values: Tensor, shape: Sequence[int], *, is_coalesced: bool = False) -> SparseTensor:
    """A tensor of coordinates and values that fit."""
    result = SparseTensor.__new__(SparseTensor)
    result._path, result._base, result._accumulator, result._cached = (), None, None, None
    result._flag, result._history, result._grad = False, None, None
    result.__dict__.update(_at=indices, _held=values, _size=tuple(map(int, shape)), _is_coalesced=is_coalesced)
    return result


def of_rows(grad: RowsNode, device: Device) -> SparseTensor:
    """A gradient that is known by its rows."""
    indices, values = [], []
    for rows, held, padding in grad.parts:
        positions, value = Tensor._new(pointwise.copy(rows), device).long(), Tensor._new(held, device)
        if padding is not None and thread_state.observer is None:  # Else they are there, as zeros.
            kept = positions.ne(padding)
            positions, value = positions[kept], value[kept]
        indices.append(positions)
        values.append(value)
    positions, value = (parts[0] if len(parts) == 1 else functions.cat(parts) for parts in (indices, values))
    return made(positions.unsqueeze(0), value, grad.spec.shape)


def _checked_size(positions: Tensor, values: Tensor, size: Sequence[int] | None) -> Sequence[int]:
    """The size, or where it is None the smallest that holds all positions. Raises ShapeError where parts do not fit."""
    if positions.ndim != 2 or positions.shape[1] != values.shape[0]:
        raise ShapeError(
            f"number of dimensions must be sparse_dim ({positions.shape[0]}) + dense_dim, and indices and values must "
            f"have same nnz, but got nnz from indices: {positions.shape[-1]}, nnz from values: {values.shape[0]}"
        )
    if size is None:
        sizes = positions.amax(1).add(1).tolist() if positions.numel() else [0] * positions.shape[0]
        size = (*map(int, sizes), *values.shape[1:])
    if len(size) != positions.shape[0] + values.ndim - 1:
        raise ShapeError(
            f"'len(size) == sparse_dim + dense_dim' is not satisfied: len(size) = {len(size)}, sparse_dim = "
            f"{positions.shape[0]}, dense_dim = {values.ndim - 1}"
        )
    expected = (positions.shape[1], *size[positions.shape[0] :])
    if tuple(values.shape) != tuple(map(int, expected)):
        raise ShapeError(f"values has incorrect size, expected {list(expected)}, got {list(values.shape)}")
    return size


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
        indices = create.zeros(count, 0, dtype=dtypes.int64, device=device)
        values = create.zeros(0, dtype=dtype, device=device)
    held = values if isinstance(values, Tensor) else create.tensor(values, device=device)
    held = held.to(device=device or held.device, dtype=dtype or held.dtype)
    held = held.unsqueeze(0) if held.ndim == 0 else held
    held = held.detach() if requires_grad else held
    if used.overrides is None:
        dispatch.start()  # From now on functions ask what they do with sparse tensors.
    positions = (indices if isinstance(indices, Tensor) else create.tensor(indices, dtype=dtypes.int64)).to(held.device)
    if positions.ndim == 1:
        positions = positions.unsqueeze(0)
    size = _checked_size(positions, held, size)
    invariants.check_coordinates(positions, size, check_invariants)
    result = made(positions.to(dtypes.int64), held, tuple(size), is_coalesced=bool(is_coalesced))
    return result.requires_grad_() if requires_grad else result


def FloatTensor(indices: object, values: object, size: Sequence[int] | None = None) -> SparseTensor:
    """The older name of sparse_coo_tensor."""
    return sparse_coo_tensor(indices, values, size)


def to_sparse(tensor: Tensor, sparse_dim: int | None = None, **options: Any) -> SparseTensor:
    """The elements that are not 0, whose coordinates are read; with layout= and blocksize= of another layout."""
    return import_module("pywebgpu.sparse.compressed").converted(tensor, sparse_dim, **options)  # type: ignore[no-any-return]


def coordinates(tensor: Tensor, count: int) -> SparseTensor:
    """The elements of a dense tensor that are not 0, along its first axes."""
    mask = tensor != 0
    if count < tensor.ndim:
        mask = mask.flatten(count).any(-1)
    positions = mask.nonzero().t()
    return made(positions, tensor[tuple(positions)] if count else tensor[mask], tensor.shape, is_coalesced=True)


def sparse_mask(tensor: Tensor, mask: Tensor) -> SparseTensor:
    """The elements of a tensor at the coordinates of a sparse one, in its layout."""
    if not isinstance(mask, SparseTensor):
        raise RuntimeError("sparse_mask: expected mask to be a sparse tensor")
    if tensor.shape != mask.shape:
        raise ShapeError(
            f"sparse_mask(): operands have incompatible sizes; self has size {list(tensor.shape)} but mask has size "
            f"{list(mask.shape)}"
        )
    return mask._like(_picked(tensor.to_dense(), mask))


def _picked(dense: Tensor, places: SparseTensor) -> Tensor:
    """What a dense tensor has at the coordinates of a sparse one, in the shape of its values."""
    positions, shape = places._as_coo()._indices(), places._values().shape
    return dense[tuple(positions)].reshape(shape) if positions.shape[0] else dense.expand(shape)


def _axes(dim: Axes, ndim: int) -> list[int]:
    axes = list(dim) if isinstance(dim, tuple | list) else [dim]
    return [int(axis) % max(ndim, 1) for axis in axes]  # type: ignore[arg-type]


def mm(mat1: Tensor, mat2: Tensor, reduce: str | None = None) -> Tensor:
    """A product, one of whose factors is sparse: rows of the other, by values, added at their coordinates."""
    if not isinstance(mat1, SparseTensor):
        return mm(mat2.t(), mat1.t()).t() if isinstance(mat2, SparseTensor) else mat1.matmul(mat2)
    if isinstance(mat2, SparseTensor):
        return to_sparse(mm(mat1, mat2.to_dense()), **mat1._layout_options())
    mat1 = mat1._as_coo()
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


def sum(input: SparseTensor, dim: Axes = None, dtype: DType | None = None, *, keepdim: bool = False) -> Tensor:
    """The sum, a number; or sparse along the axes that are left."""
    coo = input._as_coo()
    held = coo._values() if dtype is None else coo._values().to(dtype)
    if dim is None:
        return held.sum()
    gone = set(_axes(dim, input.ndim)) if dim not in ((), []) else set(range(input.ndim))
    count = coo.sparse_dim()
    dense = [axis - count + 1 for axis in gone if axis >= count]
    kept = [axis for axis in range(count) if axis not in gone]
    held = held.sum(dense, keepdim, dtype=dtype) if dense else held
    shape = [1 if axis in gone else n for axis, n in enumerate(input.shape) if keepdim or axis not in gone]
    if not kept:
        total = held.sum(0, dtype=dtype)
        return to_sparse(total.reshape(shape), count) if keepdim else total
    positions = coo._indices()
    rows = [
        positions[axis] if axis in kept else create.zeros_like(positions[axis])
        for axis in range(count)
        if keepdim or axis in kept
    ]
    result = made(functions.stack(rows), held, shape).coalesce()
    return result if input.layout is closed_types.sparse_coo else result.to_sparse(**input._layout_options())


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


def _refusing(name: str, what: str) -> Callable[..., Any]:
    """What a method of sparse tensors is to others."""

    def refuse(tensor: Tensor, *args: Any) -> Any:
        if isinstance(tensor, SparseTensor):  # Called by the class of all tensors.
            return getattr(tensor, name)(*args)
        raise RuntimeError(f"{name} expected sparse {what} layout but got Strided")

    refuse.__name__ = refuse.__qualname__ = name
    return refuse


coalesce, indices, is_coalesced = (
    _refusing(name, "coordinate tensor") for name in ("coalesce", "indices", "is_coalesced")
)
values = _refusing("values", "tensor")


def sparse_dim(tensor: Tensor) -> int:
    return tensor.sparse_dim() if isinstance(tensor, SparseTensor) else 0


def dense_dim(tensor: Tensor) -> int:
    return tensor.dense_dim() if isinstance(tensor, SparseTensor) else tensor.ndim


def to_dense(tensor: Tensor, dtype: DType | None = None, *, masked_grad: bool | None = None) -> Tensor:
    """The tensor itself: it is dense."""
    if isinstance(tensor, SparseTensor):
        return tensor.to_dense(dtype, masked_grad=masked_grad)
    return tensor if dtype is None else tensor.to(dtype)


def sampled_addmm(*args: Any, **options: Any) -> SparseTensor:
    """A product at the places of a sparse matrix alone: see csr.py."""
    return import_module("pywebgpu.sparse.csr").sampled_addmm(*args, **options)  # type: ignore[no-any-return]


__getattr__ = lazy.absent(__name__)
