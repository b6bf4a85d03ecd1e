"""Random numbers made of random bits: uniform, normal, whole numbers, choices.

Every draw is a function of its seed alone. Uniform and whole numbers are equal on all devices to the last bit; what
goes through a logarithm agrees as that does.
"""

from math import pi, sqrt

from pywebgpu import dtypes
from pywebgpu.composites import (
    arithmetic,
    bounds,
    creation,
    indexing,
    ordering,
    precision,
    reduce,
    scan,
    searching,
    slicing,
    wide,
)
from pywebgpu.dtypes import DType, Kind
from pywebgpu.errors import REFUSALS, DTypeError, ShapeError
from pywebgpu.ir.graph import Node, Spec
from pywebgpu.ops import pointwise, random
from pywebgpu.ops.random import Seed
from pywebgpu.step_capture.free_number import Number
from pywebgpu.support.numbers import WORD
from pywebgpu.support.shapes import Shape

BITS = {"float16": 11, "bfloat16": 8, "float32": 24}  # as many as the dtype holds, so that no draw rounds up to 1


def words(seed: Seed, shape: Shape) -> Node:
    """32 random bits an element."""
    return random.bits(*seed, spec=Spec(shape, dtypes.uint32))


def uniform(seed: Seed, shape: Shape, dtype: DType) -> Node:
    """Numbers of [0, 1) at equal distances."""
    require_floating("uniform", dtype)
    if dtype.part is not None:
        return arithmetic.paired(uniform(seed, (*shape, 2), dtype.part))
    if dtype is dtypes.float64:
        return _uniform_double(seed, shape)
    bits = BITS[dtype.name]
    return arithmetic.cast(_fraction(_top(words(seed, shape), bits), 2.0**-bits), dtype)


def between(seed: Seed, shape: Shape, low: float, high: float, dtype: DType) -> Node:
    """Numbers of [low, high)."""
    return scaled(uniform(seed, shape, dtype), high - low, low)


def inner(seed: Seed, shape: Shape, dtype: DType) -> Node:
    """Numbers of (0, 1): neither end is met."""
    if dtype is dtypes.float64:
        drawn = _uniform_double(seed, shape)
        return pointwise.maximum(drawn, arithmetic.like(drawn, 2.0**-54))
    odd = _top(words(seed, shape), 23)
    odd = pointwise.bitwise_or(pointwise.shift_left(odd, arithmetic.like(odd, 1)), arithmetic.like(odd, 1))
    return _fraction(odd, 2.0**-24)


def normal(seed: Seed, shape: Shape, dtype: DType) -> Node:
    """Numbers of the standard normal distribution, by the inverse of its distribution function.

    One word an element: 2^24 values that lie symmetrically around 0 and within 5.5. float64 is by Box and Muller.
    """
    require_floating("normal", dtype)
    if dtype.part is not None:  # Of variance 1 as a complex number.
        drawn = normal(seed, (*shape, 2), dtype.part)
        return arithmetic.paired(pointwise.mul(drawn, arithmetic.like(drawn, sqrt(0.5))))
    if dtype is dtypes.float64:
        pair = inner(seed, (2, *shape), dtype)
        radius, angle = (indexing.shaped(slicing.part(pair, 0, i, i + 1), shape) for i in (0, 1))
        length = pointwise.sqrt(pointwise.mul(arithmetic.like(radius, -2.0), pointwise.log(radius)))
        return pointwise.mul(length, pointwise.cos(pointwise.mul(arithmetic.like(angle, 2 * pi), angle)))
    word = _top(words(seed, shape), 24)
    signed = pointwise.cast(word, dtype=dtypes.int32)
    two = arithmetic.like(signed, 2)
    odd = pointwise.sub(pointwise.mul(signed, two), arithmetic.like(signed, 2**24 - 1))
    drawn = pointwise.erfinv(_fraction(odd, 2.0**-24))
    return arithmetic.cast(pointwise.mul(drawn, arithmetic.like(drawn, sqrt(2.0))), dtype)


def scaled(drawn: Node, scale: Node | Number, start: Node | Number) -> Node:
    """drawn * scale + start, in drawn's dtype."""
    dtype = drawn.spec.dtype
    for op, part, neutral in ((pointwise.mul, scale, 1), (pointwise.add, start, 0)):
        if isinstance(part, Node) or part != neutral:
            drawn = arithmetic.binary(op, drawn, part, dtype)
    return drawn


