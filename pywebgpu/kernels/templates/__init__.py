"""The registry of templates: a kind of kernel is a module here, and a line in this file."""

from pywebgpu.errors import CompileError
from pywebgpu.ir.graph import Node, Op
from pywebgpu.kernels.target import Target
from pywebgpu.kernels.template import Template
from pywebgpu.kernels.templates import (
    attention,
    matmul,
    pack,
    pointwise,
    rows,
    scan,
    scan_blocks,
    scatter,
    scatter_few,
    scatter_rows,
    sort,
)

ALL: tuple[Template, ...] = (
    pointwise.PointwiseTemplate(),
    rows.RowsTemplate(),
    matmul.MatmulTemplate(),
    scan.ScanTemplate(),
    scan_blocks.ScanBlocksTemplate(),
    scatter.ScatterTemplate(),
    scatter.ScatterSortedTemplate(),
    scatter.FoldSortedTemplate(),
    scatter_rows.ScatterBlocksTemplate(),
    scatter_rows.ScatterCarriedTemplate(),
    scatter_few.ScatterFewTemplate(),
    sort.SortBlockTemplate(),
    sort.SortMergeTemplate(),
    pack.PackTemplate(),
    attention.AttentionTemplate(),
    attention.AttentionBackwardTemplate(),
)


class Claims:
    """Which template computes the nodes of an op on a target."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self._found: dict[Op, Template | None] = {}

    def find(self, op: Op) -> Template | None:
        """None where no kernel exists."""
        if op not in self._found:
            self._found[op] = next((one for one in ALL if one.claims(op, self.target)), None)
        return self._found[op]

    def is_computed(self, node: Node) -> bool:
        """Whether the outputs of a fused op are computed by a kernel for it."""
        found = self.find(node.op)
        return found is not None and found.supports(node, self.target)

    def of(self, node: Node) -> Template:
        found = self.find(node.op)
        if found is None:
            raise CompileError(f"{node.op.name}: no kernel")
        return found


def joined(first: Template, second: Template) -> Template | None:
    """The template of a kernel that has nodes of both, where there is one."""
    if second.name in first.absorbs:
        return first
    return second if first.name in second.absorbs else None
