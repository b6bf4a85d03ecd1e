"""Distributions that a location and a scale make of one, halves of them, and uniform numbers."""

from __future__ import annotations

import math
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar

from pywebgpu.distributions import constraints
from pywebgpu.distributions.distribution import Distribution, ExponentialFamily, Sizes
from pywebgpu.distributions.utils import euler_constant

if TYPE_CHECKING:
    from pywebgpu.tensor.tensor import Tensor

torch: Any = import_module("pywebgpu")
_SCALED = {"loc": constraints.real, "scale": constraints.positive}


class _LocationScale(Distribution):
    """loc + scale * z, where z has a distribution without parameters."""

    arg_constraints: ClassVar[Any] = _SCALED
    support = constraints.real
    has_rsample = True
    loc: Any
    scale: Any

    def __init__(self, loc: object, scale: object, validate_args: bool | None = None) -> None:
        self._set(validate_args, loc=loc, scale=scale)

    mean = mode = property(lambda self: self.loc)

    def _z(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        return (value - self.loc) / self.scale

    def rsample(self, sample_shape: Sizes = ()) -> Tensor:
        return self.icdf(self._draw(sample_shape))


class Normal(_LocationScale, ExponentialFamily):
    """The normal distribution of a mean `loc` and a standard deviation `scale`."""

    stddev = property(lambda self: self.scale)
    variance = property(lambda self: self.scale**2)

    def sample(self, sample_shape: Sizes = ()) -> Tensor:
        with torch.no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape: Sizes = ()) -> Tensor:
        return self.loc + self._draw(sample_shape, "randn") * self.scale

    def log_prob(self, value: Tensor) -> Tensor:
        return -(self._z(value) ** 2) / 2 - self.scale.log() - math.log(math.sqrt(2 * math.pi))

    def cdf(self, value: Tensor) -> Tensor:
        return 0.5 * (1 + torch.erf(self._z(value) / math.sqrt(2)))

    def icdf(self, value: Tensor) -> Tensor:
        return self.loc + self.scale * torch.erfinv(2 * value - 1) * math.sqrt(2)

    def entropy(self) -> Tensor:
        return 0.5 + 0.5 * math.log(2 * math.pi) + torch.log(self.scale)

    @property
    def _natural_params(self) -> tuple[Any, ...]:
        return self.loc / self.scale**2, -0.5 * self.scale.pow(2).reciprocal()

    def _log_normalizer(self, x: Tensor, y: Tensor) -> Tensor:
        return -0.25 * x.pow(2) / y + 0.5 * torch.log(-math.pi / y)


class Laplace(_LocationScale):
    """Two exponential distributions, back to back."""

    stddev = property(lambda self: math.sqrt(2) * self.scale)
    variance = property(lambda self: 2 * self.scale**2)

    def log_prob(self, value: Tensor) -> Tensor:
        return -torch.log(2 * self.scale) - self._z(value).abs()

    def cdf(self, value: Tensor) -> Tensor:
        z = self._z(value)
        return 0.5 - 0.5 * z.sign() * torch.expm1(-z.abs())

    def icdf(self, value: Tensor) -> Tensor:
        term = value - 0.5
        return self.loc - self.scale * term.sign() * torch.log1p(-2 * term.abs())

    def entropy(self) -> Tensor:
        return 1 + torch.log(2 * self.scale)


class Cauchy(_LocationScale):
    """The ratio of two normal numbers."""

    mean = property(lambda self: torch.full_like(self.loc, math.nan))
    variance = property(lambda self: torch.full_like(self.loc, math.inf))

    def log_prob(self, value: Tensor) -> Tensor:
        return -math.log(math.pi) - self.scale.log() - torch.log1p(self._z(value) ** 2)

    def cdf(self, value: Tensor) -> Tensor:
        return torch.atan(self._z(value)) / math.pi + 0.5

    def icdf(self, value: Tensor) -> Tensor:
        return torch.tan(math.pi * (value - 0.5)) * self.scale + self.loc

    def entropy(self) -> Tensor:
        return math.log(4 * math.pi) + self.scale.log()


class Gumbel(_LocationScale):
    """The largest of many numbers."""

    mean = property(lambda self: self.loc + self.scale * euler_constant)
    stddev = property(lambda self: (math.pi / math.sqrt(6)) * self.scale)
    variance = property(lambda self: self.stddev.pow(2))

    def log_prob(self, value: Tensor) -> Tensor:
        y = -self._z(value)
        return y - y.exp() - self.scale.log()

    def cdf(self, value: Tensor) -> Tensor:
        return torch.exp(-torch.exp(-self._z(value)))

    def icdf(self, value: Tensor) -> Tensor:
        finfo = torch.finfo(self.loc.dtype)
        return self.loc - self.scale * torch.log(-torch.log(value.clamp(finfo.tiny, 1 - finfo.eps)))

    def entropy(self) -> Tensor:
        return self.scale.log() + (1 + euler_constant)


