"""Complex values become pairs of real ones: what is left of them are loads of leaves and stores of roots.

A value without an imaginary part has None in its place, so that real numbers among complex ones cost nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pywebgpu.compiler.passes import fourier_products
from pywebgpu.compiler.passes.complex_functions import FUNCTIONS, Pair, product, whole
from pywebgpu.dtypes import Kind, uint32
from pywebgpu.errors import CompileError
from pywebgpu.ir.graph import Custom, Movement, Node, Pointwise, Reduction, Spec, Structural, thread_state
from pywebgpu.kernels.templates import Selection
from pywebgpu.ops import (
    complex_parts,
    contraction,
    fourier,
    indexing,
    movement,
    packing,
    pointwise,
    products,
    reduction,
)

_LINEAR = (indexing.take, indexing.cat, indexing.write_slice, indexing.offset_slice, packing.pack, packing.piece)
_FIRST = (pointwise.copy, pointwise.graft, pointwise.overwrite)


_KEPT = (*_FIRST, pointwise.cast, pointwise.where, complex_parts.complex_, *FUNCTIONS)
_TO_REAL = (
    complex_parts.real, complex_parts.imag, complex_parts.modulus, pointwise.eq, pointwise.ne, pointwise.isnan,
    pointwise.isinf, pointwise.cast,
)  # fmt: skip


def check_complex(roots: tuple[Node, ...], order: Sequence[Node], selection: Selection) -> tuple[Node, ...]:
    """Raises CompileError for what complex numbers have not, where NumPy would compute something nonetheless."""
    for node in order:
        op, own = node.op, node.spec.dtype.part is not None
        if node.is_source or not (own or any(source.spec.dtype.part is not None for source in node.inputs)):
            continue
        known: object = True
        if isinstance(op, Pointwise):
            known = op in (_KEPT if own else _TO_REAL)
        elif isinstance(op, Reduction):
            known = op in (reduction.sum_, products.prod_)
        elif op is indexing.argsort or op is indexing.scan or op is indexing.scatter:
            known = node.attrs.get("mode") in ("add", "prod", "set")
        if not known:
            raise _unknown(node)
    return roots


def _unknown(node: Node) -> CompileError:
    return CompileError(f"{node.op.name}: not implemented for complex numbers; take x.abs(), x.real or x.imag")


def split_complex(roots: tuple[Node, ...], order: Sequence[Node], selection: Selection) -> tuple[Node, ...]:
    """The same values; no op but `complex`, `real` and `imag` knows complex numbers."""
    split = _Split()
    was, thread_state.grad = thread_state.grad, False
    try:
        for node in order:
            split.add(node)
        return tuple([split.root(root) for root in roots])
    finally:
        thread_state.grad = was


class _Split:
    """The graph so far: new nodes of the real values, pairs of the complex ones."""

    def __init__(self) -> None:
        self._real: dict[Node, Node] = {}
        self._pairs: dict[Node, Pair] = {}

    def add(self, node: Node) -> None:
        """A node whose inputs are there."""
        parts: tuple[Node | None, ...]
        if node.spec.dtype.part is not None:
            parts = self._pairs[node] = self._pair(node)
        elif any(source.spec.dtype.part is not None for source in node.inputs) and node.buffer is None:
            parts = (self._real.setdefault(node, self._of_pairs(node)),)
        else:
            parts = (self._real.setdefault(node, self._rebuilt(node)),)
        if thread_state.origins is not None:
            for part in parts:
                if part is not None:
                    thread_state.origins.carry(node, part)

    def root(self, node: Node) -> Node:
        """What is computed for a root."""
        if node.spec.dtype.part is None:
            return self._real[node]
        if node.buffer is not None:
            return node
        re, im = whole(self._pairs[node])
        source = re.inputs[0] if re.op is complex_parts.real else None
        if source is not None and im.op is complex_parts.imag and im.inputs[0] is source:
            return source  # A leaf as it is.
        return complex_parts.complex_(re, im)

    def _rebuilt(self, node: Node) -> Node:
        if node.is_source:
            return node
        inputs = tuple([self._real[source] for source in node.inputs])
        return node if inputs == node.inputs else Node(node.op, inputs, node.attrs, node.spec)

    def _of_pairs(self, node: Node) -> Node:
        """A real value that is computed of complex ones."""
        op, (first, *others) = node.op, [self._both(source) for source in node.inputs]
        re, im = whole(first)
        if op is complex_parts.real or isinstance(op, Custom):
            return re
        if op is complex_parts.imag:
            return im
        if op is complex_parts.modulus:
            return pointwise.abs_(re) if first[1] is None else pointwise.hypot(re, im)
        if op in (pointwise.eq, pointwise.ne):
            assert isinstance(op, type(pointwise.eq))
            other = whole(others[0])
            join = pointwise.bitwise_and if op is pointwise.eq else pointwise.bitwise_or
            return join(op(re, other[0]), op(im, other[1]))
        if op in (pointwise.isnan, pointwise.isinf):
            return pointwise.bitwise_or(op(re), op(im))
        if op is pointwise.cast:
            if node.spec.dtype.kind is not Kind.BOOL:
                return pointwise.cast(re, dtype=node.spec.dtype)
            return pointwise.bitwise_or(*[pointwise.cast(part, dtype=node.spec.dtype) for part in (re, im)])
        if op is complex_parts.as_real:
            return _interleaved(re, im)
        raise _unknown(node)

    def _both(self, source: Node) -> Pair:
        return self._pairs[source] if source.spec.dtype.part is not None else (self._real[source], None)

    def _pair(self, node: Node) -> Pair:
        op, part = node.op, node.spec.dtype.part
        assert part is not None
        if op is pointwise.const and node.buffer is None:
            value = complex(node.attrs["value"])
            re, im = (pointwise.full(number, Spec(node.spec.shape, part)) for number in (value.real, value.imag))
            return re, im if value.imag else None
        if node.is_source:
            return complex_parts.real(node), complex_parts.imag(node)
        if op is complex_parts.complex_:
            re, im = (self._real[source] for source in node.inputs)
            is_real = im.op is pointwise.const and im.buffer is None and im.attrs["value"] == 0
            return _shaped((re, None if is_real else im), node.spec)
        if op is complex_parts.as_complex:
            return _picked(self._real[node.inputs[0]])
        operands = [self._both(source) for source in node.inputs]
        if op in _FIRST or isinstance(op, Custom):
            return operands[0]
        if op is pointwise.cast:
            return _each(lambda a: a if a.spec.dtype is part else pointwise.cast(a, dtype=part), operands)
        if op is pointwise.where:
            return _shaped(_each(lambda a, b: pointwise.where(operands[0][0], a, b), operands[1:]), node.spec)
        function = FUNCTIONS.get(op)
        if function is not None:
            return _shaped(function(*operands), node.spec)
        return self._structural(node, operands)

    def _structural(self, node: Node, operands: list[Pair]) -> Pair:
        op, attrs = node.op, node.attrs
        if isinstance(op, Movement):
            re, im = operands[0]
            value = complex(attrs.get("value", 0.0))
            others = [{**attrs, "value": number} if "value" in attrs else attrs for number in (value.real, value.imag)]
            if im is None and value.imag:
                im = whole(operands[0])[1]
            return op(re, **others[0]), None if im is None else op(im, **others[1])
        if op is fourier.dft:
            return fourier_products.transform(operands[0], **attrs)
        if op is contraction.matmul:
            return _matmul(*operands)
        if op is reduction.sum_:
            return _each(lambda a: reduction.sum_(a, **attrs), operands)
        if op is products.prod_:
            return _folded(operands[0], **attrs)
        if op is indexing.scan and attrs["mode"] in ("add", "prod"):
            return _running(operands[0]) if attrs["mode"] == "prod" else _each(lambda a: _scan(a), operands)
        if op in _LINEAR or (op is indexing.scatter and attrs["mode"] in ("add", "set")):
            kept = [source.spec.dtype.part is None for source in node.inputs]
            pairs = [pair for pair, is_real in zip(operands, kept, strict=True) if not is_real]

            def made(*parts: Node) -> Node:
                left = iter(parts)
                inputs = [pair[0] if is_real else next(left) for pair, is_real in zip(operands, kept, strict=True)]
                assert isinstance(op, Structural)
                return op(*inputs, **attrs)

            return _each(made, pairs)
        raise _unknown(node)


def _scan(x: Node) -> Node:
    return indexing.scan(x, mode="add")


def _each(function: Callable[..., Node], operands: Sequence[Pair]) -> Pair:
    """A function that is linear, of the real parts and of the imaginary parts."""
    re = function(*[pair[0] for pair in operands])
    if all(pair[1] is None for pair in operands):
        return re, None
    return re, function(*[whole(pair)[1] for pair in operands])


def _shaped(pair: Pair, spec: Spec) -> Pair:
    """A value of shape () that stood for all elements, in the shape that was asked for."""
    re, im = pair
    grown = [x if x is None or x.spec.shape == spec.shape else reduction.expand(x, shape=spec.shape) for x in (re, im)]
    assert grown[0] is not None
    return grown[0], grown[1]


def _interleaved(re: Node, im: Node) -> Node:
    """(...), (...) -> (..., 2)"""
    shape = (*re.spec.shape, 2)
    pair = [reduction.expand(movement.reshape(x, shape=(*x.spec.shape, 1)), shape=shape) for x in (re, im)]
    lane = pointwise.iota(spec=Spec(shape, uint32), axis=len(shape) - 1)
    return pointwise.where(pointwise.eq(lane, pointwise.scalar(0, uint32)), *pair)


def _picked(x: Node) -> Pair:
    """(..., 2) -> (...), (...)"""
    shape = x.spec.shape
    rank = len(shape)
    parts = [
        movement.slice_(x, starts=(*(0,) * (rank - 1), start), sizes=(*shape[:-1], 1), steps=(1,) * rank)
        for start in (0, 1)
    ]
    re, im = (movement.reshape(part, shape=shape[:-1]) for part in parts)
    return re, im


def _matmul(a: Pair, b: Pair) -> Pair:
    times = contraction.matmul
    if a[1] is None or b[1] is None:
        parts = [None if x is None or y is None else times(x, y) for x, y in ((a[0], b[0]), (a[0], b[1]), (a[1], b[0]))]
        assert parts[0] is not None
        return parts[0], parts[1] or parts[2]
    re = pointwise.sub(times(a[0], b[0]), times(a[1], b[1]))
    return re, pointwise.add(times(a[0], b[1]), times(a[1], b[0]))


def _folded(pair: Pair, axes: tuple[int, ...]) -> Pair:
    """A product over axes: its two halves multiply until one element is left."""
    for axis in axes:
        shape = whole(pair)[0].spec.shape
        if not shape[axis]:
            return _each(lambda x, axis=axis: _filled(x, axis), [pair])
        while (n := pair[0].spec.shape[axis]) > 1:
            low, high = (_part(pair, axis, start, n // 2) for start in (0, n // 2))
            multiplied = product(low, high)
            if n % 2:
                first, rest = _part(multiplied, axis, 0, 1), _part(multiplied, axis, 1, n // 2 - 1)
                last = product(first, _part(pair, axis, n - 1, 1))
                multiplied = _joined(last, rest, axis) if n > 3 else last
            pair = multiplied
    return pair


def _filled(x: Node, axis: int) -> Node:
    shape = tuple([1 if a == axis else n for a, n in enumerate(x.spec.shape)])
    return pointwise.full(1.0, Spec(shape, x.spec.dtype))


def _part(pair: Pair, axis: int, start: int, size: int) -> Pair:
    def cut(x: Node) -> Node:
        shape = x.spec.shape
        starts = tuple([start if a == axis else 0 for a in range(len(shape))])
        sizes = (*shape[:axis], size, *shape[axis + 1 :])
        return movement.slice_(x, starts=starts, sizes=sizes, steps=(1,) * len(shape))

    return _each(cut, [pair])


def _joined(a: Pair, b: Pair, axis: int) -> Pair:
    return _each(lambda *parts: indexing.cat(*parts, axis=axis), [a, b])


def _running(pair: Pair) -> Pair:
    """Products of all before and with an element along the last axis, in about log2(n) steps."""
    step, n = 1, pair[0].spec.shape[-1]
    axis = len(pair[0].spec.shape) - 1
    while step < n:
        later = product(_part(pair, axis, step, n - step), _part(pair, axis, 0, n - step))
        pair = _joined(_part(pair, axis, 0, step), later, axis)
        step *= 2
    return pair
