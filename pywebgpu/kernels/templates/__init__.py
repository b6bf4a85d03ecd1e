"""The registry of templates: each kind of kernel is a module in this folder and a line in this file."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from pywebgpu.errors import CompileError
from pywebgpu.ir.graph import Node, Op
from pywebgpu.kernels.target import Target
from pywebgpu.kernels.template import Template
from pywebgpu.kernels.templates import (
    attention,
    attention_parts,
    matmul,
    pack,
    pointwise,
    quantized,
    row_writes,
    rows,
    scan,
    scan_blocks,
    scatter,
    scatter_few,
    scatter_rows,
    sort,
)


@dataclass(frozen=True)
class Entry:
    """A template. op: the name of the only op that it matches: until one is compiled, the template's module does not
    run."""

    make: Callable[[], Template]
    op: str | None = None

    @cached_property
    def template(self) -> Template:
        return self.make()

    def matches(self, op: Op, target: Target) -> bool:
        return self.op in (None, op.name) and self.template.matches(op, target)


ENTRIES: tuple[Entry, ...] = (
    Entry(pointwise.PointwiseTemplate),
    Entry(rows.RowsTemplate),
    Entry(matmul.MatmulTemplate),
    Entry(lambda: scan.ScanTemplate(), "scan"),
    Entry(lambda: scan_blocks.ScanBlocksTemplate(), "scan_blocks"),
    Entry(lambda: scan_blocks.ScanChainTemplate(), "scan_chain"),
    Entry(scatter.ScatterTemplate),
    Entry(scatter.ScatterSortedTemplate),
    Entry(scatter.FoldSortedTemplate),
    Entry(lambda: scatter_rows.ScatterBlocksTemplate(), "scatter_blocks"),
    Entry(lambda: scatter_rows.ScatterCarriedTemplate(), "scatter_carried"),
    Entry(lambda: scatter_few.ScatterFewTemplate(), "scatter_few"),
    Entry(lambda: sort.SortBlockTemplate(), "sort_block"),
    Entry(lambda: sort.SortMergeTemplate(), "sort_merge"),
    Entry(lambda: quantized.QuantizedTemplate(), "quantized_matmul"),
    Entry(lambda: row_writes.RowWritesTemplate(), "write_rows"),
    Entry(pack.PackTemplate),
    Entry(attention.AttentionTemplate),
    Entry(attention.AttentionBackwardTemplate),
    Entry(lambda: attention_parts.AttentionPartsTemplate(), "attention_parts"),
)


def load_all() -> list[Template]:
    """All templates, whose modules have run then."""
    return [entry.template for entry in ENTRIES]


class Selection:
    """Which template computes the nodes of an op on a target."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self._found: dict[Op, Template | None] = {}

    def find(self, op: Op) -> Template | None:
        """None where no kernel exists."""
        if op not in self._found:
            self._found[op] = next((entry.template for entry in ENTRIES if entry.matches(op, self.target)), None)
        return self._found[op]

    def is_computed(self, node: Node) -> bool:
        """Whether the outputs of a fused op are computed by a kernel for it."""
        template = self.find(node.op)
        return template is not None and template.supports(node, self.target)

    def of(self, node: Node) -> Template:
        template = self.find(node.op)
        if template is None:
            raise CompileError(f"{node.op.name}: no kernel")
        return template


def joined(first: Template, second: Template) -> Template | None:
    """The template of a kernel that has nodes of both, where there is one."""
    if second.name in first.absorbs:
        return first
    return second if first.name in second.absorbs else None
