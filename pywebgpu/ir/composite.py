"""What a composite op is made of, over nodes of a graph instead of the stand-ins."""

from __future__ import annotations

from pywebgpu.ir import walk
from pywebgpu.ir.graph import Composite, Fused, FusedNode, Node, OutputNode

Made = dict[tuple[Node, tuple[Node, ...]], Node]  # what stands for a node of a composite op, over these inputs


def decomposed(op: Composite, inputs: tuple[Node, ...], expansions: Made) -> Node:
    """The op's sequence as nodes over `inputs`. `expansions` maps a node and its inputs to the copy created for them:
    an op and its gradients then share nodes."""
    if op.sequence is None:
        op.sequence = _sequence(op)
    if not op.sequence:
        return inputs[op.inputs.index(op.output)]
    values = [*inputs]
    for node, sources in op.sequence:
        above = tuple([values[source] for source in sources])
        expanded = expansions.get((node, above))
        if expanded is None:
            expanded = expansions[node, above] = _again(node, above)
        values.append(expanded)
    return values[-1]


def _again(node: Node, inputs: tuple[Node, ...]) -> Node:
    requires = node.requires and any(source.requires for source in inputs)
    if isinstance(node, OutputNode):
        (fused,) = inputs
        assert isinstance(fused, FusedNode)
        return fused.output(node.attrs["index"])
    if isinstance(node, FusedNode):
        assert isinstance(node.op, Fused)
        return FusedNode(node.op, inputs, node.attrs, node.specs, requires)
    return Node(node.op, inputs, node.attrs, node.spec, requires)


def _sequence(op: Composite) -> list[tuple[Node, tuple[int, ...]]]:
    """The nodes of a composite op, inputs before users, and of each the numbers of its inputs among what is there."""
    number = {node: position for position, node in enumerate(op.inputs)}
    sequence = []
    for node in walk.toposort([op.output]):
        if node not in number:
            number[node] = len(number)
            sequence.append((node, tuple([number[source] for source in node.inputs])))
    return sequence
