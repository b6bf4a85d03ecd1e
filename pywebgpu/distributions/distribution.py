"""The base class of distributions, and those that are made of others: independent axes, mixtures."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, Self

from pywebgpu import dtypes
from pywebgpu.composites import arithmetic, bounds
from pywebgpu.distributions import constraints
from pywebgpu.distributions.constraints import Constraint
from pywebgpu.distributions.utils import broadcast_all, lazy_property, sum_rightmost
from pywebgpu.errors import REFUSALS, CannotWaitError
from pywebgpu.ir.graph import thread_state
from pywebgpu.runtime import state
from pywebgpu.runtime.executor import StandInError
from pywebgpu.step_capture import catching
from pywebgpu.tensor.apply import apply

if TYPE_CHECKING:
    from pywebgpu.ir.graph import Node
    from pywebgpu.tensor.tensor import Tensor

torch: Any = import_module("pywebgpu")
Sizes = Sequence[int]


def _holds(results: Tensor) -> bool:
    """Whether a constraint holds everywhere, as far as values can be waited for. A compiled step checks as it runs,
    unless it may catch the error."""
    capture = thread_state.observer
    if capture is not None and catching.may_catch(sys._getframe(1)):
        capture.leave("it may catch what a distribution says of its parameters and values")
    elif capture is not None:
        if not state.default.local.queues[results._storage.device].stand_ins:
            capture.check(apply(_checked, results.all()))
        return True
    try:
        return bool(results.all())
    except (StandInError, CannotWaitError):
        return True


def _checked(holds: Node) -> Node:
    return bounds.holding(arithmetic.cast(holds, dtypes.int64), holds, REFUSALS[8])


class Distribution:
    """Samples and their probabilities: parameters of `batch_shape`, samples of that and `event_shape`.

    What a parameter or a sample may be is checked, which waits for a device, unless `validate_args` is False.
    """

    has_rsample = False
    has_enumerate_support = False
    _event_dims: ClassVar[dict[str, int]] = {}  # of parameters: axes that belong to one event
    _validate_args: bool | None = None
    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...  # parameters of subclasses

    def __init__(self, batch_shape: Sizes = (), event_shape: Sizes = (), validate_args: bool | None = None) -> None:
        self._batch_shape, self._event_shape = torch.Size(batch_shape), torch.Size(event_shape)
        if validate_args is not None:
            self._validate_args = validate_args
        if not self._validates():
            return
        held = {}
        for name, constraint in self._declared("arg_constraints", {}).items():
            is_lazy = isinstance(getattr(type(self), name, None), lazy_property) and name not in self.__dict__
            if not (is_lazy or constraints.is_dependent(constraint)):
                held[name] = constraint.check(getattr(self, name)).all()
        if not held or _holds(torch.stack(list(held.values()))):  # One read: a device is waited for.
            return
        for name, holds in held.items():
            value, constraint = getattr(self, name), self.arg_constraints[name]
            if not _holds(holds):
                raise ValueError(
                    f"Expected parameter {name} ({type(value).__name__} of shape {tuple(value.shape)}) of distribution "
                    f"{self!r} to satisfy the constraint {constraint!r}, but found invalid values:\n{value}"
                )

    @property
    def arg_constraints(self) -> Any:
        """The set of each parameter, by its name."""
        raise NotImplementedError

    @property
    def support(self) -> Any:
        """The set of the samples."""
        raise NotImplementedError

    def _declared(self, name: str, otherwise: Any) -> Any:
        """What a class says of its values; where it says nothing, which gives a warning, nothing is checked."""
        try:
            return getattr(self, name)
        except NotImplementedError:
            warnings.warn(
                f"{type(self)} does not define `{name}`, so there is nothing to validate. Please define it, or "
                "initialize the distribution with `validate_args=False`.",
                stacklevel=4,
            )
            return otherwise

    def _set(self, validate_args: bool | None, **values: object) -> None:
        """Takes parameters that broadcast, numbers too, and has their shape for batches."""
        for name, value in zip(values, broadcast_all(*values.values()), strict=True):
            setattr(self, name, value)
        Distribution.__init__(self, getattr(self, next(iter(values))).shape, validate_args=validate_args)

    def _either(self, probs: object, logits: object, *, is_vector: bool) -> Tensor:
        """Takes probabilities or their logits, of which one is given; returns that."""
        if (probs is None) == (logits is None):
            raise ValueError("Either `probs` or `logits` must be specified, but not both.")
        (parameter,) = broadcast_all(probs if logits is None else logits)
        if is_vector:
            if parameter.dim() < 1:
                raise ValueError("`probs` or `logits` parameter must be at least one-dimensional.")
            parameter = (
                parameter / parameter.sum(-1, keepdim=True)
                if logits is None
                else parameter - parameter.logsumexp(-1, keepdim=True)
            )
        setattr(self, "probs" if logits is None else "logits", parameter)
        return parameter

    def _validates(self) -> bool:
        capture, default = thread_state.observer, Distribution._validate_args
        if capture is not None and capture.meet(Distribution):
            capture.guard(
                lambda: None if Distribution._validate_args is default else "distributions check other values",
                always=True,
            )
        return self._validate_args is not False

    def _fails(self, constraint: Constraint, value: Tensor) -> bool:
        return not _holds(constraint.check(value))

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        """Whether parameters and samples are checked where nobody says."""
        if value not in (True, False):
            raise ValueError
        Distribution._validate_args = value

    @property
    def batch_shape(self) -> Sequence[int]:
        return self._batch_shape

    @property
    def event_shape(self) -> Sequence[int]:
        return self._event_shape

    def _extended_shape(self, sample_shape: Sizes = ()) -> Sizes:
        return torch.Size((*tuple(sample_shape), *self._batch_shape, *self._event_shape))

    def expand(self, batch_shape: Sizes, _instance: Distribution | None = None) -> Self:
        """The same distribution with its parameters grown to a batch's shape.

        _instance: what a subclass made already; the attributes that it has stay.
        """
        expanded = self.__new__(type(self)) if _instance is None else _instance
        known = dict(expanded.__dict__)
        expanded.__dict__.update(self.__dict__)
        shape = tuple(batch_shape)
        for name, value in self.__dict__.items():
            if torch.is_tensor(value) and name != "temperature":
                dims = self._event_dims.get(name, 0)
                expanded.__dict__[name] = value.expand((*shape, *value.shape[value.dim() - dims :]))
            elif isinstance(value, Distribution):
                expanded.__dict__[name] = value.expand(shape)
        expanded._batch_shape = torch.Size(shape)
        expanded.__dict__.update(known)
        return expanded  # type: ignore[return-value]

    def _get_checked_instance(self, cls: type, _instance: Distribution | None = None) -> Distribution:
        """What `expand` of a class fills. Raises NotImplementedError where a subclass made it otherwise."""
        if _instance is None and type(self).__init__ != cls.__init__:  # type: ignore[misc]
            raise NotImplementedError(
                f"Subclass {type(self).__name__} of {cls.__name__} that defines a custom __init__ method must also "
                "define a custom .expand() method."
            )
        return self.__new__(type(self)) if _instance is None else _instance

    def _remade(self, cls: type, _instance: Distribution | None, *arguments: object) -> Self:
        """An instance of this class, made by another one's constructor, which checks what this one checks."""
        remade: Any = self._get_checked_instance(cls, _instance)
        cls.__init__(remade, *arguments, validate_args=False)  # type: ignore[misc]
        del remade._validate_args
        remade.__dict__.update((key, value) for key, value in self.__dict__.items() if key == "_validate_args")
        return remade

    def sample(self, sample_shape: Sizes = ()) -> Tensor:
        """Draws without a gradient."""
        with torch.no_grad():
            return self.rsample(sample_shape)

    def sample_n(self, n: int) -> Tensor:
        return self.sample((n,))

    def rsample(self, sample_shape: Sizes = ()) -> Tensor:
        """Draws through which a gradient flows to the parameters."""
        raise NotImplementedError

    def log_prob(self, value: Tensor) -> Tensor:
        raise NotImplementedError

    def cdf(self, value: Tensor) -> Tensor:
        raise NotImplementedError

    def icdf(self, value: Tensor) -> Tensor:
        raise NotImplementedError

    def entropy(self) -> Tensor:
        raise NotImplementedError

    def enumerate_support(self, expand: bool = True) -> Tensor:
        raise NotImplementedError

    @property
    def mean(self) -> Tensor:
        raise NotImplementedError

    @property
    def mode(self) -> Tensor:
        raise NotImplementedError(f"{type(self)} does not implement mode")

    @property
    def variance(self) -> Tensor:
        raise NotImplementedError

    @property
    def stddev(self) -> Tensor:
        return self.variance.sqrt()

    def perplexity(self) -> Tensor:
        return torch.exp(self.entropy())

    def _validate_sample(self, value: Tensor) -> None:
        """Raises ValueError for what is no sample."""
        if not self._validates():
            return
        if not torch.is_tensor(value):
            raise ValueError("The value argument to log_prob must be a Tensor")
        events = value.dim() - len(self._event_shape)
        if tuple(value.shape[events:]) != tuple(self._event_shape):
            raise ValueError(
                f"The right-most size of value must match event_shape: {value.shape} vs {self._event_shape}."
            )
        for i, j in zip(reversed(value.shape), reversed(self._extended_shape()), strict=False):
            if i != 1 and j != 1 and i != j:
                raise ValueError(
                    f"Value is not broadcastable with batch_shape+event_shape: {value.shape} vs "
                    f"{self._extended_shape()}."
                )
        support = self._declared("support", None)
        if support is not None and not constraints.is_dependent(support) and self._fails(support, value):
            raise ValueError(
                f"Expected value argument ({type(value).__name__} of shape {tuple(value.shape)}) to be within the "
                f"support ({support!r}) of the distribution {self!r}, but found invalid values:\n{value}"
            )

    def _draw(self, sample_shape: Sizes, kind: str = "rand") -> Tensor:
        """Uniform numbers, or normal ones, in the shape of samples, where the parameters are."""
        like = next(value for value in self.__dict__.values() if torch.is_tensor(value))
        draw = getattr(torch, kind)(self._extended_shape(sample_shape), dtype=like.dtype, device=like.device)
        return draw.clamp_min(torch.finfo(like.dtype).tiny) if kind == "rand" else draw

    def __repr__(self) -> str:
        names = [name for name in self.arg_constraints if name in self.__dict__]
        values = [(name, self.__dict__[name]) for name in names]
        shown = [f"{name}: {v if v.numel() == 1 else v.size()}" for name, v in values if torch.is_tensor(v)]
        return f"{type(self).__name__}({', '.join(shown)})"


