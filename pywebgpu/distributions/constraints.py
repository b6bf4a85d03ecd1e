"""Sets of values: what parameters and samples of distributions may be."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pywebgpu.tensor.tensor import Tensor

torch: Any = import_module("pywebgpu")
_IMPORTED = {*globals()}


class Constraint:
    """A set: `check(value)` says which elements, or events of `event_dim` axes, lie in it."""

    is_discrete = False
    event_dim = 0
    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...  # what bounds it

    def check(self, value: Tensor) -> Tensor:
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"{type(self).__name__.removeprefix('_')}()"


class _Where(Constraint):
    """The values for which a function of them holds; bounds are parameters with names."""

    def __init__(
        self, name: str, holds: Callable[[Any], Any], event_dim: int = 0, *, is_discrete: bool = False, **bounds: object
    ) -> None:
        self.name, self._holds = name, holds
        self.event_dim, self.is_discrete = event_dim, is_discrete
        self.__dict__.update(bounds)
        self._bounds = bounds

    def check(self, value: Tensor) -> Tensor:
        return self._holds(value)

    def __repr__(self) -> str:
        inner = ", ".join(f"{name}={value}" for name, value in self._bounds.items())
        return f"{self.name}({inner})"


class _Dependent(Constraint):
    """A set that depends on other values; whether it is discrete and of how many axes may depend on them too."""

    def __init__(self, *, is_discrete: Any = NotImplemented, event_dim: Any = NotImplemented) -> None:
        self._is_discrete, self._event_dim = is_discrete, event_dim

    @property
    def is_discrete(self) -> bool:  # type: ignore[override]
        return bool(self._static("is_discrete"))

    @property
    def event_dim(self) -> int:  # type: ignore[override]
        return int(self._static("event_dim"))

    def _static(self, name: str) -> Any:
        value = vars(self)[f"_{name}"]
        if value is NotImplemented:
            raise NotImplementedError(f".{name} cannot be determined statically")
        return value

    def __call__(self, *, is_discrete: Any = NotImplemented, event_dim: Any = NotImplemented) -> _Dependent:
        """The same, where more of it is known."""
        return _Dependent(
            is_discrete=self._is_discrete if is_discrete is NotImplemented else is_discrete,
            event_dim=self._event_dim if event_dim is NotImplemented else event_dim,
        )

    def check(self, value: Tensor) -> Tensor:
        raise ValueError("Cannot determine validity of dependent constraint")


class dependent_property(property, _Dependent):
    """A property of an object that is a set; the class itself has a dependent one."""

    def __init__(
        self,
        fn: Callable[..., object] | None = None,
        *,
        is_discrete: Any = NotImplemented,
        event_dim: Any = NotImplemented,
    ) -> None:
        super().__init__(fn)
        self._is_discrete, self._event_dim = is_discrete, event_dim

    def __call__(self, fn: Callable[..., object]) -> dependent_property:  # type: ignore[override]
        return dependent_property(fn, is_discrete=self._is_discrete, event_dim=self._event_dim)


def is_dependent(constraint: object) -> bool:
    return isinstance(constraint, _Dependent)


class independent(Constraint):
    """A set of events whose last axes are elements of another."""

    def __init__(self, base_constraint: Constraint, reinterpreted_batch_ndims: int) -> None:
        self.base_constraint, self.reinterpreted_batch_ndims = base_constraint, reinterpreted_batch_ndims
        self.is_discrete = base_constraint.is_discrete
        self.event_dim = base_constraint.event_dim + reinterpreted_batch_ndims

    def check(self, value: Tensor) -> Tensor:
        result: Any = self.base_constraint.check(value)
        count = self.reinterpreted_batch_ndims
        if result.dim() < count:
            raise ValueError(f"Expected value.dim() >= {self.event_dim} but got {value.dim()}")
        return result.reshape((*result.shape[: result.dim() - count], -1)).all(-1)

    def __repr__(self) -> str:
        return f"IndependentConstraint({self.base_constraint!r}, {self.reinterpreted_batch_ndims})"


class MixtureSameFamilyConstraint(Constraint):
    """The values of a mixture: those of its components, along one more axis."""

    def __init__(self, base_constraint: Constraint) -> None:
        self.base_constraint = base_constraint
        self.is_discrete, self.event_dim = base_constraint.is_discrete, base_constraint.event_dim

    def check(self, value: Tensor) -> Tensor:
        axis = value.dim() - self.event_dim
        is_allowed: Any = self.base_constraint.check(value.unsqueeze(axis))
        return is_allowed.reshape((*value.shape[:axis], -1)).all(-1)

    def __repr__(self) -> str:
        return f"MixtureSameFamilyConstraint({self.base_constraint!r})"


class _Joined(Constraint):
    """A set for each of some parts along an axis."""

    def __init__(self, parts: Sequence[Constraint], dim: int = 0, lengths: Sequence[int] | None = None) -> None:
        self.cseq, self.dim, self.lengths = list(parts), dim, lengths
        self.is_discrete = any(part.is_discrete for part in parts)
        self.event_dim = max(part.event_dim for part in parts)
        if lengths is None and dim + self.event_dim < 0:
            self.event_dim += 1  # The axis of the stack lies within an event.

    def check(self, value: Tensor) -> Tensor:
        dim = self.dim % value.dim()
        if self.lengths is None:
            return torch.stack([part.check(v) for part, v in zip(self.cseq, value.unbind(dim), strict=True)], dim)
        pieces = value.split(list(self.lengths), dim)
        return torch.cat([part.check(v) for part, v in zip(self.cseq, pieces, strict=True)], dim)

    def __repr__(self) -> str:
        return "Stack()" if self.lengths is None else "Cat()"


class stack(_Joined):
    """A set for each part along a new axis."""

    def __init__(self, cseq: Sequence[Constraint], dim: int = 0) -> None:
        super().__init__(cseq, dim)


class cat(_Joined):
    """A set for each piece of an axis. lengths: of the pieces; 1 each if None."""

    def __init__(self, cseq: Sequence[Constraint], dim: int = 0, lengths: Sequence[int] | None = None) -> None:
        super().__init__(cseq, dim, [1] * len(cseq) if lengths is None else lengths)


class interval(_Where):
    """From one number to another, both inside."""

    def __init__(self, lower_bound: Any, upper_bound: Any) -> None:
        bounds = {"lower_bound": lower_bound, "upper_bound": upper_bound}
        super().__init__("Interval", lambda v: (lower_bound <= v) & (v <= upper_bound), **bounds)


class half_open_interval(_Where):
    """From one number to another, which lies outside."""

    def __init__(self, lower_bound: Any, upper_bound: Any) -> None:
        bounds = {"lower_bound": lower_bound, "upper_bound": upper_bound}
        super().__init__("HalfOpenInterval", lambda v: (lower_bound <= v) & (v < upper_bound), **bounds)


class integer_interval(_Where):
    """Whole numbers from one to another, both inside."""

    def __init__(self, lower_bound: Any, upper_bound: Any) -> None:
        bounds = {"lower_bound": lower_bound, "upper_bound": upper_bound}
        holds: Any = lambda v: (v % 1 == 0) & (lower_bound <= v) & (v <= upper_bound)  # noqa: E731
        super().__init__("IntegerInterval", holds, is_discrete=True, **bounds)


class greater_than(_Where):
    """Above a number."""

    def __init__(self, lower_bound: Any) -> None:
        super().__init__("GreaterThan", lambda v: lower_bound < v, lower_bound=lower_bound)


class greater_than_eq(_Where):
    """A number, or above it."""

    def __init__(self, lower_bound: Any) -> None:
        super().__init__("GreaterThanEq", lambda v: lower_bound <= v, lower_bound=lower_bound)


class less_than(_Where):
    """Below a number."""

    def __init__(self, upper_bound: Any) -> None:
        super().__init__("LessThan", lambda v: v < upper_bound, upper_bound=upper_bound)


class _IntegerGreaterThan(_Where):
    """A whole number, or above it."""

    def __init__(self, lower_bound: Any) -> None:
        holds: Any = lambda v: (v % 1 == 0) & (v >= lower_bound)  # noqa: E731
        super().__init__("IntegerGreaterThan", holds, is_discrete=True, lower_bound=lower_bound)


class _IntegerLessThan(_Where):
    """A whole number, or below it."""

    def __init__(self, upper_bound: Any) -> None:
        holds: Any = lambda v: (v % 1 == 0) & (v <= upper_bound)  # noqa: E731
        super().__init__("IntegerLessThan", holds, is_discrete=True, upper_bound=upper_bound)


class multinomial(Constraint):
    """Counts that are at most so many together."""

    is_discrete, event_dim = True, 1

    def __init__(self, upper_bound: Tensor | int) -> None:
        self.upper_bound = upper_bound

    def check(self, value: Tensor) -> Tensor:
        return (value >= 0).all(dim=-1) & (value.sum(dim=-1) <= self.upper_bound)

    def __repr__(self) -> str:
        return "Multinomial()"


def _sums_to_more(v: Tensor) -> Tensor:
    total: Any = v.sum(-1, keepdim=True)
    return (v >= 0) & (total > 0) & (total < math.inf)


def _is_simplex(v: Tensor) -> Tensor:
    return (v >= 0).all(dim=-1) & ((v.sum(-1) - 1).abs() < 1e-6 * max(1, v.shape[-1]))


def _is_corr(v: Tensor) -> Tensor:
    tolerance = torch.finfo(v.dtype).eps * v.shape[-1] * 10
    return lower_cholesky.check(v) & ((v.norm(dim=-1) - 1).abs() < tolerance).all(dim=-1)


def _is_symmetric(v: Tensor) -> Tensor:
    return torch.isclose(v, v.mT, atol=1e-6).flatten(-2).all(-1)


def _is_definite(v: Tensor) -> Tensor:
    symmetric = _is_symmetric(v)
    return torch.linalg.cholesky_ex(v).info.eq(0) if bool(symmetric.all()) else symmetric


def _single(name: str, holds: Callable[[Any], Any], event_dim: int = 0, *, is_discrete: bool = False) -> Constraint:
    """The set of a class of its own, `_` and its name, which libraries derive from and register transforms for."""

    def initialize(self: _Where) -> None:
        _Where.__init__(self, name, holds, event_dim, is_discrete=is_discrete)

    kind = globals()[f"_{name}"] = type(f"_{name}", (_Where,), {"__init__": initialize})
    constraint: Constraint = kind()
    return constraint


dependent = _Dependent()
boolean = _single("Boolean", lambda v: (v == 0) | (v == 1), is_discrete=True)
one_hot = _single("OneHot", lambda v: ((v == 0) | (v == 1)).all(-1) & (v.sum(-1) == 1), 1, is_discrete=True)
nonnegative_integer, positive_integer = _IntegerGreaterThan(0), _IntegerGreaterThan(1)
real = _single("Real", lambda v: v == v)
real_vector = independent(real, 1)
positive, nonnegative, unit_interval = greater_than(0.0), greater_than_eq(0.0), interval(0.0, 1.0)
simplex = _single("Simplex", _is_simplex, 1)
_weights = _single("Weights", _sums_to_more, 1)  # what a division by the sum makes a simplex
lower_triangular = _single("LowerTriangular", lambda v: (v.tril() == v).flatten(-2).all(-1), 2)
lower_cholesky = _single(
    "LowerCholesky", lambda v: (v.tril() == v).flatten(-2).all(-1) & (v.diagonal(0, -2, -1) > 0).all(-1), 2
)
corr_cholesky = _single("CorrCholesky", _is_corr, 2)
square = _single("Square", lambda v: torch.full(v.shape[:-2], v.shape[-2] == v.shape[-1], device=v.device), 2)
symmetric = _single("Symmetric", _is_symmetric, 2)
positive_semidefinite = _single(
    "PositiveSemidefinite", lambda v: _is_symmetric(v) & (torch.linalg.eigvalsh(v) >= 0).all(-1), 2
)
positive_definite = _single("PositiveDefinite", _is_definite, 2)

# Older names of the classes.
_Interval, _HalfOpenInterval, _IntegerInterval = interval, half_open_interval, integer_interval
_GreaterThan, _GreaterThanEq, _LessThan = greater_than, greater_than_eq, less_than
_IndependentConstraint, _Multinomial, _Stack, _Cat = independent, multinomial, stack, cat
_DependentProperty = dependent_property
__all__ = sorted(name for name in globals() if name[0] != "_" and name not in _IMPORTED)
