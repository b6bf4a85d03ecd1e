"""Groups of pointwise nodes -> one kernel, one invocation an element, several outputs."""

from collections.abc import Sequence
from math import prod

from pywebgpu.graph.ir import Node
from pywebgpu.kernels.emit import Emitter, element
from pywebgpu.kernels.kernel import Kernel
from pywebgpu.symbolic import variable


def generate(nodes: Sequence[Node], outputs: Sequence[Node], emit: Emitter) -> Kernel:
    size = prod(outputs[0].spec.shape)
    lanes = emit.limits.workgroup_size
    emit.line(f"let i = group * {lanes}u + lane;")
    emit.line(f"if (i >= {size}u) {{ return; }}")
    position = variable("i", size)
    # Every load before any store: a result may take over the buffer that another one reads.
    values = {id(node): emit.value(node, element(position, node)) for node in nodes}
    for node in outputs:
        emit.store(node, position, values[id(node)])
    name = "_".join(dict.fromkeys(node.op.name for node in nodes[-3:]))
    return emit.kernel(f"map_{name}", lanes, -(-size // lanes))
