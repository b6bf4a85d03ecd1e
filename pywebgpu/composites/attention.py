"""Scaled dot-product attention: two contractions and a softmax between them, and the same as fused ops.

The fused ops, one for the values and one for the gradients, never store scores where a template matches them; elsewhere
they are made of the same nodes as the composite, so that equal parts of both are computed once.
"""

from collections.abc import Sequence
from math import e, log2, prod, sqrt

from pywebgpu import dtypes
from pywebgpu.composites import activation, arithmetic, linear, precision, reduce
from pywebgpu.composites.composite_op import composite
from pywebgpu.errors import DTypeError, ShapeError
from pywebgpu.ir.graph import Fused, Node, Spec, thread_state
from pywebgpu.ops import contraction, movement, pointwise, reduction
from pywebgpu.ops.random import Seed
from pywebgpu.support.shapes import Shape, broadcast

LONG = 1024  # Rows of the query from which results times their gradients are not summed again by each who reads them.
HIDDEN = -3e38  # Stands for -inf where a mask hides a score: WGSL does not promise arithmetic on infinities.
Window = tuple[int | None, int | None]  # Position i sees i - left .. i + right; None: all there are on that side.
ALL: Window = (None, None)
CAUSAL: Window = (None, 0)


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
    window: Window = ALL,
    seed: Seed | None = None,
    fused: bool = False,
) -> Node:
    """softmax(query key^T scale + mask) value.

    Shapes: query (..., h, l, e), key (..., h, s, e), value (..., h, s, v), mask broadcasts to (..., h, l, s) ->
    (..., h, l, v). With enable_gqa key and value may have h / n heads, each for n heads of the query in turn.
    attn_mask: bool (True is seen) or a floating summand. is_causal: position i sees positions 0..i; computed from
    positions, no mask is stored. window: the same with (left, right), position i sees i - left .. i + right, and beside
    a mask. scale: 1 / sqrt(e) if None. seed: where the draw of dropout_p comes from.
    fused: as a fused op, where there is one for it: the mask asks for no gradient, which is as large as the scores.
    Dtypes: equal and floating; the softmax is float32 for half floats. A row that sees nothing gives zeros.
    Raises: ShapeError for shapes, or a mask beside is_causal; DTypeError for dtypes.
    """
    learns = attn_mask is not None and attn_mask.requires and thread_state.grad
    fused = fused and not learns
    if attn_mask is not None and is_causal:
        raise ShapeError("scaled_dot_product_attention: Explicit attn_mask should not be set when is_causal=True")
    window = CAUSAL if is_causal else window
    return dot_product_attention(
        query, key, value, attn_mask, dropout_p, window, scale, enable_gqa=enable_gqa, seed=seed, fused=fused
    )


@composite
def dot_product_attention(
    query: Node,
    key: Node,
    value: Node,
    attn_mask: Node | None,
    dropout_p: float,
    window: Window,
    scale: float | None,
    *,
    enable_gqa: bool,
    seed: Seed | None,
    fused: bool,
) -> Node:
    """The same, once it is known whether it can be a fused op."""
    name = "scaled_dot_product_attention"
    precision.require_floating(name, query, key, value)
    dtype = precision.require_same(name, query, key, value)
    lead, groups = _check(name, query, key, value, enable_gqa=enable_gqa)
    scale = 1 / sqrt(query.spec.shape[-1]) if scale is None else float(scale)
    wanted: Shape = (*lead, query.spec.shape[-2], key.spec.shape[-2])
    window = _narrowed(window, wanted[-2], wanted[-1])
    if attn_mask is not None:
        _check_mask(name, attn_mask, query, wanted)
    if fused and dropout_p < 1 and 0 not in wanted:
        drawn = () if seed is None or not dropout_p else seed
        return _as_fused(query, key, value, attn_mask, drawn, groups, lead, scale, float(dropout_p), window)
    seen = _weights(query, key, attn_mask, lead, groups, scale, window)
    if dropout_p > 0:
        assert seed is not None, "attention with dropout needs a seed"
        seen = activation.dropout(seen, dropout_p, seed)
    return _grouped_product(arithmetic.cast(seen, dtype), value, lead, groups)


