"""Distributions of one real number: of gamma numbers, of angles, and others."""

from __future__ import annotations

import math
from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar

from pywebgpu.distributions import constraints, sampling
from pywebgpu.distributions.distribution import Distribution, ExponentialFamily, Sizes
from pywebgpu.distributions.utils import broadcast_all, clamp_probs, lazy_property, probs_to_logits

if TYPE_CHECKING:
    from pywebgpu.tensor.tensor import Tensor

torch: Any = import_module("pywebgpu")
_SCALED = {"loc": constraints.real, "scale": constraints.positive}


class Exponential(ExponentialFamily):
    """How long one waits for an event of a rate."""

    arg_constraints: ClassVar[Any] = {"rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    rate: Any

    def __init__(self, rate: object, validate_args: bool | None = None) -> None:
        self._set(validate_args, rate=rate)

    mean = stddev = property(lambda self: self.rate.reciprocal())
    mode = property(lambda self: torch.zeros_like(self.rate))
    variance = property(lambda self: self.rate.pow(-2))

    def rsample(self, sample_shape: Sizes = ()) -> Tensor:
        return -torch.log(self._draw(sample_shape)) / self.rate

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        return self.rate.log() - self.rate * value

    def cdf(self, value: Tensor) -> Tensor:
        return 1 - torch.exp(-self.rate * value)

    def icdf(self, value: Tensor) -> Tensor:
        return -torch.log1p(-value) / self.rate

    def entropy(self) -> Tensor:
        return 1 - torch.log(self.rate)

    @property
    def _natural_params(self) -> tuple[Any, ...]:
        return (-self.rate,)

    def _log_normalizer(self, x: Tensor) -> Tensor:
        return -torch.log(-x)


class Gamma(ExponentialFamily):
    """The sum of exponential numbers of a rate, of any count."""

    arg_constraints: ClassVar[Any] = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    concentration: Any
    rate: Any

    def __init__(self, concentration: object, rate: object, validate_args: bool | None = None) -> None:
        self._set(validate_args, concentration=concentration, rate=rate)

    mean = property(lambda self: self.concentration / self.rate)
    mode = property(lambda self: ((self.concentration - 1) / self.rate).clamp(min=0))
    variance = property(lambda self: self.concentration / self.rate.pow(2))

    def rsample(self, sample_shape: Sizes = ()) -> Tensor:
        drawn = sampling.standard_gamma(self.concentration.expand(self._extended_shape(sample_shape)))
        return (drawn / self.rate).clamp_min(torch.finfo(self.rate.dtype).tiny)

    def log_prob(self, value: Tensor) -> Tensor:
        value = torch.as_tensor(value, dtype=self.rate.dtype, device=self.rate.device)
        self._validate_sample(value)
        a, rate = self.concentration, self.rate
        return torch.xlogy(a, rate) + torch.xlogy(a - 1, value) - rate * value - torch.lgamma(a)

    def cdf(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        return torch.special.gammainc(self.concentration, self.rate * value)

    def entropy(self) -> Tensor:
        a = self.concentration
        return a - torch.log(self.rate) + torch.lgamma(a) + (1.0 - a) * torch.digamma(a)

    @property
    def _natural_params(self) -> tuple[Any, ...]:
        return self.concentration - 1, -self.rate

    def _log_normalizer(self, x: Tensor, y: Tensor) -> Tensor:
        return torch.lgamma(x + 1) + (x + 1) * torch.log(-y.reciprocal())


class Chi2(Gamma):
    """The sum of squares of `df` normal numbers."""

    arg_constraints: ClassVar[Any] = {"df": constraints.positive}

    def __init__(self, df: object, validate_args: bool | None = None) -> None:
        (degrees,) = broadcast_all(df)
        super().__init__(0.5 * degrees, 0.5, validate_args=validate_args)

    df = property(lambda self: self.concentration * 2)


class InverseGamma(Distribution):
    """One over a gamma number."""

    arg_constraints: ClassVar[Any] = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.positive
    has_rsample = True

    def __init__(self, concentration: object, rate: object, validate_args: bool | None = None) -> None:
        self.base_dist = Gamma(concentration, rate, validate_args=validate_args)
        super().__init__(self.base_dist.batch_shape, validate_args=validate_args)

    concentration = property(lambda self: self.base_dist.concentration)
    rate = property(lambda self: self.base_dist.rate)
    mode = property(lambda self: self.rate / (self.concentration + 1))

    @property
    def mean(self) -> Tensor:
        return torch.where(self.concentration > 1, self.rate / (self.concentration - 1), math.inf)

    @property
    def variance(self) -> Tensor:
        a = self.concentration
        return torch.where(a > 2, self.rate.square() / ((a - 1).square() * (a - 2)), math.inf)

    def rsample(self, sample_shape: Sizes = ()) -> Tensor:
        return self.base_dist.rsample(sample_shape).reciprocal()

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        return self.base_dist.log_prob(value.reciprocal()) - 2 * value.log()

    def cdf(self, value: Tensor) -> Tensor:
        return 1 - self.base_dist.cdf(value.reciprocal())

    def entropy(self) -> Tensor:
        a = self.concentration
        return a + self.rate.log() + a.lgamma() - (1 + a) * a.digamma()


class Beta(ExponentialFamily):
    """Numbers between 0 and 1: the share of one gamma number in two."""

    arg_constraints: ClassVar[Any] = {"concentration1": constraints.positive, "concentration0": constraints.positive}
    support = constraints.unit_interval
    has_rsample = True
    concentration1: Any
    concentration0: Any

    def __init__(self, concentration1: object, concentration0: object, validate_args: bool | None = None) -> None:
        self._set(validate_args, concentration1=concentration1, concentration0=concentration0)

    _total = property(lambda self: self.concentration1 + self.concentration0)
    mean = property(lambda self: self.concentration1 / self._total)
    variance = property(
        lambda self: self.concentration1 * self.concentration0 / (self._total.pow(2) * (self._total + 1))
    )

    @property
    def mode(self) -> Tensor:
        a, b = self.concentration1, self.concentration0
        inner, first = (a - 1) / (a + b - 2), ((a >= b) & (a != b)).to(a.dtype)
        edge = torch.where((a == b) & (a <= 1), math.nan, first)
        return torch.where((a > 1) & (b > 1), inner, edge)

    def rsample(self, sample_shape: Sizes = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        both = [value.expand(shape) for value in (self.concentration1, self.concentration0)]
        return clamp_probs(sampling.dirichlet(torch.stack(both, -1))[..., 0])

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        a, b = self.concentration1, self.concentration0
        normal = torch.lgamma(a + b) - torch.lgamma(a) - torch.lgamma(b)
        return torch.xlogy(a - 1, value) + torch.xlogy(b - 1, 1 - value) + normal

    def entropy(self) -> Tensor:
        a, b, total = self.concentration1, self.concentration0, self._total
        beta = torch.lgamma(a) + torch.lgamma(b) - torch.lgamma(total)
        digammas = (a - 1) * torch.digamma(a) + (b - 1) * torch.digamma(b)
        return beta - digammas + (total - 2) * torch.digamma(total)

    @property
    def _natural_params(self) -> tuple[Any, ...]:
        return self.concentration1, self.concentration0

    def _log_normalizer(self, x: Tensor, y: Tensor) -> Tensor:
        return torch.lgamma(x) + torch.lgamma(y) - torch.lgamma(x + y)


class StudentT(Distribution):
    """A normal number over the root of a chi-squared one's mean."""

    arg_constraints: ClassVar[Any] = {"df": constraints.positive, **_SCALED}
    support = constraints.real
    has_rsample = True
    df: Any
    loc: Any
    scale: Any

    def __init__(self, df: object, loc: object = 0.0, scale: object = 1.0, validate_args: bool | None = None) -> None:
        self._set(validate_args, df=df, loc=loc, scale=scale)

    mode = property(lambda self: self.loc)

    @property
    def mean(self) -> Tensor:
        return torch.where(self.df > 1, self.loc, math.nan)

    @property
    def variance(self) -> Tensor:
        finite = self.scale.pow(2) * self.df / (self.df - 2)
        return torch.where(self.df > 2, finite, torch.where(self.df > 1, math.inf, math.nan))

    def rsample(self, sample_shape: Sizes = ()) -> Tensor:
        z = Chi2(self.df, validate_args=False).rsample(sample_shape)
        return self.loc + self.scale * self._draw(sample_shape, "randn") * torch.rsqrt(z / self.df)

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        df, y = self.df, (value - self.loc) / self.scale
        normal = self.scale.log() + 0.5 * df.log() + 0.5 * math.log(math.pi) + torch.lgamma(0.5 * df)
        return -0.5 * (df + 1) * torch.log1p(y**2 / df) - normal + torch.lgamma(0.5 * (df + 1))

    def entropy(self) -> Tensor:
        df = self.df
        beta = torch.lgamma(0.5 * df) + math.lgamma(0.5) - torch.lgamma(0.5 * (1 + df))
        half = 0.5 * (df + 1)
        return self.scale.log() + half * (torch.digamma(half) - torch.digamma(0.5 * df)) + 0.5 * df.log() + beta


class FisherSnedecor(Distribution):
    """The ratio of the means of two chi-squared numbers."""

    arg_constraints: ClassVar[Any] = {"df1": constraints.positive, "df2": constraints.positive}
    support = constraints.positive
    has_rsample = True
    df1: Any
    df2: Any

    def __init__(self, df1: object, df2: object, validate_args: bool | None = None) -> None:
        self._set(validate_args, df1=df1, df2=df2)

    @property
    def mean(self) -> Tensor:
        return torch.where(self.df2 > 2, self.df2 / (self.df2 - 2), math.nan)

    @property
    def mode(self) -> Tensor:
        peak = (self.df1 - 2) / self.df1 * self.df2 / (self.df2 + 2)
        return torch.where(self.df1 > 2, peak, math.nan)

    @property
    def variance(self) -> Tensor:
        a, b = self.df1, self.df2
        spread = 2 * b.pow(2) * (a + b - 2) / (a * (b - 2).pow(2) * (b - 4))
        return torch.where(b > 4, spread, math.nan)

    def rsample(self, sample_shape: Sizes = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        numerator, other = (sampling.standard_gamma((df * 0.5).expand(shape)) / df for df in (self.df1, self.df2))
        return numerator / other

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        a, b, ratio = self.df1 * 0.5, self.df2 * 0.5, self.df1 / self.df2
        normal = (a + b).lgamma() - a.lgamma() - b.lgamma()
        return normal + a * ratio.log() + (a - 1) * torch.log(value) - (a + b) * torch.log1p(ratio * value)


def _log_bessel(x: Tensor, order: int) -> Tensor:
    """log of the modified Bessel function. Source: Abramowitz, Stegun, 9.8.1 to 9.8.4."""
    small, large = _BESSEL[order]
    y = (x / 3.75) ** 2
    low = _polynomial(y, small)
    low = torch.log(x.abs() * low if order == 1 else low)
    high = x - 0.5 * x.log() + torch.log(_polynomial(3.75 / x, large))
    return torch.where(x < 3.75, low, high)


def _polynomial(x: Tensor, factors: Sequence[float]) -> Tensor:
    total = torch.full_like(x, factors[-1])
    for factor in factors[-2::-1]:
        total = factor + x * total
    return total


_BESSEL = (
    (
        (1.0, 3.5156229, 3.0899424, 1.2067492, 0.2659732, 0.360768e-1, 0.45813e-2),
        (0.39894228, 0.1328592e-1, 0.225319e-2, -0.157565e-2, 0.916281e-2, -0.2057706e-1, 0.2635537e-1, -0.1647633e-1,
         0.392377e-2),
    ),
    (
        (0.5, 0.87890594, 0.51498869, 0.15084934, 0.2658733e-1, 0.301532e-2, 0.32411e-3),
        (0.39894228, -0.3988024e-1, -0.362018e-2, 0.163801e-2, -0.1031555e-1, 0.2282967e-1, -0.2895312e-1,
         0.1787654e-1, -0.420059e-2),
    ),
)  # fmt: skip


class VonMises(Distribution):
    """Angles around `loc`."""

    arg_constraints: ClassVar[Any] = {"loc": constraints.real, "concentration": constraints.positive}
    support = constraints.real
    loc: Any
    concentration: Any

    def __init__(self, loc: object, concentration: object, validate_args: bool | None = None) -> None:
        self._set(validate_args, loc=loc, concentration=concentration)

    mean = mode = property(lambda self: self.loc)

    @property
    def variance(self) -> Tensor:
        return 1 - torch.exp(_log_bessel(self.concentration, 1) - _log_bessel(self.concentration, 0))

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        k = self.concentration
        return k * torch.cos(value - self.loc) - math.log(2 * math.pi) - _log_bessel(k, 0)

    def sample(self, sample_shape: Sizes = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        with torch.no_grad():
            return sampling.von_mises(self.loc.expand(shape), self.concentration.expand(shape))


class ContinuousBernoulli(ExponentialFamily):
    """Numbers between 0 and 1, whose density is that of a coin. Source: Loaiza-Ganem, Cunningham 2019."""

    arg_constraints: ClassVar[Any] = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    has_rsample = True
    _mean_carrier_measure = 0

    def __init__(
        self,
        probs: object = None,
        logits: object = None,
        lims: tuple[float, float] = (0.499, 0.501),
        validate_args: bool | None = None,
    ) -> None:
        parameter = self._either(probs, logits, is_vector=False)
        self._lims = lims
        super().__init__(parameter.shape, validate_args=validate_args)
        if logits is None:  # Checked as it came: 0 and 1 have no finite logits.
            self.probs = clamp_probs(parameter)

    @lazy_property
    def logits(self) -> Tensor:
        return probs_to_logits(self.probs, is_binary=True)

    @lazy_property
    def probs(self) -> Tensor:
        return clamp_probs(torch.sigmoid(self.logits))

    def _apart(self) -> tuple[Any, Any]:
        """Whether the density is far from even, and the probabilities, moved out of where it is even."""
        p = clamp_probs(self.probs)
        far = (p <= self._lims[0]) | (p > self._lims[1])
        return far, torch.where(far, p, self._lims[0] * torch.ones_like(p))

    def _log_norm(self) -> Tensor:
        far, cut = self._apart()
        exact = torch.log(torch.abs(torch.log1p(-cut) - torch.log(cut))) - torch.where(
            cut <= 0.5, torch.log1p(-2 * cut.clamp_max(0.5)), torch.log(2 * cut.clamp_min(0.5) - 1)
        )
        x = (self.probs - 0.5) ** 2
        return torch.where(far, exact, math.log(2.0) + (4 / 3 + 104 / 45 * x) * x)

    @property
    def mean(self) -> Tensor:
        far, cut = self._apart()
        exact = cut / (2 * cut - 1) + 1 / (torch.log1p(-cut) - torch.log(cut))
        x = self.probs - 0.5
        return torch.where(far, exact, 0.5 + (1 / 3 + 16 / 45 * x**2) * x)

    @property
    def variance(self) -> Tensor:
        far, cut = self._apart()
        exact = cut * (cut - 1) / (1 - 2 * cut) ** 2 + 1 / (torch.log1p(-cut) - torch.log(cut)) ** 2
        x = (self.probs - 0.5) ** 2
        return torch.where(far, exact, 1 / 12 - (1 / 15 - 128 / 945 * x) * x)

    def rsample(self, sample_shape: Sizes = ()) -> Tensor:
        return self.icdf(self._draw(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        logits, value = torch.broadcast_tensors(self.logits, value)
        log_density = -torch.nn.functional.binary_cross_entropy_with_logits(logits, value, reduction="none")
        return log_density + self._log_norm()

    def cdf(self, value: Tensor) -> Tensor:
        far, cut = self._apart()
        exact = (cut.pow(value) * (1 - cut).pow(1 - value) + cut - 1) / (2 * cut - 1)
        return torch.where(far, exact, value).clamp(0, 1)

    def icdf(self, value: Tensor) -> Tensor:
        far, cut = self._apart()
        top = torch.log1p(-cut + value * (2 * cut - 1)) - torch.log1p(-cut)
        return torch.where(far, top / (torch.log(cut) - torch.log1p(-cut)), value)

    def entropy(self) -> Tensor:
        low, high = torch.log1p(-self.probs), torch.log(self.probs)
        return self.mean * (low - high) - self._log_norm() - low

    @property
    def _natural_params(self) -> tuple[Any, ...]:
        return (self.logits,)

    def _log_normalizer(self, x: Tensor) -> Tensor:
        """log((e^x - 1) / x), by its series around 0."""
        far = (x <= self._lims[0] - 0.5) | (x > self._lims[1] - 0.5)
        cut = torch.where(far, x, (self._lims[0] - 0.5) * torch.ones_like(x))
        exact = torch.log(torch.abs(torch.expm1(cut))) - torch.log(torch.abs(cut))
        return torch.where(far, exact, x / 2 + x**2 / 24 - x**4 / 2880)
