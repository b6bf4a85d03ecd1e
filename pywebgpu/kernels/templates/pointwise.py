"""Groups of pointwise nodes -> one kernel, one invocation an element or a word of elements, several outputs."""

from collections.abc import Sequence
from math import prod

from pywebgpu.ir.graph import Node
from pywebgpu.kernels.builder import Builder, element
from pywebgpu.kernels.ir import GROUP, LANE, smaller
from pywebgpu.kernels.kernel import Kernel
from pywebgpu.symbolic import Sym


def generate(nodes: Sequence[Node], outputs: Sequence[Node], build: Builder) -> Kernel:
    size = prod(outputs[0].spec.shape)
    lanes = build.limits.workgroup_size
    each = build.gather(outputs)
    if each == 1:
        i = build.let(GROUP * lanes + LANE, "i")
        build.jump("return", i >= size)
        _element(nodes, outputs, i.within(size), build)
    else:
        first = build.let((GROUP * lanes + LANE) * each, "first")
        with build.loop("i", first, smaller(first + each, size)) as i:
            _element(nodes, outputs, i.within(size), build)
    name = "_".join(dict.fromkeys(node.op.name for node in nodes[-3:]))
    return build.kernel(f"map_{name}", lanes, -(-size // (lanes * each)))


def _element(nodes: Sequence[Node], outputs: Sequence[Node], position: Sym, build: Builder) -> None:
    # Every load before any store: a result may take over the buffer that another one reads.
    values = {id(node): build.value(node, element(position, node)) for node in nodes}
    for node in outputs:
        build.store(node, position, values[id(node)])
