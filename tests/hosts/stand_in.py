"""What the tables need of NumPy, for a host that has none. Random draws are replayed: NumPy made them before.

`install(draws)` makes it the module `numpy`. Anything else that is asked of it raises Missing.
"""

import struct
import sys
from contextlib import nullcontext
from importlib.machinery import ModuleSpec
from math import inf, nan, prod
from types import ModuleType
from typing import Any

CODES = {
    "float64": "d", "float32": "f", "float16": "e", "int64": "q", "int32": "i", "int16": "h", "int8": "b",
    "uint8": "B", "uint32": "I", "bool": "?",
}  # fmt: skip


class Missing(Exception):
    """A case needs NumPy itself."""


def code(dtype: str) -> str:
    """How `struct` names a dtype. Raises Missing for what it has not: complex numbers."""
    if dtype not in CODES:
        raise Missing(f"arrays of {dtype}")
    return CODES[dtype]


class Array:
    """Numbers in row-major order."""

    __array_interface__: Any = None

    def __init__(self, dtype: str, shape: tuple[int, ...], data: bytes) -> None:
        self.dtype, self.shape, self.data = dtype, shape, bytes(data)

    @property
    def size(self) -> int:
        return prod(self.shape)

    def values(self) -> list[Any]:
        return list(struct.unpack(f"<{self.size}{code(self.dtype)}", self.data))

    def tobytes(self) -> bytes:
        return self.data

    def copy(self) -> "Array":
        return self

    def astype(self, dtype: Any) -> "Array":
        return self if dtype == self.dtype else array(self.values(), dtype).reshape(self.shape)

    def reshape(self, *shape: Any) -> "Array":
        wanted = shape[0] if len(shape) == 1 and isinstance(shape[0], tuple) else shape
        return Array(self.dtype, tuple(wanted), self.data)

    def tolist(self) -> Any:
        found = self.values()
        if not self.shape:
            return found[0]
        for n in reversed(self.shape[1:]):
            found = [found[at : at + n] for at in range(0, len(found), n)] if n else []
        return found

    def __mul__(self, other: "Array") -> "Array":
        products = [a * b for a, b in zip(self.values(), other.values(), strict=True)]
        return array(products, self.dtype).reshape(self.shape)


def array(values: Any, dtype: Any = "float64") -> Array:
    """Numbers, nested in lists or not, as an array."""
    if isinstance(values, Array):
        return values.astype(dtype)
    flat, shape = [values], ()
    while flat and isinstance(flat[0], list | tuple):
        shape = (*shape, len(flat[0]))
        flat = [inner for item in flat for inner in item]
    kind = {"b": int, "B": int, "?": bool}.get(code(dtype), float if dtype.startswith("float") else int)
    return Array(dtype, shape, b"".join(_packed(kind(value), code(dtype)) for value in flat))


def _packed(value: Any, code: str) -> bytes:
    try:
        return struct.pack(f"<{code}", value)
    except OverflowError:
        return struct.pack(f"<{code}", inf if value > 0 else -inf)


class Generator:
    """Replays what numpy.random.default_rng(seed) drew, call by call."""

    def __init__(self, seed: int, draws: dict[str, Any]) -> None:
        self._seed, self._draws, self._calls = seed, draws, []

    def __getattr__(self, method: str) -> Any:
        def draw(*args: Any, **options: Any) -> Any:
            self._calls.append(call_key(method, args, options))
            return self._draws[draw_key(self._seed, self._calls)]

        return draw


def call_key(method: str, args: Any, options: Any) -> str:
    return f"{method}{_plain(args)}{sorted(options.items())}"


def draw_key(seed: int, calls: list[str]) -> str:
    """The name of the last of some calls on one generator."""
    return f"{seed}:{';'.join(calls)}"


def _plain(value: Any) -> Any:
    return tuple(_plain(item) for item in value) if isinstance(value, list | tuple) else value


def install(draws: dict[str, Any]) -> None:
    """Puts the stand-in where `import numpy` finds it."""
    numpy, random = _Module("numpy"), _Module("numpy.random")
    numpy.__spec__ = ModuleSpec("numpy", None)  # Who looks whether it is there finds it.
    numpy.ndarray, numpy.array, numpy.nan, numpy.inf, numpy.random = Array, array, nan, inf, random
    numpy.frombuffer = lambda data, dtype: Array(dtype, (len(data) // struct.calcsize(code(dtype)),), data)
    numpy.errstate = lambda **options: nullcontext()
    random.Generator = Generator
    random.default_rng = lambda seed: Generator(seed, draws)
    sys.modules["numpy"], sys.modules["numpy.random"] = numpy, random
    sys.modules["pywebgpu.devices.cpu"] = None  # type: ignore[assignment]  # It needs the real one.


class _Module(ModuleType):
    def __getattr__(self, name: str) -> Any:
        raise Missing(f"numpy.{name}")
