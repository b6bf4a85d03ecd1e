"""kl_divergence(p, q): a table of formulas by the classes of both."""

from __future__ import annotations

import math
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any

from pywebgpu.distributions import continuous as c
from pywebgpu.distributions import discrete as d
from pywebgpu.distributions import kl_across
from pywebgpu.distributions import location_scale as loc
from pywebgpu.distributions import multivariate as m
from pywebgpu.distributions import transformed as t
from pywebgpu.distributions.distribution import Distribution, ExponentialFamily, Independent
from pywebgpu.distributions.utils import euler_constant, sum_rightmost

if TYPE_CHECKING:
    from pywebgpu.tensor.tensor import Tensor

torch: Any = import_module("pywebgpu")
Formula = Callable[[Any, Any], "Tensor"]
_table: dict[tuple[type, type], Formula] = {}


def register_kl(type_p: type, type_q: type) -> Callable[[Formula], Formula]:
    """Decorates the formula for a pair of classes."""
    if not isinstance(type_p, type):  # Libraries have bases of their own.
        raise TypeError(f"Expected type_p to be a Distribution subclass but got {type_p}")
    if not isinstance(type_q, type):
        raise TypeError(f"Expected type_q to be a Distribution subclass but got {type_q}")

    def add(formula: Formula) -> Formula:
        _table[type_p, type_q] = formula
        return formula

    return add


def kl_divergence(p: Distribution, q: Distribution) -> Tensor:
    """The expectation of log p - log q under p. Raises NotImplementedError for pairs without a formula."""
    pairs = ((a, b) for a in type(p).__mro__ for b in type(q).__mro__)
    matches = [pair for pair in pairs if pair in _table]
    if not matches:
        raise NotImplementedError(f"No KL(p || q) is implemented for p type {type(p).__name__} and q type "
                                  f"{type(q).__name__}")  # fmt: skip
    return _table[matches[0]](p, q)


def _both(*kinds: type) -> Callable[[Formula], Formula]:
    def add(formula: Formula) -> Formula:
        for kind in kinds:
            _table[kind, kind] = formula
        return formula

    return add


@_both(d.Bernoulli)
def _bernoulli(p: Distribution, q: Distribution) -> Tensor:
    soft = torch.nn.functional.softplus
    of_ones = torch.where(q.probs == 0, math.inf, p.probs * (soft(-q.logits) - soft(-p.logits)))
    of_zeros = torch.where(q.probs == 1, math.inf, (1 - p.probs) * (soft(q.logits) - soft(p.logits)))
    return torch.where(p.probs == 0, 0.0, of_ones) + torch.where(p.probs == 1, 0.0, of_zeros)


@_both(c.Beta)
def _beta(p: Distribution, q: Distribution) -> Tensor:
    a, b, e, f = p.concentration1, p.concentration0, q.concentration1, q.concentration0
    total = a + b
    lead = e.lgamma() + f.lgamma() + total.lgamma() - (e + f).lgamma() - a.lgamma() - b.lgamma()
    return lead + (a - e) * a.digamma() + (b - f) * b.digamma() + (e + f - total) * total.digamma()


@_both(d.Binomial)
def _binomial(p: Distribution, q: Distribution) -> Tensor:
    divergence = p.total_count * (p.probs * (p.logits - q.logits) + (-p.probs).log1p() - (-q.probs).log1p())
    return torch.where(p.total_count > q.total_count, math.inf, divergence)


@_both(d.Categorical)
def _categorical(p: Distribution, q: Distribution) -> Tensor:
    divergence = p.probs * (p.logits - q.logits)
    divergence = torch.where((q.probs == 0).expand_as(divergence), math.inf, divergence)
    return torch.where((p.probs == 0).expand_as(divergence), 0.0, divergence).sum(-1)


@_both(d.OneHotCategorical)
def _one_hot(p: Distribution, q: Distribution) -> Tensor:
    return _categorical(p._categorical, q._categorical)


@_both(c.ContinuousBernoulli)
def _continuous_bernoulli(p: Distribution, q: Distribution) -> Tensor:
    lead = p.mean * (p.logits - q.logits)
    return lead + p._log_norm() + torch.log1p(-p.probs) - q._log_norm() - torch.log1p(-q.probs)


@_both(m.Dirichlet)
def _dirichlet(p: Distribution, q: Distribution) -> Tensor:
    a, b = p.concentration, q.concentration
    total = a.sum(-1)
    lead = total.lgamma() - b.sum(-1).lgamma() - (a.lgamma() - b.lgamma()).sum(-1)
    return lead + ((a - b) * (a.digamma() - total.digamma().unsqueeze(-1))).sum(-1)


