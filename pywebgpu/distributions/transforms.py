"""Invertible functions with the logarithm of their derivative's determinant; transforms made of transforms."""

from __future__ import annotations

import math
import weakref
from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

from pywebgpu.distributions import constraints
from pywebgpu.distributions.constraints import Constraint
from pywebgpu.distributions.utils import sum_rightmost

if TYPE_CHECKING:
    from pywebgpu.tensor.tensor import Tensor

torch: Any = import_module("pywebgpu")


class Transform:
    """A function: `t(x)`, `t.inv(y)`, `t.log_abs_det_jacobian(x, y)`. With a cache it knows the last x of y."""

    bijective = False
    domain: Any = constraints.real
    codomain: Any = constraints.real
    _inverse_reference: weakref.ref[Transform] | None = None

    @property
    def sign(self) -> Tensor | int:
        """Whether it grows (1) or falls (-1), where it is monotone."""
        raise NotImplementedError

    def __init__(self, cache_size: int = 0) -> None:
        if cache_size not in (0, 1):
            raise ValueError("cache_size must be 0 or 1")
        self._cache_size = cache_size
        self._cached: tuple[Any, Any] = None, None

    @property
    def event_dim(self) -> int:
        if self.domain.event_dim == self.codomain.event_dim:
            return int(self.domain.event_dim)
        raise ValueError("Please use either .domain.event_dim or .codomain.event_dim")

    @property
    def inv(self) -> Transform:
        """The inverse: one object, as long as somebody has it."""
        inverse = None if self._inverse_reference is None else self._inverse_reference()
        if inverse is None:
            inverse = self._inverted()
            self._inverse_reference = weakref.ref(inverse)
        return inverse

    def _inverted(self) -> Transform:
        return _InverseTransform(self)

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_inverse_reference": None}

    def with_cache(self, cache_size: int = 1) -> Transform:
        copied = type(self).__new__(type(self))
        copied.__dict__.update(self.__getstate__(), _cache_size=cache_size, _cached=(None, None))
        return copied

    def __call__(self, x: Tensor) -> Tensor:
        if self._cache_size and self._cached[0] is x:
            return self._cached[1]
        y = self._call(x)
        self._cached = (x, y) if self._cache_size else (None, None)
        return y

    def _inv_call(self, y: Tensor) -> Tensor:
        if self._cache_size and self._cached[1] is y:
            return self._cached[0]
        x = self._inverse(y)
        self._cached = (x, y) if self._cache_size else (None, None)
        return x

    def _call(self, x: Tensor) -> Tensor:
        raise NotImplementedError

    def _inverse(self, y: Tensor) -> Tensor:
        raise NotImplementedError

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        raise NotImplementedError

    def forward_shape(self, shape: Sequence[int]) -> Sequence[int]:
        return shape

    def inverse_shape(self, shape: Sequence[int]) -> Sequence[int]:
        return shape

    def __eq__(self, other: object) -> bool:
        return self is other

    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class _InverseTransform(Transform):
    """Another transform backwards."""

    def __init__(self, transform: Transform) -> None:
        super().__init__()
        self._inv = transform

    inv = property(lambda self: self._inv)
    domain = property(lambda self: self._inv.codomain)
    codomain = property(lambda self: self._inv.domain)
    bijective = property(lambda self: self._inv.bijective)
    sign = property(lambda self: self._inv.sign)

    def __call__(self, x: Tensor) -> Tensor:
        return self._inv._inv_call(x)

    def _inv_call(self, y: Tensor) -> Tensor:
        return self._inv(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return -self._inv.log_abs_det_jacobian(y, x)

    def forward_shape(self, shape: Sequence[int]) -> Sequence[int]:
        return self._inv.inverse_shape(shape)

    def inverse_shape(self, shape: Sequence[int]) -> Sequence[int]:
        return self._inv.forward_shape(shape)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _InverseTransform) and self._inv == other._inv

    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return f"_InverseTransform({self._inv!r})"