class ExponentialFamily(Distribution):
    """Distributions of the exponential family, whose entropy follows from their log normalizer."""

    @property
    def _mean_carrier_measure(self) -> float:
        raise NotImplementedError

    @property
    def _natural_params(self) -> tuple[Any, ...]:
        raise NotImplementedError

    def _log_normalizer(self, *natural_params: Any) -> Tensor:
        raise NotImplementedError

    def entropy(self) -> Tensor:
        """Bregman divergence of the log normalizer."""
        params = [p.detach().requires_grad_() for p in self._natural_params]
        with torch.enable_grad():
            normal = self._log_normalizer(*params)
            gradients = torch.autograd.grad(normal.sum(), params, create_graph=True)
        result = -self._mean_carrier_measure + normal
        for p, g in zip(params, gradients, strict=True):
            result = result - sum_rightmost(p * g, len(self._event_shape))
        return result


class Independent(Distribution):
    """Another distribution, some of whose batch axes are parts of one event."""

    arg_constraints: ClassVar[Any] = {}

    def __init__(
        self, base_distribution: Distribution, reinterpreted_batch_ndims: int, validate_args: bool | None = None
    ) -> None:
        shape, count = base_distribution.batch_shape, reinterpreted_batch_ndims
        if count > len(shape):
            raise ValueError(
                "Expected reinterpreted_batch_ndims <= len(base_distribution.batch_shape), actual "
                f"{count} vs {len(shape)}"
            )
        self.base_dist, self.reinterpreted_batch_ndims = base_distribution, count
        n_batch_axes = len(shape) - count
        super().__init__(shape[:n_batch_axes], (*shape[n_batch_axes:], *base_distribution.event_shape), validate_args)

    @property
    def has_rsample(self) -> bool:  # type: ignore[override]
        return self.base_dist.has_rsample

    @property
    def has_enumerate_support(self) -> bool:  # type: ignore[override]
        return self.base_dist.has_enumerate_support and self.reinterpreted_batch_ndims == 0

    @constraints.dependent_property
    def support(self) -> Constraint:
        constraint: Constraint = self.base_dist.support
        count = self.reinterpreted_batch_ndims
        return constraints.independent(constraint, count) if count else constraint

    def expand(self, batch_shape: Sizes, _instance: Distribution | None = None) -> Self:
        inner = self._event_shape[: self.reinterpreted_batch_ndims]
        base = self.base_dist.expand((*tuple(batch_shape), *inner))
        return self._remade(Independent, _instance, base, self.reinterpreted_batch_ndims)

    mean = property(lambda self: self.base_dist.mean)
    mode = property(lambda self: self.base_dist.mode)
    variance = property(lambda self: self.base_dist.variance)

    def sample(self, sample_shape: Sizes = ()) -> Tensor:
        return self.base_dist.sample(sample_shape)

    def rsample(self, sample_shape: Sizes = ()) -> Tensor:
        return self.base_dist.rsample(sample_shape)

    def log_prob(self, value: Tensor) -> Tensor:
        return sum_rightmost(self.base_dist.log_prob(value), self.reinterpreted_batch_ndims)

    def entropy(self) -> Tensor:
        return sum_rightmost(self.base_dist.entropy(), self.reinterpreted_batch_ndims)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        if self.reinterpreted_batch_ndims > 0:
            raise NotImplementedError("Enumeration over cartesian product is not implemented")
        return self.base_dist.enumerate_support(expand)

    def __repr__(self) -> str:
        return f"Independent({self.base_dist}, {self.reinterpreted_batch_ndims})"


