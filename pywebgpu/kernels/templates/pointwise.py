"""Groups of pointwise nodes over one number of elements: one invocation an element or a few, several results.

Where elements of a result share a word, an invocation computes at least all of a word.
"""

from collections.abc import Callable, Sequence
from math import prod

from pywebgpu.ir.graph import Generator, Node, Op, Pointwise, Structural
from pywebgpu.kernels.access import Edges, gathers, reads_inside
from pywebgpu.kernels.builder import Builder, element
from pywebgpu.kernels.ir import GROUP, LANE
from pywebgpu.kernels.kernel import Kernel
from pywebgpu.kernels.launch import Launch, Problem, threads
from pywebgpu.kernels.target import Target
from pywebgpu.kernels.template import REPEAT_COST, Computation, Domain, Template
from pywebgpu.ops import indexing
from pywebgpu.support.symbolic import Sym, variable

SMALL = 64  # elements, such as the steps that each batch norm counts: a dispatch takes longer than they do
LARGE = 1 << 16  # elements from which memory takes longer than all else: vectors are longer texts
WRITTEN = 128  # nodes times neighbours, at most: each is written out, and a translator takes its time
PARTS = 4  # joined, at most, where neighbours are loaded at a time: each of them is looked for in every part


class PointwiseTemplate(Template):
    """Problem: the number of elements, and of nodes; layout: the largest vector that divides the elements, 1 where many
    parts are joined.

    Launch: threads, each of `vector` neighbours, which are loaded and stored at a time where they lie so.
    """

    name = "pointwise"
    absorbs = siblings = frozenset({name})
    repeats = REPEAT_COST
    packs_own = True

    def matches(self, op: Op, target: Target) -> bool:
        return is_by_element(op)

    def joined(self, nodes: Sequence[Node], edges: Edges, parts: tuple[Domain, Domain]) -> Domain | None:
        inside = {id(node) for node in nodes}
        size = prod(nodes[0].spec.shape)
        position = variable("i", size)
        for node in nodes:
            if prod(node.spec.shape) != size or size == 0:
                return None
            if not reads_inside(edges[id(node)], node, inside, position):
                return None
        return Domain()

    def is_whole(self, work: Computation) -> bool:
        """Not where a cut left nodes of rows and of elements together, without the reduction that joined them."""
        return len({prod(node.spec.shape) for node in work.nodes}) == 1

    def is_small(self, work: Computation, escapes: Callable[[Node], bool], target: Target) -> bool:
        return 0 < prod(work.nodes[0].spec.shape) <= SMALL

    def written_at(self, work: Computation, result: Node, escapes: Callable[[Node], bool]) -> Sym:
        return variable("i", prod(result.spec.shape))

    def reads_on_level(self, work: Computation, node: Node, result: Node) -> bool:
        return not gathers(node.op)

    def problem(self, work: Computation, build: Builder) -> Problem:
        size = prod(work.outputs[0].spec.shape)
        widths = (1,) if any(node.op is indexing.cat and len(node.inputs) > PARTS for node in work.nodes) else (4, 2, 1)
        return Problem((size, len(work.nodes)), layout=str(next(width for width in widths if size % width == 0)))

    def launches(self, problem: Problem, target: Target) -> Sequence[Launch]:
        size, nodes = problem.sizes
        widths = [width for width in (4, 2, 1) if width <= int(problem.layout) and nodes * width <= WRITTEN]
        if size < LARGE or not widths:
            widths = [1, *(width for width in widths if width > 1)]
        return [
            Launch(threads=size, vector=width) for width in widths for size in threads(target.limits.workgroup_size)
        ]

    def write(self, work: Computation, launch: Launch, build: Builder) -> Kernel:
        if any(launch.vector % build.per_word(node) for node in work.outputs):
            return _write_words(work, launch, build)
        invocations = prod(work.outputs[0].spec.shape) // launch.vector
        i = build.let(GROUP * launch.threads + LANE, "i")
        build.jump("return", i >= invocations)
        positions = [i.within(invocations) * launch.vector + offset for offset in range(launch.vector)]
        # Every load before any store: a result may take over the buffer that another one reads.
        values = [
            {id(node): build.value(node, element(position, node)) for node in work.nodes} for position in positions
        ]
        for node in work.outputs:
            for own_position, value_of in zip(positions, values, strict=True):
                build.store(node, own_position, value_of[id(node)])
        groups = -(-invocations // launch.threads)
        return build.kernel(_name(work), launch.threads, groups, vector=launch.vector)


def is_by_element(op: Op) -> bool:
    """Whether an op computes each element for itself."""
    return isinstance(op, Pointwise | Generator) or (isinstance(op, Structural) and op.by_element)


def _write_words(work: Computation, launch: Launch, build: Builder) -> Kernel:
    """An invocation computes the elements of a word one after the other: of any size, and the text is no longer."""
    size, each = prod(work.outputs[0].spec.shape), build.gather(work.outputs)
    words = -(-size // each)
    word = build.let(GROUP * launch.threads + LANE, "word")
    build.jump("return", word >= words)
    with build.loop("j", 0, each) as j:
        i = build.let(word * each + j, "i")
        position = i.within(size)
        build.in_words(position, each, word.within(words), j.within(each))
        with build.if_(*[i < size] if size % each else ()):
            values = {id(node): build.value(node, element(position, node)) for node in work.nodes}
            for node in work.outputs:
                build.store(node, position, values[id(node)])
    return build.kernel(_name(work), launch.threads, -(-words // launch.threads))


def _name(work: Computation) -> str:
    return "_".join(["map", *dict.fromkeys(node.op.name for node in work.nodes[-3:])])
