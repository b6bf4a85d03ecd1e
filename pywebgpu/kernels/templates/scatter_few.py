"""Few rows combined by number in place: one kernel, and no order of the numbers is needed.

Each update has a workgroup, which looks at all numbers. It is that of the row's first update which takes the others, in
their order, so sums have the same bits in every run.
"""

from collections.abc import Sequence

from pywebgpu.kernels.builder import Builder
from pywebgpu.kernels.combine import combine
from pywebgpu.kernels.ir import LANE, U32, Array, Call, Const, Expr, Type, Var, call, select, smaller, template
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
    op = scattering.scatter_few
    repeats = 1

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
        sums = [
            build.var(build.value(source, coords), build.fresh("acc")) for coords in own.at(own.group.within(updates))
        ]
        old = [build.value(base, coords) for coords in places]
        build.barrier()
        with build.loop("k", LANE, updates, launch.threads) as k:
            is_same = build.let(build.value(numbers, (k.within(updates),)).eq(row), "is_same")
            with build.if_(is_same, k < own.group):
                build.let(Call(_ADD, U32, before[0], Const(U32, 0)))
            with build.if_(is_same, k > own.group):
                build.let(Call(_ADD, U32, after[k // WORD], k % WORD))
        build.barrier()
        is_first = build.let(Call(_READ, U32, before[0]).eq(0), "is_first")
        rest = _listed(after, is_first, updates, launch.threads, build)
        build.barrier()
        own.leave(build)
        build.jump("return", ~is_first)
        _take(rest, sums, work, own, build)
        joined = [combine(mode, old_value, total) for old_value, total in zip(old, sums, strict=True)]
        store(node, places, joined, build)
        return build.kernel(f"scatter_few_{mode}", launch.threads, updates * own.parts, vector=launch.vector)


def _listed(after: Array, is_first: Expr, updates: int, threads: int, build: Builder) -> tuple[Array, Array]:
    """The numbers of later updates of the row, in their order, and how many they are."""
    words = -(-updates // WORD)
    rest, count = build.workgroup_array("rest", U32, updates), build.workgroup_array("count", U32, 1)
    with build.if_(is_first), build.loop("of_word", LANE, words, threads) as own:
        place = build.var(Const(U32, 0), "place")
        for word in range(words):
            count_of = call("countOneBits", U32, Call(_READ, U32, after[word]))
            build.assign(place, select(0, count_of, own > word), "+=")
        bits = build.var(Call(_READ, U32, after[own]), "bits")
        with build.while_(bits.ne(0)):
            build.assign(rest[place], own * WORD + call("firstTrailingBit", U32, bits))
            build.assign(bits, bits & (bits - 1))
            build.assign(place, 1, "+=")
        with build.if_(own.eq(words - 1)):
            build.assign(count[0], place)
    return rest, count


def _take(listed: tuple[Array, Array], sums: Sequence[Var], work: Computation, own: Columns, build: Builder) -> None:
    """Combines what later updates of the row have with the first one's."""
    (node,) = work.nodes
    source, mode, (rest, count) = node.inputs[2], node.attrs["mode"], listed
    updates = source.spec.shape[0]
    total = build.let(count[0], "total")
    with build.loop("start", 0, total, UNROLLED) as start:
        parts = []
        for step in range(UNROLLED):  # What lies behind the end is loaded for nothing, and waits with the others.
            update = build.let(smaller(rest[smaller(start + step, total - 1)], updates - 1), f"at{step}")
            parts.append([build.value(source, place) for place in own.at(update.within(updates))])
        for step, part in enumerate(parts):
            for result, value in zip(sums, part, strict=True):
                build.assign(result, select(result, combine(mode, result, value), start + step < total))