@_both(c.Exponential)
def _exponential(p: Distribution, q: Distribution) -> Tensor:
    ratio = q.rate / p.rate
    return -ratio.log() + ratio - 1


@register_kl(ExponentialFamily, ExponentialFamily)
def _kl_expfamily_expfamily(p: Distribution, q: Distribution) -> Tensor:
    if type(p) is not type(q):
        raise NotImplementedError("The cross KL-divergence between different exponential families cannot be computed")
    own = [value.detach().requires_grad_() for value in p._natural_params]
    with torch.enable_grad():
        normal = p._log_normalizer(*own)
        slopes = torch.autograd.grad(normal.sum(), own, create_graph=True)
    result = q._log_normalizer(*q._natural_params) - normal
    for a, b, slope in zip(own, q._natural_params, slopes, strict=True):
        result = result - sum_rightmost((b - a) * slope, len(q.event_shape))
    return result


@_both(c.Gamma)
def _gamma(p: Distribution, q: Distribution) -> Tensor:
    lead = q.concentration * (p.rate / q.rate).log() + q.concentration.lgamma() - p.concentration.lgamma()
    middle = (p.concentration - q.concentration) * p.concentration.digamma()
    return lead + middle + (q.rate - p.rate) * (p.concentration / p.rate)


@_both(loc.Gumbel)
def _gumbel(p: Distribution, q: Distribution) -> Tensor:
    ratio, shift = p.scale / q.scale, (q.loc - p.loc) / q.scale
    return (
        -ratio.log() - shift + ratio * euler_constant + torch.exp(shift + (1 + ratio).lgamma()) - (1 + euler_constant)
    )


@_both(d.Geometric)
def _geometric(p: Distribution, q: Distribution) -> Tensor:
    return -p.entropy() - torch.log1p(-q.probs) / p.probs - q.logits


@_both(loc.HalfNormal)
def _half_normal(p: Distribution, q: Distribution) -> Tensor:
    return _normal(p.base_dist, q.base_dist)


@_both(loc.Laplace)
def _laplace(p: Distribution, q: Distribution) -> Tensor:
    ratio, distance = p.scale / q.scale, (p.loc - q.loc).abs()
    return -ratio.log() + distance / q.scale + ratio * torch.exp(-distance / p.scale) - 1


@_both(loc.HalfCauchy)
def _half_cauchy(p: Distribution, q: Distribution) -> Tensor:
    return _cauchy(p.base_dist, q.base_dist)


@_both(c.InverseGamma)
def _inverse_gamma(p: Distribution, q: Distribution) -> Tensor:
    return _gamma(p.base_dist, q.base_dist)


@_both(loc.Cauchy)
def _cauchy(p: Distribution, q: Distribution) -> Tensor:
    together = ((p.scale + q.scale).pow(2) + (p.loc - q.loc).pow(2)).log()
    return together - (4 * p.scale * q.scale).log()


@_both(loc.Normal)
def _normal(p: Distribution, q: Distribution) -> Tensor:
    ratio, shift = (p.scale / q.scale).pow(2), ((p.loc - q.loc) / q.scale).pow(2)
    return 0.5 * (ratio + shift - 1 - ratio.log())


@_both(m.MultivariateNormal, m.LowRankMultivariateNormal)
@register_kl(m.LowRankMultivariateNormal, m.MultivariateNormal)
@register_kl(m.MultivariateNormal, m.LowRankMultivariateNormal)
def _multivariate(p: Distribution, q: Distribution) -> Tensor:
    n, lower, own = p.event_shape[0], q.scale_tril, p.scale_tril
    shape = torch.broadcast_shapes(lower.shape, own.shape)
    half = m._half_log_det(lower) - m._half_log_det(own)
    trace = torch.linalg.solve_triangular(lower.expand(shape), own.expand(shape), upper=False).pow(2).sum((-2, -1))
    return half + 0.5 * (trace + m._whitened(lower, q.loc - p.loc) - n)


@_both(t.Pareto)
def _pareto(p: Distribution, q: Distribution) -> Tensor:
    scale, alpha = p.scale / q.scale, q.alpha / p.alpha
    return torch.where(p.scale < q.scale, math.inf, q.alpha * scale.log() - alpha.log() + alpha - 1)


@_both(d.Poisson)
def _poisson(p: Distribution, q: Distribution) -> Tensor:
    return p.rate * (p.rate.log() - q.rate.log()) - (p.rate - q.rate)


@_both(t.TransformedDistribution)
def _transformed(p: Distribution, q: Distribution) -> Tensor:
    if p.transforms != q.transforms or p.event_shape != q.event_shape:
        raise NotImplementedError
    return kl_divergence(p.base_dist, q.base_dist)