def _narrowed(window: Window, length: int, span: int) -> Window:
    """The window without sides on which all is seen, and no wider than what there is."""
    left, right = window
    left = None if left is None or left >= length - 1 else max(left, -span)
    return left, None if right is None or right >= span - 1 else max(right, -length)


def _inside(shape: Shape, window: Window) -> list[Node]:
    """What is true, together, where the last coordinate lies in the window of the one before it."""
    (left, right), conditions = window, list[Node]()
    spec, rank = Spec(shape, dtypes.int32), len(shape)
    query, key = (pointwise.iota(spec=spec, axis=axis) for axis in (rank - 2, rank - 1))
    if right is not None:
        conditions.append(pointwise.ge(pointwise.add(query, arithmetic.like(query, right)) if right else query, key))
    if left is not None:
        conditions.append(pointwise.ge(pointwise.add(key, arithmetic.like(key, left)) if left else key, query))
    return conditions


def _sees(length: int, span: int, window: Window) -> bool:
    """Whether each of `length` rows has one of `span` keys in its window."""
    nearest, farthest = (max(length, span) if bound is None else bound for bound in window)
    return farthest >= 0 and nearest + farthest >= 0 and length - nearest <= span


def _scores(query: Node, key: Node, mask: Node | None, lead: Shape, groups: int, scale: float, window: Window) -> Node:
    """(*lead, l, s), float32 for half floats."""
    scores = precision.upcast(_grouped_product(query, contraction.transposed(key), lead, groups))
    scores = pointwise.mul(scores, arithmetic.like(scores, scale))
    if mask is not None and mask.spec.dtype is not dtypes.bool_:
        mask = arithmetic.broadcast_to(mask, scores.spec.shape)
        scores = pointwise.add(scores, arithmetic.cast(mask, scores.spec.dtype))
        mask = None
    masks = [] if mask is None else [arithmetic.broadcast_to(mask, scores.spec.shape)]
    for seen in (*_inside(scores.spec.shape, window), *masks):
        scores = pointwise.where(seen, scores, arithmetic.like(scores, HIDDEN))
    return scores


def _weights(query: Node, key: Node, mask: Node | None, lead: Shape, groups: int, scale: float, window: Window) -> Node:
    """The softmax of the scores; rows that are hidden altogether give 0."""
    scores = _scores(query, key, mask, lead, groups, scale, window)
    last = len(scores.spec.shape) - 1
    if 0 in scores.spec.shape:
        return scores
    if mask is None and _sees(scores.spec.shape[-2], scores.spec.shape[-1], window):
        return reduce.softmax(scores, last)
    powers, total, _, none = _powers(scores)
    return arithmetic.div(powers, pointwise.where(none, arithmetic.like(total, 1), total))


def _powers(scores: Node) -> tuple[Node, Node, Node, Node]:
    """For each row exponentials, their sum, by what they were shifted, and whether it is hidden altogether."""
    last = len(scores.spec.shape) - 1
    peak = reduce.peak(scores, (last,))
    none = pointwise.lt(peak, arithmetic.like(peak, HIDDEN / 2))
    peak = pointwise.where(none, arithmetic.like(peak, 0), peak)
    powers = pointwise.exp(arithmetic.sub(scores, peak))
    return powers, reduction.sum_(powers, (last,)), peak, none


