"""What a scatter of many rows into a large value becomes on devices that run WGSL: a few ops that touch only some rows.

The numbers are put in order, so updates of one row stand together, a run. Runs are added block by block of the sorted
updates; what a block has of a run that goes on in another is carried, and added last. Both write over their first
input: rows that no number names keep what they have (compiler/suballocation.py sees to it). Of few updates each looks
for itself whether it is the first of its row, in one kernel.
"""

from __future__ import annotations

from typing import NoReturn

from pywebgpu.errors import CompileError
from pywebgpu.ir.graph import WHICH, Fused, Node, Spec, Structural

BLOCK = 8  # sorted updates that one workgroup adds
FEW = 1024  # updates, at most, of which one workgroup each looks for those of its row


def _specs(base: Spec, numbers: Spec, order: Spec, source: Spec, mode: str) -> tuple[Spec, Spec]:
    blocks = -(-numbers.shape[0] // BLOCK)
    return base, Spec((2 * blocks, base.shape[1]), base.dtype)


def _unmade(*inputs: Node, **attrs: object) -> NoReturn:
    raise CompileError("scatter_blocks: made by a pass, where a kernel exists")


scatter_blocks: Fused = Fused(
    "scatter_blocks",  # base with the runs that lie in one block; of each block what runs in from the left, and out
    infer=_specs,
    fallback=_unmade,
)

scatter_carried: Structural = Structural(
    "scatter_carried",  # base with the runs that several blocks have parts of
    infer=lambda base, carries, numbers, order, mode: base,
    reference=_unmade,
    vjp=(None, None, None, None),
)

scatter_few: Structural = Structural(
    "scatter_few",  # base with few updates, whatever their order
    infer=lambda base, numbers, source, mode: base,
    reference=_unmade,
    vjp=(None, None, None),
)

OVERWRITING = frozenset({"scatter_blocks", "scatter_carried", "scatter_few", "write_rows"})  # names of ops


def overwrites(node: Node) -> bool:
    """Whether a value is made by writing some elements of the first input, in that one's buffer."""
    return node.buffer is None and node.op.name in OVERWRITING and not node.attrs.get(WHICH)