class ComposeTransform(Transform):
    """Several transforms, one after the other."""

    def __init__(self, parts: Sequence[Transform], cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.parts = [part.with_cache(cache_size) if cache_size else part for part in parts]
        self._source: Transform | None = None  # what it is the inverse of

    @property
    def domain(self) -> Constraint:
        if not self.parts:
            return constraints.real
        constraint: Constraint = self.parts[0].domain
        dim = self.parts[-1].codomain.event_dim
        for part in reversed(self.parts):
            dim = max(dim + part.domain.event_dim - part.codomain.event_dim, part.domain.event_dim)
        return (
            constraints.independent(constraint, dim - constraint.event_dim)
            if dim > constraint.event_dim
            else constraint
        )

    @property
    def codomain(self) -> Constraint:
        if not self.parts:
            return constraints.real
        constraint: Constraint = self.parts[-1].codomain
        dim = self.parts[0].domain.event_dim
        for part in self.parts:
            dim = max(dim + part.codomain.event_dim - part.domain.event_dim, part.codomain.event_dim)
        return (
            constraints.independent(constraint, dim - constraint.event_dim)
            if dim > constraint.event_dim
            else constraint
        )

    bijective = property(lambda self: all(part.bijective for part in self.parts))
    sign = property(lambda self: math.prod(part.sign for part in self.parts))

    @property
    def inv(self) -> Transform:
        return super().inv if self._source is None else self._source

    def _inverted(self) -> Transform:
        inverse = ComposeTransform([part.inv for part in reversed(self.parts)])
        inverse._source = self
        return inverse

    def _call(self, x: Tensor) -> Tensor:
        for part in self.parts:
            x = part(x)
        return x

    def _inverse(self, y: Tensor) -> Tensor:
        for part in reversed(self.parts):
            y = part._inv_call(y)
        return y

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        if not self.parts:
            return torch.zeros_like(x)
        values = [x]
        for part in self.parts[:-1]:
            values.append(part(values[-1]))
        values.append(y)
        total: Any = 0
        dim = self.domain.event_dim
        for part, before, after in zip(self.parts, values, values[1:], strict=False):
            log_det = part.log_abs_det_jacobian(before, after)
            total = total + sum_rightmost(log_det, dim - part.domain.event_dim)
            dim += part.codomain.event_dim - part.domain.event_dim
        return total

    def forward_shape(self, shape: Sequence[int]) -> Sequence[int]:
        for part in self.parts:
            shape = part.forward_shape(shape)
        return shape

    def inverse_shape(self, shape: Sequence[int]) -> Sequence[int]:
        for part in reversed(self.parts):
            shape = part.inverse_shape(shape)
        return shape

    def with_cache(self, cache_size: int = 1) -> Transform:
        return self if self._cache_size == cache_size else ComposeTransform(self.parts, cache_size)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ComposeTransform) and self.parts == other.parts

    __hash__ = object.__hash__

    def __repr__(self) -> str:
        inner = ",\n    ".join(repr(part) for part in self.parts)
        return f"ComposeTransform(\n    {inner}\n)"


identity_transform = ComposeTransform([])