def _check_mask(name: str, mask: Node, query: Node, wanted: Shape) -> None:
    if len(mask.spec.shape) > len(wanted) or broadcast(mask.spec.shape, wanted) != wanted:
        raise ShapeError(f"{name}: attn_mask {mask.spec.shape} does not broadcast to the scores {wanted}")
    if mask.spec.dtype not in (dtypes.bool_, query.spec.dtype, dtypes.float32):
        raise DTypeError(
            f"Expected attn_mask dtype to be bool or float or to match query dtype, but got attn_mask.dtype: "
            f"{mask.spec.dtype} and query.dtype: {query.spec.dtype} instead."
        )


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


# As fused ops


def _as_fused(
    query: Node,
    key: Node,
    value: Node,
    mask: Node | None,
    seed: Sequence[Node],
    groups: int,
    lead: Shape,
    scale: float,
    dropout: float,
    window: Window,
) -> Node:
    """With leading axes as two, batch and heads."""
    heads = lead[-1] if lead else 1
    batches = prod(lead) // heads
    few = (*lead[:-1], heads // groups) if groups > 1 else lead
    q, k, v = (
        _shaped(arithmetic.broadcast_to(x, (*axes, *x.spec.shape[-2:])), (batches, -1, *x.spec.shape[-2:]))
        for x, axes in ((query, lead), (key, few), (value, few))
    )
    extras = list(seed)
    if mask is not None:
        wanted = (*lead, query.spec.shape[-2], key.spec.shape[-2])
        extras.insert(0, _shaped(arithmetic.broadcast_to(mask, wanted), (batches, heads, *wanted[-2:])))
    options = {"scale": scale, "window": window, "dropout": dropout, "masked": mask is not None}
    out, _ = attention(q, k, v, *extras, **options)
    return _shaped(_turned(out), (*lead, query.spec.shape[-2], value.spec.shape[-1]))


def _shaped(x: Node, shape: Shape) -> Node:
    """x in a shape of which one size may be -1; x itself, where that is its shape."""
    have = x.spec.shape
    shape = tuple([prod(have) // -prod(shape) if n == -1 else n for n in shape])
    return x if have == shape else movement.reshape(x, shape=shape)


def _turned(x: Node) -> Node:
    """(b, h, l, e) as (b, l, h, e), and back: results lie so, as products before and after attention have them."""
    return movement.permute(x, order=(0, 2, 1, 3))


def split_extras(extras: Sequence[Node], masked: bool) -> tuple[Node | None, Seed | None]:
    """The further inputs of a fused op: the mask, where there is one, and the seed of dropout."""
    mask, seed = (extras[0], extras[1:]) if masked else (None, extras)
    return mask, (seed[0], seed[1], seed[2], seed[3]) if seed else None


def _specs(query: Spec, key: Spec, value: Spec, *extras: Spec, **options: object) -> tuple[Spec, ...]:
    (batches, heads, length, _), width = query.shape, value.shape[-1]
    return Spec((batches, length, heads, width), query.dtype), Spec((batches, heads, length), dtypes.float32)


def _fallback(
    query: Node, key: Node, value: Node, *extras: Node, scale: float, window: Window, dropout: float, masked: bool
) -> tuple[Node, Node]:
    mask, seed = split_extras(extras, masked)
    lead, groups = _groups(query, key)
    scores = _scores(query, key, mask, lead, groups, scale, window)
    seen = _weights(query, key, mask, lead, groups, scale, window)
    if seed is not None:
        seen = activation.dropout(seen, dropout, seed)
    out = _grouped_product(arithmetic.cast(seen, query.spec.dtype), value, lead, groups)
    _, total, peak, none = _powers(scores)
    sums = pointwise.mul(pointwise.add(peak, pointwise.log(total)), arithmetic.like(peak, log2(e)))
    sums = pointwise.where(none, arithmetic.like(peak, 0), sums)
    return _turned(out), movement.reshape(arithmetic.cast(sums, dtypes.float32), shape=scores.spec.shape[:3])


def _groups(query: Node, key: Node) -> tuple[Shape, int]:
    batches, heads = query.spec.shape[:2]
    return (batches, heads), heads // key.spec.shape[1]


def _vjp(
    grads: tuple[Node | None, ...],
    outs: tuple[Node, ...],
    query: Node,
    key: Node,
    value: Node,
    *extras: Node,
    **options: object,
) -> tuple[Node | None, ...]:
    grad, (inner, sums) = grads[0], outs
    none = (None,) * len(extras)
    if grad is None:
        return (None, None, None, *none)
    multiplied = query.spec.shape[2] > LONG
    if multiplied:
        product = pointwise.mul(precision.upcast(_turned(grad)), precision.upcast(_turned(inner)))
        inner = reduction.sum_(product, (3,))
    inputs = (grad, sums, inner, query, key, value, *extras)
    parts = attention_backward(*inputs, multiplied=multiplied, **options)
    for_key, for_value, for_query = map(_turned, parts)
    return (for_query, for_key, for_value, *none)


def _gradient_specs(
    grad: Spec, sums: Spec, inner: Spec, query: Spec, key: Spec, value: Spec, *extras: Spec, **options: object
) -> tuple[Spec, ...]:
    shapes = [(x.shape[0], x.shape[2], x.shape[1], x.shape[3]) for x in (key, value, query)]
    return tuple([Spec(shape, query.dtype) for shape in shapes])


def _gradient_fallback(
    grad: Node,
    sums: Node,
    inner: Node,
    query: Node,
    key: Node,
    value: Node,
    *extras: Node,
    scale: float,
    window: Window,
    dropout: float,
    masked: bool,
    multiplied: bool,
) -> tuple[Node, ...]:
    """Of the weights, which the composite computes: what the kernel reads beside is not asked."""
    mask, seed = split_extras(extras, masked)
    dtype, (lead, groups) = query.spec.dtype, _groups(query, key)
    grad = _turned(grad)
    weights = _weights(query, key, mask, lead, groups, scale, window)
    seen, coming = weights, precision.upcast(_grouped_product(grad, contraction.transposed(value), lead, groups))
    if seed is not None:
        seen, coming = (activation.dropout(x, dropout, seed) for x in (weights, coming))
    product = pointwise.mul(weights, coming)
    scores = pointwise.mul(weights, arithmetic.sub(coming, reduction.sum_(product, (3,))))
    scores = arithmetic.cast(pointwise.mul(scores, arithmetic.like(scores, scale)), dtype)
    gradients = (
        _grouped_sum(scores, query, groups),
        _grouped_sum(arithmetic.cast(seen, dtype), grad, groups),
        _grouped_product(scores, key, lead, groups),
    )
    return tuple([_turned(x) for x in gradients])


def _grouped_sum(a: Node, b: Node, groups: int) -> Node:
    """a (b, h, m, s)^T x b (b, h, m, n), summed over the heads of each group."""
    if groups > 1:
        batches, heads, m = a.spec.shape[:3]
        shape = (batches, heads // groups, groups * m)
        a, b = (movement.reshape(x, shape=(*shape, x.spec.shape[3])) for x in (a, b))
    return linear.matmul(contraction.transposed(a), b)


# query (b, h, l, e), key (b, h / n, s, e), value (b, h / n, s, v), then as `split_extras` has them a mask (b, h, l, s)
# and the seed of dropout -> results (b, l, h, v), and for each row (b, h, l) the logarithm to base 2 of the sum of the
# exponentials of its scores, 0 where it is hidden altogether.
attention: Fused = Fused("attention", infer=_specs, fallback=_fallback, vjp=_vjp)
# The gradient of the results, the row sums as above, the results, and all inputs -> the gradients of key, value and
# query, each with the axes of the results. Where `multiplied`, the sum of each row of results times its gradient stands
# for the results, (b, h, l, 1).
# PACKED, an attribute that the compiler adds: one value has all three (see compiler/passes/attention_gradients.py).
PACKED = "packed"
attention_backward: Fused = Fused("attention_backward", infer=_gradient_specs, fallback=_gradient_fallback)
