"""What distributions have in common: parameters of one shape, probabilities and their logits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pywebgpu.dtypes import DType
    from pywebgpu.tensor.factory_options import DeviceLike
    from pywebgpu.tensor.tensor import Tensor

torch: Any = import_module("pywebgpu")
euler_constant = 0.57721566490153286060


def broadcast_all(*values: object) -> list[Any]:
    """Tensors of one shape. Numbers become tensors like the others. Raises ValueError for what is neither."""
    tensors: list[Any] = [value for value in values if torch.is_tensor(value)]
    if any(not _is_like(value) and not hasattr(value, "__float__") for value in values):
        raise ValueError("Input arguments must all be instances of Number, torch.Tensor or objects implementing one")
    options: dict[str, Any] = {"dtype": torch.get_default_dtype()}
    if tensors:
        options = {"dtype": tensors[0].dtype, "device": tensors[0].device}
    operands = [value if _is_like(value) else torch.tensor(float(value), **options) for value in values]  # type: ignore[arg-type]
    return list(torch.broadcast_tensors(*operands))


def _is_like(value: object) -> bool:
    """Whether it is a tensor, or of a class that says what functions do with it."""
    return torch.is_tensor(value) or hasattr(value, "__torch_function__")


def _standard_normal(shape: Sequence[int], dtype: DType, device: DeviceLike) -> Tensor:
    """Draws from the standard normal distribution; libraries that have distributions of their own call it."""
    drawn: Tensor = torch.randn(tuple(shape), dtype=dtype, device=device)
    return drawn


def logits_to_probs(logits: Tensor, is_binary: bool = False) -> Tensor:
    return torch.sigmoid(logits) if is_binary else torch.softmax(logits, dim=-1)


def clamp_probs(probs: Tensor) -> Tensor:
    eps = torch.finfo(probs.dtype).eps
    return probs.clamp(min=eps, max=1 - eps)


def probs_to_logits(probs: Tensor, is_binary: bool = False) -> Tensor:
    clamped = clamp_probs(probs)
    return torch.log(clamped) - torch.log1p(-clamped) if is_binary else torch.log(clamped)


def sum_rightmost(value: Tensor, dim: int) -> Tensor:
    """The sum over the last axes."""
    return value if dim == 0 else value.reshape((*value.shape[: value.dim() - dim], -1)).sum(-1)


_sum_rightmost = sum_rightmost  # An older name.


def tril_matrix_to_vec(mat: Tensor, diag: int = 0) -> Tensor:
    """The elements on and below a diagonal of square matrices (..., n, n), row by row: (..., count).

    Raises: ValueError for a diagonal outside of the matrix.
    """
    size = mat.shape[-1]
    if not -size <= diag < size:
        raise ValueError(f"diag ({diag}) provided is outside [{-size}, {size - 1}].")
    vector: Tensor = mat[..., _lower(size, diag, mat.device)]
    return vector


def vec_to_tril_matrix(vec: Tensor, diag: int = 0) -> Tensor:
    """The square matrices that have the elements (..., count) on and below a diagonal, row by row.

    Raises: ValueError for a count that no size of matrix has.
    """
    count = vec.shape[-1]
    root = ((1 + 2 * diag) ** 2 + 8 * count + 4 * abs(diag) * (diag + 1)) ** 0.5
    size = round((root - 1 - 2 * diag) / 2)
    mask = _lower(size, diag, vec.device)
    if int(mask.sum()) != count:
        raise ValueError(
            f"The size of last dimension is {count} which cannot be expressed as the lower triangular part of a "
            "square D x D matrix."
        )
    matrix = vec.new_zeros((*vec.shape[:-1], size, size))
    matrix[..., mask] = vec
    return matrix


def _lower(size: int, diag: int, device: DeviceLike) -> Tensor:
    """A mask of what is on and below a diagonal."""
    mask: Tensor = torch.ones(size, size, dtype=torch.bool, device=device).tril(diag)
    return mask


class lazy_property:
    """An attribute that is computed when it is first asked for."""

    def __init__(self, wrapped: Callable[..., object]) -> None:
        self.wrapped, self.__doc__ = wrapped, wrapped.__doc__

    def __get__(self, instance: object, kind: object = None) -> Any:
        if instance is None:
            return self
        with torch.enable_grad():
            value = instance.__dict__[self.wrapped.__name__] = self.wrapped(instance)
        return value
