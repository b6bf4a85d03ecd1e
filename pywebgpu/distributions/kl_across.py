"""kl_divergence of distributions of different families: formulas for the table of kl.py."""

from __future__ import annotations

import math
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any

from pywebgpu.distributions import continuous as c
from pywebgpu.distributions import discrete as d
from pywebgpu.distributions import location_scale as loc
from pywebgpu.distributions import transformed as t
from pywebgpu.distributions.distribution import Distribution
from pywebgpu.distributions.utils import euler_constant

if TYPE_CHECKING:
    from pywebgpu.tensor.tensor import Tensor

torch: Any = import_module("pywebgpu")
Formula = Callable[[Any, Any], "Tensor"]


def _normal(p: Distribution, q: Distribution) -> Tensor:
    """Of any p with moments: minus its entropy, and the mean of the logarithm of q, which is a parabola."""
    second = p.variance + (p.mean - q.loc).pow(2)
    return -p.entropy() + 0.5 * (2 * math.pi * q.scale.pow(2)).log() + second / (2 * q.scale.pow(2))


def _exponential(p: Distribution, q: Distribution) -> Tensor:
    return -p.entropy() - q.rate.log() + q.rate * p.mean


def _continuous(p: Distribution, q: Distribution) -> Tensor:
    return -p.entropy() - p.mean * q.logits - torch.log1p(-q.probs) - q._log_norm()


def _uniform(p: Distribution, q: Distribution) -> Tensor:
    return -p.entropy() + (q.high - q.low).log()


def _gamma(p: Distribution, q: Distribution, log_mean: Tensor) -> Tensor:
    """Of p, the mean of whose logarithm is `log_mean`."""
    lead = q.concentration.lgamma() - q.concentration * q.rate.log()
    return -p.entropy() + lead - (q.concentration - 1) * log_mean + q.rate * p.mean


def _finite(divergence: Tensor, ends: Tensor) -> Tensor:
    """Infinity where p goes beyond the ends of q."""
    return torch.where(ends, math.inf, divergence)


def _bernoulli_poisson(p: Distribution, q: Distribution) -> Tensor:
    return -p.entropy() - (p.probs * q.rate.log() - q.rate)


def _beta_gamma(p: Distribution, q: Distribution) -> Tensor:
    return _gamma(p, q, p.concentration1.digamma() - (p.concentration1 + p.concentration0).digamma())


def _beta_uniform(p: Distribution, q: Distribution) -> Tensor:
    return _finite(_uniform(p, q), (q.low > 0) | (q.high < 1))


def _continuous_uniform(p: Distribution, q: Distribution) -> Tensor:
    return _finite(_uniform(p, q), (q.low >= 0) | (q.high <= 1))


def _gumbel(p: Distribution, q: Distribution, spread: Tensor) -> Tensor:
    """To a Gumbel distribution, of p with the mean `spread` of exp(-x / scale)."""
    return -p.entropy() + q.scale.log() + (p.mean - q.loc) / q.scale + (q.loc / q.scale).exp() * spread


def _exponential_gumbel(p: Distribution, q: Distribution) -> Tensor:
    product = p.rate * q.scale
    return _gumbel(p, q, product / (product + 1))


def _gamma_gumbel(p: Distribution, q: Distribution) -> Tensor:
    return _gumbel(p, q, (1 + (p.rate * q.scale).reciprocal()).pow(-p.concentration))


def _gumbel_normal(p: Distribution, q: Distribution) -> Tensor:
    ratio, mean = p.scale / q.scale, p.loc + p.scale * euler_constant
    second = (ratio * math.pi).pow(2) / 12 + ((mean - q.loc) / q.scale).pow(2) / 2
    return -ratio.log() + 0.5 * math.log(2 * math.pi) + second - (1 + euler_constant)


def _pareto_exponential(p: Distribution, q: Distribution) -> Tensor:
    return _finite(_exponential(p, q), p.alpha <= 1)


def _pareto_gamma(p: Distribution, q: Distribution) -> Tensor:
    return _finite(_gamma(p, q, p.scale.log() + p.alpha.reciprocal()), p.alpha <= 1)


def _pareto_normal(p: Distribution, q: Distribution) -> Tensor:
    return _finite(_normal(p, q), p.alpha <= 2)


def _log_mean(low: Tensor, high: Tensor) -> Tensor:
    """The mean of log x between two positive numbers."""
    return (torch.xlogy(high, high) - torch.xlogy(low, low)) / (high - low) - 1


def _uniform_beta(p: Distribution, q: Distribution) -> Tensor:
    a, b = q.concentration1, q.concentration0
    normal = a.lgamma() + b.lgamma() - (a + b).lgamma()
    logs = (a - 1) * _log_mean(p.low, p.high) + (b - 1) * _log_mean(1 - p.high, 1 - p.low)
    return _finite(normal - logs - p.entropy(), (p.high > 1) | (p.low < 0))


def _uniform_continuous(p: Distribution, q: Distribution) -> Tensor:
    return _finite(_continuous(p, q), (p.high >= 1) | (p.low <= 0))


def _uniform_exponential(p: Distribution, q: Distribution) -> Tensor:
    return _finite(_exponential(p, q), p.low < 0)


def _uniform_gamma(p: Distribution, q: Distribution) -> Tensor:
    return _finite(_gamma(p, q, _log_mean(p.low, p.high)), p.low < 0)


def _uniform_gumbel(p: Distribution, q: Distribution) -> Tensor:
    width = q.scale / (p.high - p.low)
    return _gumbel(p, q, width * ((-p.low / q.scale).exp() - (-p.high / q.scale).exp()))


def _uniform_pareto(p: Distribution, q: Distribution) -> Tensor:
    logs = (q.alpha + 1) * _log_mean(p.low, p.high) - q.alpha.log() - q.alpha * q.scale.log()
    return _finite(logs - p.entropy(), p.low < q.scale)


FORMULAS: dict[tuple[type, type], Formula] = {
    (d.Bernoulli, d.Poisson): _bernoulli_poisson,
    (c.Beta, c.ContinuousBernoulli): _continuous,
    (c.Beta, c.Exponential): _exponential,
    (c.Beta, c.Gamma): _beta_gamma,
    (c.Beta, loc.Normal): _normal,
    (c.Beta, loc.Uniform): _beta_uniform,
    (c.ContinuousBernoulli, c.Exponential): _exponential,
    (c.ContinuousBernoulli, loc.Normal): _normal,
    (c.ContinuousBernoulli, loc.Uniform): _continuous_uniform,
    (c.Exponential, loc.Gumbel): _exponential_gumbel,
    (c.Gamma, c.Exponential): _exponential,
    (c.Gamma, loc.Gumbel): _gamma_gumbel,
    (c.Gamma, loc.Normal): _normal,
    (loc.Gumbel, loc.Normal): _gumbel_normal,
    (t.Pareto, c.Exponential): _pareto_exponential,
    (t.Pareto, c.Gamma): _pareto_gamma,
    (t.Pareto, loc.Normal): _pareto_normal,
    (loc.Uniform, c.Beta): _uniform_beta,
    (loc.Uniform, c.ContinuousBernoulli): _uniform_continuous,
    (loc.Uniform, c.Exponential): _uniform_exponential,
    (loc.Uniform, c.Gamma): _uniform_gamma,
    (loc.Uniform, loc.Gumbel): _uniform_gumbel,
    (loc.Uniform, t.Pareto): _uniform_pareto,
}