@_both(loc.Uniform)
def _uniform(p: Distribution, q: Distribution) -> Tensor:
    inside = (q.low <= p.low) & (q.high >= p.high)
    return torch.where(inside, ((q.high - q.low) / (p.high - p.low)).log(), math.inf)


@_both(Independent)
def _independent(p: Distribution, q: Distribution) -> Tensor:
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NotImplementedError
    return sum_rightmost(kl_divergence(p.base_dist, q.base_dist), p.reinterpreted_batch_ndims)


@register_kl(loc.Uniform, loc.Normal)
def _uniform_normal(p: Distribution, q: Distribution) -> Tensor:
    width = p.high - p.low
    lead = (math.sqrt(math.pi * 2) * q.scale / width).log()
    return lead + (width.pow(2) / 12 + ((p.high + p.low - 2 * q.loc) / 2).pow(2)) / (2 * q.scale.pow(2))


@register_kl(loc.Normal, loc.Laplace)
def _normal_laplace(p: Distribution, q: Distribution) -> Tensor:
    distance = p.loc - q.loc
    ratio, z = p.scale / q.scale, distance / p.scale
    near = math.sqrt(2 / math.pi) * p.scale * torch.exp(-0.5 * z.pow(2)) + distance * torch.erf(math.sqrt(0.5) * z)
    return -ratio.log() + near / q.scale - (0.5 + 0.5 * math.log(0.5 * math.pi))


@register_kl(loc.Normal, loc.Gumbel)
def _normal_gumbel(p: Distribution, q: Distribution) -> Tensor:
    mean, ratio = p.loc / q.scale, (p.scale / q.scale).pow(2)
    shift = q.loc / q.scale
    return (
        -0.5 * ratio.log() + mean - shift + torch.exp(-mean + 0.5 * ratio + shift) - 0.5 * (1 + math.log(2 * math.pi))
    )


@register_kl(loc.Laplace, loc.Normal)
def _laplace_normal(p: Distribution, q: Distribution) -> Tensor:
    square = q.scale.pow(2)
    ratio = p.scale.pow(2) / square
    return (
        -math.log(2)
        - 0.5 * (ratio * 2 / math.pi).log()
        + ratio
        - 1
        + math.log(2)
        + 0.5 * (p.loc - q.loc).pow(2) / square
    )


@register_kl(c.Exponential, c.Gamma)
def _exponential_gamma(p: Distribution, q: Distribution) -> Tensor:
    return _gamma(c.Gamma(torch.ones_like(p.rate), p.rate, validate_args=False), q)


@register_kl(c.Exponential, loc.Normal)
def _exponential_normal(p: Distribution, q: Distribution) -> Tensor:
    variance, rate = q.scale.pow(2), p.rate
    lead = 0.5 * torch.log(rate.pow(2) * variance * 2 * math.pi)
    return lead - 1 + (rate.pow(-2) - q.loc / rate + q.loc.pow(2) / 2) / variance


@_both(m.Wishart)
def _wishart(p: Distribution, q: Distribution) -> Tensor:
    a, b, n = p.df, q.df, p.event_shape[-1]
    own, lower = p.scale_tril, q.scale_tril
    trace = torch.linalg.solve_triangular(lower, own, upper=False).pow(2).sum((-2, -1))
    steps = torch.arange(n, dtype=a.dtype, device=a.device)
    digamma = torch.digamma(a.unsqueeze(-1) / 2 - steps / 2).sum(-1)
    normal = torch.mvlgamma(b / 2, p=n) - torch.mvlgamma(a / 2, p=n)
    half = m._half_log_det(lower) - m._half_log_det(own)
    return b * half + a * (trace - n) / 2 + normal + (a - b) / 2 * digamma


def _infinite(p: Distribution, q: Distribution) -> Tensor:
    """What q never gives, p does."""
    return torch.full(p.batch_shape, math.inf)


_BOUNDED = (c.Beta, c.ContinuousBernoulli, t.Pareto, loc.Uniform)
for _kind in (loc.Gumbel, loc.Laplace, loc.Normal):
    _table |= dict.fromkeys([(_kind, other) for other in (*_BOUNDED, c.Exponential, c.Gamma)], _infinite)
for _positive in (c.Exponential, c.Gamma):
    _table |= dict.fromkeys([(_positive, other) for other in _BOUNDED], _infinite)
_table |= dict.fromkeys([(t.Pareto, other) for other in _BOUNDED if other is not t.Pareto], _infinite)
_table |= dict.fromkeys([(d.Poisson, d.Bernoulli), (d.Poisson, d.Binomial)], _infinite)
_table |= dict.fromkeys([(c.Beta, t.Pareto), (c.ContinuousBernoulli, t.Pareto)], _infinite)
_table |= kl_across.FORMULAS
