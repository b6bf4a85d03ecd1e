"""Which transform leads from all numbers to a set: `biject_to(constraint)`, `transform_to(constraint)`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pywebgpu.distributions import constraints, transforms, vector_transforms
from pywebgpu.distributions import elementwise_transforms as elementwise
from pywebgpu.distributions.constraints import Constraint

Factory = Callable[[Any], transforms.Transform]


class ConstraintRegistry:
    """Constraint -> transform."""

    def __init__(self) -> None:
        self._of: dict[type[Constraint], Factory] = {}

    def register(self, constraint: object, factory: Factory | None = None) -> object:
        """Says what leads to a set, or to the sets of a class; also as a decorator."""
        if factory is None:
            return lambda registered: self.register(constraint, registered)
        kind = type(constraint) if isinstance(constraint, Constraint) else constraint
        if not (isinstance(kind, type) and issubclass(kind, Constraint)):
            raise TypeError(f"Expected constraint to be either a Constraint subclass or instance, but got {constraint}")
        self._of[kind] = factory
        return factory

    def __call__(self, constraint: Constraint) -> transforms.Transform:
        factory = self._of.get(type(constraint))
        if factory is not None:
            return factory(constraint)
        if isinstance(constraint, constraints.independent):
            inner = self(constraint.base_constraint)
            return transforms.IndependentTransform(inner, constraint.reinterpreted_batch_ndims)
        if isinstance(constraint, constraints._Joined):
            parts = [self(part) for part in constraint.cseq]
            if constraint.lengths is None:
                return transforms.StackTransform(parts, constraint.dim)
            return transforms.CatTransform(parts, constraint.dim, constraint.lengths)
        transform = _of_bounds(constraint)
        if transform is None:
            raise NotImplementedError(f"Cannot transform {type(constraint).__name__} constraints: {constraint}")
        return transform


def _of_bounds(constraint: Constraint) -> transforms.Transform | None:
    name = getattr(constraint, "name", "")
    if name in ("GreaterThan", "GreaterThanEq"):
        shift = elementwise.AffineTransform(constraint.lower_bound, 1)
        is_zero = isinstance(constraint.lower_bound, float | int) and constraint.lower_bound == 0
        parts: list[transforms.Transform] = [elementwise.ExpTransform(), shift]
        return elementwise.ExpTransform() if is_zero else transforms.ComposeTransform(parts)
    if name == "LessThan":
        return transforms.ComposeTransform(
            [elementwise.ExpTransform(), elementwise.AffineTransform(constraint.upper_bound, -1)]
        )
    if name in ("Interval", "HalfOpenInterval"):
        low, high = constraint.lower_bound, constraint.upper_bound
        if isinstance(low, float | int) and isinstance(high, float | int) and (low, high) == (0, 1):
            return elementwise.SigmoidTransform()
        return transforms.ComposeTransform(
            [elementwise.SigmoidTransform(), elementwise.AffineTransform(low, high - low)]
        )
    return None


biject_to, transform_to = ConstraintRegistry(), ConstraintRegistry()
for _registry in (biject_to, transform_to):
    _registry.register(constraints.real, lambda constraint: transforms.identity_transform)
    _registry.register(constraints.lower_cholesky, lambda constraint: vector_transforms.LowerCholeskyTransform())
    _registry.register(constraints.positive_definite, lambda constraint: vector_transforms.PositiveDefiniteTransform())
    _registry.register(
        constraints.positive_semidefinite, lambda constraint: vector_transforms.PositiveDefiniteTransform()
    )
    _registry.register(constraints.corr_cholesky, lambda constraint: vector_transforms.CorrCholeskyTransform())
biject_to.register(constraints.simplex, lambda constraint: vector_transforms.StickBreakingTransform())
transform_to.register(constraints.simplex, lambda constraint: vector_transforms.SoftmaxTransform())
