"""Draws that are no function of one uniform number: gamma, Poisson, binomial, von Mises.

Rejection takes a fixed number of rounds, each accepted with more than 0.8: in 16 all are, but one in 10^11.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from math import pi
from typing import TYPE_CHECKING, Any

from pywebgpu.composites import bounds
from pywebgpu.errors import REFUSALS
from pywebgpu.ir.graph import thread_state
from pywebgpu.support.quadrature import gauss
from pywebgpu.tensor import random_inplace, samples
from pywebgpu.tensor.apply import apply
from pywebgpu.tensor.methods import named_by_numpy

if TYPE_CHECKING:
    from pywebgpu.autograd.function import FunctionCtx
    from pywebgpu.tensor.tensor import Tensor

torch: Any = import_module("pywebgpu")
ROUNDS = 16
NODES = 16  # of integrals
SMALL = 12.0  # a Poisson rate up to which probabilities are added up
COUNTS = 64  # counts that are added up then


def _first(accepted: Tensor, values: Tensor) -> Tensor:
    """The first value of each column that was accepted; the last one where none was."""
    rank = accepted.cumsum(0)
    hit = accepted & (rank == 1)
    return torch.where(rank[-1] > 0, (values * hit).sum(0), values[-1])


def _rounds(like: Tensor, generator: object, kind: str = "rand") -> Tensor:
    draws = getattr(torch, kind)((ROUNDS, *like.shape), dtype=like.dtype, device=like.device, generator=generator)
    return draws.clamp_min(torch.finfo(like.dtype).tiny) if kind == "rand" else draws


def standard_gamma(concentration: Tensor, generator: object = None) -> Tensor:
    """Gamma samples of rate 1, with their gradient. Source: Marsaglia, Tsang 2000."""
    return log_gamma(concentration, generator).exp().clamp_min(torch.finfo(concentration.dtype).tiny)


def log_gamma(concentration: Tensor, generator: object = None) -> Tensor:
    """Their logarithms, which say more: of a small concentration most are too small for any float."""
    _check_same(concentration)
    return _gamma().apply(concentration, generator)


def dirichlet(concentration: Tensor, generator: object = None) -> Tensor:
    """Probabilities along the last axis: the shares of gamma numbers in their sum. With PyTorch's gradient."""
    _check_same(concentration)
    return _shares().apply(concentration, generator)


_standard_gamma, _sample_dirichlet = standard_gamma, dirichlet  # their names in torch


def _check_same(*tensors: Tensor) -> None:
    if thread_state.transforms:
        samples.refuse_same(tensors)


@cache
def _gamma() -> type[Any]:
    """The function with a gradient; it needs torch's classes, which are there at the first draw."""

    class LogGamma(torch.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: FunctionCtx, a: Tensor, generator: object) -> Tensor:
            shape = torch.where(a < 1, a + 1, a)
            d = shape - 1 / 3
            x, u = _rounds(a, generator, "randn"), _rounds(a, generator)
            v = (1 + x / torch.sqrt(9 * d)) ** 3
            accepted = (v > 0) & (u.log() < 0.5 * x * x + d - d * v + d * v.clamp_min(1e-30).log())
            drawn = d * _first(accepted, torch.where(v > 0, v, torch.ones_like(v)))
            boost = torch.rand_like(a, generator=generator).clamp_min(torch.finfo(a.dtype).tiny).log() / a
            z = drawn.log() + torch.where(a < 1, boost, torch.zeros_like(boost))
            ctx.save_for_backward(a, z)
            return z

        @staticmethod
        def backward(ctx: FunctionCtx, grad: Tensor) -> tuple[Tensor, None]:
            return grad * log_gamma_derivative(*ctx.saved_tensors), None

    return LogGamma


@cache
def _shares() -> type[Any]:
    """The same of shares."""

    class Dirichlet(torch.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: FunctionCtx, concentration: Tensor, generator: object) -> Tensor:
            drawn = log_gamma(concentration, generator)
            shares = drawn.softmax(-1).clamp_min(torch.finfo(drawn.dtype).tiny)
            ctx.save_for_backward(shares, concentration)
            return shares

        @staticmethod
        def backward(ctx: FunctionCtx, grad: Tensor) -> tuple[Tensor, None]:
            shares, concentration = ctx.saved_tensors
            return dirichlet_gradient(shares, concentration, grad), None

    return Dirichlet


def dirichlet_gradient(x: Tensor, concentration: Tensor, grad_output: Tensor) -> Tensor:
    """The gradient by the concentration: each share moves as a beta number does, and takes from all others alike."""
    others = concentration.sum(-1, True) - concentration
    moved = beta_derivative(x, concentration, others) / (1 - x)
    return moved * (grad_output - (x * grad_output).sum(-1, True))


_Dirichlet_backward = dirichlet_gradient  # its name in torch


def beta_derivative(x: Tensor, a: Tensor, b: Tensor) -> Tensor:
    """dx/da where the distribution function of beta numbers stays: minus its derivative to a, over the density.

    Both are integrals over the logarithm of what is integrated over: of t below x where x is less than the mean, else
    of 1 - t above x, for which all of it is 0 together; what lies beyond e^-20 is left out.
    """
    total = a + b
    is_below = x * total < a
    start, nearer, other = torch.where(is_below, x, 1 - x), torch.where(is_below, a, b), torch.where(is_below, b, a)
    end = 20 / nearer + torch.sqrt(40 * other / (nearer * total))
    nodes, weights = _nodes(x)
    v, weight = nodes**2 * end, 2 * nodes * weights * end  # denser near 0, where the integrand is large
    near = start * torch.exp(-v)
    far = torch.log1p(-near)
    density = torch.exp((other - 1) * (far - torch.log1p(-start)) - nearer * v)
    log_t = torch.where(is_below, start.log() - v, far)
    inner = density * (log_t - torch.digamma(a) + torch.digamma(total)) * weight
    return torch.where(is_below, -start, start) * inner.sum(0)


