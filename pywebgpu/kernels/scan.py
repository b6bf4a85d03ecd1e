"""Running sums, products and extremes along the last axis: one workgroup a row, each lane a stretch of it.

Every lane folds its stretch, the folds are joined from the left in workgroup memory, and the stretch is walked again.
"""

from math import prod

from pywebgpu.dtypes import Kind
from pywebgpu.graph.ir import Node
from pywebgpu.kernels.emit import Emitter
from pywebgpu.kernels.kernel import Kernel
from pywebgpu.symbolic import flatten, unflatten, variable


def generate(node: Node, emit: Emitter) -> Kernel:
    source, mode = node.inputs[0], node.attrs["mode"]
    columns = node.spec.shape[-1]
    rows = prod(node.spec.shape[:-1])
    lanes = min(emit.limits.workgroup_size, 1 << max(columns - 1, 0).bit_length())
    stretch = -(-columns // lanes)
    kind = node.spec.dtype.wgsl
    join = {"add": "({0} + {1})", "prod": "({0} * {1})"}.get(mode.removesuffix("_checked"))
    # Where all before them fit, the sums of the second walk are true ones: there, and only there, they are checked.
    last = {"add_checked": "p_add_checked({0}, {1})", "prod_checked": "p_mul_checked({0}, {1})"}.get(mode)
    if join is None:
        join = f"p_{mode}({{0}}, {{1}})" if node.spec.dtype.kind is Kind.FLOAT else f"{mode}({{0}}, {{1}})"
    emit.declarations.append(f"var<workgroup> folds: array<{kind}, {lanes}>;")
    coords = (*unflatten(variable("group", rows), node.spec.shape[:-1]), variable("column", columns))
    emit.line(f"let start = lane * {stretch}u;")
    emit.line(f"let end = min(start + {stretch}u, {columns}u);")
    emit.line(f"var fold = {kind}(0);")
    with emit.block("for (var column = start; column < end; column++)"):
        value = emit.value(source, coords)
        emit.line(f"if (column == start) {{ fold = {value}; }} else {{ fold = {join.format('fold', value)}; }}")
    emit.line("folds[lane] = fold;")
    emit.line("workgroupBarrier();")
    with emit.block(f"for (var step = 1u; step < {lanes}u; step <<= 1u)"):
        emit.line("var joined = folds[lane];")
        emit.line(f"if (lane >= step && start < end) {{ joined = {join.format('folds[lane - step]', 'joined')}; }}")
        emit.line("workgroupBarrier();")
        emit.line("folds[lane] = joined;")
        emit.line("workgroupBarrier();")
    emit.line("var total = folds[max(lane, 1u) - 1u];")
    with emit.block("for (var column = start; column < end; column++)"):
        value = emit.value(source, coords)
        emit.line(
            f"if (column == 0u) {{ total = {value}; }} else {{ total = {(last or join).format('total', value)}; }}"
        )
        emit.store(node, flatten(coords, node.spec.shape), "total")
    return emit.kernel(f"scan_{mode}", lanes, rows)
