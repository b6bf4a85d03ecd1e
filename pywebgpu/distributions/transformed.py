"""Distributions of what a transform makes of another distribution's samples."""

from __future__ import annotations

import math
from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, Self

from pywebgpu.distributions import constraints, transforms, vector_transforms
from pywebgpu.distributions import elementwise_transforms as elementwise
from pywebgpu.distributions.continuous import Exponential
from pywebgpu.distributions.discrete import Bernoulli, Categorical
from pywebgpu.distributions.distribution import Distribution, Independent, Sizes
from pywebgpu.distributions.location_scale import Normal, Uniform
from pywebgpu.distributions.transforms import ComposeTransform, Transform
from pywebgpu.distributions.utils import broadcast_all, clamp_probs, euler_constant, sum_rightmost

if TYPE_CHECKING:
    from pywebgpu.tensor.tensor import Tensor

torch: Any = import_module("pywebgpu")


class TransformedDistribution(Distribution):
    """Samples of another distribution, put through transforms."""

    base_dist: Any
    arg_constraints: ClassVar[Any] = {}

    def __init__(
        self,
        base_distribution: Distribution,
        transforms: Transform | Sequence[Transform],
        validate_args: bool | None = None,
    ) -> None:
        parts = [transforms] if isinstance(transforms, Transform) else transforms
        if not (isinstance(parts, list) and all(isinstance(part, Transform) for part in parts)):
            raise ValueError(f"transforms must be a Transform or a list of Transforms, but was {transforms}")
        self.transforms = parts
        base = (*base_distribution.batch_shape, *base_distribution.event_shape)
        composed = ComposeTransform(self.transforms)
        shape = composed.forward_shape(base)
        grown = composed.inverse_shape(shape)
        dim = composed.domain.event_dim
        if tuple(grown) != tuple(base):
            base_distribution = base_distribution.expand(grown[: len(grown) - len(base_distribution.event_shape)])
        more = dim - len(base_distribution.event_shape)
        self.base_dist = Independent(base_distribution, more) if more > 0 else base_distribution
        events = composed.codomain.event_dim + max(len(base_distribution.event_shape) - dim, 0)
        super().__init__(shape[: len(shape) - events], shape[len(shape) - events :], validate_args=validate_args)

    @property
    def has_rsample(self) -> bool:  # type: ignore[override]
        return self.base_dist.has_rsample

    @constraints.dependent_property
    def support(self) -> constraints.Constraint:
        if not self.transforms:
            return self.base_dist.support
        constraint: Any = self.transforms[-1].codomain
        more = len(self._event_shape) - constraint.event_dim
        return constraints.independent(constraint, more) if more > 0 else constraint

    def expand(self, batch_shape: Sizes, _instance: Distribution | None = None) -> Self:
        expanded = type(self).__new__(type(self))
        expanded.__dict__.update(self.__dict__)
        shape = (*tuple(batch_shape), *self._event_shape)
        for transform in reversed(self.transforms):
            shape = tuple(transform.inverse_shape(shape))
        expanded.base_dist = self.base_dist.expand(shape[: len(shape) - len(self.base_dist.event_shape)])
        expanded._batch_shape = torch.Size(batch_shape)
        return expanded

    def sample(self, sample_shape: Sizes = ()) -> Tensor:
        with torch.no_grad():
            x = self.base_dist.sample(sample_shape)
            for transform in self.transforms:
                x = transform(x)
            return x

    def rsample(self, sample_shape: Sizes = ()) -> Tensor:
        x = self.base_dist.rsample(sample_shape)
        for transform in self.transforms:
            x = transform(x)
        return x

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        total: Any = 0.0
        dim, y = len(self._event_shape), value
        for transform in reversed(self.transforms):
            x = transform.inv(y)
            dim += transform.domain.event_dim - transform.codomain.event_dim
            total = total - sum_rightmost(transform.log_abs_det_jacobian(x, y), dim - transform.domain.event_dim)
            y = x
        return total + sum_rightmost(self.base_dist.log_prob(y), dim - len(self.base_dist.event_shape))

    def _sign(self) -> Tensor:
        signs: list[Any] = [transform.sign for transform in self.transforms]
        sign: Tensor = math.prod(signs)
        return sign

    def cdf(self, value: Tensor) -> Tensor:
        for transform in reversed(self.transforms):
            value = transform.inv(value)
        probability = self.base_dist.cdf(value)
        return self._sign() * (probability - 0.5) + 0.5

    def icdf(self, value: Tensor) -> Tensor:
        x = self.base_dist.icdf(self._sign() * (value - 0.5) + 0.5)
        for transform in self.transforms:
            x = transform(x)
        return x


