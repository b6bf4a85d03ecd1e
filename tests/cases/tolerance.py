"""How far a result may lie from the oracle's, by kind of computation, dtype and engine, each with its ground."""

import math
from dataclasses import dataclass
from fnmatch import fnmatchcase

import numpy as np


@dataclass(frozen=True, slots=True)
class Tolerance:
    """|found - expected| <= relative * |expected| + absolute, where `absolute` may be a share of the largest value."""

    relative: float
    absolute: float
    of_largest: bool = False

    def bound(self, expected: np.ndarray) -> np.ndarray:
        finite = np.abs(np.where(np.isfinite(expected), expected, 0.0))
        largest = max(1.0, float(finite.max(initial=0.0))) if self.of_largest else 1.0
        return self.relative * finite + self.absolute * largest


EXACT = Tolerance(0.0, 0.0)

CLASSES: dict[tuple[str, str], Tolerance] = {
    # One rounding per op and at most a few ops in a row.
    ("pointwise", "float64"): Tolerance(1e-12, 1e-13),
    ("pointwise", "float32"): Tolerance(1e-5, 1e-6),
    ("pointwise", "float16"): Tolerance(2e-3, 1e-3),  # 2^-11 an op
    ("pointwise", "bfloat16"): Tolerance(1.6e-2, 8e-3),  # 2^-8 an op
    # Sums in another order: the error goes with the largest partial sum, not with the result.
    ("reduction", "float64"): Tolerance(1e-12, 1e-13, of_largest=True),
    ("reduction", "float32"): Tolerance(1e-5, 3e-6, of_largest=True),
    ("reduction", "float16"): Tolerance(4e-3, 2e-3, of_largest=True),
    ("reduction", "bfloat16"): Tolerance(3e-2, 1.6e-2, of_largest=True),
    # Multiplied by sqrt(terms): the errors of K products are independent.
    ("contraction", "float64"): Tolerance(1e-12, 1e-13, of_largest=True),
    ("contraction", "float32"): Tolerance(1e-5, 1e-6, of_largest=True),
    ("contraction", "float16"): Tolerance(2e-3, 1e-3, of_largest=True),
    ("contraction", "bfloat16"): Tolerance(1.6e-2, 8e-3, of_largest=True),
    # Several layers, or ten steps of an optimiser, each within the above.
    ("model", "float64"): Tolerance(1e-10, 1e-11, of_largest=True),
    ("model", "float32"): Tolerance(1e-4, 2e-5, of_largest=True),
    ("model", "float16"): Tolerance(1e-2, 5e-3, of_largest=True),
    ("model", "bfloat16"): Tolerance(6e-2, 3e-2, of_largest=True),
}

# (case name pattern, dtype, engine pattern): wider where an engine or torch itself is measured to be worse.
ENGINES: dict[tuple[str, str, str], Tolerance] = {
    # torch takes exp(x - lse) with lse near 1000 rounded to 6e-5; the exact gradient is 1/2.
    ("logsumexp_large", "float32", "*"): Tolerance(1e-4, 1e-5),
    # torch's gradient of a row of one number is 2^-16, where it is 0.
    ("layer_norm_of_1", "float32", "*"): Tolerance(1e-5, 2e-5),
    # Gradients are exponentials of sums of logarithms, which are rounded: torch's is off by 3e-4 of that in float64,
    ("logcumsumexp", "float32", "*"): Tolerance(1e-3, 1e-5),
    # and of long rows by 5e-6, ours by 7e-6.
    ("logcumsumexp_of_long_rows_*", "float32", "*"): Tolerance(1e-5, 1.5e-5, of_largest=True),
    # Logarithms of sums over 50 steps, each rounded: both are off by 1e-3 of float64 where a probability is small.
    ("nn.functional.ctc_loss", "float32", "*"): Tolerance(3e-3, 1e-5),
    # Terms of 100 that cancel to 0: of two observations, weights change nothing.
    ("cov", "float32", "*"): Tolerance(1e-4, 1e-4),
    # A tangent near its pole: one ulp of the argument moves the result by 1.5e-5.
    ("function_in_a_graph", "float32", "*"): Tolerance(5e-5, 1e-6),
    # Terms of 16, each rounded by up to 2^-4, cancel to 0.65: torch is off by 0.08 of float64, we by 0.04.
    ("nn.functional.hinge_embedding_loss", "bfloat16", "*"): Tolerance(3e-2, 6e-2, of_largest=True),
    # torch rounds the saved result to bfloat16 before it takes its cube: 3 x 2^-8.
    ("rsqrt_bfloat16", "bfloat16", "*"): Tolerance(4e-2, 8e-3),
}


def tolerance(name: str, kind: str, dtype: str, engine: str, *, terms: int = 1) -> Tolerance:
    """The tolerance of the case `name` of class `kind` for a result of `dtype`; whole numbers are exact."""
    if kind == "exact" or (kind, dtype) not in CLASSES:
        return EXACT
    for (pattern, entry_dtype, engines), entry in ENGINES.items():
        if dtype == entry_dtype and fnmatchcase(name, pattern) and fnmatchcase(engine, engines):
            return entry
    found = CLASSES[kind, dtype]
    if kind != "contraction":
        return found
    growth = math.sqrt(terms)
    return Tolerance(found.relative * growth, found.absolute * growth, found.of_largest)
