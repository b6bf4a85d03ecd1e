"""What lies between the parts of a pack becomes zero; the parts themselves were written where they belong."""

from pywebgpu.graph.ir import Node
from pywebgpu.kernels.emit import Emitter, literal
from pywebgpu.kernels.kernel import Kernel
from pywebgpu.ops import packing
from pywebgpu.symbolic import variable

LANES = 64  # a gap is shorter than the alignment


def generate(node: Node, emit: Emitter) -> Kernel:
    """One workgroup a gap."""
    found = packing.gaps(node)
    table = ", ".join(f"vec2u({start}u, {length}u)" for start, length in found)
    emit.declarations.append(f"const GAPS = array<vec2u, {len(found)}>({table});")
    emit.line("var gaps = GAPS;")
    emit.line("let gap = gaps[group];")
    with emit.block(f"for (var i = lane; i < gap.y; i += {LANES}u)"):
        emit.line("let at = gap.x + i;")
        emit.store(node, variable("at", node.spec.shape[0]), literal(0.0, node.spec.dtype))
    return emit.kernel("pack_gaps", LANES, len(found))
