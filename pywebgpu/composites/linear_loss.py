"""Cross-entropy of a linear layer, some rows at a time: no scores over all classes are ever there for all rows.

Each part finds its loss and its share of the gradients before the next one starts, so that the next one's scores lie
where its own were: that is an edge in the graph, from the gradients of a part to the input of the next.
"""

from collections.abc import Sequence

from pywebgpu.composites import arithmetic, linear, loss, precision, reduce
from pywebgpu.errors import ShapeError
from pywebgpu.ir.graph import Fused, Node, Spec, thread_state
from pywebgpu.ops import contraction, indexing, movement, pointwise, reduction


def chunked_cross_entropy(
    x: Node,
    weight: Node,
    target: Node,
    bias: Node | None,
    scales: Node | None,
    *,
    ignore_index: int,
    reduction: str,
    rows: int,
) -> Node:
    """cross_entropy(linear(x, weight, bias), target), of `rows` rows at a time.

    Shapes: x (n, k), weight (c, k), target (n,) of whole numbers, bias and scales (c,) -> (). reduction: "mean", "sum".
    The gradient can be taken once: it is made along with the loss, and has none of its own.
    Raises: as cross_entropy.
    """
    precision.require_same("linear_cross_entropy", x, weight)
    n, c = x.spec.shape[0], weight.spec.shape[0]
    if target.spec.shape != (n,):
        raise ShapeError(f"Expected target size {[n]}, got {list(target.spec.shape)} for input of {n} rows")
    classes, ignored = loss.class_numbers(movement.reshape(target, shape=(n, 1)), c, ignore_index)
    share = _shares(precision.upcast(x), classes, ignored, scales, reduction)
    operands = (x, weight, classes, share) if bias is None else (x, weight, classes, share, bias)
    if thread_state.grad and any(node.requires for node in operands):
        return _chunked(*operands, rows=rows)[0]
    return _parts(*operands, rows=rows, learns=False)[0]


def _shares(x: Node, classes: Node, ignored: Node | None, scales: Node | None, reduction_: str) -> Node:
    """What the loss of each row counts: (n, 1)."""
    share_of_row = pointwise.full(1.0, Spec(classes.spec.shape, x.spec.dtype))
    if scales is not None:
        column = movement.reshape(precision.upcast(scales), shape=(scales.spec.shape[0], 1))
        share_of_row = indexing.take(column, movement.reshape(classes, shape=classes.spec.shape[:1]))
    if ignored is not None:
        share_of_row = pointwise.where(ignored, arithmetic.like(share_of_row, 0), share_of_row)
    return arithmetic.div(share_of_row, reduction.sum_(share_of_row, (0,))) if reduction_ == "mean" else share_of_row


def _specs(x: Spec, weight: Spec, classes: Spec, share: Spec, *bias: Spec, rows: int) -> tuple[Spec, ...]:
    return Spec((), x.dtype), x, weight, *bias


def _parts(
    x: Node, weight: Node, classes: Node, share: Node, *bias: Node, rows: int, learns: bool = True
) -> tuple[Node, ...]:
    """The loss; where it learns, the gradients of x, weight and bias as well."""
    total: Node | None = None
    sums: list[Node] = []  # the gradients of weight and bias, so far
    parts: list[Node] = []
    for start in range(0, x.spec.shape[0], rows):
        own, numbers, factor = (_rows(full, start, rows) for full in (x, classes, share))
        seen = pointwise.add(own, _nothing(sums[0])) if sums else own
        scores = linear.linear(seen, weight, *bias)
        losses, slopes = _of_scores(precision.upcast(scores), numbers, factor)
        part = reduce.sum(losses)
        total = part if total is None else pointwise.add(total, part)
        if learns:
            slopes = arithmetic.cast(slopes, x.spec.dtype)
            gradients = [contraction.matmul(contraction.transposed(slopes), own)]
            if bias:
                gradients.append(movement.reshape(reduction.sum_(slopes, (0,)), shape=bias[0].spec.shape))
            sums = [pointwise.add(*pair) for pair in zip(gradients, sums, strict=True)] if sums else gradients
            parts.append(contraction.matmul(slopes, weight))
    assert total is not None, "there are rows"
    value = arithmetic.cast(total, x.spec.dtype)
    return (value, indexing.cat(*parts, axis=0) if len(parts) > 1 else parts[0], *sums) if learns else (value,)


def _rows(full: Node, start: int, rows: int) -> Node:
    n, columns = full.spec.shape
    return movement.slice_(full, starts=(start, 0), sizes=(min(rows, n - start), columns), steps=(1, 1))


def _nothing(gradient: Node) -> Node:
    """0, once a gradient is there, whatever it is."""
    corner = movement.slice_(gradient, starts=(0, 0), sizes=(1, 1), steps=(1, 1))
    flag = arithmetic.cast(pointwise.isnan(movement.reshape(corner, shape=())), gradient.spec.dtype)
    return pointwise.mul(flag, pointwise.scalar(0.0, gradient.spec.dtype))


def _of_scores(scores: Node, classes: Node, share: Node) -> tuple[Node, Node]:
    """The loss of each row, and its gradient. A row that counts nothing gives 0, whatever its scores are."""
    shape = scores.spec.shape
    shifted, powers, total = reduce.shifted_exponentials(scores, 1)
    lost = pointwise.mul(pointwise.sub(pointwise.log(total), reduce.picked(shifted, classes, 1)), share)
    positions = pointwise.iota(spec=Spec(shape, classes.spec.dtype), axis=1)
    hit = pointwise.eq(positions, arithmetic.broadcast_to(classes, shape))
    slope = arithmetic.sub(arithmetic.div(powers, total), arithmetic.cast(hit, scores.spec.dtype))
    slope = arithmetic.mul(slope, share)
    none = pointwise.eq(share, arithmetic.like(share, 0))
    lost = pointwise.where(none, arithmetic.like(lost, 0), lost)
    return lost, pointwise.where(arithmetic.broadcast_to(none, shape), arithmetic.like(slope, 0), slope)


def _vjp(grads: tuple[Node | None, ...], outs: tuple[Node, ...], *inputs: Node, rows: int) -> Sequence[Node | None]:
    g = grads[0]
    if g is None:
        return (None,) * len(inputs)
    x, weight, *bias = [arithmetic.mul(gradient, g) for gradient in outs[1:]]
    return (x, weight, None, None, *bias)


_chunked: Fused = Fused("chunked_cross_entropy", infer=_specs, fallback=_parts, vjp=_vjp)
