"""Expressions of a number, by what a captured step makes of them where the number is free: see test_free_numbers.py."""

import array
import bisect
import cmath
import copy
import ctypes
import datetime
import decimal
import enum
import fractions
import functools
import itertools
import json
import marshal
import math
import numbers
import operator
import pickle
import statistics
import struct
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

Expression = Callable[[Any], Any]

FLOATS = (0.5, 2.0, -3.0, 0.0, -0.0, 2.5, 1e300, 7.25, math.inf, math.nan)
INTS = (3, 2, 0, -4, 1, 7, 2**70)


class Level(enum.IntEnum):
    LOW = 2
    HIGH = 3


class Rate(enum.Enum):
    HALF = 0.5
    TWO = 2.0


class MyFloat(float):
    def __radd__(self, other: Any) -> Any:
        return ("mine", float(other))


class Scaled:
    """Has operators of its own."""

    def __init__(self, value: float) -> None:
        self.value = value

    def __mul__(self, other: Any) -> Any:
        return self.value * other

    __rmul__ = __mul__

    def __eq__(self, other: object) -> Any:
        return self.value == other

    def __hash__(self) -> int:
        return 1


def matched(k: Any) -> str:
    match k:
        case bool():
            return "bool"
        case float(x) if x > 1:
            return "large float"
        case float():
            return "float"
        case int(n):
            return f"int {n}"
    return "neither"


def caught(k: Any) -> Any:
    try:
        return 1 / k
    except ZeroDivisionError:
        return "caught"


def dispatched() -> Any:
    @functools.singledispatch
    def kind(k: Any) -> str:
        return "object"

    kind.register(float, lambda k: "float")
    kind.register(int, lambda k: "int")
    return kind


KIND = dispatched()
ARRAY = np.array([1.0, 2.0, 3.0], "float32")


def filled(k: Any) -> Any:
    made = np.zeros(3)
    made[1] = k
    made += k
    return made


