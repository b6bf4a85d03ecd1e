"""Transforms of vectors and matrices: to probabilities, and to factors of matrices."""

from __future__ import annotations

import math
from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

from pywebgpu.distributions import constraints
from pywebgpu.distributions.transforms import _Alike

if TYPE_CHECKING:
    from pywebgpu.tensor.tensor import Tensor

torch: Any = import_module("pywebgpu")


def _require(shape: Sequence[int], dims: int) -> None:
    if len(shape) < dims:
        raise ValueError("Too few dimensions on input")


class SoftmaxTransform(_Alike):
    """Rows of numbers to probabilities: no bijection, for softmax forgets a shift."""

    bijective = False
    domain, codomain = constraints.real_vector, constraints.simplex

    def _call(self, x: Tensor) -> Tensor:
        return torch.softmax(x, -1)

    def _inverse(self, y: Tensor) -> Tensor:
        return y.log()

    def forward_shape(self, shape: Sequence[int]) -> Sequence[int]:
        _require(shape, 1)
        return shape

    inverse_shape = forward_shape


class StickBreakingTransform(_Alike):
    """n - 1 numbers to n probabilities: each takes a share of what is left."""

    domain, codomain = constraints.real_vector, constraints.simplex

    def _offset(self, x: Tensor) -> Tensor:
        n = x.shape[-1]
        return torch.log(torch.arange(n, 0, -1, dtype=x.dtype, device=x.device))

    def _call(self, x: Tensor) -> Tensor:
        z = torch.sigmoid(x - self._offset(x))
        left = (1 - z).cumprod(-1)
        pad = torch.nn.functional.pad
        return pad(z, [0, 1], value=1) * pad(left, [1, 0], value=1)

    def _inverse(self, y: Tensor) -> Tensor:
        cropped = y[..., :-1]
        left = (1 - cropped.cumsum(-1)).clamp(min=torch.finfo(y.dtype).tiny)
        return cropped.log() - left.log() + self._offset(cropped)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        x = x - self._offset(x)
        return (-x + torch.nn.functional.logsigmoid(x) + y[..., :-1].log()).sum(-1)

    def forward_shape(self, shape: Sequence[int]) -> Sequence[int]:
        _require(shape, 1)
        return (*shape[:-1], shape[-1] + 1)

    def inverse_shape(self, shape: Sequence[int]) -> Sequence[int]:
        _require(shape, 1)
        return (*shape[:-1], shape[-1] - 1)


class LowerCholeskyTransform(_Alike):
    """Square matrices to lower triangular ones with a positive diagonal."""

    bijective = False
    domain, codomain = constraints.independent(constraints.real, 2), constraints.lower_cholesky

    def _call(self, x: Tensor) -> Tensor:
        return x.tril(-1) + x.diagonal(dim1=-2, dim2=-1).exp().diag_embed()

    def _inverse(self, y: Tensor) -> Tensor:
        return y.tril(-1) + y.diagonal(dim1=-2, dim2=-1).log().diag_embed()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return x.diagonal(dim1=-2, dim2=-1).sum(-1)


class PositiveDefiniteTransform(_Alike):
    """Square matrices to positive definite ones."""

    bijective = False
    domain, codomain = constraints.independent(constraints.real, 2), constraints.positive_definite

    def _call(self, x: Tensor) -> Tensor:
        lower = LowerCholeskyTransform()(x)
        return lower @ lower.mT

    def _inverse(self, y: Tensor) -> Tensor:
        return LowerCholeskyTransform().inv(torch.linalg.cholesky(y))


class CorrCholeskyTransform(_Alike):
    """Numbers to the Cholesky factor of a correlation matrix. Source: Stan, 10.9."""

    domain, codomain = constraints.real_vector, constraints.corr_cholesky

    def _call(self, x: Tensor) -> Tensor:
        count = x.shape[-1]
        n = round((1 + math.sqrt(1 + 8 * count)) / 2)
        if n * (n - 1) // 2 != count:
            raise ValueError(f"The last axis has {count} elements, which is not N * (N - 1) / 2")
        eps = torch.finfo(x.dtype).eps
        rows, columns = torch.tril_indices(n, n, -1, device=x.device)
        flat = torch.zeros((*x.shape[:-1], n * n), dtype=x.dtype, device=x.device)
        index = (rows * n + columns).expand(x.shape)
        r = flat.scatter(-1, index, torch.tanh(x).clamp(min=-1 + eps, max=1 - eps)).reshape((*x.shape[:-1], n, n))
        left = (1 - r * r).sqrt().cumprod(-1)
        eye = torch.eye(n, dtype=x.dtype, device=x.device)
        return (r + eye) * torch.nn.functional.pad(left[..., :-1], [1, 0], value=1)

    def _inverse(self, y: Tensor) -> Tensor:
        n = y.shape[-1]
        left = torch.nn.functional.pad(1 - (y * y).cumsum(-1), [1, 0], value=1)[..., :-1]
        t = y / left.clamp_min(torch.finfo(y.dtype).tiny).sqrt()
        rows, columns = torch.tril_indices(n, n, -1, device=y.device)
        t = t[..., rows, columns]
        return (t.log1p() - (-t).log1p()) / 2

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        left = 1 - (y * y).cumsum(-1)
        half = 0.5 * left.clamp_min(torch.finfo(y.dtype).tiny).log().tril(-2)[..., :-1].sum((-2, -1))
        tanh = -2 * (x + torch.nn.functional.softplus(-2 * x) - math.log(2.0))
        return half + tanh.sum(-1)

    def forward_shape(self, shape: Sequence[int]) -> Sequence[int]:
        _require(shape, 1)
        n = round((1 + math.sqrt(1 + 8 * shape[-1])) / 2)
        if n * (n - 1) // 2 != shape[-1]:
            raise ValueError("Input is not a flattened lower-diagonal number")
        return (*shape[:-1], n, n)

    def inverse_shape(self, shape: Sequence[int]) -> Sequence[int]:
        _require(shape, 2)
        if shape[-2] != shape[-1]:
            raise ValueError("Input is not square")
        return (*shape[:-2], shape[-1] * (shape[-1] - 1) // 2)
