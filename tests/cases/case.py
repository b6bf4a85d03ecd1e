"""A case: one function of a module with torch's API, and the arrays that it is called with.

A case names no library: `case.fn(torch, *tensors)` and `case.fn(pywebgpu, *tensors)` must agree. Tables of cases are
plain data, so every runner (oracle, browser, benchmark) reads the same ones.
"""

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

Draw = Callable[[np.random.Generator, tuple[int, ...]], np.ndarray]
Function = Callable[..., Any]

FLOATING = ("float64", "float32", "float16", "bfloat16")


@dataclass(frozen=True, slots=True)
class Input:
    """One tensor argument: how its values are drawn, and the dtype in which it is handed over."""

    shape: tuple[int, ...]
    dtype: str
    draw: Draw
    needs_grad: bool = True


@dataclass(frozen=True, slots=True)
class Case:
    """One call: `fn(library, *inputs)`, any nest of tensors and plain values out.

    grad: compare the gradients of the floating inputs too. tolerance: a class of tolerance.py. terms: how many
    products one result sums. devices: where the case has a meaning (float64 has none on webgpu).
    """

    name: str
    fn: Function
    inputs: tuple[Input, ...] = ()
    grad: bool = True
    tolerance: str = "pointwise"
    terms: int = 1
    devices: tuple[str, ...] = ("cpu", "webgpu")


def generator(name: str) -> np.random.Generator:
    """The same numbers for the same name, on every machine."""
    return np.random.default_rng(zlib.crc32(name.encode()))


def arrays(case: Case) -> list[np.ndarray]:
    """Fresh NumPy arrays for the inputs of `case`; bfloat16 travels as float32."""
    random = generator(case.name)
    return [
        np.array(item.draw(random, item.shape)).astype(host_dtype(item.dtype)).reshape(item.shape)
        for item in case.inputs
    ]


def host_dtype(dtype: str) -> str:
    return "float32" if dtype == "bfloat16" else dtype


# Inputs.


def randn(*shape: int, dtype: str = "float32", grad: bool = True) -> Input:
    return Input(shape, dtype, lambda random, shape: random.standard_normal(shape), grad)


def uniform(*shape: int, low: float = -1.0, high: float = 1.0, dtype: str = "float32", grad: bool = True) -> Input:
    return Input(shape, dtype, lambda random, shape: random.uniform(low, high, shape), grad)


def integers(*shape: int, low: int = -5, high: int = 6, dtype: str = "int64") -> Input:
    """Whole numbers of [low, high); a floating dtype gets whole values, so sums of them are exact."""
    return Input(shape, dtype, lambda random, shape: random.integers(low, high, shape), dtype in FLOATING)


def bools(*shape: int, share: float = 0.5) -> Input:
    return Input(shape, "bool", lambda random, shape: random.random(shape) < share, False)


def distinct(*shape: int, dtype: str = "float32") -> Input:
    """No two values are equal, so that order, maximum and their gradients are unique."""

    def draw(random: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        size = int(np.prod(shape))
        return (random.permutation(size) - size // 2).reshape(shape) * (0.25 if dtype in FLOATING else 1)

    return Input(shape, dtype, draw, dtype in FLOATING)


def given(values: Any, dtype: str = "float32", grad: bool = True) -> Input:
    """These values and no others."""
    array = np.array(values, dtype=host_dtype(dtype))
    return Input(array.shape, dtype, lambda random, shape: array.copy(), grad and dtype in FLOATING)


def spiked(*shape: int, spikes: tuple[float, ...] = (np.nan, np.inf, -np.inf), dtype: str = "float32") -> Input:
    """Normal values, the first ones replaced by `spikes`."""

    def draw(random: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        values = random.standard_normal(shape)
        values.reshape(-1)[: len(spikes)] = spikes
        return values

    return Input(shape, dtype, draw)


EDGES = (
    0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, -2.5, 30.0, -30.0, 100.0, -100.0, 1e10, -1e10, 1e-10, -1e-10, 1e38, -1e38,
    np.inf, -np.inf, np.nan,
)  # fmt: skip


def edges(dtype: str = "float32", *, but: tuple[float, ...] = ()) -> Input:
    """Zeros of both signs, halves, large, small, infinite, and no number at all."""
    largest = 65504.0 if dtype == "float16" else np.inf
    return given([value for value in EDGES if value not in but and not largest < abs(value) < np.inf], dtype)


def edge_pairs(*, but: tuple[float, ...] = ()) -> tuple[Input, Input]:
    """Every one of the edges with every other."""
    values = [value for value in EDGES if value not in but]
    return given([a for a in values for _ in values]), given([b for _ in values for b in values])


# Functions.


def call(name: str, *args: Any, **options: Any) -> Function:
    """torch.name(*tensors, *args, **options); the name may hold dots."""
    return lambda torch, *tensors: resolve(torch, name)(*tensors, *args, **options)


def method(name: str, *args: Any, **options: Any) -> Function:
    """first.name(*others, *args, **options)"""
    return lambda torch, x, *others: getattr(x, name)(*others, *args, **options)


def in_place(name: str, *args: Any, **options: Any) -> Function:
    """The same on a copy of the first input, which may be a leaf that requires a gradient."""
    return lambda torch, x, *others: getattr(x.clone(), name)(*others, *args, **options)


def resolve(library: Any, name: str) -> Any:
    found = library
    for part in name.split("."):
        found = getattr(found, part)
    return found


def script(table: list[Case], **options: Any) -> Callable[[Function], Function]:
    """Decorator: a function of the library alone becomes a case of `table`, named after itself."""

    def add(fn: Function) -> Function:
        table.append(Case(fn.__name__, fn, grad=False, **options))
        return fn

    return add


def numbers(library: Any, name: str, *shape: int, low: float = -1.0, high: float = 1.0) -> Any:
    """A float32 tensor on the default device: uniform numbers that only depend on `name` and `shape`."""
    return library.tensor(generator(name).uniform(low, high, shape).astype("float32"))
