"""Scaled dot-product attention, made of two contractions and a softmax between them."""

from math import sqrt

from pywebgpu import dtypes
from pywebgpu.composites import activation, arithmetic, linear, precision, reduce
from pywebgpu.composites.composite_op import composite
from pywebgpu.errors import DTypeError, ShapeError
from pywebgpu.ir.graph import Node, Spec
from pywebgpu.ops import contraction, movement, pointwise, reduction
from pywebgpu.ops.random import Seed
from pywebgpu.shapes import Shape, broadcast

HIDDEN = -3e38  # Stands for -inf where a mask hides a score: WGSL does not promise arithmetic on infinities.


@composite
def scaled_dot_product_attention(
    query: Node,
    key: Node,
    value: Node,
    attn_mask: Node | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
    seed: Seed | None = None,
) -> Node:
    """softmax(query key^T scale + mask) value.

    Shapes: query (..., h, l, e), key (..., h, s, e), value (..., h, s, v), mask broadcasts to (..., h, l, s) ->
    (..., h, l, v). With enable_gqa key and value may have h / n heads, each for n heads of the query in turn.
    attn_mask: bool (True is seen) or a floating summand. is_causal: position i sees positions 0..i; computed from
    positions, no mask is stored. scale: 1 / sqrt(e) if None. seed: where the draw of dropout_p comes from.
    Dtypes: equal and floating; the softmax is float32 for half floats. A row that sees nothing gives zeros.
    Raises: ShapeError for shapes, or a mask beside is_causal; DTypeError for dtypes.
    """
    name = "scaled_dot_product_attention"
    precision.require_floating(name, query, key, value)
    dtype = precision.require_same(name, query, key, value)
    if attn_mask is not None and is_causal:
        raise ShapeError(f"{name}: Explicit attn_mask should not be set when is_causal=True")
    lead, groups = _check(name, query, key, value, enable_gqa=enable_gqa)
    length, width = query.spec.shape[-2:]
    wanted = (*lead, length, key.spec.shape[-2])
    scores = _grouped_product(query, contraction.transposed(key), lead, groups)
    scores = precision.upcast(scores)
    factor = 1 / sqrt(width) if scale is None else scale
    scores = pointwise.mul(scores, arithmetic.like(scores, factor))
    if is_causal:
        scores = pointwise.where(causal(wanted), scores, arithmetic.like(scores, HIDDEN))
    if attn_mask is not None:
        scores = _masked(name, scores, attn_mask, query)
    seen = _softmax(scores, may_be_empty=attn_mask is not None)
    if dropout_p > 0:
        assert seed is not None, "attention with dropout needs a seed"
        seen = activation.dropout(seen, dropout_p, seed)
    return _grouped_product(arithmetic.cast(seen, dtype), value, lead, groups)


def causal(shape: Shape) -> Node:
    """True where the last coordinate is at most the one before it."""
    spec, rank = Spec(shape, dtypes.int32), len(shape)
    return pointwise.ge(pointwise.iota(spec=spec, axis=rank - 2), pointwise.iota(spec=spec, axis=rank - 1))


def _softmax(scores: Node, *, may_be_empty: bool) -> Node:
    """Over the last axis; rows that are hidden altogether give 0."""
    last = len(scores.spec.shape) - 1
    if 0 in scores.spec.shape:
        return scores
    if not may_be_empty:
        return reduce.softmax(scores, last)
    peak = reduce.peak(scores, (last,))
    none = pointwise.lt(peak, arithmetic.like(peak, HIDDEN / 2))
    peak = pointwise.where(none, arithmetic.like(peak, 0), peak)
    powers = pointwise.exp(arithmetic.sub(scores, peak))
    total = reduction.sum_(powers, (last,))
    return arithmetic.div(powers, pointwise.where(none, arithmetic.like(total, 1), total))


def _masked(name: str, scores: Node, mask: Node, query: Node) -> Node:
    shape = scores.spec.shape
    if len(mask.spec.shape) > len(shape) or broadcast(mask.spec.shape, shape) != shape:
        raise ShapeError(f"{name}: attn_mask {mask.spec.shape} does not broadcast to the scores {shape}")
    if mask.spec.dtype is dtypes.bool_:
        return pointwise.where(arithmetic.broadcast_to(mask, shape), scores, arithmetic.like(scores, HIDDEN))
    if mask.spec.dtype not in (query.spec.dtype, dtypes.float32):
        raise DTypeError(
            f"Expected attn_mask dtype to be bool or float or to match query dtype, but got attn_mask.dtype: "
            f"{mask.spec.dtype} and query.dtype: {query.spec.dtype} instead."
        )
    added = arithmetic.cast(arithmetic.broadcast_to(mask, shape), scores.spec.dtype)
    return pointwise.add(scores, added)


def _grouped_product(a: Node, b: Node, lead: Shape, groups: int) -> Node:
    """a (*lead, m, k) x b (*lead, k, n); where `groups` heads of `a` share one of `b`, as rows of one product."""
    if groups == 1:
        return linear.matmul(a, b)
    m, k = a.spec.shape[-2:]
    heads = (*a.spec.shape[:-3], a.spec.shape[-3] // groups)
    out = linear.matmul(movement.reshape(a, shape=(*heads, groups * m, k)), b)
    return movement.reshape(out, shape=(*out.spec.shape[:-3], lead[-1], m, b.spec.shape[-1]))


def _check(name: str, query: Node, key: Node, value: Node, *, enable_gqa: bool) -> tuple[Shape, int]:
    """The leading axes of the scores, and how many heads of the query share one of key and value."""
    q, k, v = query.spec.shape, key.spec.shape, value.spec.shape
    if min(len(q), len(k), len(v)) < 2:
        raise ShapeError(
            f"{name}: Expected query, key, and value to all be at least 2 dimensional, but got {q}, {k} and {v}"
        )
    if q[-1] != k[-1] or k[-2] != v[-2]:
        raise ShapeError(f"{name}: needs (..., l, e), (..., s, e) and (..., s, v), got {q}, {k} and {v}")
    if not enable_gqa:
        return broadcast(broadcast(q[:-2], k[:-2]), v[:-2]), 1
    if min(len(q), len(k), len(v)) < 3 or k[-3] != v[-3] or k[-3] == 0 or q[-3] % k[-3]:
        raise ShapeError(
            f"{name}: enable_gqa needs heads of the query to be a multiple of those of key and value, got {q}, {k}, {v}"
        )
    lead = broadcast(broadcast(q[:-3], k[:-3]), v[:-3])
    return (*lead, q[-3]), q[-3] // k[-3]
