"""Rows combined by number, without atomics: each result element looks for the updates that are meant for it.

The updates of one element are taken in their order, so sums have the same bits in every run. Few updates: each element
looks at all of them, a workgroup reading each number once. Many: they are put in order first, and it bisects.
"""

from math import prod

from pywebgpu.graph.ir import Node
from pywebgpu.kernels.emit import Emitter
from pywebgpu.kernels.kernel import Kernel
from pywebgpu.symbolic import ZERO, flatten, unflatten, variable

LANES = 64  # invocations that read the numbers together
_JOIN = {"add": "{0} + {1}", "prod": "{0} * {1}", "set": "{1}"}
_JOIN |= {"add_checked": "p_add_checked({0}, {1})", "prod_checked": "p_mul_checked({0}, {1})"}


def generate(node: Node, emit: Emitter) -> Kernel:
    base, index, source = node.inputs
    size, lanes = prod(node.spec.shape), min(emit.limits.workgroup_size, LANES)
    updates = index.spec.shape[0]
    emit.declarations.append(f"var<workgroup> numbers_of: array<u32, {lanes}>;")
    emit.line(f"let wanted = group * {lanes}u + lane;")
    emit.line(f"let i = min(wanted, {max(size - 1, 0)}u);")
    at = unflatten(variable("i", size), node.spec.shape)
    row = emit.let(f"i / {max(node.spec.shape[1], 1)}u")
    result = emit.fresh("acc")
    emit.line(f"var {result} = {emit.value(base, at)};")
    join = _JOIN.get(node.attrs["mode"], _extreme(node))
    with emit.block(f"for (var first = 0u; first < {updates}u; first += {lanes}u)"):
        emit.line("workgroupBarrier();")
        with emit.block(f"if (first + lane < {updates}u)"):
            emit.line("let own = first + lane;")
            emit.line(f"numbers_of[lane] = u32({emit.value(index, (variable('own', updates),))});")
        emit.line("workgroupBarrier();")
        emit.line(f"let count = min({lanes}u, {updates}u - first);")
        with emit.block("for (var k = 0u; k < count; k++)"), emit.block(f"if (numbers_of[k] == {row})"):
            emit.line("let update = first + k;")
            value = emit.value(source, (variable("update", updates) if updates > 1 else ZERO, at[1]))
            emit.line(f"{result} = {join.format(result, value)};")
    with emit.block(f"if (wanted < {size}u)"):
        emit.store(node, flatten(at, node.spec.shape), result)
    return emit.kernel(f"scatter_{node.attrs['mode']}", lanes, -(-size // lanes))


def generate_sorted(node: Node, emit: Emitter) -> Kernel:
    """Each result element finds the first update of its row by bisection and takes them while the row lasts."""
    base, numbers, order, source = node.inputs
    size, lanes = prod(node.spec.shape), emit.limits.workgroup_size
    updates = numbers.spec.shape[0]
    emit.line(f"let i = group * {lanes}u + lane;")
    emit.line(f"if (i >= {size}u) {{ return; }}")
    at = unflatten(variable("i", size), node.spec.shape)
    row = emit.let(f"i / {max(node.spec.shape[1], 1)}u")
    result = emit.fresh("acc")
    emit.line(f"var {result} = {emit.value(base, at)};")
    emit.line("var low = 0u;")
    emit.line(f"var high = {updates}u;")
    with emit.block("while (low < high)"):
        emit.line("let half = (low + high) / 2u;")
        before = f"{emit.value(numbers, (variable('half', updates),))} < {row}"
        emit.line(f"if ({before}) {{ low = half + 1u; }} else {{ high = half; }}")
    join = _JOIN.get(node.attrs["mode"], _extreme(node))
    with emit.block(f"for (var place = low; place < {updates}u; place++)"):
        emit.line(f"if ({emit.value(numbers, (variable('place', updates),))} != {row}) {{ break; }}")
        emit.line(f"let update = u32({emit.value(order, (variable('place', updates),))});")
        value = emit.value(source, (variable("update", updates), at[1]))
        emit.line(f"{result} = {join.format(result, value)};")
    emit.store(node, flatten(at, node.spec.shape), result)
    return emit.kernel(f"scatter_sorted_{node.attrs['mode']}", lanes, -(-size // lanes))


def _extreme(node: Node) -> str:
    name = node.attrs["mode"]
    return f"p_{name}({{0}}, {{1}})" if node.spec.dtype.is_floating_point else f"{name}({{0}}, {{1}})"
