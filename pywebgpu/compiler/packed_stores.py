"""Which kernels can write values of which several share a word of memory: an invocation has to visit all of a word.

What a kernel cannot write so has a word for each element while it is inside a Program. What leaves the Program, and
what lies inside a pack, is then copied by a kernel that can.
"""

from collections.abc import Iterable

from pywebgpu.ir.graph import Node
from pywebgpu.kernels.template import Computation
from pywebgpu.kernels.templates import Selection


def needs_copy(node: Node, selection: Selection) -> bool:
    """Whether it is computed by kernels of which some cannot write it packed: another one makes a copy, or the same."""
    return node.spec.dtype.format.per_word > 1 and not selection.of(node).packs_own


def stores(work: Computation, node: Node) -> bool:
    """Whether a kernel can write a value as its dtype lies in memory: each element, or whole words of them."""
    each = node.spec.dtype.format.per_word
    return each == 1 or work.template.packs(work, node, each)


def unpacked(groups: Iterable[Computation]) -> set[int]:
    """Ids of the results that have a word for each element though their format packs several into one."""
    return {id(node) for group in groups for node in group.outputs if not stores(group, node)}
