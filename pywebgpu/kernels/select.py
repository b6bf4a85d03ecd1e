"""Which generator makes the kernel of a group."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from pywebgpu.errors import CompileError
from pywebgpu.ir.graph import Node
from pywebgpu.kernels.builder import Builder
from pywebgpu.kernels.kernel import Kernel, Limits
from pywebgpu.kernels.templates import contraction, pack, pointwise, reduce, scan, scatter, sort
from pywebgpu.ops import contraction as products
from pywebgpu.ops import indexing, packing

_SINGLE = {
    packing.pack: pack.generate,
    indexing.scatter: scatter.generate,
    indexing.scatter_sorted: scatter.generate_sorted,
    indexing.scan: scan.generate,
    indexing.sort_block: sort.generate_block,
    indexing.sort_merge: sort.generate_merge,
}


def generate(
    kind: str,
    nodes: Sequence[Node],
    outputs: Sequence[Node],
    rows: tuple[Any, dict[int, str]],
    stored: set[int],
    numbers: Mapping[int, int],
    alias: Mapping[int, Node],
    limits: Limits,
    unpacked: Collection[int] = (),
) -> tuple[Kernel, list[Node]]:
    """The kernel of a group, and the nodes whose buffers it binds, in order."""
    build = Builder(stored - {id(node) for node in nodes}, numbers, alias, limits, unpacked)
    match kind:
        case "map":
            kernel = pointwise.generate(nodes, outputs, build)
        case "rows":
            kernel = reduce.generate(nodes, outputs, *rows, build)
        case "product":
            anchor = next(node for node in nodes if node.op is products.matmul)
            kernel = contraction.generate(anchor, nodes, outputs, rows[1], build)
        case _:
            if nodes[0].op not in _SINGLE:
                raise CompileError(f"{nodes[0].op.name}: no kernel")
            kernel = _SINGLE[nodes[0].op](nodes[0], build)
    return kernel, [node for node, _ in build.bound.values()]