class IndependentTransform(Transform):
    """Another transform, some of whose last axes are parts of one event."""

    def __init__(self, base_transform: Transform, reinterpreted_batch_ndims: int, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.base_transform, self.reinterpreted_batch_ndims = base_transform, reinterpreted_batch_ndims

    domain = property(lambda self: constraints.independent(self.base_transform.domain, self.reinterpreted_batch_ndims))
    codomain = property(
        lambda self: constraints.independent(self.base_transform.codomain, self.reinterpreted_batch_ndims)
    )
    bijective = property(lambda self: self.base_transform.bijective)
    sign = property(lambda self: self.base_transform.sign)

    def __repr__(self) -> str:
        return f"IndependentTransform({self.base_transform!r}, {self.reinterpreted_batch_ndims})"

    def _call(self, x: Tensor) -> Tensor:
        return self.base_transform(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return self.base_transform._inv_call(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return sum_rightmost(self.base_transform.log_abs_det_jacobian(x, y), self.reinterpreted_batch_ndims)


class ReshapeTransform(Transform):
    """Another shape of each event."""

    bijective = True

    def __init__(self, in_shape: Sequence[int], out_shape: Sequence[int], cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.in_shape, self.out_shape = torch.Size(in_shape), torch.Size(out_shape)
        if self.in_shape.numel() != self.out_shape.numel():
            raise ValueError("in_shape, out_shape have different numbers of elements")

    domain = property(lambda self: constraints.independent(constraints.real, len(self.in_shape)))
    codomain = property(lambda self: constraints.independent(constraints.real, len(self.out_shape)))

    def _call(self, x: Tensor) -> Tensor:
        return x.reshape((*x.shape[: x.dim() - len(self.in_shape)], *self.out_shape))

    def _inverse(self, y: Tensor) -> Tensor:
        return y.reshape((*y.shape[: y.dim() - len(self.out_shape)], *self.in_shape))

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return x.new_zeros(x.shape[: x.dim() - len(self.in_shape)])

    def forward_shape(self, shape: Sequence[int]) -> Sequence[int]:
        return self._reshaped(shape, self.in_shape, self.out_shape)

    def inverse_shape(self, shape: Sequence[int]) -> Sequence[int]:
        return self._reshaped(shape, self.out_shape, self.in_shape)

    @staticmethod
    def _reshaped(shape: Sequence[int], old: Sequence[int], new: Sequence[int]) -> Sequence[int]:
        if len(shape) < len(old):
            raise ValueError("Too few dimensions on input")
        start = len(shape) - len(old)
        if tuple(shape[start:]) != tuple(old):
            raise ValueError(f"Shape mismatch: expected {shape[start:]} but got {old}")
        return (*shape[:start], *new)


class _Alike(Transform):
    """A function of each number without parameters: all of a class are equal."""

    bijective = True

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other)

    __hash__ = object.__hash__


class CatTransform(Transform):
    """Transforms of parts along an axis."""

    def __init__(
        self, tseq: Sequence[Transform], dim: int = 0, lengths: Sequence[int] | None = None, cache_size: int = 0
    ) -> None:
        super().__init__(cache_size)
        self.transforms, self.dim = [part.with_cache(cache_size) if cache_size else part for part in tseq], dim
        self.lengths = [1] * len(self.transforms) if lengths is None else list(lengths)

    domain = property(lambda self: constraints.cat([t.domain for t in self.transforms], self.dim, self.lengths))
    codomain = property(lambda self: constraints.cat([t.codomain for t in self.transforms], self.dim, self.lengths))
    bijective = property(lambda self: all(t.bijective for t in self.transforms))

    def _parts(self, value: Tensor) -> Sequence[Tensor]:
        return value.split(self.lengths, self.dim)

    def _whole(self, parts: list[Tensor]) -> Tensor:
        return torch.cat(parts, self.dim)

    def _call(self, x: Tensor) -> Tensor:
        return self._whole([t(part) for t, part in zip(self.transforms, self._parts(x), strict=True)])

    def _inverse(self, y: Tensor) -> Tensor:
        return self._whole([t._inv_call(part) for t, part in zip(self.transforms, self._parts(y), strict=True)])

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        parts = list(zip(self.transforms, self._parts(x), self._parts(y), strict=True))
        log_dets: list[Any] = [t.log_abs_det_jacobian(a, b) for t, a, b in parts]
        events = self._event_axes
        log_dets = [
            sum_rightmost(log_det, events - t.event_dim) for (t, _, _), log_det in zip(parts, log_dets, strict=True)
        ]
        if not events:
            return self._whole(log_dets)
        axis = self.dim - x.dim() if self.dim >= 0 else self.dim
        if axis + events >= 0:  # The parts are of one event.
            return sum(log_dets[1:], log_dets[0])
        return torch.cat(log_dets, axis + events)

    @property
    def _event_axes(self) -> int:
        return max(t.event_dim for t in self.transforms)


class StackTransform(CatTransform):
    """A transform for each element of an axis."""

    def __init__(self, tseq: Sequence[Transform], dim: int = 0, cache_size: int = 0) -> None:
        super().__init__(tseq, dim, cache_size=cache_size)

    domain = property(lambda self: constraints.stack([t.domain for t in self.transforms], self.dim))
    codomain = property(lambda self: constraints.stack([t.codomain for t in self.transforms], self.dim))

    def _parts(self, value: Tensor) -> Sequence[Tensor]:
        return value.unbind(self.dim)

    def _whole(self, parts: list[Tensor]) -> Tensor:
        return torch.stack(parts, self.dim)

    _event_axes = 0


def _clipped_sigmoid(x: Tensor) -> Tensor:
    """The sigmoid, with 0 and 1 outside."""
    limits = torch.finfo(x.dtype)
    return torch.clamp(torch.sigmoid(x), min=limits.tiny, max=1.0 - limits.eps)


_FILES = import_module("pywebgpu.distributions")._NAMES
_ELSEWHERE = f"{_FILES['elementwise_transforms']} {_FILES['vector_transforms']}".split()
__all__ = sorted(f"{_FILES['transforms']}".split() + _ELSEWHERE)


def __getattr__(name: str) -> object:
    """The transforms of elements and of vectors, which have files of their own."""
    if not name.endswith("Transform"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    attribute: object = getattr(import_module("pywebgpu.distributions"), name)
    return attribute
