"""torch.masked.MaskedTensor: a tensor, and a mask of the same shape that says which of its elements count.

A function sees the data; what it gives has the mask that follows from those of its arguments (rules.py). Gradients are
the data's own.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, Self

from pywebgpu import dtypes
from pywebgpu.sparse import SparseTensor
from pywebgpu.support import closed_types
from pywebgpu.tensor import create, dispatch
from pywebgpu.tensor.size import Size
from pywebgpu.tensor.tensor import Tensor
from pywebgpu.torch_api import masked
from pywebgpu.torch_api.masked.maskedtensor import rules

if TYPE_CHECKING:
    from pywebgpu.dtypes import DType
    from pywebgpu.runtime.storage import Storage

LAYOUTS = closed_types.strided, closed_types.sparse_coo, closed_types.sparse_csr


class MaskedTensor(Tensor):
    """A copy of `data`, of which those elements count where `mask` is True; always a leaf.

    Dtypes: float16, float32, float64, bool, int8 to int64; the mask is bool. Layouts: strided, sparse COO and CSR.
    Raises: TypeError for what is no tensor, and another dtype or layout; ValueError for another shape or coordinates.
    """

    __slots__ = ()

    def __new__(cls, data: Tensor, mask: Tensor, requires_grad: bool = False) -> Self:
        for name, value in (("data", data), ("mask", mask)):
            if isinstance(value, MaskedTensor) or not isinstance(value, Tensor):
                raise TypeError(f"{name} must be a Tensor")
        if data.requires_grad:
            warnings.warn(
                "It is not recommended to create a MaskedTensor with a tensor that requires_grad. To avoid this, you "
                "can use data.detach().clone()",
                UserWarning,
                stacklevel=2,
            )
        data, mask = checked(data.detach(), mask)
        own = data.clone()
        return cls._masking(own.requires_grad_() if requires_grad else own, mask.clone())

    @classmethod
    def _masking(cls, data: Tensor, mask: Tensor) -> Self:
        """Of data that fit, with their history."""
        result = object.__new__(cls)
        result._path, result._base, result._accumulator, result._cached = (), None, None, None
        result._flag, result._history, result._grad = False, None, None
        result.__dict__.update(_masked_data=data, _masked_mask=mask)
        return result

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """What a function gives, by its name: see rules.py."""
        return dispatch.disabled(rules.call, types, (func, args, kwargs or {}))

    # As the data are

    @property
    def _storage(self) -> Storage:  # type: ignore[override]
        return self.get_data()._storage

    @property
    def shape(self) -> Size:
        return Size(self.get_data().shape)

    ndim = property(lambda self: self.get_data().ndim)
    dtype = property(lambda self: self.get_data().dtype)
    device = property(lambda self: self.get_data().device)
    layout = property(lambda self: self.get_data().layout)
    is_leaf = property(lambda self: self.get_data().is_leaf)
    grad_fn = property(lambda self: self.get_data().grad_fn)
    is_sparse = property(lambda self: isinstance(self.get_data(), SparseTensor))

    def is_sparse_coo(self) -> bool:
        return self.layout is closed_types.sparse_coo

    def is_sparse_csr(self) -> bool:
        return self.layout is closed_types.sparse_csr

    @property
    def requires_grad(self) -> bool:
        return self.get_data().requires_grad

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        self.requires_grad_(value)

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Has a gradient flow to the data."""
        self.get_data().requires_grad_(requires_grad)
        return self

    @property
    def grad(self) -> Tensor | None:
        """The gradient, with the same mask."""
        grad = self.get_data().grad
        return None if grad is None else MaskedTensor._masking(grad, self.get_mask())

    @grad.setter
    def grad(self, value: Tensor | None) -> None:
        self.get_data().grad = value.get_data() if isinstance(value, MaskedTensor) else value

    def backward(self, gradient: Tensor | None = None, *args: Any, **options: Any) -> None:
        """As Tensor.backward, of the data."""
        self.get_data().backward(
            gradient.get_data() if isinstance(gradient, MaskedTensor) else gradient, *args, **options
        )

    # What it is made of

    def get_data(self) -> Tensor:
        """The data, whose elements mean nothing where the mask is False."""
        return self.__dict__["_masked_data"]  # type: ignore[no-any-return]

    def get_mask(self) -> Tensor:
        """Which elements count."""
        return self.__dict__["_masked_mask"]  # type: ignore[no-any-return]

    def to_tensor(self, value: float) -> Tensor:
        """The data, with one number where the mask is False."""
        return self.get_data().masked_fill(self.get_mask().logical_not(), value)

    def _is_any_true(self) -> MaskedTensor:
        if self.dtype is not dtypes.bool_:
            raise ValueError(f"expected a boolean tensor, but got {self.dtype}")
        reached = self.get_data().to_dense().logical_and(self.get_mask().to_dense()).any()
        return MaskedTensor._masking(reached, create.ones_like(reached))

    def __repr__(self, **options: Any) -> str:
        data, mask = self.get_data().detach().to_dense(), self.get_mask().to_dense()
        if not data.ndim:
            return f"MaskedTensor({_shown(data.item(), mask.item())}, {mask.item()})"
        text = _rows(data.tolist(), mask.tolist()).replace("\n", "\n  ")
        return f"MaskedTensor(\n  {text}\n)"