class _Half(Distribution):
    """The absolute value of a distribution around 0."""

    arg_constraints: ClassVar[Any] = {"scale": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    base_dist: Any

    scale = property(lambda self: self.base_dist.scale)
    mode = property(lambda self: torch.zeros_like(self.scale))

    def _whole(self, base: _LocationScale, validate_args: bool | None) -> None:
        self.base_dist = base
        Distribution.__init__(self, base.batch_shape, validate_args=validate_args)

    def rsample(self, sample_shape: Sizes = ()) -> Tensor:
        return self.base_dist.rsample(sample_shape).abs()

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        return torch.where(value >= 0, self.base_dist.log_prob(value.abs()) + math.log(2), -math.inf)

    def cdf(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        return 2 * self.base_dist.cdf(value) - 1

    def icdf(self, prob: Tensor) -> Tensor:
        return self.base_dist.icdf((prob + 1) / 2)

    def entropy(self) -> Tensor:
        return self.base_dist.entropy() - math.log(2)


class HalfNormal(_Half):
    """The absolute value of a normal number."""

    def __init__(self, scale: object, validate_args: bool | None = None) -> None:
        self._whole(Normal(0, scale, validate_args=False), validate_args)

    mean = property(lambda self: self.scale * math.sqrt(2 / math.pi))
    variance = property(lambda self: self.scale.pow(2) * (1 - 2 / math.pi))


class HalfCauchy(_Half):
    """The absolute value of a Cauchy number."""

    def __init__(self, scale: object, validate_args: bool | None = None) -> None:
        self._whole(Cauchy(0, scale, validate_args=False), validate_args)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validates():
            self._validate_sample(value)
        return super().log_prob(torch.as_tensor(value, dtype=self.scale.dtype, device=self.scale.device))

    mean = property(lambda self: torch.full_like(self.scale, math.inf))
    variance = property(lambda self: self.base_dist.variance)


class Uniform(Distribution):
    """All numbers of [low, high) alike."""

    has_rsample = True
    low: Any
    high: Any

    def __init__(self, low: object, high: object, validate_args: bool | None = None) -> None:
        self._set(validate_args, low=low, high=high)
        if self._validates() and self._fails(constraints.positive, self.high - self.low):
            raise ValueError("Uniform is not defined when low>= high")

    arg_constraints: ClassVar[Any] = {
        "low": constraints.dependent(is_discrete=False, event_dim=0),
        "high": constraints.dependent(is_discrete=False, event_dim=0),
    }

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> constraints.Constraint:
        return constraints.interval(self.low, self.high)

    mean = property(lambda self: (self.high + self.low) / 2)
    mode = property(lambda self: math.nan * self.high)
    stddev = property(lambda self: (self.high - self.low) / math.sqrt(12))
    variance = property(lambda self: (self.high - self.low).pow(2) / 12)

    def rsample(self, sample_shape: Sizes = ()) -> Tensor:
        like = self.low
        u = torch.rand(self._extended_shape(sample_shape), dtype=like.dtype, device=like.device)
        return self.low + u * (self.high - self.low)

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        inside = (self.low <= value) & (self.high > value)
        return torch.log(inside.to(self.low.dtype)) - torch.log(self.high - self.low)

    def cdf(self, value: Tensor) -> Tensor:
        return ((value - self.low) / (self.high - self.low)).clamp(0, 1)

    def icdf(self, value: Tensor) -> Tensor:
        return value * (self.high - self.low) + self.low

    def entropy(self) -> Tensor:
        return torch.log(self.high - self.low)


class GeneralizedPareto(_LocationScale):
    """What exceeds a high bound."""

    arg_constraints: ClassVar[Any] = {**_SCALED, "concentration": constraints.real}
    concentration: Any

    def __init__(self, loc: object, scale: object, concentration: object, validate_args: bool | None = None) -> None:
        self._set(validate_args, loc=loc, scale=scale, concentration=concentration)

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> constraints.Constraint:
        ends = self.concentration < 0
        safe = torch.where(ends, self.concentration, -1)
        return constraints.interval(self.loc, torch.where(ends, self.loc - self.scale / safe, math.inf))

    mode = property(lambda self: self.loc)

    @property
    def mean(self) -> Tensor:
        c = self.concentration
        return torch.where(c < 1, self.loc + self.scale / (1 - c), math.inf)

    @property
    def variance(self) -> Tensor:
        c = self.concentration
        return torch.where(c < 0.5, self.scale**2 / ((1 - c) ** 2 * (1 - 2 * c)), math.inf)

    def _log_tail(self, value: Tensor) -> Tensor:
        """log(1 + c z) / c, which is z where c is 0."""
        z, c = self._z(value), self.concentration
        safe = torch.where(c == 0, torch.ones_like(c), c)
        return torch.where(c == 0, z, torch.log1p(safe * z) / safe)

    def log_prob(self, value: Tensor) -> Tensor:
        return -self.scale.log() - (1 + self.concentration) * self._log_tail(value)

    def cdf(self, value: Tensor) -> Tensor:
        return -torch.expm1(-self._log_tail(value))

    def icdf(self, value: Tensor) -> Tensor:
        c, log_tail = self.concentration, -torch.log1p(-value)
        safe = torch.where(c == 0, torch.ones_like(c), c)
        return self.loc + self.scale * torch.where(c == 0, log_tail, torch.expm1(safe * log_tail) / safe)

    def entropy(self) -> Tensor:
        return self.scale.log() + self.concentration + 1
