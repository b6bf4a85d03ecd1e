"""Distributions of whole numbers and of choices."""

from __future__ import annotations

import math
from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar

from pywebgpu.distributions import constraints, sampling
from pywebgpu.distributions.distribution import Distribution, ExponentialFamily, Sizes
from pywebgpu.distributions.utils import (
    broadcast_all,
    lazy_property,
    logits_to_probs,
    probs_to_logits,
)

if TYPE_CHECKING:
    from pywebgpu.tensor.tensor import Tensor

torch: Any = import_module("pywebgpu")
_EITHER = {"probs": constraints.unit_interval, "logits": constraints.real}


class _Coin(Distribution):
    """What has a probability, or its logit, of which the other follows."""

    arg_constraints: ClassVar[Any] = _EITHER

    @lazy_property
    def logits(self) -> Tensor:
        return probs_to_logits(self.probs, is_binary=True)

    @lazy_property
    def probs(self) -> Tensor:
        return logits_to_probs(self.logits, is_binary=True)

    @property
    def param_shape(self) -> Sequence[int]:
        return self.__dict__["probs" if "probs" in self.__dict__ else "logits"].shape

    def _counted(self, total_count: object, probs: object, logits: object, validate_args: bool | None) -> None:
        parameter = self._either(probs, logits, is_vector=False)
        count, parameter = broadcast_all(total_count, parameter)
        self.total_count = count.type_as(parameter)
        setattr(self, "probs" if logits is None else "logits", parameter)
        Distribution.__init__(self, parameter.shape, validate_args=validate_args)

    def _uniform(self, sample_shape: Sizes) -> Tensor:
        return self._draw(sample_shape)


