"""What lies between the parts of a pack becomes zero; the parts themselves were written where they belong."""

from pywebgpu.ir.graph import Node
from pywebgpu.kernels.builder import Builder
from pywebgpu.kernels.ir import GROUP, LANE, U32, Const, Type, constant, construct, scalar
from pywebgpu.kernels.kernel import Kernel
from pywebgpu.ops import packing

LANES = 64  # a gap is shorter than the alignment
PAIR = Type("u32", 2)


def generate(node: Node, build: Builder) -> Kernel:
    """One workgroup a gap."""
    found = packing.gaps(node)
    gaps = build.local_array("gaps", [construct(PAIR, *(Const(U32, number) for number in gap)) for gap in found])
    gap = build.let(gaps[GROUP], "gap")
    with build.loop("i", LANE, gap[1], LANES) as i:
        at = build.let(gap[0] + i, "at")
        build.store(node, at.within(node.spec.shape[0]), constant(0.0, scalar(node.spec.dtype)))
    return build.kernel("pack_gaps", LANES, len(found))