def _nodes(like: Tensor) -> tuple[Tensor, Tensor]:
    """Where an integral from 0 to 1 looks at what is integrated, and the weights there: before all axes of a tensor."""
    shape = (NODES, *(1,) * like.dim())
    both = (torch.tensor(part, dtype=like.dtype, device=like.device).reshape(shape) for part in gauss(NODES))
    return next(both), next(both)


def gamma_derivative(a: Tensor, z: Tensor) -> Tensor:
    """dz/da where the distribution function stays."""
    return z * log_gamma_derivative(a, z.log())


def log_gamma_derivative(a: Tensor, log_z: Tensor) -> Tensor:
    """d(log z)/da where the distribution function stays: minus its derivative to a, over the density and z.

    Both are integrals of t = z e^v over v: below z where z < a, else above; what lies beyond e^-20 is left out.
    """
    q, z = 20 / a, log_z.exp()
    below = q / 3 + torch.sqrt(q * q / 9 + 2 * q)
    above = torch.minimum(torch.sqrt(40 / z), 2 + torch.log1p(40 / z))
    is_below = z < a
    end = torch.where(is_below, below, above)
    sign = torch.where(is_below, -torch.ones_like(z), torch.ones_like(z))
    nodes, weights = _nodes(a)
    v, weight = nodes**2 * end, 2 * nodes * weights * end  # denser near 0, where the integrand is large
    density = torch.exp(sign * (a * v) - z * torch.expm1(sign * v))
    inner = density * (log_z + sign * v - torch.digamma(a)) * weight
    return sign * inner.sum(0)


@named_by_numpy
def poisson(input: Tensor, generator: object = None) -> Tensor:
    """Counts of a Poisson process. Small rates add probabilities up; Source for others: Hörmann 1993, PTRS."""
    _check_same(input)
    rates: Any = apply(bounds.not_negative, input, REFUSALS[4])
    few, many = _few(rates.clamp_max(SMALL), generator), _many(rates.clamp_min(SMALL), generator)
    return apply(random_inplace.constant, torch.where(rates < SMALL, few, many).detach(), input)


def _few(rate: Tensor, generator: object) -> Tensor:
    counts = torch.arange(COUNTS, dtype=rate.dtype, device=rate.device)
    log_p = counts * rate.unsqueeze(-1).clamp_min(1e-30).log() - rate.unsqueeze(-1) - torch.lgamma(counts + 1)
    return (torch.rand_like(rate, generator=generator).unsqueeze(-1) > log_p.exp().cumsum(-1)).sum(-1).to(rate.dtype)


def _many(rate: Tensor, generator: object) -> Tensor:
    root = rate.sqrt()
    b = 0.931 + 2.53 * root
    a = -0.059 + 0.02483 * b
    inverse, v_r = 1.1239 + 1.1328 / (b - 3.4), 0.9277 - 3.6224 / (b - 2)
    u, v = _rounds(rate, generator) - 0.5, _rounds(rate, generator)
    us = 0.5 - u.abs()
    k = torch.floor((2 * a / us + b) * u + rate + 0.43)
    squeezed = (us >= 0.07) & (v <= v_r)
    tail = (v * inverse / (a / (us * us) + b)).log() <= k.clamp_min(0) * rate.log() - rate - torch.lgamma(
        k.clamp_min(0) + 1
    )
    accepted = (k >= 0) & (squeezed | (((us >= 0.013) | (v <= us)) & tail))
    return _first(accepted, k.clamp_min(0))


def binomial(count: Tensor, prob: Tensor, generator: object = None) -> Tensor:
    """How many of some trials succeed. Reads the largest number of trials. Shapes: count and prob broadcast."""
    count, prob = torch.broadcast_tensors(count, prob)
    level = samples.innermost((count, prob)) if thread_state.transforms else None
    if level is not None:
        samples.refuse_same((count, prob))
        return level.computed(lambda counts, probs: (binomial(counts, probs, generator),), (count, prob))[0]
    most = int(count.max().item()) if count.numel() else 0
    trial = torch.arange(most, device=prob.device).reshape((most, *(1,) * prob.dim()))
    hits = torch.rand((most, *prob.shape), dtype=prob.dtype, device=prob.device, generator=generator) < prob
    return (hits & (trial < count)).sum(0).to(prob.dtype)


def von_mises(loc: Tensor, concentration: Tensor) -> Tensor:
    """Angles. Source: Best, Fisher 1979."""
    k: Any = concentration
    tau = 1 + (1 + 4 * k * k).sqrt()
    rho = (tau - (2 * tau).sqrt()) / (2 * k)
    exact = (1 + rho * rho) / (2 * rho)
    r = torch.where(k < 1e-3, 1 / k + k, exact)
    u1, u2, u3 = (_rounds(k, None) for _ in range(3))
    z = torch.cos(pi * u1)
    f = (1 + r * z) / (r + z)
    c = k * (r - f)
    accepted = (c * (2 - c) - u2 > 0) | ((c / u2).log() + 1 - c >= 0)
    drawn = _first(accepted, torch.sign(u3 - 0.5) * torch.acos(f.clamp(-1, 1)))
    return (drawn + pi + loc) % (2 * pi) - pi
