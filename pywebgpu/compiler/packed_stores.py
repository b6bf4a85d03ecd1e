"""Which kernels can write values of which several share a word of memory: an invocation has to visit all of a word.

What a kernel cannot write so has a word for each element while it is inside a Program. What leaves the Program, and
what lies inside a pack, is then copied by a kernel that can.
"""

from collections.abc import Iterable

from pywebgpu.compiler.fusion_group import FULL, LEFT, RIGHT, FusionGroup
from pywebgpu.compiler.inlining import kind_of
from pywebgpu.compiler.iteration_space import IterationSpace
from pywebgpu.ir.graph import Node
from pywebgpu.ops import contraction, packing
from pywebgpu.symbolic import variable


def is_packed(node: Node) -> bool:
    return node.spec.dtype.format.per_word > 1


def needs_copy(node: Node) -> bool:
    """Whether no kernel may be able to write it packed: another one, or the same after it, makes a copy."""
    return is_packed(node) and kind_of(node) != "map" and node.op is not packing.pack


def stores(group: FusionGroup, node: Node) -> bool:
    """Whether a group's kernel can write a value as its dtype lies in memory: each element, or whole words of them."""
    each = node.spec.dtype.format.per_word
    if each == 1:
        return True
    match group.kind:
        case "map":
            return True
        case "rows":
            assert group.space is not None
            return group.levels[id(node)] == FULL and group.space.columns % each == 0 and _lie_along(group.space)
        case "product":
            _, m, n = next(node for node in group.nodes if node.op is contraction.matmul).spec.shape
            size = {FULL: n, LEFT: m, RIGHT: n}[group.levels[id(node)]]
            return size % each == 0
    return node.op is packing.pack  # Its parts are written by others.


def _lie_along(space: IterationSpace) -> bool:
    """Whether neighbours in memory are neighbours in a row."""
    row, column = variable("row", space.rows), variable("column", space.columns)
    return space.full() == row * space.columns + column


def unpacked(groups: Iterable[FusionGroup]) -> set[int]:
    """Ids of the results that have a word for each element though their format packs several into one."""
    return {id(node) for group in groups for node in group.outputs if not stores(group, node)}
