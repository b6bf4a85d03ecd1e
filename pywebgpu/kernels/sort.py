"""Stable ordering of rows of uint32 keys: blocks by counting, then pairs of runs merged by rank.

Each element finds its place alone: in a block by counting smaller elements, in a merge by its own place plus a binary
search in the other run. So a pass is one dispatch for any size, and equal keys keep their order.
"""

from math import prod

from pywebgpu.graph.ir import Node
from pywebgpu.kernels.emit import Emitter
from pywebgpu.kernels.kernel import Kernel
from pywebgpu.symbolic import Sym, flatten, unflatten, variable

BLOCK = 256  # elements that one workgroup orders by counting


def _row(node: Node, name: str, column: str) -> tuple[Sym, ...]:
    rows, columns = prod(node.spec.shape[:-1]), node.spec.shape[-1]
    return (*unflatten(variable(name, rows), node.spec.shape[:-1]), variable(column, columns))


def generate_block(node: Node, emit: Emitter) -> Kernel:
    keys = node.inputs[0]
    rows, columns = prod(node.spec.shape[:-1]), node.spec.shape[-1]
    lanes = min(BLOCK, emit.limits.workgroup_size)
    blocks = -(-columns // BLOCK)
    emit.declarations.append(f"var<workgroup> keys_of: array<u32, {BLOCK}>;")
    emit.line(f"let row = group / {blocks}u;")
    emit.line(f"let first = group % {blocks}u * {BLOCK}u;")
    emit.line(f"let count = min({BLOCK}u, {columns}u - first);")
    with emit.block(f"for (var k = lane; k < count; k += {lanes}u)"):
        emit.line("let column = first + k;")
        emit.line(f"keys_of[k] = {emit.value(keys, _row(node, 'row', 'column'))};")
    emit.line("workgroupBarrier();")
    with emit.block(f"for (var own = lane; own < count; own += {lanes}u)"):
        emit.line("let key = keys_of[own];")
        emit.line("var rank = first;")
        with emit.block("for (var k = 0u; k < count; k++)"):
            emit.line("rank += select(0u, 1u, keys_of[k] < key || (keys_of[k] == key && k < own));")
        emit.store(node, flatten(_row(node, "row", "rank"), node.spec.shape), "i32(first + own)")
    return emit.kernel("sort_block", lanes, rows * blocks)


def generate_merge(node: Node, emit: Emitter) -> Kernel:
    keys, order = node.inputs
    width: int = node.attrs["width"]
    size, columns = prod(node.spec.shape), node.spec.shape[-1]
    lanes = emit.limits.workgroup_size
    emit.line(f"let i = group * {lanes}u + lane;")
    emit.line(f"if (i >= {size}u) {{ return; }}")
    emit.line(f"let row = i / {columns}u;")
    emit.line(f"let place = i % {columns}u;")
    emit.line(f"let start = place / {2 * width}u * {2 * width}u;")
    emit.line(f"let middle = min(start + {width}u, {columns}u);")
    emit.line(f"let end = min(start + {2 * width}u, {columns}u);")
    emit.line(f"let own = u32({emit.value(order, _row(node, 'row', 'place'))});")
    emit.line(f"let key = {emit.value(keys, _row(node, 'row', 'own'))};")
    emit.line("let left = place < middle;")
    emit.line("var low = select(start, middle, left);")
    emit.line("var high = select(middle, end, left);")
    emit.line("let other = low;")
    with emit.block("while (low < high)"):
        emit.line("let half = (low + high) / 2u;")
        emit.line(f"let there = u32({emit.value(order, _row(node, 'row', 'half'))});")
        rival = emit.value(keys, _row(node, "row", "there"))
        emit.line(f"let before = select({rival} <= key, {rival} < key, left);")
        emit.line("if (before) { low = half + 1u; } else { high = half; }")
    emit.line("let rank = start + (place - select(middle, start, left)) + (low - other);")
    emit.store(node, flatten(_row(node, "row", "rank"), node.spec.shape), "i32(own)")
    return emit.kernel("sort_merge", lanes, -(-size // lanes))