class LogNormal(TransformedDistribution):
    """The exponential of a normal number."""

    arg_constraints: ClassVar[Any] = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.positive
    loc = property(lambda self: self.base_dist.loc)
    scale = property(lambda self: self.base_dist.scale)
    mean = property(lambda self: (self.loc + self.scale.pow(2) / 2).exp())
    mode = property(lambda self: (self.loc - self.scale.square()).exp())
    variance = property(lambda self: self.scale.square().expm1() * (2 * self.loc + self.scale.square()).exp())

    def __init__(self, loc: object, scale: object, validate_args: bool | None = None) -> None:
        base = Normal(loc, scale, validate_args=validate_args)
        super().__init__(base, elementwise.ExpTransform(), validate_args=validate_args)

    def entropy(self) -> Tensor:
        return self.base_dist.entropy() + self.loc


class Pareto(TransformedDistribution):
    """A power law above `scale`."""

    arg_constraints: ClassVar[Any] = {"alpha": constraints.positive, "scale": constraints.positive}
    alpha: Any
    scale: Any

    def __init__(self, scale: object, alpha: object, validate_args: bool | None = None) -> None:
        self.scale, self.alpha = broadcast_all(scale, alpha)
        base = Exponential(self.alpha, validate_args=validate_args)
        super().__init__(
            base,
            [elementwise.ExpTransform(), elementwise.AffineTransform(0, self.scale)],
            validate_args=validate_args,
        )

    def expand(self, batch_shape: Sizes, _instance: Distribution | None = None) -> Self:
        return type(self)(self.scale.expand(tuple(batch_shape)), self.alpha.expand(tuple(batch_shape)), False)

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> constraints.Constraint:
        return constraints.greater_than_eq(self.scale)

    @property
    def mean(self) -> Tensor:
        a = self.alpha.clamp(min=1)
        return a * self.scale / (a - 1)

    mode = property(lambda self: self.scale)

    @property
    def variance(self) -> Tensor:
        a = self.alpha.clamp(min=2)
        return self.scale.pow(2) * a / ((a - 1).pow(2) * (a - 2))

    def entropy(self) -> Tensor:
        return (self.scale / self.alpha).log() + (1 + self.alpha.reciprocal())


class Weibull(TransformedDistribution):
    """A power of an exponential number."""

    arg_constraints: ClassVar[Any] = {"scale": constraints.positive, "concentration": constraints.positive}
    support = constraints.positive
    scale: Any
    concentration: Any

    def __init__(self, scale: object, concentration: object, validate_args: bool | None = None) -> None:
        self.scale, self.concentration = broadcast_all(scale, concentration)
        base = Exponential(torch.ones_like(self.scale), validate_args=validate_args)
        power = elementwise.PowerTransform(self.concentration.reciprocal())
        super().__init__(base, [power, elementwise.AffineTransform(0, self.scale)], validate_args=validate_args)

    def expand(self, batch_shape: Sizes, _instance: Distribution | None = None) -> Self:
        shape = tuple(batch_shape)
        return type(self)(self.scale.expand(shape), self.concentration.expand(shape), False)

    def _moment(self, order: int) -> Tensor:
        return torch.exp(torch.lgamma(1 + order * self.concentration.reciprocal()))

    mean = property(lambda self: self.scale * self._moment(1))
    variance = property(lambda self: self.scale.pow(2) * (self._moment(2) - self._moment(1) ** 2))

    @property
    def mode(self) -> Tensor:
        k = self.concentration
        return self.scale * ((k - 1) / k) ** k.reciprocal()

    def entropy(self) -> Tensor:
        inverse = self.concentration.reciprocal()
        return euler_constant * (1 - inverse) + torch.log(self.scale * inverse) + 1


class Kumaraswamy(TransformedDistribution):
    """Nearly a beta distribution, with a closed inverse."""

    arg_constraints: ClassVar[Any] = {"concentration1": constraints.positive, "concentration0": constraints.positive}
    support = constraints.unit_interval
    concentration1: Any
    concentration0: Any

    def __init__(self, concentration1: object, concentration0: object, validate_args: bool | None = None) -> None:
        a, b = self.concentration1, self.concentration0 = broadcast_all(concentration1, concentration0)
        tiny = torch.finfo(a.dtype).tiny
        base = Uniform(torch.full_like(a, tiny), torch.full_like(a, 1), validate_args=False)
        parts = [
            elementwise.PowerTransform(b.reciprocal()),
            elementwise.AffineTransform(1.0, -1.0),
            elementwise.PowerTransform(a.reciprocal()),
        ]
        super().__init__(base, parts, validate_args=validate_args)

    def expand(self, batch_shape: Sizes, _instance: Distribution | None = None) -> Self:
        shape = tuple(batch_shape)
        return type(self)(self.concentration1.expand(shape), self.concentration0.expand(shape), False)

    def _moment(self, n: int) -> Tensor:
        a, b = self.concentration1, self.concentration0
        value = 1 + n / a
        return b * torch.exp(torch.lgamma(value) + torch.lgamma(b) - torch.lgamma(value + b))

    mean = property(lambda self: self._moment(1))
    variance = property(lambda self: self._moment(2) - self._moment(1).pow(2))

    @property
    def mode(self) -> Tensor:
        a, b = self.concentration1, self.concentration0
        return torch.where((a < 1) | (b < 1), math.nan, ((a - 1) / (a * b - 1)) ** a.reciprocal())

    def entropy(self) -> Tensor:
        a, b = self.concentration1, self.concentration0
        t1, t0 = 1 - a.reciprocal(), 1 - b.reciprocal()
        return t0 + t1 * (torch.digamma(b + 1) + euler_constant) - torch.log(a) - torch.log(b)


