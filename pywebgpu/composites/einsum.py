"""Products over chosen axes. Einstein sums: a string says which axes meet, operands are joined a pair at a time."""

from collections.abc import Sequence
from math import prod

from pywebgpu.composites import arithmetic, linear, precision, reduce
from pywebgpu.dtypes import DType
from pywebgpu.errors import ShapeError
from pywebgpu.ir.graph import Node
from pywebgpu.ops import movement, reduction
from pywebgpu.support.shapes import axis as axis_of

Labels = tuple[str, ...]


def einsum(equation: str, *operands: Node) -> Node:
    """Sums products over the labels that the output does not name: "bij,bjk->bik".

    Without "->" the output has the labels that occur once, in the order of the alphabet. "..." stands for axes that
    broadcast; a label repeated in one operand takes its diagonal.
    Raises: ShapeError when the equation and the shapes do not fit.
    """
    terms, output = parse(equation, [len(x.spec.shape) for x in operands])
    sizes = _sizes(equation, terms, output, operands)
    joined: Node | None = None
    held: Labels = ()
    for position, (labels, node) in enumerate(zip(terms, operands, strict=True)):
        later = {label for term in terms[position + 1 :] for label in term} | set(output)
        alone, x = _diagonals(labels, node)
        if joined is None:
            held, joined = _summed(alone, x, later) if len(operands) == 1 else _summed_rows(alone, x, later)
        else:
            others = set(held) | later
            alone, x = _summed_rows(alone, x, others)
            held, joined = _pair(held, joined, alone, x, later, sizes)
    assert joined is not None
    return _arranged(held, joined, output, sizes)


def parse(equation: str, ranks: Sequence[int]) -> tuple[list[Labels], Labels]:
    """The labels of each axis; axes under "..." are named "0", "1" and so on from the right."""
    for term in ",".join(equation.split("->", 1)).split(","):
        if "." in term.replace("...", "", 1):
            raise ShapeError(f"einsum(): found '.' in {term!r} that is not part of any ellipsis")
    text = equation.replace(" ", "")
    left, arrow, right = text.partition("->")
    parts = left.split(",")
    if len(parts) != len(ranks):
        raise ShapeError(f"einsum(): {equation!r} names {len(parts)} operands, but {len(ranks)} were given")
    terms = [_labels(equation, part, rank) for part, rank in zip(parts, ranks, strict=True)]
    hidden = max((sum(label.isdigit() for label in term) for term in terms), default=0)
    ellipsis = tuple(str(i) for i in reversed(range(hidden)))
    if arrow:
        labels = right.replace("...", ".")
        output = tuple(label for char in labels for label in (ellipsis if char == "." else (char,)))
    else:
        letters = sorted({label for term in terms for label in term if not label.isdigit()})
        output = ellipsis + tuple(c for c in letters if sum(term.count(c) for term in terms) == 1)
    known = {label for term in terms for label in term}
    for label in output:
        if label not in known:
            raise ShapeError(f"einsum(): output subscript {label} does not appear in the equation {equation!r}")
        if output.count(label) > 1:
            raise ShapeError(f"einsum(): output subscript {label} appears more than once in {equation!r}")
    return terms, output


def _labels(equation: str, part: str, rank: int) -> Labels:
    before, dots, after = part.partition("...")
    if not all(char.isalpha() for char in before + after):
        raise ShapeError(f"einsum(): subscripts must be letters, got {part!r} in {equation!r}")
    hidden = rank - len(before) - len(after)
    if hidden < 0 or (hidden and not dots):
        raise ShapeError(
            f"einsum(): the number of subscripts in {part!r} does not match the number of dimensions ({rank})"
        )
    return (*before, *(str(i) for i in reversed(range(hidden))), *after)


def _sizes(equation: str, terms: list[Labels], output: Labels, operands: tuple[Node, ...]) -> dict[str, int]:
    sizes: dict[str, int] = {}
    for term, x in zip(terms, operands, strict=True):
        for label, n in zip(term, x.spec.shape, strict=True):
            known = sizes.get(label, 1)
            if n not in (1, known) and known != 1:
                raise ShapeError(
                    f"einsum(): operands do not broadcast with remapped shapes: {label!r} is {known} and {n} in "
                    f"{equation!r} for {[y.spec.shape for y in operands]}"
                )
            sizes[label] = n if known == 1 else known
    precision.require_same("einsum", *operands)
    return sizes


