"""Algebra, equal subgraphs merged, names without meaning dropped, constants folded.

Dead code needs no pass: a node that no root reaches is never seen. Random bits of different draws have different host
numbers below them, so they never merge.
"""

from collections.abc import Callable, Sequence
from math import copysign, inf, nan, prod
from typing import Any

from pywebgpu import dtypes
from pywebgpu.dtypes import Kind
from pywebgpu.ir import key, walk
from pywebgpu.ir.graph import Custom, Movement, Node, Op, Pointwise, Spec
from pywebgpu.kernels.templates import Selection
from pywebgpu.ops import clamping, contraction, indexing, movement, packing, pointwise, products, reduction
from pywebgpu.support.shapes import Shape

Rule = Callable[[Node], Node]  # gives the node itself where it has nothing to say


def simplify(roots: tuple[Node, ...], order: Sequence[Node], selection: Selection) -> tuple[Node, ...]:
    """The same values from fewer nodes."""
    seen: dict[Any, Node] = {}

    def rule(node: Node) -> Node:
        node = _rewrite(node)
        if node.buffer is not None or (isinstance(node.op, Movement) and node.op.is_barrier):
            return node
        identity = (node.op, tuple([id(source) for source in node.inputs]), key.attributes(node), node.spec)
        return seen.setdefault(identity, node)

    return walk.rebuild(roots, order, rule)


def _rewrite(node: Node) -> Node:
    for _ in range(8):  # Each rule shortens; a handful of rounds reaches the end.
        rewritten = _once(node)
        if rewritten is node:
            return node
        node = rewritten
        if node.buffer is not None or not node.inputs:
            return node
    return node


def _once(node: Node) -> Node:
    """What the first rule makes of a node that makes something else of it."""
    if node.buffer is not None:
        return node
    op = node.op
    rules = RULES.get(op)
    if rules is None:
        rules = (_input,) if isinstance(op, Custom) else (_of_constant,) if isinstance(op, Movement) else ()
    for rule in rules:
        rewritten = rule(node)
        if rewritten is not node:
            return _grown(rewritten, node.spec.shape) if isinstance(op, Pointwise) else rewritten
    return node


def constant(node: Node) -> float | None:
    """The value that every element has, where the graph says so; a stored value is data, which no Program holds."""
    if node.op is not pointwise.const or node.buffer is not None or node.spec.dtype.part is not None:
        return None  # Of a complex number nothing is folded.
    value: float = node.attrs["value"]
    return value


def _grown(x: Node, shape: Shape) -> Node:
    """x itself, or a value of shape () that stood beside operands of `shape`, in that shape."""
    if x.spec.shape == shape:
        return x
    value = constant(x)
    if value is not None:
        return pointwise.full(value, Spec(shape, x.spec.dtype))
    return reduction.expand(x, shape=shape)


def _input(node: Node) -> Node:
    return node.inputs[0]


# Movements


def _of_constant(node: Node) -> Node:
    x = node.inputs[0]
    if constant(x) is None or x.spec.dtype is not node.spec.dtype:  # As another dtype, its bits are another number.
        return node
    return pointwise.full(x.attrs["value"], node.spec)


def _of_its_shape(node: Node) -> Node:
    x = node.inputs[0]
    return x if x.spec.shape == node.spec.shape else node


def _reshape(node: Node) -> Node:
    x = node.inputs[0]
    return movement.reshape(x.inputs[0], shape=node.spec.shape) if _is(x, movement.reshape) else node


def _permute(node: Node) -> Node:
    x, order = node.inputs[0], node.attrs["order"]
    if order == tuple(range(len(order))):
        return x
    if _is(x, movement.permute):
        return movement.permute(x.inputs[0], order=tuple([x.attrs["order"][axis] for axis in order]))
    return _transposed_product(node, x, order)


def _transposed_product(node: Node, x: Node, order: tuple[int, ...]) -> Node:
    """(a b)^T -> b^T a^T, so that a weight's gradient is made in the weight's own layout."""
    if x.op is not contraction.matmul or x.buffer is not None:
        return node
    (a, b), rank = x.inputs, len(order)
    if order != (*range(rank - 2), rank - 1, rank - 2) or len(b.spec.shape) != rank:
        return node
    return contraction.matmul(contraction.transposed(b), contraction.transposed(a))


