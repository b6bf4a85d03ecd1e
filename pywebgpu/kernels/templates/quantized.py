"""Products of few rows with quantised weights, and pointwise work on their results: what decoding text is made of.

Products of one operand share a kernel: what the operand is made of its rows, such as a norm, each workgroup computes
for itself, before. How a kernel is written stands in quantized_kernel.py.
"""

from collections.abc import Callable, Sequence
from math import prod

from pywebgpu.composites import quantized
from pywebgpu.ir.graph import Node
from pywebgpu.kernels import quantized_units
from pywebgpu.kernels.access import Edges, below, gathers, reads_inside
from pywebgpu.kernels.builder import Builder
from pywebgpu.kernels.iteration_space import IterationSpace
from pywebgpu.kernels.kernel import Kernel
from pywebgpu.kernels.launch import Launch, Problem
from pywebgpu.kernels.target import Target
from pywebgpu.kernels.template import Computation, Domain, FusedTemplate
from pywebgpu.kernels.templates import quantized_kernel
from pywebgpu.kernels.templates.pointwise import is_by_element
from pywebgpu.kernels.templates.quantized_kernel import RESULT, Parts, is_row
from pywebgpu.kernels.templates.rows import in_one_subgroup, levels_of, reads_its_own
from pywebgpu.kernels.templates.rows_walk import FULL, SHUFFLED
from pywebgpu.support.formats import WORD
from pywebgpu.support.symbolic import Sym, variable

MOST_ROWS = 8  # of the operand: tiles of products are faster for more
LANES = (1, 2, 4, 8, 16, 32)  # that may share a row of the weight
THREADS = (64, 128, 256)
EACH = (1, 2, 4)  # rows of the weight that a lane has at the same time
EMULATED_THREADS = 16  # of a CPU that plays the GPU: there a row has one lane, and what it loads is for several rows
MANY = 16_000  # rows that keep a device busy, though a lane has several
FOLDED = "folded"  # the layout of a problem whose operand is computed by the same kernel