def _diagonals(labels: Labels, x: Node) -> tuple[Labels, Node]:
    """Axes with one label become one axis, their diagonal: every (n + 1)-th element of both, merged."""
    while len(set(labels)) != len(labels):
        label = next(c for c in labels if labels.count(c) > 1)
        first = labels.index(label)
        second = labels.index(label, first + 1)
        n = x.spec.shape[first]
        if x.spec.shape[second] != n:
            raise ShapeError(f"einsum(): subscript {label} is repeated for sizes {n} and {x.spec.shape[second]}")
        rest = [axis for axis in range(len(labels)) if axis not in (first, second)]
        kept = tuple(x.spec.shape[axis] for axis in rest)
        square = movement.permute(x, order=(*rest, first, second))
        flat = movement.reshape(square, shape=(*kept, n * n))
        x = movement.slice_(flat, starts=(0,) * (len(kept) + 1), sizes=(*kept, n), steps=(*(1,) * len(kept), n + 1))
        labels = (*(labels[axis] for axis in rest), label)
    return labels, x


def _summed(labels: Labels, x: Node, needed: set[str], *, dtype: DType | None = None) -> tuple[Labels, Node]:
    """Without the labels that nobody else needs, summed as by `sum`: whole numbers in int64, without a dtype."""
    axes = tuple(axis for axis, label in enumerate(labels) if label not in needed)
    if axes:
        x = reduce.sum(x, axes, dtype=dtype)
    return tuple(label for label in labels if label in needed), x


def _summed_rows(labels: Labels, x: Node, needed: set[str]) -> tuple[Labels, Node]:
    """The same of one operand of several: an axis of size 1 is left out, and the dtype stays."""
    units = {label for label, n in zip(labels, x.spec.shape, strict=True) if n == 1} - needed
    kept = tuple(axis for axis, label in enumerate(labels) if label not in units)
    x = movement.reshape(x, shape=tuple(x.spec.shape[axis] for axis in kept)) if units else x
    return _summed(tuple(labels[axis] for axis in kept), x, needed)


def _pair(
    left: Labels, a: Node, right: Labels, b: Node, needed: set[str], sizes: dict[str, int]
) -> tuple[Labels, Node]:
    """One product of two operands; labels of both that are not needed later are summed."""
    for label in [label for label in left if label in right and label not in needed]:
        if a.spec.shape[left.index(label)] != b.spec.shape[right.index(label)]:
            # One of size 1 lacks the axis, and the other is summed by itself.
            left, a = _summed_rows(left, a, {*left} - {label})
            right, b = _summed_rows(right, b, {*right} - {label})
    shared = [label for label in left if label in right]
    summed = [label for label in shared if label not in needed]
    if summed and a.spec.dtype is not b.spec.dtype:
        names = [x.spec.dtype.title for x in (a, b)]
        raise RuntimeError(f"expected scalar type {names[0]} but found {names[1]}")
    # A contraction does not broadcast.
    if not summed or any(a.spec.shape[left.index(label)] != b.spec.shape[right.index(label)] for label in shared):
        labels = (*left, *(label for label in right if label not in left))
        out = arithmetic.mul(_grown(left, a, labels, sizes), _grown(right, b, labels, sizes))
        return _summed(labels, out, needed, dtype=out.spec.dtype)
    batch = [label for label in shared if label in needed]
    rows = [label for label in left if label not in shared]
    columns = [label for label in right if label not in shared]
    count = {kind: prod(sizes[label] for label in names) for kind, names in
             (("batch", batch), ("rows", rows), ("columns", columns), ("summed", summed))}  # fmt: skip
    a = movement.permute(a, order=tuple(left.index(label) for label in (*batch, *rows, *summed)))
    b = movement.permute(b, order=tuple(right.index(label) for label in (*batch, *summed, *columns)))
    product = linear.matmul(
        movement.reshape(a, shape=(count["batch"], count["rows"], count["summed"])),
        movement.reshape(b, shape=(count["batch"], count["summed"], count["columns"])),
    )
    labels = (*batch, *rows, *columns)
    return labels, movement.reshape(product, shape=tuple(sizes[label] for label in labels))


def _grown(labels: Labels, x: Node, wanted: Labels, sizes: dict[str, int]) -> Node:
    """x with the axes `wanted`, in that order, those that it lacks grown to their size."""
    order = tuple(labels.index(label) for label in wanted if label in labels)
    x = movement.permute(x, order=order)
    sizes_of_x = dict(zip((labels[axis] for axis in order), x.spec.shape, strict=True))
    x = movement.reshape(x, shape=tuple(sizes_of_x.get(label, 1) for label in wanted))
    return arithmetic.broadcast_to(x, tuple(sizes[label] for label in wanted))