def _slice(node: Node) -> Node:
    x = node.inputs[0]
    if node.spec.shape == x.spec.shape and not any(node.attrs["starts"]):
        return x
    if _is(x, indexing.write_slice):
        value = x.inputs[1]
        same = all(node.attrs[name] == x.attrs[name] for name in ("starts", "steps"))
        return value if same and value.spec.shape == node.spec.shape else node
    return node


def _flip(node: Node) -> Node:
    return node if node.attrs["axes"] else node.inputs[0]


def _write_slice(node: Node) -> Node:
    value = node.inputs[1]
    return value if value.spec.shape == node.spec.shape else node


def _take(node: Node) -> Node:
    """The first rows, by their numbers."""
    x, index = node.inputs
    count = index.spec.shape[0]
    if not _counts(index) or count > x.spec.shape[0]:
        return node
    return movement.slice_(x, starts=(0, 0), sizes=(count, x.spec.shape[1]), steps=(1, 1))


def _scatter(node: Node) -> Node:
    """The first rows, one update each."""
    base, index, source = node.inputs
    if node.attrs["mode"] not in ("add", "set") or constant(base) != 0 or not _counts(index):
        return node
    if index.spec.shape[0] > base.spec.shape[0]:
        return node
    return movement.pad(source, shape=base.spec.shape, starts=(0, 0), steps=(1, 1))


def _counts(index: Node) -> bool:
    """Whether row numbers are 0, 1, 2 and so on."""
    while _is(index, pointwise.cast) and index.spec.dtype in _WORDS:
        index = index.inputs[0]
    return _is(index, pointwise.iota) and index.spec.dtype in _WORDS


def _piece(node: Node) -> Node:
    x = node.inputs[0]
    if _is(x, packing.pack):
        for part, start in zip(x.inputs, x.attrs["starts"], strict=True):
            if start == node.attrs["start"] and part.spec == node.spec and 0 not in part.spec.shape:
                return part
    return node


def _pack(node: Node) -> Node:
    """Packing the pieces of one vector again gives that vector, where it does not matter what lies between them."""
    first, starts = node.inputs[0], node.attrs["starts"]
    if first.op is not packing.piece or first.buffer is not None or node.attrs["clean"]:
        return node
    packed = first.inputs[0]
    for part, start in zip(node.inputs, starts, strict=True):
        if part.op is not packing.piece or part.buffer is not None or part.inputs[0] is not packed:
            return node
        if part.attrs["start"] != start:
            return node
    return packed if packed.spec == node.spec else node


# Reductions


def _fold_of_one(node: Node) -> Node:
    """Along axes of one element."""
    x = node.inputs[0]
    return x if all(x.spec.shape[axis] == 1 for axis in node.attrs["axes"]) else node


def _sum_of_constant(node: Node) -> Node:
    x = node.inputs[0]
    value = constant(x)
    count = prod(x.spec.shape[axis] for axis in node.attrs["axes"])
    return node if value is None else pointwise.full(value * count, node.spec)


def _extreme(node: Node) -> Node:
    return node if node.attrs["axes"] else node.inputs[0]


# Pointwise ops: a rule may give a value of shape ().


def _folded(node: Node) -> Node:
    """Arithmetic of constants."""
    values = [constant(source) for source in node.inputs]
    if None in values or node.spec.dtype.kind is not Kind.FLOAT:
        return node
    return pointwise.full(_FOLD[node.op](*values), node.spec)


def _add(node: Node) -> Node:
    a, b = node.inputs
    if constant(b) == 0:
        return a
    if constant(a) == 0:
        return b
    if _is(a, pointwise.neg) and a.inputs[0] is b:
        return pointwise.sub(b, b)
    return pointwise.sub(a, b.inputs[0]) if _is(b, pointwise.neg) else node


