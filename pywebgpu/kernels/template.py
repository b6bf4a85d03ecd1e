"""What a kind of kernel is to the compiler: which ops it computes, what joins them in one kernel, how it is written.

A template is a module of `templates/` and a line in its registry. The compiler asks it, and knows no kind of kernel by
name: what is
computed where it is used, fusion, results in place and the text of kernels all come from here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from pywebgpu.ir.graph import WHICH, Fused, Node, Op
from pywebgpu.kernels.access import Edges
from pywebgpu.kernels.builder import Builder
from pywebgpu.kernels.iteration_space import IterationSpace
from pywebgpu.kernels.kernel import Kernel
from pywebgpu.kernels.launch import Launch, Problem
from pywebgpu.kernels.target import Target
from pywebgpu.support.symbolic import Sym

REPEAT_COST = 48  # pointwise instructions that are repeated in each reader rather than stored between kernels
NEVER = -1


@dataclass(frozen=True, slots=True)
class Domain:
    """Where the nodes of a kernel have their elements in what it iterates over.

    levels: by id of a node, of which part of that it has one for each point; the words are the template's.
    space: how the rows lie, where rows are folded.
    """

    levels: Mapping[int, str] = field(default_factory=dict)
    space: IterationSpace | None = None


@dataclass(eq=False)
class Computation:
    """What one kernel computes: its nodes, inputs before users, of which `outputs` are stored."""

    template: Template
    nodes: list[Node]
    domain: Domain = field(default_factory=Domain)
    outputs: list[Node] = field(default_factory=list)


class Template:
    """A kind of kernel. What stands here is one that computes a single node and takes in nothing.

    name: as tunings know it. op: what it computes, where that is one op.
    absorbs: names of templates whose nodes it can compute as well, before its own (on load) or after (on store).
    siblings: names of those whose nodes it can compute as well where they read the same values.
    repeats: how many instructions of a pointwise operand it rather repeats at each read than has stored before.
    has_prologue: what only it reads is computed in its kernel, where it need not be stored.
    packs_own: `packs` is true of the nodes that it matches itself.
    effort: how long drivers take for its kernels, beside others: those that take longest are compiled first.
    rereads: it reads an element many times, so that a half is better read from memory than made on load.
    """

    name: str
    op: Op
    absorbs: frozenset[str] = frozenset()
    siblings: frozenset[str] = frozenset()
    repeats: int = NEVER
    has_prologue: bool = False
    packs_own: bool = False
    effort: int = 0
    rereads: bool = False

    def matches(self, op: Op, target: Target) -> bool:
        """Whether nodes of an op are computed by this template on a target. The first in the registry has it."""
        return op is self.op

    def supports(self, node: Node, target: Target) -> bool:
        """Whether it computes this node of a fused op that it matches: its shapes. Else the fallback is computed."""
        return True

    # What joins nodes in one kernel

    def start(self, node: Node) -> Domain:
        """The domain of a node that it matches, alone."""
        return Domain()

    def joined(self, nodes: Sequence[Node], edges: Edges, parts: tuple[Domain, Domain]) -> Domain | None:
        """The domain of nodes, joined of two computations; None where they are no one kernel.

        They are one where every value that passes inside is read at the element at which it was computed.
        """
        return None

    def part(self, nodes: Sequence[Node], domain: Domain) -> Domain:
        """The domain of some nodes of a computation that binds too much."""
        return Domain({id(node): domain.levels[id(node)] for node in nodes if domain.levels})

    def is_whole(self, work: Computation) -> bool:
        """Whether the part of a computation that was cut still is one kernel."""
        return True

    def is_worthwhile(self, work: Computation, escapes: Callable[[Node], bool], target: Target) -> bool:
        """Whether a computation that could be one kernel should be. escapes: whether a node would be stored."""
        return True

    def is_small(self, work: Computation, escapes: Callable[[Node], bool], target: Target) -> bool:
        """Whether its kernel leaves much of a device idle: others of its space join it that have nothing in common."""
        return False

    def packs(self, work: Computation, node: Node, each: int) -> bool:
        """Whether an invocation visits all elements of a word of a result, of which `each` share one in memory."""
        return self.packs_own

    # Results in place

    def written_at(self, work: Computation, result: Node, escapes: Callable[[Node], bool]) -> Sym | None:
        """The element of `result` that an invocation writes; None where others may read it of its old buffer later."""
        return None

    def reads_on_level(self, work: Computation, node: Node, result: Node) -> bool:
        """Whether a node reads its operands element by element, on the level on which `result` is written."""
        return False

    # The kernel

    def problem(self, work: Computation, build: Builder) -> Problem:
        """What its launch depends on: see `launch.choose`."""
        raise NotImplementedError

    def launches(self, problem: Problem, target: Target) -> Sequence[Launch]:
        """Every launch that the target can run, the one first that is taken where no tuning knows better."""
        raise NotImplementedError

    def write(self, work: Computation, launch: Launch, build: Builder) -> Kernel:
        """The kernel. Whatever the launch, the values are the same but for the order of sums."""
        raise NotImplementedError


class FusedTemplate(Template):
    """One that computes all values of a fused op, `op`, and nothing else. What they read may be computed on load."""

    op: Fused
    repeats = REPEAT_COST

    def joined(self, nodes: Sequence[Node], edges: Edges, parts: tuple[Domain, Domain]) -> Domain | None:
        """The values of one call: they are nodes that read the same, each with its number (see passes/expand.py)."""
        return Domain() if len({_call(node) for node in nodes}) == 1 else None


def _call(node: Node) -> tuple[object, ...]:
    attrs = tuple([(name, value) for name, value in node.attrs.items() if name != WHICH])
    return (node.op, *map(id, node.inputs), attrs)