def integers(seed: Seed, shape: Shape, low: int, high: int, dtype: DType) -> Node:
    """Whole numbers of [low, high): a random word modulo their count. None is favoured by more than count / 2^32.

    From a count of 2^32 on, which only device cpu has, the word has 63 bits.
    """
    if low >= high:
        raise ShapeError(f"random_ expects 'from' to be less than 'to', but got from={low} >= to={high}")
    count = high - low
    if count < 2**32:
        word = words(seed, shape)
        drawn = pointwise.remainder(word, arithmetic.number(count, dtypes.uint32))
        is_word = WORD[0] <= low and high - 1 <= WORD[1]  # What wraps on the way is right in the end.
        drawn = pointwise.cast(drawn, dtype=dtypes.int32 if is_word else dtypes.int64)
    else:
        drawn = _long_words(seed, shape)
        if count < 2**63:
            drawn = pointwise.remainder(drawn, creation.full(count, shape, dtypes.int64))
    if low:
        drawn = pointwise.add(drawn, creation.full(low, shape, drawn.spec.dtype))
    return arithmetic.cast(wide.noted(drawn, low, high - 1), dtype)


def bernoulli(seed: Seed, shape: Shape, p: Node | float, dtype: DType) -> Node:
    """1 with probability p, else 0."""
    if not isinstance(p, Node) and not 0 <= p <= 1:
        raise ShapeError(f"bernoulli_ expects p to be in [0, 1], but got p={p}")
    work = dtypes.float64 if isinstance(p, Node) and p.spec.dtype is dtypes.float64 else dtypes.float32
    drawn = uniform(seed, shape, work)
    limit = arithmetic.broadcast_to(reduce.stop_gradient(arithmetic.node(p, work)), shape)
    return arithmetic.cast(pointwise.lt(drawn, limit), dtype)


def exponential(seed: Seed, shape: Shape, rate: float, dtype: DType) -> Node:
    """Numbers with density rate * exp(-rate * x); never 0."""
    require_floating("exponential", dtype)
    if rate <= 0:
        raise ShapeError(f"exponential_ expects lambda > 0.0, but found lambda={rate}")
    return arithmetic.cast(scaled(pointwise.log(inner(seed, shape, dtype)), -1 / rate, 0), dtype)


def geometric(seed: Seed, shape: Shape, p: float, dtype: DType) -> Node:
    """How many trials of probability p it takes until one succeeds."""
    if not 0 < p < 1:
        raise ShapeError(f"geometric_ expects p to be in (0, 1), but got p={p}")
    drawn = pointwise.log(inner(seed, shape, dtypes.float32))
    rate = pointwise.log1p(creation.full(-p, shape, drawn.spec.dtype))
    return arithmetic.cast(pointwise.ceil(pointwise.div(drawn, rate)), dtype)


def cauchy(seed: Seed, shape: Shape, median: float, sigma: float, dtype: DType) -> Node:
    """median + sigma * tan(pi * (u - 1/2))"""
    require_floating("cauchy", dtype)
    drawn = inner(seed, shape, dtype)
    angle = pointwise.mul(pointwise.sub(drawn, arithmetic.like(drawn, 0.5)), arithmetic.like(drawn, pi))
    return arithmetic.cast(scaled(pointwise.tan(angle), sigma, median), dtype)


def permutation(seed: Seed, n: int, dtype: DType) -> Node:
    """0..n-1 in random order: the order of n random words."""
    if n < 0:
        raise ShapeError(f"Trying to create tensor with negative dimension {n}: [{n}]")
    if n > dtype.high + 1:
        raise ShapeError(f"value cannot be converted to type {dtype.name} without overflow: {n}")
    return arithmetic.cast(ordering.argsort(words(seed, (n,))), dtype)


INVALID = REFUSALS[2]