# What stays free: no value is compared, so a replay with any other gives what Python gives.
FREE_OF_BOTH: dict[str, Expression] = {
    "add": lambda k: (k + 1, 1.5 + k, k + k, k + True),
    "sub": lambda k: (k - 1, 1.5 - k, k - k),
    "mul": lambda k: (k * 3, 0.5 * k, k * k),
    "div": lambda k: (k / 4, k / 0.3),
    "floordiv": lambda k: (k // 2, k // 0.3, k // -7),
    "mod": lambda k: (k % 2, k % 0.3, k % -7),
    "neg": lambda k: (-k, +k, abs(k)),
    "divmod": lambda k: divmod(k, 3),
    "power": lambda k: k**2,
    "chain": lambda k: ((k + 1) * 2 - k) / 7 + k * k,
    "in place": lambda k: functools.reduce(operator.imul, [k, 2, k]),
    "operator": lambda k: operator.mul(k, operator.sub(k, 1)),
    "prod": lambda k: math.prod([k, 2.0, k]),
    "is a": lambda k: [
        isinstance(k, kind) for kind in (float, int, bool, complex, str, numbers.Real, numbers.Integral)
    ],
    "class": lambda k: k.__class__.__name__,
    "singledispatch": KIND,
    "no text": lambda k: (k == "auto", k != None, k == None, k in (None, "auto")),  # noqa: E711
    "no attribute": lambda k: (hasattr(k, "shape"), hasattr(k, "__index__"), hasattr(k, "__len__")),
    "real": lambda k: k.__pos__(),
}
FREE_OF_FLOATS: dict[str, Expression] = {
    "power": lambda k: (abs(k) + 1.0) ** -0.5,
    "root": lambda k: (k * k) ** 0.5,
    "rounded": lambda k: (round(k), math.floor(k), math.ceil(k), math.trunc(k)),
    "rounded on": lambda k: round(k) * 2 + math.floor(k / 3),
}
FREE_OF_INTS: dict[str, Expression] = {
    "rounded": lambda n: (round(n), math.floor(n), math.ceil(n), math.trunc(n)),
    "power": lambda n: (n**3, 1.5 ** (n % 7), (n * n) % 7),
}

# What may become a guard.
GUARDED: dict[str, Expression] = {
    "compared": lambda k: [k < 1, k <= 1, k > 0.3, k >= 2, k == 2, k != 2, k > 1, k == 2],
    "chained": lambda k: 0 < k < 3,
    "truth": lambda k: ("yes" if k else "no", not k, bool(k), k and 1, k or 5),
    "int": lambda k: int(k),
    "float": lambda k: float(k),
    "complex": lambda k: complex(k, 1) if abs(k) < 9 else 0,
    "matched": matched,
    "caught": caught,
    "quotients": lambda k: (1 / k, 7 // k, 7 % k, divmod(7, k), divmod(k, k)),
    "powers": lambda k: 2**k if k < 99 else 0,
    "powers of floats": lambda k: (2.0**k, k**0.5, k**-1),
    "powers of itself": lambda k: k**k if abs(k) < 99 else 0,
    "powers with a modulus": lambda k: pow(k, 2, 5),
    "repr": lambda k: (repr(k), str(k), f"{k}", f"{k!r}"),
    "format": lambda k: (f"{k:.2f}", f"{k:>9}", format(k, "e"), "%s %.1f" % (k, k), f"{k:.1f}"),  # noqa: UP031
    "hash": lambda k: (hash(k), {k: 1}[k], k in {k}),
    "looked up": lambda k: {2.0: "two", 3: "three"}.get(k, "none"),
    "in a list": lambda k: (k in [0.5, 3], [0.5, 2, 3].count(k)),
    "sorted": lambda k: sorted([3, k, 1.0]),
    "least": lambda k: (min(k, 1), max(k, 1), min([k, 0.5]), max(0, k)),
    "clamped": lambda k: max(0.0, min(1.0, k)),
    "bisect": lambda k: bisect.bisect([0, 1, 2], k),
    "digits": lambda k: round(k, 1),
    "math": lambda k: (math.sqrt(abs(k)), math.exp(-abs(k)), math.sin(1 / (1 + abs(k)))),
    "math of finite": lambda k: (math.isnan(k), math.isinf(k), math.isfinite(k), math.copysign(1, k)),
    "math of two": lambda k: (math.pow(k, 2), math.hypot(k, 1), math.atan2(k, 2), math.fmod(k, 3)),
    "fsum": lambda k: math.fsum([k, 0.1, 0.2]),
    "log": lambda k: math.log(k),
    "close": lambda k: math.isclose(k, 2.0),
    "cmath": lambda k: cmath.exp(complex(0, 1) * (k % 3)),
    "complex numbers": lambda k: (k + 1j, 2j * k, k == 2 + 0j),
    "is integer": lambda k: float(k).is_integer(),
    "ratio": lambda k: k.as_integer_ratio(),
    "conjugate": lambda k: (k.conjugate(), k.real, k.imag),
    "copied": lambda k: (copy.copy(k), copy.deepcopy(k), copy.deepcopy([k])[0]),
    "pickled": lambda k: [pickle.loads(pickle.dumps(k, protocol)) for protocol in (0, 2, 5)],
    "struct": lambda k: (struct.pack("d", k), struct.pack("f", k % 7)),
    "array": lambda k: array.array("d", [k]).tolist(),
    "ctypes": lambda k: ctypes.c_double(k).value,
    "Fraction": lambda k: (fractions.Fraction(k), k + fractions.Fraction(1, 2)),
    "mean": lambda k: (statistics.mean([k, k]), statistics.fmean([k, 2]), statistics.median([k, 1, 2])),
    "sum": lambda k: (sum([k]), sum([k, k])) if sys.version_info < (3, 12) else 0,
    "subclass": lambda k: (k + MyFloat(2), MyFloat(2) + k, k < MyFloat(3), MyFloat(k)),
    "others": lambda k: (Scaled(2.0) * k, k * Scaled(2.0), k == Scaled(2.0), Scaled(2.0) == k),
    "errors": lambda k: k + "text",
    "subscripts": lambda k: k[0],
    "calls": lambda k: k(),
    "lengths": lambda k: len(k),
    "attributes": lambda k: k.shape,
    "exact type": lambda k: type(k)(3),
    "dir": lambda k: len(dir(k)),
    "cached": lambda k: functools.lru_cache(lambda x: (x, 1))(k),
    "accumulated": lambda k: list(itertools.accumulate([k, 1.0, 2.0], max)),
    "np functions": lambda k: (np.sqrt(abs(k)), np.exp(-abs(k)), np.maximum(k, 1), np.abs(k), np.add(k, k)),
    "np arrays": lambda k: (
        k % 2**60 and (np.array([k]), np.array([[k, 1]]), np.asarray(k), np.full(2, k), np.stack([k, k]))
    ),
    "np scalars": lambda k: (np.float64(k), np.float32(2) * k, k * np.float32(2), np.float64(2) + k, k - np.float64(2)),
    "np types": lambda k: np.array(k, dtype="float32"),
    "np operators": lambda k: (ARRAY * k, k * ARRAY, ARRAY - k, k - ARRAY, ARRAY / (abs(k) + 1), k < ARRAY, k > ARRAY),
    "np in place": filled,
    "np other": lambda k: (
        k % 2**60 and (np.where(ARRAY > 1, k, 0), np.linspace(0, k, 3), np.clip(k, 0, 1), np.isscalar(k))
    ),
    "np reductions": lambda k: (np.sum([k, 1]), np.mean([k, k]), np.dot([k, 1], [1, 2])),
    "np comparisons": lambda k: (np.isclose(k, 2), np.isnan(k), np.float64(2) == k, k < np.float64(2)),
}
GUARDED_OF_FLOATS: dict[str, Expression] = {
    "methods": lambda k: (k.hex(), k.is_integer()),
    "enum": Rate,
    "no index": lambda k: range(k),
    "no list index": lambda k: [1, 2, 3][k],
    "no repetition": lambda k: "ab" * k,
    "no bits": lambda k: k & 1,
    "operator.index": lambda k: operator.index(k),
    "packed ints": lambda k: struct.pack("i", k),
}
GUARDED_OF_INTS: dict[str, Expression] = {
    "range": lambda n: list(range(n % 50)) if n < 99 else 0,
    "list index": lambda n: (["a", "b", "c"][n % 3], "abcdef"[: n % 5], [1, 2, 3][n]),
    "repetition": lambda n: ("ab" * (n % 4), (n % 4) * [1], [0] * (n % 3)),
    "enum": Level,
    "index": lambda n: (operator.index(n), hex(n), bin(n), oct(n), f"{n:x}", f"{n:d}", "%d" % n),  # noqa: UP031
    "chr": lambda n: chr(n),
    "bits": lambda n: (
        n & 1,
        1 & n,
        n | 8,
        8 | n,
        n ^ 3,
        3 ^ n,
        n >> 1,
        ~n,
        n.bit_length(),
        64 >> (n & 3),
        1 << (n & 7),
    ),
    "shift": lambda n: 1 << n if n < 99 else 0,
    "math": lambda n: (math.gcd(n, 6), math.isqrt(abs(n)), math.comb(abs(n) % 9, 2), math.factorial(abs(n) % 9)),
    "bytes": lambda n: (bytes([n & 7]), (abs(n) & 7).to_bytes(2, "big"), struct.pack("i", n & 7), bytes(n & 3)),
    "rational": lambda n: (n.numerator, n.denominator),
    "rounded": lambda n: round(n, -1),
    "negative powers": lambda n: (n**-2, 2**-n),
    "Decimal": lambda n: n * decimal.Decimal(2),
    "timedelta": lambda n: n % 9 * datetime.timedelta(1),
    "big": lambda n: (n**5000) % 7 if abs(n) < 9 else 0,
    "shape": lambda n: (np.zeros(n & 3).shape, np.arange(n & 3), np.ones((n & 3, 1)).shape),
    "islice": lambda n: list(itertools.islice(itertools.count(), n & 3)),
    "strings": lambda n: "x".rjust(n & 7),
}

# What C, or Python code that asks for the exact type, does with floats and ints alone: an error, and no old value.
LOUD: dict[str, tuple[Expression, Any]] = {
    "json": (json.dumps, 0.5),
    "Decimal": (decimal.Decimal, 0.5),
    "timedelta": (lambda k: datetime.timedelta(seconds=k), 0.5),
    "sleep": (time.sleep, 0.0),
    "marshal": (marshal.dumps, 0.5),
    "method of the class": (float.hex, 0.5),
    "mean of several types": (lambda k: statistics.mean([k, 1.0]), 0.5),
    "json of ints": (json.dumps, 3),
    "ldexp": (lambda n: math.ldexp(1.0, n), 3),
    "method of the class of ints": (int.bit_length, 3),
    "modulus": (lambda n: pow(3, 2, n), 3),
}