class LogisticNormal(TransformedDistribution):
    """Probabilities made of normal numbers by breaking a stick."""

    arg_constraints: ClassVar[Any] = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.simplex

    def __init__(self, loc: object, scale: object, validate_args: bool | None = None) -> None:
        base: Any = Normal(loc, scale, validate_args=validate_args)
        if not base.batch_shape:
            base = base.expand([1])
        super().__init__(base, vector_transforms.StickBreakingTransform(), validate_args=validate_args)

    loc = property(lambda self: self.base_dist.base_dist.loc)
    scale = property(lambda self: self.base_dist.base_dist.scale)


class _LogitRelaxedBernoulli(Distribution):
    """The logits of relaxed coins. Source: Maddison, Mnih, Teh 2017."""

    has_rsample = True
    support = constraints.real

    def __init__(self, temperature: object, probs: object, logits: object) -> None:
        self.temperature: Any = temperature
        parameter = self._either(probs, logits, is_vector=False)
        self._coin = Bernoulli(probs=probs, logits=logits, validate_args=False)
        super().__init__(parameter.shape, validate_args=False)

    def __getattr__(self, name: str) -> Tensor:
        if name not in ("probs", "logits") or "_coin" not in self.__dict__:
            raise AttributeError(name)
        return getattr(self._coin, name)

    def rsample(self, sample_shape: Sizes = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        probs = clamp_probs(self.probs.expand(shape))
        u = clamp_probs(torch.rand(shape, dtype=probs.dtype, device=probs.device))
        return (u.log() - (-u).log1p() + probs.log() - (-probs).log1p()) / self.temperature

    def log_prob(self, value: Tensor) -> Tensor:
        logits, value = torch.broadcast_tensors(self.logits, value)
        diff = logits - value * self.temperature
        return _log(self.temperature) + diff - 2 * diff.exp().log1p()


def _log(value: Tensor) -> Tensor:
    return torch.log(torch.as_tensor(value))


class _Relaxed(TransformedDistribution):
    """Choices with a gradient: `_raw` at a temperature, made into probabilities by `_link`."""

    _raw: ClassVar[Any]
    _link: ClassVar[type[transforms.Transform]]

    def __init__(
        self,
        temperature: object,
        probs: object = None,
        logits: object = None,
        validate_args: bool | None = None,
    ) -> None:
        super().__init__(self._raw(temperature, probs, logits), self._link(), validate_args=validate_args)

    temperature = property(lambda self: self.base_dist.temperature)
    probs = property(lambda self: self.base_dist.probs)
    logits = property(lambda self: self.base_dist.logits)


class RelaxedBernoulli(_Relaxed):
    """A coin with a gradient: nearly 0 or 1 at low temperatures."""

    arg_constraints: ClassVar[Any] = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    _raw, _link = _LogitRelaxedBernoulli, elementwise.SigmoidTransform


class _ExpRelaxedCategorical(Distribution):
    """The logarithm of relaxed choices."""

    has_rsample = True
    support = constraints.real_vector

    def __init__(self, temperature: object, probs: object, logits: object) -> None:
        self._categorical = Categorical(probs, logits, validate_args=False)
        self.temperature: Any = temperature
        super().__init__(self._categorical.batch_shape, self._categorical.param_shape[-1:], validate_args=False)

    probs = property(lambda self: self._categorical.probs)
    logits = property(lambda self: self._categorical.logits)

    def rsample(self, sample_shape: Sizes = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        u = clamp_probs(torch.rand(shape, dtype=self.logits.dtype, device=self.logits.device))
        scores = (self.logits - (-(u.log())).log()) / self.temperature
        return scores - scores.logsumexp(dim=-1, keepdim=True)

    def log_prob(self, value: Tensor) -> Tensor:
        n = self._event_shape[0]
        logits, value = torch.broadcast_tensors(self.logits, value)
        normal = math.lgamma(n) + _log(self.temperature) * (n - 1)
        score = logits - value * self.temperature
        return (score - score.logsumexp(dim=-1, keepdim=True)).sum(-1) + normal


class RelaxedOneHotCategorical(_Relaxed):
    """A choice with a gradient: nearly one-hot at low temperatures (Gumbel softmax)."""

    arg_constraints: ClassVar[Any] = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.simplex
    _raw, _link = _ExpRelaxedCategorical, elementwise.ExpTransform
