"""What lies between the parts of a pack becomes zero; the parts themselves were written where they belong."""

from pywebgpu.ir.graph import Node
from pywebgpu.kernels.builder import Builder
from pywebgpu.kernels.ir import GROUP, LANE, U32, Const, Type, construct
from pywebgpu.kernels.kernel import Kernel
from pywebgpu.ops import packing

LANES = 64  # a gap is shorter than the alignment
PAIR = Type("u32", 2)


def generate(node: Node, build: Builder) -> Kernel:
    """One workgroup a gap."""
    found, buffer = packing.gaps(node), build.buffer(node)
    gaps = build.local_array("gaps", [construct(PAIR, *(Const(U32, number) for number in gap)) for gap in found])
    gap = build.let(gaps[GROUP], "gap")
    with build.loop("i", LANE, gap[1], LANES) as i:
        build.assign(buffer[gap[0] + i], 0)
    return build.kernel("pack_gaps", LANES, len(found))
