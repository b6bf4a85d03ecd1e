"""What lies between the parts of a pack becomes zero; the parts themselves were written where they belong.

A part of a vector lies in that, and takes no kernel.
"""

from collections.abc import Sequence

from pywebgpu.ir.graph import Op
from pywebgpu.kernels.builder import Builder
from pywebgpu.kernels.ir import GROUP, LANE, U32, Const, Type, construct
from pywebgpu.kernels.kernel import Kernel
from pywebgpu.kernels.launch import Launch, Problem
from pywebgpu.kernels.target import Target
from pywebgpu.kernels.template import Computation, Template
from pywebgpu.ops import packing

LANES = 64  # a gap is shorter than the alignment
PAIR = Type("u32", 2)


class PackTemplate(Template):
    """Problem: the number of gaps. Launch: threads of a workgroup, which fills one."""

    name = "pack"
    packs_own = True  # Its parts are written by others.

    def matches(self, op: Op, target: Target) -> bool:
        return op in (packing.pack, packing.part)

    def problem(self, work: Computation, build: Builder) -> Problem:
        return Problem((len(packing.gaps(work.nodes[0])),))

    def launches(self, problem: Problem, target: Target) -> Sequence[Launch]:
        return [Launch(threads=LANES)]

    def write(self, work: Computation, launch: Launch, build: Builder) -> Kernel:
        (node,), lanes = work.nodes, launch.threads
        ranges, buffer = packing.gaps(node), build.buffer(node)
        gaps = build.local_array("gaps", [construct(PAIR, *(Const(U32, number) for number in gap)) for gap in ranges])
        gap = build.let(gaps[GROUP], "gap")
        with build.loop("i", LANE, gap[1], lanes) as i:
            build.assign(buffer[gap[0] + i], 0)
        return build.kernel("pack_gaps", lanes, len(ranges))