def is_masked_tensor(obj: object, /) -> bool:
    """Whether it is a MaskedTensor."""
    return isinstance(obj, MaskedTensor)


def checked(data: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """Data and a mask that fit: of sparse ones the same coordinates, once each and in order."""
    if data.layout is not mask.layout:
        raise TypeError("data and mask must have the same layout.")
    if data.layout not in LAYOUTS:
        raise TypeError(f"data layout of {data.layout} is not supported.")
    if isinstance(data, SparseTensor) and isinstance(mask, SparseTensor):
        if data.layout is closed_types.sparse_coo:
            data, mask = data.coalesce(), mask.coalesce()
        if data._nnz() != mask._nnz():
            data = masked._where(mask, data, create.zeros((), dtype=data.dtype))
        if not _same_places(data, mask):
            if data.layout is closed_types.sparse_coo:
                raise ValueError("data and mask are both sparse COO tensors but do not have the same indices.")
            raise ValueError("data and mask are both sparse CSR tensors but do not share either crow or col indices.")
    if mask.dtype is not dtypes.bool_:
        raise TypeError("mask must have dtype bool.")
    if not _is_known(data.dtype):
        raise TypeError(f"{data.dtype} is not supported in MaskedTensor.")
    if data.dim() != mask.dim():
        raise ValueError("data.dim() must equal mask.dim()")
    if data.size() != mask.size():
        raise ValueError("data.size() must equal mask.size()")
    return data, mask


def _is_known(dtype: DType) -> bool:
    return dtype.name in ("float16", "float32", "float64", "bool", "int8", "int16", "int32", "int64")


def _same_places(data: Any, mask: Any) -> bool:
    if data.layout is closed_types.sparse_coo:
        return _tensors_match(data.indices(), mask.indices())
    pairs = ((data.crow_indices(), mask.crow_indices()), (data.col_indices(), mask.col_indices()))
    return all(_tensors_match(*pair) for pair in pairs)


def _tensors_match(a: Any, b: Any, exact: bool = True, rtol: float = 1e-05, atol: float = 1e-08) -> bool:
    """Whether two tensors are equal, or near each other; sparse ones with their coordinates."""
    if isinstance(a, MaskedTensor) or isinstance(b, MaskedTensor):
        raise ValueError("Neither `a` nor `b` can be a MaskedTensor.")
    if a.layout is not b.layout:
        raise ValueError(f"`a` and `b` must have the same layout. Got {a.layout} and {b.layout}")
    if isinstance(a, SparseTensor):
        if not _same_places(a, b):
            return False
        a, b = a.values(), b.values()
    b = b.to(a.dtype)
    if a.dim() != b.dim():
        return False
    if exact:
        return bool(a.shape == b.shape and (a == b).all())
    return bool(a.allclose(b, rtol=rtol, atol=atol))


def _masks_match(a: object, b: object) -> bool:
    """Whether two masked tensors have one mask; others have any."""
    if isinstance(a, MaskedTensor) and isinstance(b, MaskedTensor):
        return _tensors_match(a.get_mask(), b.get_mask())
    return True


def _shown(value: Any, counts: bool) -> str:
    if not counts:
        return "--"
    return f"{value:8.4f}" if isinstance(value, float) else str(value)


def _rows(data: Any, mask: Any) -> str:
    """Nested lists as text, a row a line."""
    if not data or not isinstance(data[0], list):
        texts = [_shown(value, counts) for value, counts in zip(data, mask, strict=True)]
        width = max(map(len, texts), default=0) if not any(isinstance(value, float) for value in data) else 8
        return f"[{', '.join(text.rjust(width) for text in texts)}]"
    parts = [_rows(*pair).replace("\n", "\n  ") for pair in zip(data, mask, strict=True)]
    return "[\n  " + ",\n  ".join(parts) + "\n]"


def masked_tensor(data: Tensor, mask: Tensor, requires_grad: bool = False) -> MaskedTensor:
    """A masked copy of `data`: a leaf."""
    return MaskedTensor(data, mask, requires_grad)


def as_masked_tensor(data: Tensor, mask: Tensor) -> MaskedTensor:
    """Masked data whose gradient flows to `data`.

    Against torch: the gradient of `data` is a tensor with 0 where the mask is False, and no MaskedTensor.
    """
    for name, value in (("data", data), ("mask", mask)):
        if isinstance(value, MaskedTensor) or not isinstance(value, Tensor):
            raise TypeError(f"{name} must be a Tensor")
    fitting, mask = checked(data, mask)
    return MaskedTensor._masking(fitting.clone(), mask.clone())
