"""Layers that normalise the channels of a batch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pywebgpu import dtypes
from pywebgpu.nn import init, norm
from pywebgpu.nn.functional import channel_norm
from pywebgpu.nn.module import Module
from pywebgpu.tensor import create
from pywebgpu.tensor.tensor import Tensor

if TYPE_CHECKING:
    from pywebgpu.dtypes import DType
    from pywebgpu.tensor.factory_options import DeviceLike


class GroupNorm(Module):
    """Groups of channels of each sample to mean 0 and variance 1, then by weight and bias of each channel."""

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-5,
        affine: bool = True,
        device: DeviceLike = None,
        dtype: DType | None = None,
        bias: bool = True,
    ) -> None:
        super().__init__()
        if num_channels % num_groups:
            raise ValueError(f"num_channels ({num_channels}) must be divisible by num_groups ({num_groups})")
        self.num_groups, self.num_channels, self.eps, self.affine = num_groups, num_channels, eps, affine
        norm.add_affine(self, (num_channels,), device, dtype, weight=affine, bias=affine and bias)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        norm.reset_affine(self)

    def forward(self, input: Tensor) -> Tensor:
        return channel_norm.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        affine = f"affine={self.affine}, bias={self.bias is not None}"
        return f"{self.num_groups}, {self.num_channels}, eps={self.eps}, {affine}"


class LocalResponseNorm(Module):
    """x over a power of the squares of its neighbours in channel order."""

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> None:
        super().__init__()
        self.size, self.alpha, self.beta, self.k = size, alpha, beta, k

    def forward(self, input: Tensor) -> Tensor:
        return channel_norm.local_response_norm(input, self.size, self.alpha, self.beta, self.k)

    def extra_repr(self) -> str:
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"


class _NormBase(Module):
    """Statistics of each channel that move with every batch: running_mean, running_var, num_batches_tracked."""

    _version = 2
    ranks: tuple[int, ...]
    running_mean: Tensor | None
    running_var: Tensor | None
    num_batches_tracked: Tensor | None

    def __init__(
        self,
        num_features: int,
        eps: float,
        momentum: float | None,
        affine: bool,
        track_running_stats: bool,
        device: DeviceLike,
        dtype: DType | None,
        bias: bool,
    ) -> None:
        super().__init__()
        self.num_features, self.eps, self.momentum = num_features, eps, momentum
        self.affine, self.track_running_stats = affine, track_running_stats
        norm.add_affine(self, (num_features,), device, dtype, weight=affine, bias=affine and bias)
        tracked = track_running_stats
        mean = create.zeros(num_features, device=device, dtype=dtype) if tracked else None
        variance = create.ones(num_features, device=device, dtype=dtype) if tracked else None
        self.register_buffer("running_mean", mean)
        self.register_buffer("running_var", variance)
        self.register_buffer(
            "num_batches_tracked", create.zeros((), dtype=dtypes.int64, device=device) if tracked else None
        )
        self.reset_parameters()

    def reset_running_stats(self) -> None:
        if self.running_mean is not None and self.running_var is not None and self.num_batches_tracked is not None:
            init.zeros_(self.running_mean)
            init.ones_(self.running_var)
            init.zeros_(self.num_batches_tracked)

    def reset_parameters(self) -> None:
        self.reset_running_stats()
        norm.reset_affine(self)

    def _check(self, input: Tensor) -> None:
        if input.ndim not in self.ranks:
            names = " or ".join(f"{rank}D" for rank in self.ranks)
            raise ValueError(f"expected {names} input (got {input.ndim}D input)")

    def _load_from_state_dict(
        self, state_dict: dict[str, Any], prefix: str, local_metadata: dict[str, Any], *rest: Any
    ) -> None:
        if (local_metadata.get("version") or 0) < 2 and self.num_batches_tracked is not None:
            state_dict.setdefault(prefix + "num_batches_tracked", create.tensor(0, dtype=dtypes.int64))
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *rest)

    def extra_repr(self) -> str:
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, "
            f"bias={self.bias is not None}, track_running_stats={self.track_running_stats}"
        )


class _BatchNorm(_NormBase):
    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: DeviceLike = None,
        dtype: DType | None = None,
        bias: bool = True,
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias)

    def forward(self, input: Tensor) -> Tensor:
        self._check(input)
        momentum: Any = 0.0 if self.momentum is None else self.momentum
        if self.training and self.num_batches_tracked is not None:
            self.num_batches_tracked.add_(1)
            if self.momentum is None:  # A plain average over all batches.
                momentum = 1.0 / self.num_batches_tracked
        own = self.training or self.running_mean is None
        tracked = not self.training or self.track_running_stats
        return channel_norm.batch_norm(
            input,
            self.running_mean if tracked else None,
            self.running_var if tracked else None,
            self.weight,
            self.bias,
            own,
            momentum,
            self.eps,
        )


class BatchNorm1d(_BatchNorm):
    """Each channel to mean 0 and variance 1 over the batch. Shapes: (n, c) or (n, c, l)."""

    ranks = (2, 3)


class BatchNorm2d(_BatchNorm):
    """Each channel to mean 0 and variance 1 over the batch. Shapes: (n, c, h, w)."""

    ranks = (4,)


class BatchNorm3d(_BatchNorm):
    """Each channel to mean 0 and variance 1 over the batch. Shapes: (n, c, d, h, w)."""

    ranks = (5,)


class _InstanceNorm(_NormBase):
    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = False,
        track_running_stats: bool = False,
        device: DeviceLike = None,
        dtype: DType | None = None,
        bias: bool = True,
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias)

    def forward(self, input: Tensor) -> Tensor:
        if input.ndim not in self.ranks:
            raise ValueError(f"expected {self.ranks[0]}D or {self.ranks[1]}D input (got {input.ndim}D input)")
        batched = input.ndim == self.ranks[1]
        x = input if batched else input.unsqueeze(0)
        out = channel_norm.instance_norm(
            x,
            self.running_mean,
            self.running_var,
            self.weight,
            self.bias,
            self.training or not self.track_running_stats,
            0.0 if self.momentum is None else self.momentum,
            self.eps,
        )
        return out if batched else out.squeeze(0)


class InstanceNorm1d(_InstanceNorm):
    """Each channel of each sample to mean 0 and variance 1. Shapes: (n, c, l) or (c, l)."""

    ranks = (2, 3)


class InstanceNorm2d(_InstanceNorm):
    """Each channel of each sample to mean 0 and variance 1. Shapes: (n, c, h, w) or (c, h, w)."""

    ranks = (3, 4)


class InstanceNorm3d(_InstanceNorm):
    """Each channel of each sample to mean 0 and variance 1. Shapes: (n, c, d, h, w) or (c, d, h, w)."""

    ranks = (4, 5)
