"""Gauss's rule: where an integral looks at what is integrated, and what each look counts."""

from functools import lru_cache
from math import cos, pi


@lru_cache(2)
def gauss(count: int) -> tuple[list[float], list[float]]:
    """Gauss's points and weights over [0, 1]: the zeros of Legendre's polynomial, by Newton's steps."""
    points, weights = [], []
    for i in range(count):
        x = cos(pi * (i + 0.75) / (count + 0.5))
        for _ in range(9):
            before, value = 1.0, x
            for k in range(2, count + 1):
                before, value = value, ((2 * k - 1) * x * value - (k - 1) * before) / k
            slope = count * (x * value - before) / (x * x - 1)
            x -= value / slope
        points.append((1 - x) / 2)
        weights.append(1 / ((1 - x * x) * slope * slope))
    return points, weights
