"""Random tensors, torch's Generator, and the functions that set seeds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Unpack

from pywebgpu import devices, dtypes
from pywebgpu.composites import bounds, random, reduce
from pywebgpu.errors import REFUSALS, ShapeError
from pywebgpu.ir.graph import Node
from pywebgpu.ops.random import Seed
from pywebgpu.support.shapes import broadcast
from pywebgpu.tensor import conversion, factory_options, from_data, outputs, random_inplace
from pywebgpu.tensor import generator as sources
from pywebgpu.tensor.base import TensorBase
from pywebgpu.tensor.generator import Source, State
from pywebgpu.tensor.methods import named_by_numpy
from pywebgpu.tensor.tensor import Tensor

if TYPE_CHECKING:
    from pywebgpu.tensor.types import Bounded, Made, Operand, Sized, Sizes


class Generator(Source):
    """A source of random draws. Two generators of one seed give the same draws, on any device."""

    __slots__ = ()

    def get_state(self) -> Tensor:
        """The state as a tensor of bytes."""
        data = b"".join(int(part).to_bytes(8, "little") for part in self.numbers())
        device = devices.open_device()
        result: Tensor = Tensor._new(from_data.from_bytes(data, dtypes.uint8, (len(data),), device), device)
        return result

    def set_state(self, new_state: Tensor) -> Generator:
        """Goes to a state that get_state returned. Raises TypeError or RuntimeError for anything else."""
        if not isinstance(new_state, TensorBase) or new_state.dtype is not dtypes.uint8:
            raise TypeError("expected a torch.ByteTensor, but got something else: RNG states are made by get_state()")
        if tuple(new_state.shape) != (24,):
            raise RuntimeError(f"RNG state is wrong size: expected 24 bytes, got {tuple(new_state.shape)}")
        data = bytes(conversion.numbers(new_state._bytes(), dtypes.uint8))
        seed, stream, draws = (int.from_bytes(data[start : start + 8], "little") for start in (0, 8, 16))
        self.restore(State(seed, stream, draws))
        return self

    def clone_state(self) -> Generator:
        """Another generator in the same state."""
        copy = Generator(self.device)
        copy.restore(self.state)
        return copy


default_generator = Generator()
sources.set_default(default_generator)


def manual_seed(seed: int) -> Generator:
    """Sets the seed of all draws that name no generator."""
    return default_generator.manual_seed(seed)


def seed() -> int:
    """Sets a seed that the operating system draws, and returns it."""
    return default_generator.seed()


def initial_seed() -> int:
    """The seed that draws without a generator started from."""
    return default_generator.initial_seed()


def get_rng_state() -> Tensor:
    """The state of the default generator."""
    return default_generator.get_state()


def set_rng_state(new_state: Tensor) -> None:
    """Sets the state of the default generator."""
    default_generator.set_state(new_state)


@contextmanager
def fork_rng(devices: Iterable[object] = (), enabled: bool = True, **options: Any) -> Iterator[None]:
    """Draws inside the block leave the default generator as it was."""
    before = default_generator.state
    try:
        yield
    finally:
        if enabled:
            default_generator.restore(before)


def seed_node(device: devices.device, generator: Source | None = None) -> Seed:
    """The seed of one draw, for functions of nodes that take one."""
    return sources.draw(generator, devices.open_device(device))


# Tensors


def rand(*sizes: int | Sequence[int], generator: Source | None = None, **options: Unpack[Sized]) -> Tensor:
    """Numbers of [0, 1)."""
    shape = factory_options.size("rand", sizes, options)
    factory = factory_options.FactoryOptions("rand", options)
    return factory.tensor(random.uniform(sources.draw(generator, factory.device), shape, factory.dtype))


def randn(*sizes: int | Sequence[int], generator: Source | None = None, **options: Unpack[Sized]) -> Tensor:
    """Numbers of the standard normal distribution."""
    shape = factory_options.size("randn", sizes, options)
    factory = factory_options.FactoryOptions("randn", options)
    return factory.tensor(random.normal(sources.draw(generator, factory.device), shape, factory.dtype))


def randint(*args: int | Sequence[int], generator: Source | None = None, **options: Unpack[Bounded]) -> Tensor:
    """Whole numbers: randint(high, size) of [0, high), randint(low, high, size) of [low, high)."""
    low, high, shape = _bounds("randint", args, options)
    factory = factory_options.FactoryOptions("randint", options, dtypes.int64)
    _require_held(low, high, factory.dtype)
    return factory.tensor(random.integers(sources.draw(generator, factory.device), shape, low, high, factory.dtype))


def _bounds(name: str, args: tuple[Any, ...], options: Bounded, *, sized: bool = True) -> tuple[int, int, Any]:
    numbers = list(args)
    shape = options.pop("size", None)
    if sized and shape is None and numbers and not hasattr(numbers[-1], "__index__"):
        shape = numbers.pop()
    if "high" in options:
        numbers.append(options.pop("high"))
    if "low" in options:
        numbers.insert(0, options.pop("low"))
    if (sized and shape is None) or len(numbers) not in (1, 2):
        raise TypeError(f"{name}() takes (high, size) or (low, high, size), got {args}")
    low, high = (0, numbers[0]) if len(numbers) == 1 else numbers
    return int(low), int(high), factory_options.sizes((shape,), name) if sized else ()


def _require_held(low: int, high: int, dtype: dtypes.DType) -> None:
    top = random_inplace.largest(dtype)
    if high - 1 > top or low < max(dtype.low, -top - 1):
        raise ShapeError(f"from or to - 1 is out of bounds for {dtype.name}: from={low}, to={high}")


def randperm(n: int, *, generator: Source | None = None, **options: Unpack[Made]) -> Tensor:
    """0..n-1 in random order."""
    factory = factory_options.FactoryOptions("randperm", options, dtypes.int64)
    return factory.tensor(random.permutation(sources.draw(generator, factory.device), int(n), factory.dtype))


@named_by_numpy
def rand_like(input: Tensor, *, generator: Source | None = None, **options: Unpack[Made]) -> Tensor:
    """Numbers of [0, 1) in another tensor's shape, dtype and device."""
    factory = factory_options.like("rand_like", input, options)
    return factory.tensor(random.uniform(sources.draw(generator, factory.device), tuple(input.shape), factory.dtype))


