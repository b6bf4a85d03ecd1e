"""What random programs are made of: steps that fit any tensor, because their numbers are taken modulo its shape.

A step is plain data (a choice and three numbers), so a failing program prints whole and shrinks well. The same numbers
mean the same step to every library.
"""

import math
from collections.abc import Callable
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

# Each run draws the same programs: a failure is always one's own change. How many, tests/sampling.py says.
PROFILE = settings(
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
MOST = 600  # elements: a view chain may not grow a tensor beyond that

View = Callable[[Any, Any, int, int, int], Any]  # library, tensor, three numbers

numbers = st.integers(0, 11)
step = st.tuples(st.integers(0, 99), numbers, numbers, numbers)
shapes = st.lists(st.integers(1, 5), min_size=0, max_size=4).map(tuple)
solid_shapes = st.lists(st.integers(2, 5), min_size=1, max_size=3).map(tuple)


def slice_dim(torch: Any, x: Any, a: int, b: int, c: int) -> Any:
    dim = a % x.ndim
    index: list[Any] = [slice(None)] * x.ndim
    index[dim] = slice(b % x.shape[dim], None, 1 + c % 3)
    return x[tuple(index)]


def slice_from_end(torch: Any, x: Any, a: int, b: int, c: int) -> Any:
    index: list[Any] = [slice(None)] * x.ndim
    index[a % x.ndim] = slice(None, -b % 4 or None)
    found = x[tuple(index)]
    return found if found.numel() else x


def select(torch: Any, x: Any, a: int, b: int, c: int) -> Any:
    dim = a % x.ndim
    return x.select(dim, b % x.shape[dim] - (x.shape[dim] if c % 2 else 0))


def permute(torch: Any, x: Any, a: int, b: int, c: int) -> Any:
    left, order = list(range(x.ndim)), []
    for number in (a, b, c, a + b):
        if left:
            order.append(left.pop(number % len(left)))
    return x.permute(*order, *left)


def merge_dims(torch: Any, x: Any, a: int, b: int, c: int) -> Any:
    if x.ndim < 2:
        return x.reshape(-1)
    dim = a % (x.ndim - 1)
    return x.reshape(*x.shape[:dim], -1, *x.shape[dim + 2 :])


def split_dim(torch: Any, x: Any, a: int, b: int, c: int) -> Any:
    dim = a % x.ndim
    size = x.shape[dim]
    divisors = [n for n in range(1, size + 1) if size % n == 0]
    part = divisors[b % len(divisors)]
    return x.reshape(*x.shape[:dim], part, size // part, *x.shape[dim + 1 :])


def expand(torch: Any, x: Any, a: int, b: int, c: int) -> Any:
    copies = 1 + b % 3
    dim = a % (x.ndim + 1)
    if x.numel() * copies > MOST or x.ndim > 4:
        return x
    return x.unsqueeze(dim).expand(*x.shape[:dim], copies, *x.shape[dim:])


def unfold(torch: Any, x: Any, a: int, b: int, c: int) -> Any:
    dim = a % x.ndim
    size = 1 + b % min(3, x.shape[dim])
    return x.unfold(dim, size, 1 + c % 2) if x.numel() * size <= MOST and x.ndim <= 4 else x


def diagonal(torch: Any, x: Any, a: int, b: int, c: int) -> Any:
    return x.diagonal(0, 0, 1 + a % (x.ndim - 1)) if x.ndim > 1 else x


# Views which write through to their base.
VIEWS: tuple[View, ...] = (
    slice_dim,
    slice_from_end,
    select,
    permute,
    diagonal,
    lambda torch, x, a, b, c: x.transpose(a % x.ndim, b % x.ndim),
    lambda torch, x, a, b, c: x.unsqueeze(a % (x.ndim + 1)) if x.ndim < 5 else x,
    lambda torch, x, a, b, c: x.squeeze(),
    lambda torch, x, a, b, c: x.narrow(a % x.ndim, 0, 1 + b % x.shape[a % x.ndim]),
    lambda torch, x, a, b, c: x.movedim(a % x.ndim, b % x.ndim),
)
# Movements which may copy, or whose elements share a place.
MOVES: tuple[View, ...] = (
    *VIEWS,
    merge_dims,
    split_dim,
    expand,
    unfold,
    lambda torch, x, a, b, c: x.flip(a % x.ndim),
    lambda torch, x, a, b, c: x.roll(b, a % x.ndim),
    lambda torch, x, a, b, c: x.reshape(-1),
    lambda torch, x, a, b, c: torch.nn.functional.pad(x, (a % 2, b % 3)) if x.numel() * 4 <= MOST else x,
    lambda torch, x, a, b, c: torch.cat([x, x], a % x.ndim) if x.numel() * 2 <= MOST else x,
    lambda torch, x, a, b, c: x.tril(a % 3) if x.ndim > 1 else x,
)


def apply(moves: tuple[View, ...], torch: Any, x: Any, drawn: tuple[int, int, int, int]) -> Any:
    """One step of `moves`; a tensor without dimensions or elements stays as it is."""
    choice, a, b, c = drawn
    return moves[choice % len(moves)](torch, x, a, b, c) if x.ndim and x.numel() else x


def count(shape: tuple[int, ...]) -> int:
    return math.prod(shape)