def _sub(node: Node) -> Node:
    a, b = node.inputs
    if a is b and node.spec.dtype.kind is Kind.FLOAT and node.spec.dtype.part is None:
        # Drivers take x - x for 0, and |x| * 0 too: that NaN and the infinities give NaN has to be said.
        spoiled = pointwise.bitwise_or(pointwise.isnan(a), pointwise.isinf(a))
        return pointwise.where(spoiled, pointwise.full(nan, node.spec), pointwise.full(0.0, node.spec))
    return a if constant(b) == 0 else node


def _mul(node: Node) -> Node:
    a, b = node.inputs
    for factor, other in ((constant(a), b), (constant(b), a)):
        if factor == 1:
            return other
        if factor == -1 and node.spec.dtype.kind is Kind.FLOAT:
            return pointwise.neg(other)
    return node


def _div(node: Node) -> Node:
    divisor = constant(node.inputs[1])
    if divisor == 1:
        return node.inputs[0]
    if divisor == 0:  # 0 / 0 is not NaN on every engine; 0 * infinity is.
        return pointwise.mul(node.inputs[0], pointwise.full(copysign(inf, divisor), node.spec))
    return node


def _neg(node: Node) -> Node:
    x = node.inputs[0]
    return x.inputs[0] if _is(x, pointwise.neg) else node


def _where(node: Node) -> Node:
    condition, a, b = node.inputs
    known = constant(condition)
    if known is not None:
        return a if known else b
    return a if a is b else node


def _power(node: Node) -> Node:
    base = node.inputs[0]
    match constant(node.inputs[1]) if node.spec.dtype is dtypes.float32 else None:
        case 1:
            return base
        case 2:
            return pointwise.mul(base, base)
        case 3:
            return pointwise.mul(base, pointwise.mul(base, base))
        case -1:
            return pointwise.reciprocal(base)
        case _:
            return node


def _cast(node: Node) -> Node:
    x, dtype = node.inputs[0], node.spec.dtype
    if x.spec.dtype is dtype:
        return x
    value = constant(x)
    if value is not None and dtype.kind is Kind.FLOAT and dtype.itemsize >= 4:
        return pointwise.full(float(value), node.spec)
    return node


def _is(node: Node, op: Op) -> bool:
    """Whether a node is of an op, and not computed yet."""
    return node.op is op and node.buffer is None


_WORDS = (dtypes.int64, dtypes.int32, dtypes.uint32)
_FOLD: dict[Op, Callable[..., float]] = {
    pointwise.add: lambda a, b: a + b,
    pointwise.sub: lambda a, b: a - b,
    pointwise.mul: lambda a, b: a * b,
    pointwise.neg: lambda a: -a,
}
# By op, in the order in which they are tried. A movement that is not here has the rule for constants.
RULES: dict[Op, tuple[Rule, ...]] = {
    pointwise.copy: (_input,),
    clamping.linear: (_input,),
    pointwise.graft: (_input,),
    pointwise.overwrite: (_input,),
    pointwise.cast: (_cast,),
    pointwise.where: (_where,),
    pointwise.add: (_folded, _add),
    pointwise.sub: (_folded, _sub),
    pointwise.mul: (_folded, _mul),
    pointwise.div: (_div,),
    pointwise.neg: (_folded, _neg),
    pointwise.pow_: (_power,),
    movement.alias: (_input,),
    movement.barrier: (),
    movement.pad: (),  # These two have elements that are not the input's.
    movement.unwindow: (),
    movement.reshape: (_of_constant, _of_its_shape, _reshape),
    movement.permute: (_of_constant, _permute),
    movement.slice_: (_of_constant, _slice),
    movement.flip: (_of_constant, _flip),
    reduction.expand: (_of_constant, _of_its_shape),
    reduction.sum_: (_fold_of_one, _sum_of_constant),
    products.prod_: (_fold_of_one,),
    reduction.max_: (_extreme,),
    reduction.min_: (_extreme,),
    indexing.write_slice: (_write_slice,),
    indexing.take: (_take,),
    indexing.scatter: (_scatter,),
    packing.piece: (_of_constant, _piece),
    packing.pack: (_pack,),
}