class QuantizedTemplate(FusedTemplate):
    """Problem: rows of the operand, rows of the weights, their columns, units of a row; formats: the weights'; layout:
    whether the operand is computed by the same kernel.

    Launch: threads, of which `split` share a row of the weight; each: rows of the weight that a lane has.
    """

    name = "quantized"
    absorbs = frozenset({"pointwise", "rows", name})
    siblings = frozenset({name})
    op = quantized.product
    effort = 1

    def supports(self, node: Node, target: Target) -> bool:
        return 0 < node.spec.shape[0] <= MOST_ROWS and 0 not in node.inputs[1].spec.shape

    def joined(self, nodes: Sequence[Node], edges: Edges, parts: tuple[Domain, Domain]) -> Domain | None:
        """Products of one operand, what this is made of its rows, and what is computed of each result alone."""
        products = [node for node in nodes if node.op is self.op]
        first, inside = products[0], {id(node) for node in nodes}
        if any(_kind(node) != _kind(first) for node in products):
            return None
        before = _sources(products, edges, inside)
        rows = [node for node in nodes if id(node) in before]
        domain = _folded(rows, products, edges) if rows else Domain()
        if domain is None:
            return None
        sizes = {prod(product.spec.shape) for product in products}
        for node in nodes:
            if node.op is self.op or id(node) in before:
                continue
            size, read = prod(node.spec.shape), {id(producer) for producer, _, _ in edges[id(node)]}
            if size not in sizes or not is_by_element(node.op) or read & before:
                return None
            if rows and not read & inside:
                return None
            if not reads_inside(edges[id(node)], node, inside, variable("i", size)):
                return None
        return (
            Domain({id(node): domain.levels.get(id(node), RESULT) for node in nodes}, domain.space) if rows else domain
        )

    def part(self, nodes: Sequence[Node], domain: Domain) -> Domain:
        return Domain(super().part(nodes, domain).levels, domain.space)

    def is_whole(self, work: Computation) -> bool:
        """Not where a cut left results of a product without it."""
        parts = Parts.of(work)
        return len(parts.rows) + sum(len(segment.nodes) for segment in parts.segments) == len(work.nodes)

    def is_worthwhile(self, work: Computation, escapes: Callable[[Node], bool], target: Target) -> bool:
        """Not where each of very many workgroups computed the operand, or one has no room for it."""
        parts = Parts.of(work)
        if not parts.rows:
            return True
        room = WORD * (parts.m * parts.k + min(THREADS[-1], target.limits.workgroup_size) * (len(parts.rows) + 1))
        return parts.n <= MANY and room <= target.limits.shared_bytes

    def written_at(self, work: Computation, result: Node, escapes: object) -> Sym | None:
        """What the operand is made of is read by all workgroups."""
        return None if is_row(work, result) else variable("i", prod(result.spec.shape))

    def reads_on_level(self, work: Computation, node: Node, result: Node) -> bool:
        return node.op is not self.op and not is_row(work, node) and not gathers(node.op)

    def problem(self, work: Computation, build: Builder) -> Problem:
        parts = Parts.of(work)
        sizes = (parts.m, parts.n, parts.k, parts.k // quantized_units.elements(parts.format))
        return Problem(sizes, (parts.format,), FOLDED if parts.rows else "")

    def launches(self, problem: Problem, target: Target) -> Sequence[Launch]:
        _, n, _, units = problem.sizes
        shuffles = in_one_subgroup(target.features) >= LANES[-1]
        most = target.limits.workgroup_size
        threads = [size for size in THREADS if size <= most] or [max(LANES)]
        lanes = 8 if units < 32 else 16 if units < 128 else 32
        wanted = threads[min(problem.layout == FOLDED, len(threads) - 1)]  # More rows share what was computed before.
        first = _launch(wanted, lanes, 2 if n >= MANY else 1, shuffles)
        if target.is_cpu:
            first = _launch(min(EMULATED_THREADS, most), 1, EACH[-1], shuffles)
        others = [
            _launch(size, share, rows, shuffles and ways)
            for size in threads
            for share in (share for share in LANES if share <= max(units, lanes))
            for rows in EACH
            for ways in (True, False)
            if ways or not shuffles or share == 1
        ]
        return list(dict.fromkeys([first, *others]))

    def write(self, work: Computation, launch: Launch, build: Builder) -> Kernel:
        return quantized_kernel.write(work, launch, build)


def _launch(threads: int, lanes: int, each: int, shuffles: bool) -> Launch:
    return Launch(SHUFFLED if shuffles and lanes > 1 else "", threads, each=(each,), split=lanes)


def _kind(node: Node) -> tuple[object, ...]:
    """What products of one kernel have in common."""
    operand = node.inputs[0]
    return id(operand), node.spec.dtype, node.attrs["format"]


def _sources(products: Sequence[Node], edges: Edges, inside: set[int]) -> set[int]:
    """Ids of those inside that products are made of."""
    before: set[int] = set()
    stack = list(products)
    while stack:
        for producer, _, _ in edges[id(stack.pop())]:
            if id(producer) in inside and id(producer) not in before:
                before.add(id(producer))
                stack.append(producer)
    return before


def _folded(rows: Sequence[Node], products: Sequence[Node], edges: Edges) -> Domain | None:
    """The domain of what the operand is made of; None where that is more than its rows."""
    planes = [plane for product in products for plane in product.inputs[1:]]
    if any(node.op is quantized.product for node in rows) or any(below(plane).buffer is None for plane in planes):
        return None
    space = IterationSpace(products[0].inputs[0].spec.shape, (1,))
    levels = levels_of(rows, edges, space)
    if levels is None or not all(reads_its_own(product, FULL, edges, levels, space) for product in products):
        return None
    return Domain(levels, space)
