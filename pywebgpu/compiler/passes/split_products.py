"""Products with few results and a long sum become several of a part of it each, and what adds those up.

So more workgroups run side by side. The parts are added in their order by whoever reads the product, together with
what it does else; the numbers are the same in every run. How many there are is the launch of the product's template:
its rule for large GPUs, or a tuning.

Other products whose sum is very long become a batch of shorter ones, which are added up as any axis is: llvmpipe ends
the loops of an invocation after 65,535 rounds, and one core of a GPU would have all of a sum.
"""

from collections.abc import Sequence
from functools import reduce

from pywebgpu import dtypes
from pywebgpu.dtypes import Kind
from pywebgpu.ir import walk
from pywebgpu.ir.graph import Node
from pywebgpu.kernels.launch import Problem
from pywebgpu.kernels.templates import Selection
from pywebgpu.kernels.templates.matmul import MatmulTemplate, summed
from pywebgpu.kernels.templates.matmul_kernel import problem_of
from pywebgpu.ops import contraction, movement, pointwise, reduction

FEW_ROWS = 3  # with more, a tile of a matrix product may be as fast as a sum of rows: see few_rows.py
LONG = 4096  # steps of k from which parts are worth more than a sum of an operand on the way
LONGEST = 1 << 15  # steps of k that an invocation takes one after another


def split_products(roots: tuple[Node, ...], order: Sequence[Node], selection: Selection) -> tuple[Node, ...]:
    """The same values but for the order of sums."""
    spans = _spans(order, selection)
    if not spans and not any(is_endless(node) for node in order):
        return roots

    def rule(node: Node, fresh: Node) -> Node:
        if id(node) in spans:
            return _split(node, *fresh.inputs, span=spans[id(node)])
        return _batched(node, *fresh.inputs) if is_endless(node) else fresh

    return walk.replace(roots, order, rule)


def has_few_rows(node: Node) -> bool:
    """Whether it is a product of numbers with a point of which one side has few rows, or the other few columns."""
    if node.op is not contraction.matmul or node.is_source or node.spec.dtype.kind is not Kind.FLOAT:
        return False
    return min(node.spec.shape[-2:]) <= FEW_ROWS


def is_endless(node: Node) -> bool:
    """Whether a product has more steps than an invocation takes."""
    return node.op is contraction.matmul and not node.is_source and node.inputs[0].spec.shape[-1] > LONGEST


def _spans(order: Sequence[Node], selection: Selection) -> dict[int, int]:
    """By id of a product that is worth it, how many steps of k a part has."""
    template = selection.find(contraction.matmul)
    assert isinstance(template, MatmulTemplate)
    spans: dict[int, int] = {}
    known: dict[Problem, int] = {}
    for node in order:
        if node.op is contraction.matmul and not node.is_source:
            problem = problem_of(node)
            if problem not in known:
                known[problem] = template.span(problem, selection.target)
            if known[problem]:
                spans[id(node)] = known[problem]
    summed_products = with_sums(order) if spans else set()
    lengths = {id(node): node.inputs[0].spec.shape[-1] for node in order if id(node) in spans}
    return {
        node_id: span for node_id, span in spans.items() if node_id not in summed_products or lengths[node_id] > LONG
    }


def with_sums(order: Sequence[Node]) -> set[int]:
    """Ids of products beside which an operand is summed over k: one kernel does both."""
    products: dict[int, list[Node]] = {}  # by id of what an operand is below views
    for node in order:
        if node.op is contraction.matmul and not node.is_source:
            for operand in node.inputs:
                products.setdefault(id(walk.base(operand)), []).append(node)
    sums = [node for node in order if node.op is reduction.sum_ and not node.is_source]
    pairs = [
        (sum_node, product) for sum_node in sums for product in products.get(id(walk.base(sum_node.inputs[0])), ())
    ]
    return {id(product) for sum_node, product in pairs if summed(sum_node, product)}


def _split(node: Node, a: Node, b: Node, *, span: int) -> Node:
    partial = contraction.partial_matmul(a, b, span=span)
    count, *shape = partial.spec.shape
    starts = [(start, 0, 0, 0) for start in range(count)]
    cut = {"sizes": (1, *shape), "steps": (1, 1, 1, 1)}
    parts = [movement.reshape(movement.slice_(partial, starts=start, **cut), shape=tuple(shape)) for start in starts]
    total = reduce(pointwise.add, parts)
    return total if node.spec == total.spec else pointwise.cast(total, dtype=node.spec.dtype)


def _batched(node: Node, a: Node, b: Node) -> Node:
    """(batches, m, k) x (batches, k, n): with k cut into equal parts; where it does not divide, zeros are behind it."""
    batches, m, k = a.spec.shape
    n = b.spec.shape[2]
    least = -(-k // LONGEST)
    count = next((count for count in range(least, 2 * least) if k % count == 0), least)
    span = -(-k // count)
    a, b = _lengthened(a, 2, count * span), _lengthened(b, 1, count * span)
    a = movement.permute(movement.reshape(a, shape=(batches, m, count, span)), order=(0, 2, 1, 3))
    a, b = movement.reshape(a, shape=(batches * count, m, span)), movement.reshape(b, shape=(batches * count, span, n))
    parts = movement.reshape(contraction.matmul(wide(a), wide(b)), shape=(batches, count, m, n))
    total = movement.reshape(reduction.sum_(parts, axes=(1,)), shape=(batches, m, n))
    return total if node.spec == total.spec else pointwise.cast(total, dtype=node.spec.dtype)


def _lengthened(x: Node, axis: int, size: int) -> Node:
    shape = tuple(size if index == axis else n for index, n in enumerate(x.spec.shape))
    return x if shape == x.spec.shape else movement.pad(x, shape=shape, starts=(0, 0, 0), steps=(1, 1, 1))


def wide(x: Node) -> Node:
    """Sums of parts are float32 until all of them are added."""
    is_wide = x.spec.dtype is dtypes.float32 or x.spec.dtype.kind is not Kind.FLOAT
    return x if is_wide else pointwise.cast(x, dtype=dtypes.float32)
