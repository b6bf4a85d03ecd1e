"""The Tensor class: all methods together, Python's operators, and copying."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from copy import deepcopy
from functools import partial
from importlib import import_module
from types import FunctionType
from typing import TYPE_CHECKING, Any, NoReturn, Self, SupportsIndex

from pywebgpu import devices, dtypes
from pywebgpu.autodiff import grad_mode
from pywebgpu.composites import arithmetic, elementwise, logic
from pywebgpu.devices.base import check_room
from pywebgpu.dtypes import Kind
from pywebgpu.errors import CannotWaitError
from pywebgpu.ir import graph
from pywebgpu.ir.graph import Spec
from pywebgpu.ops import pointwise as ops
from pywebgpu.runtime.storage import Storage
from pywebgpu.tensor import dispatch, from_data
from pywebgpu.tensor import gradient as walk
from pywebgpu.tensor.base import TensorBase
from pywebgpu.tensor.gather_scatter import GatherScatterMethods
from pywebgpu.tensor.methods import by_right, by_tensors, later, operator, reflected, with_arrays
from pywebgpu.tensor.random_inplace import RandomMethods
from pywebgpu.tensor.reshaping import ReshapingMethods
from pywebgpu.tensor.size import as_tuple
from pywebgpu.tensor.sorting import SortingMethods
from pywebgpu.tensor.written import form

if TYPE_CHECKING:
    from pywebgpu.dtypes import DType
    from pywebgpu.step_capture.free_number import Number
    from pywebgpu.tensor.factory_options import DeviceLike
    from pywebgpu.tensor.types import Binary, Tensors


def _compare(op: graph.Pointwise) -> Binary:
    return operator(partial(arithmetic.binary, op))


_COMPLEX = "pywebgpu.tensor.complex_numbers"


def _part(name: str) -> property:
    """The real or the imaginary part, which may be assigned to."""
    find = later(_COMPLEX, name)
    return property(find, lambda self, value: find(self).copy_(value), doc=find.__doc__)


class Tensor(GatherScatterMethods, SortingMethods, RandomMethods):
    """A lazy array on a device. See torch.Tensor for what each method does; the differences are in docs/torch.md."""

    __slots__ = ()
    __array_priority__ = 1000

    def __hash__(self) -> int:
        return id(self)

    def __new__(cls, *data: Any, device: DeviceLike = None) -> Self:
        """Tensor([1, 2]) holds the data, Tensor(2, 3) has that size; in the default dtype."""
        opened = devices.open_device(device)
        if len(data) == 1 and isinstance(data[0], Tensor):
            if device is not None:
                raise RuntimeError(
                    "Legacy tensor constructor of the form torch.Tensor(tensor, device=device) is not supported. Use "
                    "torch.tensor(...) or torch.as_tensor(...) instead."
                )
            tensor: Tensor = data[0].detach().to(device=opened.name, dtype=dtypes.default())
        elif len(data) == 1 and isinstance(data[0], bool | float | complex | str):
            raise TypeError(f"new(): data must be a sequence (got {type(data[0]).__name__})")
        elif len(data) == 1 and from_data.is_data(data[0]):
            tensor = Tensor._new(from_data.from_data(data[0], dtypes.default(), opened), opened)
        else:
            spec = Spec(as_tuple(data or (0,)), dtypes.default())
            check_room(spec, opened)
            tensor = Tensor._new(ops.full(0, spec), opened)
        tensor.__class__ = cls
        return tensor  # type: ignore[return-value]  # Of that class now.

    @staticmethod
    def _make_subclass(cls: Any, data: Tensor, require_grad: bool = False) -> Any:
        """The memory of a tensor without its history, as a tensor of a subclass."""
        return import_module("pywebgpu.tensor.copies").made_as(cls, data, require_grad)

    @staticmethod
    def _make_wrapper_subclass(cls: Any, size: Iterable[int], **options: Any) -> Any:
        """A tensor of a class that has no memory: the class's `__torch_dispatch__` computes."""
        return import_module("pywebgpu.tensor.wrapper").make(cls, size, **options)

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "__torch_dispatch__" in cls.__dict__:
            import_module("pywebgpu.tensor.wrapper").prepare(cls)
        if dispatch.overrides(cls):
            dispatch.start()

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """What functions do with tensors of a subclass: their results are of it, too."""
        return import_module("pywebgpu.torch_api.overrides").of_tensors(cls, func, types, args, kwargs)

    def new_tensor(
        self,
        data: Any,
        *,
        dtype: DType | None = None,
        device: DeviceLike = None,
        requires_grad: bool = False,
        pin_memory: bool = False,
    ) -> Tensor:
        """A tensor of Python data, with this one's dtype and device unless others are given."""
        opened = self._storage.device if device is None else devices.open_device(device)
        if isinstance(data, Tensor):
            tensor: Tensor = data.detach().clone().to(device=opened.name, dtype=dtype or data.dtype)
        else:
            tensor = Tensor._new(from_data.from_data(data, dtype or self.dtype, opened), opened)
        return tensor._require_grad(requires_grad)

    def new(self, *data: Any) -> Tensor:
        """A tensor of data or of a size, with this one's dtype and device."""
        if len(data) == 1 and (isinstance(data[0], Tensor) or from_data.is_data(data[0])):
            return self.new_tensor(data[0])
        return self.new_zeros(as_tuple(data or (0,)))

    # Gradients

    def backward(
        self,
        gradient: Tensor | None = None,
        retain_graph: bool | None = None,
        create_graph: bool = False,
        inputs: Tensors | None = None,
    ) -> None:
        """Accumulates the gradients of this tensor into the leaves that it came from."""
        walk.backward(self, gradient, retain_graph, create_graph, inputs)

    # Operators

    __add__, __radd__ = operator(arithmetic.add), reflected(arithmetic.add, by_right)
    __sub__, __rsub__ = operator(arithmetic.sub), reflected(arithmetic.sub)
    __mul__, __rmul__ = operator(arithmetic.mul), reflected(arithmetic.mul, by_right)
    __truediv__, __rtruediv__ = operator(arithmetic.div), reflected(arithmetic.div, by_right)
    __rdiv__ = __rtruediv__

    # Few programs need these

    to_sparse, to_dense, coalesce, indices, values, is_coalesced, sparse_dim, dense_dim = (
        later("pywebgpu.sparse", name)
        for name in (
            "to_sparse", "to_dense", "coalesce", "indices", "values", "is_coalesced", "sparse_dim", "dense_dim"
        )
    )  # fmt: skip
    to_sparse_coo, sparse_mask = to_sparse, later("pywebgpu.sparse", "sparse_mask")
    to_sparse_csr, to_sparse_csc, to_sparse_bsr, to_sparse_bsc = (
        later("pywebgpu.sparse.compressed", f"to_sparse_{name}") for name in ("csr", "csc", "bsr", "bsc")
    )
    ccol_indices, col_indices, crow_indices, row_indices = (
        later("pywebgpu.sparse.compressed", f"{name}_indices") for name in ("ccol", "col", "crow", "row")
    )
    module_load = later("pywebgpu.utils.swapping", "module_load")
    cholesky, qr, svd = (later("pywebgpu.tensor.numeric", name) for name in ("cholesky", "qr", "svd"))
    cholesky_inverse, cholesky_solve = (later("pywebgpu.linalg", f"cholesky_{name}") for name in ("inverse", "solve"))
    data_ptr, set_, storage, storage_type, untyped_storage = (
        later("pywebgpu.tensor.storages", name)
        for name in ("data_ptr", "set_", "storage", "storage_type", "untyped_storage")
    )
    __dlpack__, __dlpack_device__ = (later("pywebgpu.utils.dlpack", name) for name in ("capsule", "device_of"))
    prelu, hardshrink = (later("pywebgpu.nn.functional", name) for name in ("prelu", "hardshrink"))
    _repr_html_ = later("pywebgpu.display.values", "tensor_html")
    lgamma_, digamma_, renorm_, mvlgamma_ = (
        form(later("pywebgpu.tensor.numeric", name)) for name in ("lgamma", "digamma", "renorm", "mvlgamma")
    )
    i0, igamma, igammac = (later("pywebgpu.special", name) for name in ("i0", "igamma", "igammac"))
    i0_, igamma_, igammac_ = (form(later("pywebgpu.special", name)) for name in ("i0", "igamma", "igammac"))
    polygamma = later("pywebgpu.special.gamma", "derivative_of_digamma")
    polygamma_ = form(later("pywebgpu.special.gamma", "derivative_of_digamma"))
    lgamma, digamma, renorm, cov, corrcoef, mvlgamma = (
        later("pywebgpu.tensor.numeric", name)
        for name in ("lgamma", "digamma", "renorm", "cov", "corrcoef", "mvlgamma")
    )
    geqrf, lu, lu_solve, orgqr, ormqr, triangular_solve = (
        later("pywebgpu.linalg.lu_factors", name)
        for name in ("geqrf", "lu", "lu_solve", "orgqr", "ormqr", "triangular_solve")
    )
    apply_, map_, map2_ = (later("pywebgpu.tensor.element_writes", name) for name in ("apply_", "map_", "map2_"))
    gcd, lcm = (later("pywebgpu.tensor.bits", name) for name in ("gcd", "lcm"))
    gcd_, lcm_ = (form(later("pywebgpu.tensor.bits", name)) for name in ("gcd", "lcm"))
    frexp, nextafter = (later("pywebgpu.tensor.bits", name) for name in ("frexp", "nextafter"))
    hash_tensor = later("pywebgpu.tensor.bits", "hash_tensor")
    nextafter_ = form(later("pywebgpu.tensor.bits", "nextafter"))
    histogram, nonzero_static = (later("pywebgpu.tensor.numeric", name) for name in ("histogram", "nonzero_static"))
    angle, chalf, conj, conj_physical, isreal, sgn, vdot = (
        later(_COMPLEX, name) for name in ("angle", "chalf", "conj", "conj_physical", "isreal", "sgn", "vdot")
    )
    conj_physical_, sgn_ = (form(later(_COMPLEX, name)) for name in ("conj_physical", "sgn"))
    real, imag = _part("real"), _part("imag")
    istft, stft = (later("pywebgpu.signal.frames", name) for name in ("istft", "stft"))
    as_strided_scatter, new_empty_strided, unsafe_chunk, unsafe_split, unsafe_split_with_sizes, narrow_copy = (
        later("pywebgpu.tensor.copies", name)
        for name in (
            "as_strided_scatter", "new_empty_strided", "unsafe_chunk", "unsafe_split", "unsafe_split_with_sizes",
            "narrow_copy",
        )
    )  # fmt: skip
    as_subclass, dim_order, record_stream = (
        later("pywebgpu.tensor.copies", name) for name in ("as_subclass", "dim_order", "record_stream")
    )
    det, inverse, logdet, slogdet, matrix_exp, pinverse = (
        later("pywebgpu.linalg", name) for name in ("det", "inverse", "logdet", "slogdet", "matrix_exp", "pinverse")
    )
    __floordiv__, __rfloordiv__ = operator(elementwise.floor_divide), reflected(elementwise.floor_divide)
    __mod__, __rmod__ = operator(elementwise.remainder), reflected(elementwise.remainder)
    __pow__, __rpow__ = operator(elementwise.pow_), reflected(elementwise.pow_, by_tensors)
    __and__ = __rand__ = operator(partial(logic.bitwise, ops.bitwise_and))
    __or__ = __ror__ = operator(partial(logic.bitwise, ops.bitwise_or))
    __xor__ = __rxor__ = operator(partial(logic.bitwise, ops.bitwise_xor))
    __lshift__ = operator(partial(logic.shift, ops.shift_left))
    __rlshift__ = reflected(partial(logic.shift, ops.shift_left))
    __rshift__ = operator(partial(logic.shift, ops.shift_right))
    __rrshift__ = reflected(partial(logic.shift, ops.shift_right))
    __eq__, __ne__ = _compare(ops.eq), _compare(ops.ne)  # type: ignore[assignment]
    __lt__, __le__, __gt__, __ge__ = _compare(ops.lt), _compare(ops.le), _compare(ops.gt), _compare(ops.ge)
    __neg__, __pos__, __abs__ = ReshapingMethods.neg, ReshapingMethods.positive, ReshapingMethods.abs
    __invert__ = ReshapingMethods.bitwise_not
    __iadd__, __isub__ = with_arrays(ReshapingMethods.add_), with_arrays(ReshapingMethods.sub_)
    __imul__, __itruediv__ = with_arrays(ReshapingMethods.mul_), with_arrays(ReshapingMethods.div_)
    __ifloordiv__, __imod__ = with_arrays(ReshapingMethods.floor_divide_), with_arrays(ReshapingMethods.remainder_)
    __ipow__ = with_arrays(ReshapingMethods.pow_)
    __iand__, __ior__ = ReshapingMethods.bitwise_and_, ReshapingMethods.bitwise_or_
    __ixor__ = ReshapingMethods.bitwise_xor_
    __ilshift__, __irshift__ = ReshapingMethods.bitwise_left_shift_, ReshapingMethods.bitwise_right_shift_

    def __delitem__(self, key: object) -> NoReturn:
        raise TypeError("Tensor does not support deleting items")

    def __matmul__(self, other: object) -> Tensor:
        return self.matmul(other) if isinstance(other, Tensor) else NotImplemented

    def __rmatmul__(self, other: object) -> Tensor:
        return other.matmul(self) if isinstance(other, Tensor) else NotImplemented

    # As a number, as a sequence, as text

    def __bool__(self) -> bool:
        if self.numel() != 1:
            kind = "no values" if self.numel() == 0 else "more than one value"
            raise RuntimeError(f"Boolean value of Tensor with {kind} is ambiguous")
        return bool(self.item() != 0)

    def __int__(self) -> int:
        return int(_plain(self._only("int64_t")))

    def __float__(self) -> float:
        return float(_plain(self._only("double")))

    def __complex__(self) -> complex:
        return complex(self._only())

    def _only(self, kind: str = "") -> Number:
        if kind and self.dtype.is_complex and complex(self.item()).imag:
            raise RuntimeError(f"value cannot be converted to type {kind} without overflow")
        if self.numel() != 1:
            raise ValueError("only one element tensors can be converted to Python scalars")
        return self.item()

    def __index__(self) -> int:
        if self.numel() != 1 or self.dtype.kind is Kind.FLOAT:
            raise TypeError("only integer tensors of a single element can be converted to an index")
        return int(self.item())

    def __len__(self) -> int:
        if not self.ndim:
            raise TypeError("len() of a 0-d tensor")
        return int(self.shape[0])

    def __iter__(self) -> Iterator[Any]:
        if not self.ndim:
            raise TypeError("iteration over a 0-d tensor")
        return iter(self.unbind(0))

    def __reversed__(self) -> Tensor:
        return self.flip(0) if self.ndim else self

    def __contains__(self, element: object) -> bool:
        if not isinstance(element, Tensor | bool | int | float | complex):
            raise RuntimeError(
                f"Tensor.__contains__ only supports Tensor or scalar, but you passed in a {type(element)}."
            )
        return bool(self.eq(element).any().item())  # type: ignore[arg-type]  # Operand names no complex.

    if not TYPE_CHECKING:  # Subclasses have a repr without options, and of names that are not here mypy is to complain.

        def __repr__(self, *, tensor_contents: str | None = None) -> str:
            return import_module("pywebgpu.tensor.show").text(self, tensor_contents)

        def __getattr__(self, name: str) -> Any:
            """A method of PyTorch's that is not here raises when it is called, and says why."""
            if not name.startswith("_"):
                return import_module("pywebgpu.torch_api.absent").find("Tensor", name)
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __format__(self, spec: str) -> str:
        if self.ndim > 0:
            return object.__format__(self, spec)
        try:
            return format(self.item(), spec)
        except CannotWaitError:  # Showing a value never raises: repr says how to read it.
            return repr(self)

    # Copies

    def __deepcopy__(self, memo: dict[int, Any]) -> Tensor:
        if id(self) in memo:
            return memo[id(self)]  # type: ignore[no-any-return]
        if hasattr(type(self), "__torch_dispatch__"):
            return import_module("pywebgpu.tensor.wrapper").copied(self, memo)  # type: ignore[no-any-return]
        if not self.is_leaf:
            raise RuntimeError(
                "Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the "
                "moment."
            )
        copy = self._dressed(self._of(self._copied_storage(memo), self._path), memo)
        copy._history = None  # Aliases that are copied together have the copy's history in common.
        copy._require_grad(self.requires_grad)
        if self.grad is not None:
            copy.grad = self.grad.__deepcopy__(memo)
        return copy

    def _copied_storage(self, memo: dict[Any, Any]) -> Storage:
        """One copy for all that show the storage: they share memory afterwards, too."""
        key = "storage", id(self._storage)
        if key not in memo:
            with grad_mode.no_grad():
                memo[key] = self._new(ops.copy(self._storage.node), self._storage.device)._storage
        copied: Storage = memo[key]
        return copied

    def __copy__(self) -> Tensor:
        return self._dressed(self.detach())._require_grad(self.requires_grad)

    def _dressed(self, plain: Tensor, memo: dict[Any, Any] | None = None) -> Tensor:
        """A plain tensor as one of this tensor's class, with this one's attributes, or with copies of them."""
        plain = of_class(plain, type(self))
        values = self._attributes(), self._in_slots()
        if memo is not None:
            memo[id(self)] = plain
            values = deepcopy(values, memo) if any(values) else values
        plain.__dict__.update(values[0])
        for name, value in values[1].items():
            setattr(plain, name, value)
        return plain

    def __reduce_ex__(self, protocol: SupportsIndex) -> tuple[object, ...]:
        state = (
            b"" if self.is_meta else self.tobytes(),
            self.dtype.name,
            tuple(self.shape),
            str(self.device),
            self.requires_grad,
        )
        return _rebuild, (type(self), *state, self._attributes())

    def _attributes(self) -> dict[str, Any]:
        """What users keep at a tensor."""
        return {name: value for name, value in self.__dict__.items() if name != "_selected"}

    def _in_slots(self) -> dict[str, Any]:
        """The same in slots of a class of theirs."""
        values = {}
        for kind in type(self).__mro__[: type(self).__mro__.index(Tensor)]:
            names = vars(kind).get("__slots__", ())
            for name in (names,) if isinstance(names, str) else names:
                if name not in ("__dict__", "__weakref__") and hasattr(self, name):
                    values[name] = getattr(self, name)
        return values


