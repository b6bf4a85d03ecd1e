"""Groups of pointwise nodes over one number of elements: one invocation an element, or a word; several results."""

from collections.abc import Callable, Sequence
from math import prod

from pywebgpu.ir.graph import Generator, Node, Op, Pointwise
from pywebgpu.kernels.access import GATHERS, Edges, reads_inside
from pywebgpu.kernels.builder import Builder, element
from pywebgpu.kernels.ir import GROUP, LANE
from pywebgpu.kernels.kernel import Kernel
from pywebgpu.kernels.launch import Launch, Problem, threads
from pywebgpu.kernels.target import Target
from pywebgpu.kernels.template import REPEAT_COST, Computation, Domain, Template
from pywebgpu.ops import indexing
from pywebgpu.symbolic import Sym, variable

_BY_ELEMENT = (*GATHERS, indexing.write_slice)


class PointwiseTemplate(Template):
    """Problem: the number of elements. Launch: threads, one an element, or one a word of a result."""

    name = "pointwise"
    absorbs = beside = frozenset({name})
    repeats = REPEAT_COST
    packs_own = True

    def claims(self, op: Op, target: Target) -> bool:
        return isinstance(op, Pointwise | Generator) or op in _BY_ELEMENT

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

    def is_whole(self, nodes: Sequence[Node]) -> bool:
        """Not where a cut left nodes of rows and of elements together, without the reduction that joined them."""
        return len({prod(node.spec.shape) for node in nodes}) == 1

    def written_at(self, work: Computation, result: Node, escapes: Callable[[Node], bool]) -> Sym:
        return variable("i", prod(result.spec.shape))

    def reads_on_level(self, work: Computation, node: Node, result: Node) -> bool:
        return node.op not in GATHERS

    def problem(self, work: Computation, build: Builder) -> Problem:
        return Problem((prod(work.outputs[0].spec.shape),))

    def launches(self, problem: Problem, target: Target) -> Sequence[Launch]:
        return [Launch(threads=one) for one in threads(target.limits.workgroup_size)]

    def write(self, work: Computation, launch: Launch, build: Builder) -> Kernel:
        size, lanes = prod(work.outputs[0].spec.shape), launch.threads
        each = build.gather(work.outputs)
        if each == 1:
            i = build.let(GROUP * lanes + LANE, "i")
            build.jump("return", i >= size)
            _element(work, i.within(size), build)
        else:
            words = -(-size // each)
            word = build.let(GROUP * lanes + LANE, "word")
            build.jump("return", word >= words)
            with build.loop("j", 0, each) as j:
                i = build.let(word * each + j, "i")
                build.in_words(i.within(size), each, word.within(words), j.within(each))
                with build.if_(*[i < size] if size % each else ()):
                    _element(work, i.within(size), build)
        name = "_".join(dict.fromkeys(node.op.name for node in work.nodes[-3:]))
        return build.kernel(f"map_{name}", lanes, -(-size // (lanes * each)))


def _element(work: Computation, position: Sym, build: Builder) -> None:
    # Every load before any store: a result may take over the buffer that another one reads.
    values = {id(node): build.value(node, element(position, node)) for node in work.nodes}
    for node in work.outputs:
        build.store(node, position, values[id(node)])