class Bernoulli(_Coin, ExponentialFamily):
    """1 with a probability, else 0."""

    support = constraints.boolean
    has_enumerate_support = True

    def __init__(self, probs: object = None, logits: object = None, validate_args: bool | None = None) -> None:
        parameter = self._either(probs, logits, is_vector=False)
        Distribution.__init__(self, parameter.shape, validate_args=validate_args)

    mean = property(lambda self: self.probs)
    variance = property(lambda self: self.probs * (1 - self.probs))

    @property
    def mode(self) -> Tensor:
        mode = (self.probs >= 0.5).to(self.probs.dtype)
        return torch.where(self.probs == 0.5, math.nan, mode)

    def sample(self, sample_shape: Sizes = ()) -> Tensor:
        with torch.no_grad():
            return torch.bernoulli(self.probs.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        logits, value = torch.broadcast_tensors(self.logits, value)
        return -torch.nn.functional.binary_cross_entropy_with_logits(logits, value, reduction="none")

    def entropy(self) -> Tensor:
        return torch.nn.functional.binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none")

    def enumerate_support(self, expand: bool = True) -> Tensor:
        parameter: Any = self.__dict__.get("probs", self.__dict__.get("logits"))
        values = torch.arange(2, dtype=parameter.dtype, device=parameter.device)
        values = values.reshape((-1, *(1,) * len(self._batch_shape)))
        return values.expand((-1, *self._batch_shape)) if expand else values

    @property
    def _natural_params(self) -> tuple[Any, ...]:
        return (torch.logit(self.probs),)

    def _log_normalizer(self, x: Tensor) -> Tensor:
        return torch.log1p(torch.exp(x))


class Geometric(_Coin):
    """How many failures come before the first success."""

    support = constraints.nonnegative_integer

    def __init__(self, probs: object = None, logits: object = None, validate_args: bool | None = None) -> None:
        parameter = self._either(probs, logits, is_vector=False)
        super().__init__(parameter.shape, validate_args=validate_args)
        if self._validates() and probs is not None and self._fails(constraints.positive, parameter):
            raise ValueError(
                f"Expected parameter probs ({type(parameter).__name__} of shape {tuple(parameter.shape)}) of "
                f"distribution {self!r} to be positive but found invalid values:\n{parameter}"
            )

    mean = property(lambda self: 1.0 / self.probs - 1.0)
    mode = property(lambda self: torch.zeros_like(self.probs))
    variance = property(lambda self: (1.0 / self.probs - 1.0) / self.probs)

    def sample(self, sample_shape: Sizes = ()) -> Tensor:
        with torch.no_grad():
            return (self._uniform(sample_shape).log() / (-self.probs).log1p()).floor()

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        value, probs = torch.broadcast_tensors(value, self.probs)
        sure = (probs == 1) & (value == 0)
        return value * (-torch.where(sure, torch.zeros_like(probs), probs)).log1p() + self.probs.log()

    def entropy(self) -> Tensor:
        return (
            torch.nn.functional.binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none") / self.probs
        )


class Binomial(_Coin):
    """How many of `total_count` coins fall on 1."""

    has_enumerate_support = True
    total_count: Any
    arg_constraints: ClassVar[Any] = {"total_count": constraints.nonnegative_integer, **_EITHER}

    def __init__(
        self, total_count: object = 1, probs: object = None, logits: object = None, validate_args: bool | None = None
    ) -> None:
        self._counted(total_count, probs, logits, validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> constraints.Constraint:
        return constraints.integer_interval(0, self.total_count)

    mean = property(lambda self: self.total_count * self.probs)
    mode = property(lambda self: ((self.total_count + 1) * self.probs).floor().clamp(max=self.total_count))
    variance = property(lambda self: self.total_count * self.probs * (1 - self.probs))

    def sample(self, sample_shape: Sizes = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        with torch.no_grad():
            return sampling.binomial(self.total_count.expand(shape), self.probs.expand(shape))

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        n = self.total_count
        ways = torch.lgamma(n + 1) - torch.lgamma(value + 1) - torch.lgamma(n - value + 1)
        soft = torch.nn.functional.softplus(self.logits)
        return ways + value * self.logits - n * soft

    def entropy(self) -> Tensor:
        values = self.enumerate_support(expand=False)
        log_p = self.log_prob(values)
        return -(torch.exp(log_p) * log_p).sum(0)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        most = int(self.total_count.max().item())
        if int(self.total_count.min().item()) != most:
            raise NotImplementedError("Inhomogeneous total count not supported by `enumerate_support`.")
        values = torch.arange(1 + most, dtype=self.total_count.dtype, device=self.total_count.device)
        values = values.reshape((-1, *(1,) * len(self._batch_shape)))
        return values.expand((-1, *self._batch_shape)) if expand else values


class NegativeBinomial(_Coin):
    """How many successes come before `total_count` failures."""

    total_count: Any
    support = constraints.nonnegative_integer
    arg_constraints: ClassVar[Any] = {
        "total_count": constraints.greater_than_eq(0), "probs": constraints.half_open_interval(0.0, 1.0),
        "logits": constraints.real,
    }  # fmt: skip

    def __init__(
        self, total_count: object, probs: object = None, logits: object = None, validate_args: bool | None = None
    ) -> None:
        self._counted(total_count, probs, logits, validate_args)

    mean = property(lambda self: self.total_count * torch.exp(self.logits))
    mode = property(lambda self: ((self.total_count - 1) * self.logits.exp()).floor().clamp(min=0.0))
    variance = property(lambda self: self.mean / torch.sigmoid(-self.logits))

    def sample(self, sample_shape: Sizes = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        with torch.no_grad():
            rate = sampling.standard_gamma(self.total_count.expand(shape)) * torch.exp(self.logits)
            return sampling.poisson(rate)

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        n, sigmoid = self.total_count, torch.nn.functional.logsigmoid
        log_density = n * sigmoid(-self.logits) + value * sigmoid(self.logits)
        normal = -torch.lgamma(n + value) + torch.lgamma(1.0 + value) + torch.lgamma(n)
        return log_density - torch.where(n + value == 0.0, torch.zeros_like(normal), normal)


class Poisson(ExponentialFamily):
    """How many events of a rate there are."""

    arg_constraints: ClassVar[Any] = {"rate": constraints.nonnegative}
    support = constraints.nonnegative_integer
    rate: Any

    def __init__(self, rate: object, validate_args: bool | None = None) -> None:
        self._set(validate_args, rate=rate)

    mean = variance = property(lambda self: self.rate)
    mode = property(lambda self: self.rate.floor())

    def sample(self, sample_shape: Sizes = ()) -> Tensor:
        with torch.no_grad():
            return sampling.poisson(self.rate.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        return torch.xlogy(value, self.rate) - self.rate - torch.lgamma(value + 1)

    @property
    def _natural_params(self) -> tuple[Any, ...]:
        return (torch.log(self.rate),)

    def _log_normalizer(self, x: Tensor) -> Tensor:
        return torch.exp(x)


class Categorical(Distribution):
    """A number of 0 to n - 1, by n probabilities along the last axis."""

    arg_constraints: ClassVar[Any] = {"probs": constraints.simplex, "logits": constraints.real_vector}
    has_enumerate_support = True
    _event_dims: ClassVar[dict[str, int]] = {"probs": 1, "logits": 1}
    _drawn: tuple[Tensor | None, int] = (None, 0)  # the last samples, and which version of them

    def __init__(self, probs: object = None, logits: object = None, validate_args: bool | None = None) -> None:
        is_sound = False
        if torch.is_tensor(probs) and validate_args is not False and logits is None:
            weights: Any = probs
            is_sound = (
                weights.dim() > 0 and weights.is_floating_point() and not self._fails(constraints._weights, weights)
            )
            if not is_sound and weights.dim() and self._fails(constraints.nonnegative, weights):
                raise ValueError(
                    f"Expected parameter probs of distribution {type(self).__name__}() to satisfy the constraint "
                    f"Simplex(), but found invalid values:\n{weights}"
                )
        parameter = self._either(probs, logits, is_vector=True)
        self._num_events = parameter.shape[-1]
        super().__init__(parameter.shape[:-1], validate_args=False if is_sound else validate_args)
        if is_sound:  # What was divided by its sum needs no second look, which waits for values. Samples do.
            del self._validate_args
            if validate_args is not None:
                self._validate_args = validate_args

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> constraints.Constraint:
        return constraints.integer_interval(0, self._num_events - 1)

    @lazy_property
    def logits(self) -> Tensor:
        return probs_to_logits(self.probs)

    @lazy_property
    def probs(self) -> Tensor:
        return logits_to_probs(self.logits)

    _param = property(lambda self: self.__dict__["probs" if "probs" in self.__dict__ else "logits"])
    param_shape = property(lambda self: self._param.shape)
    mean = variance = property(lambda self: torch.full_like(self._param[..., 0], math.nan))
    mode = property(lambda self: self.probs.argmax(dim=-1))

    def sample(self, sample_shape: Sizes = ()) -> Tensor:
        with torch.no_grad():
            shape = torch.Size(sample_shape)
            rows = self.probs.reshape(-1, self._num_events)
            sample: Tensor = torch.multinomial(rows, shape.numel(), True).T.reshape(self._extended_shape(shape))
        self._drawn = sample, sample._storage.version
        return sample

    def log_prob(self, value: Tensor) -> Tensor:
        drawn, version = self._drawn
        if value is not drawn or value._storage.version != version:
            self._validate_sample(value)
        chosen: Any = value.long().unsqueeze(-1)
        chosen, log_p = torch.broadcast_tensors(chosen, self.logits)
        return log_p.gather(-1, chosen[..., :1]).squeeze(-1)

    def entropy(self) -> Tensor:
        logits = self.logits.clamp(min=torch.finfo(self.logits.dtype).min)
        return -(logits * self.probs).sum(-1)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        values = torch.arange(self._num_events, dtype=torch.long, device=self._param.device)
        values = values.reshape((-1, *(1,) * len(self._batch_shape)))
        return values.expand((-1, *self._batch_shape)) if expand else values


class OneHotCategorical(Distribution):
    """A choice as a row with a single 1."""

    arg_constraints: ClassVar[Any] = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.one_hot
    has_enumerate_support = True

    def __init__(self, probs: object = None, logits: object = None, validate_args: bool | None = None) -> None:
        self._categorical = Categorical(probs, logits, validate_args)
        shape = self._categorical.param_shape
        super().__init__(self._categorical.batch_shape, shape[-1:], validate_args=validate_args)

    probs = property(lambda self: self._categorical.probs)
    logits = property(lambda self: self._categorical.logits)
    mean = property(lambda self: self._categorical.probs)
    variance = property(lambda self: self.probs * (1 - self.probs))
    param_shape = property(lambda self: self._categorical.param_shape)

    @property
    def mode(self) -> Tensor:
        return torch.nn.functional.one_hot(self._categorical.mode, self._event_shape[-1]).to(self.probs.dtype)

    def sample(self, sample_shape: Sizes = ()) -> Tensor:
        chosen = self._categorical.sample(sample_shape)
        return torch.nn.functional.one_hot(chosen, self._event_shape[-1]).to(self.probs.dtype)

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        return self._categorical.log_prob(value.max(-1)[1])

    def entropy(self) -> Tensor:
        return self._categorical.entropy()

    def enumerate_support(self, expand: bool = True) -> Tensor:
        n = self._event_shape[0]
        like = self._categorical._param
        values = torch.eye(n, dtype=like.dtype, device=like.device)
        values = values.reshape((n, *(1,) * len(self._batch_shape), n))
        return values.expand((n, *self._batch_shape, n)) if expand else values


class OneHotCategoricalStraightThrough(OneHotCategorical):
    """The same, with the gradient of the probabilities."""

    has_rsample = True

    def rsample(self, sample_shape: Sizes = ()) -> Tensor:
        return self.sample(sample_shape) + (self.probs - self.probs.detach())


class Multinomial(Distribution):
    """How often each of n choices comes in `total_count` draws."""

    arg_constraints: ClassVar[Any] = {"probs": constraints.simplex, "logits": constraints.real_vector}

    def __init__(
        self, total_count: int = 1, probs: object = None, logits: object = None, validate_args: bool | None = None
    ) -> None:
        if not isinstance(total_count, int):
            raise NotImplementedError("inhomogeneous total_count is not supported")
        self.total_count = total_count
        self._categorical = Categorical(probs, logits)
        shape = self._categorical.param_shape
        super().__init__(self._categorical.batch_shape, shape[-1:], validate_args=validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=1)
    def support(self) -> constraints.Constraint:
        return constraints.multinomial(self.total_count)

    probs = property(lambda self: self._categorical.probs)
    logits = property(lambda self: self._categorical.logits)
    mean = property(lambda self: self.probs * self.total_count)
    variance = property(lambda self: self.total_count * self.probs * (1 - self.probs))
    param_shape = property(lambda self: self._categorical.param_shape)

    def sample(self, sample_shape: Sizes = ()) -> Tensor:
        drawn = self._categorical.sample((self.total_count, *tuple(sample_shape)))
        return torch.nn.functional.one_hot(drawn, self._event_shape[-1]).sum(0).to(self.probs.dtype)

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        logits, value = torch.broadcast_tensors(self.logits, value)
        logits = torch.where((value == 0) & (logits == -math.inf), torch.zeros_like(logits), logits)
        ways = torch.lgamma(value.sum(-1) + 1) - torch.lgamma(value + 1).sum(-1)
        return ways + (logits * value).sum(-1)

    def entropy(self) -> Tensor:
        n = torch.tensor(float(self.total_count), device=self.probs.device)
        counts = Binomial(self.total_count, self.probs, validate_args=False).enumerate_support(expand=False)[1:]
        weight = torch.exp(Binomial(self.total_count, self.probs, validate_args=False).log_prob(counts))
        return n * self._categorical.entropy() - torch.lgamma(n + 1) + (weight * torch.lgamma(counts + 1)).sum((0, -1))