def of_class(tensor: Tensor, kind: type[Any]) -> Any:
    """A tensor that nobody else has, as one of a subclass of Tensor."""
    if type(tensor) is kind:
        return tensor
    try:
        tensor.__class__ = kind
    except TypeError:  # The class has slots of its own.
        plain, tensor = tensor, object.__new__(kind)
        for name in TensorBase.__slots__:
            slot: Any = vars(TensorBase)[name]
            if name not in ("__dict__", "__weakref__") and hasattr(plain, name):
                slot.__set__(tensor, slot.__get__(plain))
        tensor.__dict__.update(plain.__dict__)
    return tensor


TensorBase._kind = Tensor
for _kind in Tensor.__mro__:
    for _method in vars(_kind).values():
        while isinstance(
            _method, FunctionType
        ):  # Python's own errors say this name, and not which part of Tensor it is.
            _method.__qualname__ = _method.__name__
            _method = getattr(_method, "__wrapped__", None)


def _plain(value: complex) -> float:
    return value.real if isinstance(value, complex) else value


def _rebuild(
    kind: type[Tensor],
    data: bytes,
    dtype: str,
    shape: tuple[int, ...],
    device: str,
    requires_grad: bool,
    state: dict[str, Any],
) -> Tensor:
    """A pickled tensor."""
    opened = devices.open_device(device)
    spec = Spec(shape, dtypes.BY_NAME[dtype])
    tensor = Tensor._new(graph.data(spec, opened.upload(data, spec)), opened)
    if kind is not Tensor:
        tensor.__class__ = kind
    tensor.__dict__.update(state)
    result: Tensor = tensor._require_grad(requires_grad)
    return result
