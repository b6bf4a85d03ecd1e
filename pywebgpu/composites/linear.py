"""Products of matrices under torch's names and rank rules, all over one op: (..., m, k) x (..., k, n)."""

from math import prod

from pywebgpu import dtypes
from pywebgpu.composites import arithmetic, precision, reduce
from pywebgpu.composites.composite_op import composite
from pywebgpu.errors import ShapeError
from pywebgpu.ir.graph import Node
from pywebgpu.ops import contraction, movement, pointwise
from pywebgpu.step_capture.free_number import Number
from pywebgpu.support.shapes import broadcast


def matmul(a: Node, b: Node) -> Node:
    """The matrix product, by rank: vectors dot, matrices multiply, further leading axes are batches which broadcast.

    Shapes: (k), (k) -> (); (m, k), (k) -> (m); (k), (..., k, n) -> (..., n); (..., m, k), (..., k, n) -> (..., m, n).
    Dtypes: equal.
    Raises: ShapeError when k or the batches differ, or an input has no axis; DTypeError when dtypes differ.
    """
    _check("matmul", a, b)
    if len(a.spec.shape) == 1 and len(b.spec.shape) == 1:
        return dot(a, b).called("aten::dot")
    if len(b.spec.shape) == 1:
        out = matmul(a, movement.reshape(b, shape=(*b.spec.shape, 1)))
        product = movement.reshape(out, shape=out.spec.shape[:-1])
        return product.called("aten::mv") if len(product.spec.shape) == 1 else product
    if len(a.spec.shape) == 1:
        out = matmul(movement.reshape(a, shape=(1, *a.spec.shape)), b)
        product = movement.reshape(out, shape=(*out.spec.shape[:-2], out.spec.shape[-1]))
        return product.called("aten::squeeze.4") if len(product.spec.shape) == 1 else product
    if len(b.spec.shape) == 2:
        return contraction.matmul(a, b)
    lead = broadcast(a.spec.shape[:-2], b.spec.shape[:-2])
    return contraction.matmul(*[arithmetic.broadcast_to(x, (*lead, *x.spec.shape[-2:])) for x in (a, b)])


def mm(a: Node, b: Node) -> Node:
    """(m, k) x (k, n) -> (m, n)."""
    require_ranks("mm", (a, 2), (b, 2))
    return matmul(a, b)


def bmm(a: Node, b: Node) -> Node:
    """(b, m, k) x (b, k, n) -> (b, m, n)."""
    require_ranks("bmm", (a, 3), (b, 3))
    if a.spec.shape[0] != b.spec.shape[0]:
        raise ShapeError(f"bmm: batches must be equal, got {a.spec.shape} and {b.spec.shape}")
    return matmul(a, b)


def mv(a: Node, b: Node) -> Node:
    """(m, k) x (k) -> (m)."""
    require_ranks("mv", (a, 2), (b, 1))
    return matmul(a, b)


def dot(a: Node, b: Node) -> Node:
    """(n) x (n) -> (): the sum of products."""
    require_ranks("dot", (a, 1), (b, 1))
    if a.spec.shape != b.spec.shape:
        raise ShapeError(
            f"inconsistent tensor size, expected tensor [{a.spec.shape[0]}] and src [{b.spec.shape[0]}] to have the "
            f"same number of elements"
        )
    dtype = precision.require_same("dot", a, b)
    precision.refuse_bool("dot", a)
    products = pointwise.mul(precision.upcast(a), precision.upcast(b))
    return arithmetic.cast(reduce.sum(products), dtype)


def outer(a: Node, b: Node) -> Node:
    """(m), (n) -> (m, n): all products."""
    require_ranks("outer", (a, 1), (b, 1))
    return arithmetic.mul(movement.reshape(a, shape=(*a.spec.shape, 1)), b)


@composite
def linear(x: Node, weight: Node, bias: Node | None = None) -> Node:
    """x weight^T + bias.

    Shapes: x (..., k), weight (n, k) or (k), bias (n) or () -> (..., n) or (...).
    Raises: ShapeError when k differs; DTypeError when dtypes differ.
    """
    if len(weight.spec.shape) > 2:
        raise ShapeError(f"linear: expects a weight with <= 2 dimensions, but it is {len(weight.spec.shape)}D")
    if len(weight.spec.shape) == 2 and x.spec.shape and x.spec.shape[-1] != weight.spec.shape[1]:
        m = prod(x.spec.shape[:-1])
        n, k = weight.spec.shape
        raise ShapeError(
            f"mat1 and mat2 shapes cannot be multiplied ({m}x{x.spec.shape[-1]} and {k}x{n}): linear has input "
            f"{x.spec.shape} and weight {weight.spec.shape}"
        )
    out = matmul(x, weight if len(weight.spec.shape) == 1 else contraction.transposed(weight))
    return out if bias is None else arithmetic.add(out, bias)


