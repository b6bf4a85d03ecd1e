"""Few rows combined by number in place: one kernel, and no order of the numbers is needed.

Each update has a workgroup, which looks at all numbers. It is that of the row's first update which takes the others, in
their order, so sums have the same bits in every run.
"""

from collections.abc import Sequence

from pywebgpu.ir.graph import Op
from pywebgpu.kernels.builder import Builder
from pywebgpu.kernels.combine import combine
from pywebgpu.kernels.ir import LANE, U32, Array, Call, Const, Type, Var, call, select, smaller, template
from pywebgpu.kernels.kernel import Kernel
from pywebgpu.kernels.launch import Launch, Problem
from pywebgpu.kernels.target import Target
from pywebgpu.kernels.template import Computation, Template
from pywebgpu.kernels.templates.scatter_rows import Columns, launches_of, problem_of, store
from pywebgpu.ops import scattering

WORD = 32  # updates that have a bit in one word
UNROLLED = 16  # updates of a row that are loaded side by side
_ATOMIC = Type("atomic<u32>")
_ADD, _READ = template("atomicOr(&{0}, (1u << {1}))"), template("atomicLoad(&{0})")
_CLEAR = template("atomicExchange(&{0}, 0u)")


class ScatterFewTemplate(Template):
    """Problem: updates, columns; layout: the largest vector that divides the columns. Launch: threads, vector."""

    name = "scatter_few"
    repeats = 1

    def claims(self, op: Op, target: Target) -> bool:
        return op is scattering.scatter_few

    def problem(self, work: Computation, build: Builder) -> Problem:
        (node,) = work.nodes
        return problem_of(node.inputs[1].spec.shape[0], node.spec.shape[1])

    def launches(self, problem: Problem, target: Target) -> Sequence[Launch]:
        return launches_of(problem, target)

    def write(self, work: Computation, launch: Launch, build: Builder) -> Kernel:
        (node,) = work.nodes
        base, numbers, source = node.inputs
        rows, updates, mode = node.spec.shape[0], numbers.spec.shape[0], node.attrs["mode"]
        own = Columns(node.spec.shape[1], launch, build)
        words = -(-updates // WORD)
        before = build.workgroup_array("before", _ATOMIC, 1)
        after = build.workgroup_array("after", _ATOMIC, words)  # a bit for each of the same row
        with build.loop("word", LANE, words, launch.threads) as word:  # Not every driver has it zero.
            build.let(Call(_CLEAR, U32, after[word]))
            build.let(Call(_CLEAR, U32, before[0]))
        row = build.let(build.value(numbers, (own.group.within(updates),)), "row")
        places = own.at(build.let(smaller(row, rows - 1), "held").within(rows))
        # What most workgroups need is on its way while they look at the numbers.
        sums = [build.var(build.value(source, at), build.fresh("acc")) for at in own.at(own.group.within(updates))]
        old = [build.value(base, at) for at in places]
        build.barrier()
        with build.loop("k", LANE, updates, launch.threads) as k:
            is_same = build.let(build.value(numbers, (k.within(updates),)).eq(row), "is_same")
            with build.if_(is_same, k < own.group):
                build.let(Call(_ADD, U32, before[0], Const(U32, 0)))
            with build.if_(is_same, k > own.group):
                build.let(Call(_ADD, U32, after[k // WORD], k % WORD))
        build.barrier()
        own.leave(build)
        build.jump("return", Call(_READ, U32, before[0]).ne(0))
        _take(after, words, sums, work, own, build)
        joined = [combine(mode, one, total) for one, total in zip(old, sums, strict=True)]
        store(node, places, joined, build)
        return build.kernel(f"scatter_few_{mode}", launch.threads, updates * own.parts, vector=launch.vector)


def _take(after: Array, words: int, sums: Sequence[Var], work: Computation, own: Columns, build: Builder) -> None:
    """Combines what later updates of the row have with the first one's."""
    (node,) = work.nodes
    source, mode = node.inputs[2], node.attrs["mode"]
    updates = source.spec.shape[0]
    word = build.var(own.group // WORD, "word")
    bits = build.var(Call(_READ, U32, after[word]), "bits")
    goes_on = build.var(Const(U32, 1), "goes_on")
    with build.while_(goes_on.ne(0)):
        found: list[tuple[Var, Var]] = []
        for number in range(UNROLLED):
            with build.while_(bits.eq(0) & (word + 1 < words)):
                build.assign(word, 1, "+=")
                build.assign(bits, Call(_READ, U32, after[word]))
            is_one = build.let(bits.ne(0), f"is{number}")  # Of no bit, the last update is loaded for nothing.
            at = build.let(smaller(word * WORD + call("firstTrailingBit", U32, bits), updates - 1), f"at{number}")
            found.append((is_one, at))
            build.assign(bits, bits & (bits - 1))
        build.assign(goes_on, select(0, Const(U32, 1), found[-1][0]))
        with build.if_(found[0][0]):
            parts = [[build.value(source, place) for place in own.at(at.within(updates))] for _, at in found]
            for (is_one, _), part in zip(found, parts, strict=True):
                for total, value in zip(sums, part, strict=True):
                    build.assign(total, select(total, combine(mode, total, value), is_one))