class MixtureSameFamily(Distribution):
    """A mixture: a Categorical picks the component, which is along the last batch axis of another distribution."""

    arg_constraints: ClassVar[Any] = {}

    def __init__(
        self,
        mixture_distribution: Distribution,
        component_distribution: Distribution,
        validate_args: bool | None = None,
    ) -> None:
        self._mixture_distribution, self._component_distribution = mixture_distribution, component_distribution
        shape, count = component_distribution.batch_shape, mixture_distribution.logits.shape[-1]
        if not shape or shape[-1] != count:
            raise ValueError(
                f"`mixture_distribution component` ({count}) does not equal `component_distribution.batch_shape[-1]` "
                f"({list(shape)})"
            )
        super().__init__(shape[:-1], component_distribution.event_shape, validate_args)

    mixture_distribution = property(lambda self: self._mixture_distribution)
    component_distribution = property(lambda self: self._component_distribution)

    @constraints.dependent_property
    def support(self) -> Constraint:
        return constraints.MixtureSameFamilyConstraint(self._component_distribution.support)

    def expand(self, batch_shape: Sizes, _instance: Distribution | None = None) -> Self:
        count = self._component_distribution.batch_shape[-1]
        component = self._component_distribution.expand((*tuple(batch_shape), count))
        return self._remade(
            MixtureSameFamily, _instance, self._mixture_distribution.expand(tuple(batch_shape)), component
        )

    def _weights(self) -> Tensor:
        weights = self._mixture_distribution.probs
        return weights.reshape((*weights.shape, *(1,) * len(self._event_shape)))

    @property
    def _axis(self) -> int:
        return -1 - len(self._event_shape)

    @property
    def mean(self) -> Tensor:
        return (self._weights() * self._component_distribution.mean).sum(self._axis)

    @property
    def variance(self) -> Tensor:
        within = (self._weights() * self._component_distribution.variance).sum(self._axis)
        squared_distance = (self._component_distribution.mean - self.mean.unsqueeze(self._axis)) ** 2
        return within + (self._weights() * squared_distance).sum(self._axis)

    def _padded(self, value: Tensor) -> Tensor:
        return value.unsqueeze(self._axis)

    def cdf(self, value: Tensor) -> Tensor:
        return (self._component_distribution.cdf(self._padded(value)) * self._mixture_distribution.probs).sum(-1)

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        log_density = self._component_distribution.log_prob(self._padded(value))
        return (log_density + torch.log_softmax(self._mixture_distribution.logits, -1)).logsumexp(-1)

    def sample(self, sample_shape: Sizes = ()) -> Tensor:
        with torch.no_grad():
            picked = self._mixture_distribution.sample(sample_shape)
            drawn = self._component_distribution.sample(sample_shape)
            events = len(self._event_shape)
            index = picked.reshape((*picked.shape, *(1,) * (events + 1)))
            index = index.expand((*picked.shape, 1, *self._event_shape))
            return drawn.gather(drawn.dim() - 1 - events, index).squeeze(drawn.dim() - 1 - events)

    def __repr__(self) -> str:
        return f"MixtureSameFamily(\n  {self._mixture_distribution},\n  {self._component_distribution})"