# Products with a sum


def addmm(base: Node, a: Node, b: Node, *, beta: Number = 1, alpha: Number = 1) -> Node:
    """beta base + alpha (a x b). Shapes: a (m, k), b (k, n), base broadcasts to (m, n)."""
    return _plus("addmm", base, mm(a, b), beta, alpha)


def addmv(base: Node, a: Node, b: Node, *, beta: Number = 1, alpha: Number = 1) -> Node:
    """beta base + alpha (a x b). Shapes: a (m, k), b (k), base broadcasts to (m)."""
    return _plus("addmv", base, mv(a, b), beta, alpha)


def addr(base: Node, a: Node, b: Node, *, beta: Number = 1, alpha: Number = 1) -> Node:
    """beta base + alpha outer(a, b). Shapes: a (m), b (n), base broadcasts to (m, n)."""
    product = outer(a, b)
    dtype = arithmetic.result_type(base, product)
    if dtype is dtypes.bool_:
        beta, alpha = (value if isinstance(value, float) else bool(value) for value in (beta, alpha))
    for name, value in (("beta", beta), ("alpha", alpha)):
        arithmetic.factor(value, dtype, name)
    return _plus("addr", base, product, beta, alpha)


def baddbmm(base: Node, a: Node, b: Node, *, beta: Number = 1, alpha: Number = 1) -> Node:
    """beta base + alpha (a x b). Shapes: a (b, m, k), b (b, k, n), base broadcasts to (b, m, n)."""
    return _plus("baddbmm", base, bmm(a, b), beta, alpha)


def addbmm(base: Node, a: Node, b: Node, *, beta: Number = 1, alpha: Number = 1) -> Node:
    """beta base + alpha (sum over the batch of a x b). Shapes: a (b, m, k), b (b, k, n), base broadcasts to (m, n)."""
    return _plus("addbmm", base, reduce.sum(bmm(a, b), 0, dtype=a.spec.dtype), beta, alpha)


# Parts


def _check(name: str, a: Node, b: Node) -> None:
    have = a.spec.shape, b.spec.shape
    if not have[0] or not have[1]:
        raise ShapeError(f"both arguments to {name} need to be at least 1D, but they are {have[0]} and {have[1]}")
    k = have[1][0] if len(have[1]) == 1 else have[1][-2]
    if have[0][-1] != k:
        if all(len(shape) == 2 for shape in have):
            sizes = " and ".join(f"{m}x{n}" for m, n in have)
            raise ShapeError(f"mat1 and mat2 shapes cannot be multiplied ({sizes})")
        raise ShapeError(f"mat1 and mat2 shapes cannot be multiplied: {name} got {have[0]} and {have[1]}")
    precision.require_same(name, a, b)
    precision.refuse_bool(name, a)


def require_ranks(name: str, *operands: tuple[Node, int]) -> None:
    for x, rank in operands:
        if len(x.spec.shape) != rank:
            raise ShapeError(f"{name}: expected a tensor of {rank} dimensions, got one of shape {x.spec.shape}")


def _plus(name: str, base: Node, product: Node, beta: Number | Node, alpha: Number | Node) -> Node:
    shape = product.spec.shape
    if broadcast(base.spec.shape, shape) != shape:
        raise ShapeError(f"{name}: input {base.spec.shape} does not broadcast to {shape}")
    precision.require_same(name, base, product)
    alpha, beta = (arithmetic.weight(value, product.spec.dtype) for value in (alpha, beta))
    if isinstance(alpha, Node) or alpha != 1:
        product = arithmetic.mul(product, alpha)
    if not isinstance(beta, Node) and beta == 0:
        return pointwise.unmoved(product, arithmetic.broadcast_to(base, shape))
    return arithmetic.add(product, base if not isinstance(beta, Node) and beta == 1 else arithmetic.mul(base, beta))