def multinomial(seed: Seed, p: Node, count: int, *, replacement: bool = False) -> Node:
    """`count` numbers of categories for each row, as likely as the row's weights say. Shapes: p (n,) or (rows, n).

    Raises: ShapeError for other shapes or too large a count; DTypeError unless p is floating; RangeError, on reading,
    for weights that are negative, not finite, or all 0.
    """
    if p.spec.dtype.kind is not Kind.FLOAT:
        raise DTypeError(f"multinomial only supports floating-point dtypes for input, got: {p.spec.dtype}")
    if len(p.spec.shape) not in (1, 2):
        raise ShapeError("prob_dist must be 1 or 2 dim")
    n = p.spec.shape[-1]
    if count < 1:
        raise ShapeError("cannot sample n_sample <= 0 samples")
    if not replacement and count > n:
        raise ShapeError("cannot sample n_sample > prob_dist.size(-1) samples without replacement")
    p = precision.upcast(reduce.stop_gradient(p))
    picks = _searched(seed, p, count) if replacement and count > 1 else _raced(seed, p, count)
    lowest, total = reduce.amin(p, -1, keepdim=True), reduce.sum(p, -1, keepdim=True)
    valid = pointwise.bitwise_and(
        pointwise.ge(lowest, arithmetic.like(lowest, 0)),
        pointwise.bitwise_and(
            pointwise.gt(total, arithmetic.like(total, 0)), pointwise.lt(total, arithmetic.like(total, float("inf")))
        ),
    )
    valid = arithmetic.broadcast_to(valid, picks.spec.shape)
    picks = pointwise.where(valid, picks, arithmetic.like(picks, bounds.unfit(INVALID)))
    return bounds.unknown(picks, n, INVALID)


def _raced(seed: Seed, p: Node, count: int) -> Node:
    """Each category waits an exponential time with its weight as rate; the first `count` to arrive are drawn."""
    times = exponential(seed, p.spec.shape, 1.0, p.spec.dtype)
    return ordering.topk(pointwise.div(p, times), count)[1]


def _searched(seed: Seed, p: Node, count: int) -> Node:
    """Where uniform numbers fall among the running sums."""
    ends = scan.cumsum(p, -1)
    total = slicing.part(ends, len(p.spec.shape) - 1, p.spec.shape[-1] - 1, p.spec.shape[-1])
    drawn = uniform(seed, (*p.spec.shape[:-1], count), p.spec.dtype)
    picks = searching.searchsorted(
        ends, pointwise.mul(drawn, arithmetic.broadcast_to(total, drawn.spec.shape)), right=True
    )
    last = searching.searchsorted(ends, total)  # The product may round up to the sum itself.
    return pointwise.minimum(picks, arithmetic.broadcast_to(last, picks.spec.shape))


# Parts


def require_floating(name: str, dtype: DType) -> None:
    if dtype.kind is not Kind.FLOAT:
        raise DTypeError(f'"{name}" not implemented for {dtype.name!r}')


def _top(word: Node, bits: int) -> Node:
    """The upper `bits` of each word."""
    return pointwise.shift_right(word, arithmetic.like(word, 32 - bits))


def _fraction(integer: Node, unit: float) -> Node:
    number = pointwise.cast(integer, dtype=dtypes.float32)
    return pointwise.mul(number, arithmetic.like(number, unit))


def _pair(seed: Seed, shape: Shape, high: int, low: int) -> tuple[Node, Node]:
    """The upper `high` bits of one word and `low` bits of another, for each element."""
    both = words(seed, (*shape, 2))
    last = len(shape)
    first, second = (indexing.shaped(slicing.part(both, last, i, i + 1), shape) for i in (0, 1))
    return _top(first, high), _top(second, low)


def _uniform_double(seed: Seed, shape: Shape) -> Node:
    high, low = (pointwise.cast(part, dtype=dtypes.float64) for part in _pair(seed, shape, 27, 26))
    integer = pointwise.add(pointwise.mul(high, arithmetic.like(high, 2.0**26)), low)
    return pointwise.mul(integer, arithmetic.like(integer, 2.0**-53))


def _long_words(seed: Seed, shape: Shape) -> Node:
    """63 random bits an element."""
    high, low = (pointwise.cast(part, dtype=dtypes.int64) for part in _pair(seed, shape, 31, 32))
    return pointwise.bitwise_or(pointwise.shift_left(high, arithmetic.like(high, 32)), low)