def _arranged(labels: Labels, x: Node, output: Labels, sizes: dict[str, int]) -> Node:
    x = movement.permute(x, order=tuple(labels.index(label) for label in output))
    return arithmetic.broadcast_to(x, tuple(sizes[label] for label in output))


def bilinear(a: Node, b: Node, weight: Node, bias: Node | None = None) -> Node:
    """out[..., o] = sum over i, j of a[..., i] weight[o, i, j] b[..., j], plus bias.

    Shapes: a (..., m), b (..., n), weight (o, m, n), bias (o) -> (..., o).
    """
    linear.require_ranks("bilinear", (weight, 3))
    n_out, m, n = weight.spec.shape
    if a.spec.shape[:-1] != b.spec.shape[:-1] or a.spec.shape[-1:] != (m,) or b.spec.shape[-1:] != (n,):
        raise ShapeError(
            f"bilinear: needs (..., {m}) and (..., {n}) for weight {weight.spec.shape}, got {a.spec.shape} and "
            f"{b.spec.shape}"
        )
    if bias is not None and bias.spec.shape != (n_out,):
        raise ShapeError(f"bilinear(): bias size does not match weight size: got {bias.spec.shape} for ({n_out},)")
    lead = a.spec.shape[:-1]
    flat = movement.reshape(movement.permute(weight, order=(1, 0, 2)), shape=(m, n_out * n))
    left = movement.reshape(linear.matmul(a, flat), shape=(*lead, n_out, n))
    right = movement.reshape(b, shape=(*lead, n, 1))
    out = movement.reshape(linear.matmul(left, right), shape=(*lead, n_out))
    return out if bias is None else arithmetic.add(out, bias)


def tensordot(a: Node, b: Node, dims: int | Sequence[Sequence[int]] = 2) -> Node:
    """Sums products over axes of both: the last `dims` of a and the first of b, or two lists of axes.

    Raises: ShapeError when the sizes of paired axes differ.
    """
    rank_a, rank_b = len(a.spec.shape), len(b.spec.shape)
    if isinstance(dims, int):
        if dims < 0:
            raise ShapeError(f"tensordot expects dims >= 0, but got dims={dims}")
        dims = (range(rank_a - dims, rank_a), range(dims))
    if len(dims) != 2:
        raise ValueError(f"tensordot expects two lists of axes, got {len(dims)}")
    left = [axis_of(d, rank_a) for d in dims[0]]
    right = [axis_of(d, rank_b) for d in dims[1]]
    if len(left) == len(right):  # A paired axis of size 1 on one side is summed on the other.
        for d, e in zip(left, right, strict=True):
            m, n = a.spec.shape[d], b.spec.shape[e]
            if n == 1 < m:
                a = reduction.sum_(a, (d,))
            elif m == 1 < n:
                b = reduction.sum_(b, (e,))
    sizes = [a.spec.shape[d] for d in left]
    if len(left) != len(right) or sizes != [b.spec.shape[d] for d in right]:
        raise ShapeError(
            f"contracted dimensions need to match, but got axes {left} of {a.spec.shape} and {right} of {b.spec.shape}"
        )
    free_a = [d for d in range(rank_a) if d not in left]
    free_b = [d for d in range(rank_b) if d not in right]
    shape_a, shape_b = (tuple(x.spec.shape[d] for d in free) for x, free in ((a, free_a), (b, free_b)))
    k = prod(sizes)
    rows = movement.reshape(movement.permute(a, order=(*free_a, *left)), shape=(prod(shape_a), k))
    columns = movement.reshape(movement.permute(b, order=(*right, *free_b)), shape=(k, prod(shape_b)))
    return movement.reshape(linear.mm(rows, columns), shape=(*shape_a, *shape_b))


def inner(a: Node, b: Node) -> Node:
    """The sum of products over the last axis of both: (..., k), (*, k) -> (..., *)."""
    if not a.spec.shape or not b.spec.shape:
        return arithmetic.mul(a, b)
    if a.spec.shape[-1] != b.spec.shape[-1]:
        raise ShapeError(
            "inner() the last dimension must match on both input tensors but got shapes "
            f"{list(a.spec.shape)} and {list(b.spec.shape)}"
        )
    return tensordot(a, b, ([-1], [-1]))