@named_by_numpy
def randn_like(input: Tensor, *, generator: Source | None = None, **options: Unpack[Made]) -> Tensor:
    """Normal numbers in another tensor's shape, dtype and device."""
    factory = factory_options.like("randn_like", input, options)
    return factory.tensor(random.normal(sources.draw(generator, factory.device), tuple(input.shape), factory.dtype))


@named_by_numpy
def randint_like(input: Tensor, *args: Any, generator: Source | None = None, **options: Unpack[Bounded]) -> Tensor:
    """Whole numbers in another tensor's shape, dtype and device."""
    low, high, _ = _bounds("randint_like", args, options, sized=False)
    factory = factory_options.like("randint_like", input, options)
    _require_held(low, high, factory.dtype)
    return factory.tensor(
        random.integers(sources.draw(generator, factory.device), tuple(input.shape), low, high, factory.dtype)
    )


def normal(
    mean: Operand,
    std: Operand = 1.0,
    size: Sizes | None = None,
    *,
    generator: Source | None = None,
    **options: Unpack[Made],
) -> Tensor:
    """Normal numbers with a mean and a spread of their own each (tensors), or with one of each in `size`."""
    random_inplace.require_spread(std)
    tensors = [part for part in (mean, std) if isinstance(part, TensorBase)]
    random_inplace.check_same(*tensors)
    out: Any = options.pop("out", None) if tensors else None
    if not tensors:
        shape = factory_options.sizes((size,), "normal")
        factory = factory_options.FactoryOptions("normal", options)
    else:
        shape = broadcast(*(tuple(part.shape) if isinstance(part, TensorBase) else () for part in (mean, std)))
        dtype = tensors[0]._node.spec.dtype
        factory = factory_options.FactoryOptions("normal", options, dtype, tensors[0]._storage.device)
    scale, start = (reduce.stop_gradient(part._node) if isinstance(part, TensorBase) else part for part in (std, mean))
    if isinstance(scale, Node):
        scale = bounds.not_negative(scale, REFUSALS[5])
    drawn = random.scaled(random.normal(sources.draw(generator, factory.device), shape, factory.dtype), scale, start)
    drawn = random_inplace.constant(drawn, *(part._node for part in tensors))
    return outputs.finished("normal", factory.tensor(drawn), out, *tensors)
