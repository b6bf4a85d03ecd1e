"""Methods that fill a tensor with random numbers in place."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any, Self

from pywebgpu import dtypes
from pywebgpu.composites import arithmetic, bounds, random
from pywebgpu.dtypes import DType, Kind
from pywebgpu.errors import DTypeError, ShapeError
from pywebgpu.ir.graph import Node, thread_state
from pywebgpu.ops import pointwise
from pywebgpu.tensor import generator as sources
from pywebgpu.tensor.base import TensorBase
from pywebgpu.tensor.generator import Source
from pywebgpu.tensor.reshaping import ReshapingMethods

if TYPE_CHECKING:
    from pywebgpu.ops.random import Seed
    from pywebgpu.support.shapes import Shape
    from pywebgpu.tensor.tensor import Tensor
    from pywebgpu.tensor.types import Operand

Draws = Source | None


class RandomMethods(ReshapingMethods):
    """Random numbers, written into the tensor."""

    __slots__ = ()

    def _drawn(self, function: Callable[..., Node], generator: Draws, *args: Any) -> Self:
        if thread_state.transforms:
            import_module("pywebgpu.tensor.samples").refuse_unbatched(self)
        node = function(sources.draw(generator, self._storage.device), tuple(self.shape), *args, self.dtype)
        return self._assign(arithmetic.cast(node, self.dtype))

    def uniform_(self, from_: float = 0, to: float = 1, *, generator: Draws = None, **options: Any) -> Self:
        """Numbers of [from, to)."""
        low = options.pop("from", from_)  # A keyword of Python, so it comes this way.
        if options:
            raise TypeError(f"uniform_() got an unexpected keyword argument '{next(iter(options))}'")
        random.require_floating("uniform", self.dtype)
        for called, bound in (("from", low), ("to", to)):
            if not self.dtype.low <= bound <= self.dtype.high:
                raise ShapeError(f"{called} is out of bounds for {self.dtype.name}: {bound}")
        if low > to:
            raise ShapeError(f"uniform_ expects to return a [from, to) range, but found from={low} > to={to}")
        return self._drawn(random.between, generator, low, to)

    def normal_(self, mean: float = 0, std: float = 1, *, generator: Draws = None) -> Self:
        """Numbers of the normal distribution."""
        require_spread(std)
        return self._drawn(_normal, generator, mean, std)

    def log_normal_(self, mean: float = 1, std: float = 2, *, generator: Draws = None) -> Self:
        """Numbers whose logarithms are normal."""
        if not std > 0:
            raise RuntimeError(f"log_normal_ expects std > 0.0, but found std={std}")
        self.normal_(mean, std, generator=generator)
        self.exp_()
        return self

    def random_(self, *range_: int | None, generator: Draws = None) -> Self:
        """Whole numbers: random_() of all that the dtype holds, random_(to) of [0, to), random_(from, to) between.

        random_(from, None): up to the largest one; where a device stores int64 as int32, the largest of that.
        """
        low, high = (0, None) if not range_ else (0, range_[0]) if len(range_) == 1 else range_
        low, limit = low or 0, largest(self.dtype)
        if high is None:
            high = (
                limit + 1
                if self.dtype is not dtypes.int64 or self._storage.device.holds_all
                else largest(dtypes.int32) + 1
            )
        for called, bound in (("from", low), ("to - 1", high - 1)):
            if low < high and not self.dtype.low <= bound <= self.dtype.high:
                raise ShapeError(f"{called} is out of bounds for {self.dtype.name}: {bound}")
            if self.dtype.kind is Kind.FLOAT and range_ and abs(bound) > limit:
                warnings.warn(
                    f"{called} is out of bounds [-{limit}, {limit}]. Due to precision limitations {self.dtype.name} "
                    "can support discrete uniform distribution only within this range. This warning will become an "
                    "error in a future version of PyTorch",
                    UserWarning,
                    stacklevel=2,
                )
        return self._drawn(random.integers, generator, int(low), int(high))

    def bernoulli_(self, p: Tensor | float = 0.5, *, generator: Draws = None) -> Self:
        """1 with probability p, else 0."""
        check_same(p)
        chance = bounds.probabilities(p._node) if isinstance(p, TensorBase) else p
        return self._drawn(random.bernoulli, generator, chance)

    def exponential_(self, lambd: float = 1, *, generator: Draws = None) -> Self:
        """Numbers with density lambd * exp(-lambd * x)."""
        if not lambd > 0:
            raise RuntimeError(f"exponential_ expects lambda > 0.0, but found lambda={lambd}")
        return self._drawn(random.exponential, generator, lambd)

    def geometric_(self, p: float, *, generator: Draws = None) -> Self:
        """How many trials of probability p it takes until one succeeds."""
        return self._drawn(random.geometric, generator, p)

    def cauchy_(self, median: float = 0, sigma: float = 1, *, generator: Draws = None) -> Self:
        """median + sigma * tan(pi * (u - 1/2))"""
        if not sigma > 0:
            raise RuntimeError(f"cauchy_ expects sigma > 0.0, but found sigma={sigma}")
        return self._drawn(random.cauchy, generator, median, sigma)

    def bernoulli(self, p: float | None = None, *, generator: Draws = None) -> Tensor:
        """1 with the probability that each element says (or with p), else 0."""
        if self.dtype.kind is not Kind.FLOAT and p is None:
            raise DTypeError(f'"bernoulli" not implemented for {self.dtype.name!r}')
        if p is None:
            check_same(self)
        chance = bounds.probabilities(self._node) if p is None else p
        node = random.bernoulli(sources.draw(generator, self._storage.device), tuple(self.shape), chance, self.dtype)
        return self._new(node if p is not None else constant(node, self._node), self._storage.device)

    def multinomial(self, num_samples: int, replacement: bool = False, *, generator: Draws = None) -> Tensor:
        """Numbers of categories for each row, as likely as the row's weights say."""
        check_same(self)
        node = random.multinomial(
            sources.draw(generator, self._storage.device), self._node, int(num_samples), replacement=bool(replacement)
        )
        return self._new(node, self._storage.device)


def constant(drawn: Node, *parameters: Node) -> Node:
    """Draws that require a gradient where one of their parameters does, which is 0."""
    for parameter in parameters:
        if parameter.requires and thread_state.grad:
            drawn = pointwise.overwrite(
                drawn, arithmetic.broadcast_to(arithmetic.cast(parameter, drawn.spec.dtype), drawn.spec.shape)
            )
    return drawn


def check_same(*numbers: object) -> None:
    if thread_state.transforms:
        import_module("pywebgpu.tensor.samples").refuse_same(numbers)


def _normal(seed: Seed, shape: Shape, mean: float, std: float, dtype: DType) -> Node:
    return random.scaled(random.normal(seed, shape, dtype), std, mean)


def require_spread(std: Operand | Node) -> None:
    if not isinstance(std, TensorBase | Node) and not std >= 0:
        raise ShapeError(f"normal expects std >= 0.0, but found std {std}")


def largest(dtype: DType) -> int:
    """The largest whole number up to which a dtype holds all of them."""
    if dtype.kind is Kind.FLOAT:
        return {"float16": 2**11, "bfloat16": 2**8, "float32": 2**24, "float64": 2**53}[dtype.name]
    return int(min(dtype.high, dtypes.int64.high))
