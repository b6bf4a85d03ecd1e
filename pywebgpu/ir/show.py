"""A graph as text, one line a node: `%3 = mul(%1, %2) : float32[4,3]`."""

from collections.abc import Iterable

from pywebgpu.ir.graph import Custom, Node
from pywebgpu.ir.walk import toposort


def as_text(roots: Iterable[Node]) -> str:
    roots = tuple(roots)
    number: dict[int, int] = {}
    lines = []
    for node_number, node in enumerate(toposort(roots)):
        number[id(node)] = node_number
        name = "leaf" if node.buffer is not None else node.op.name
        args = [] if node.buffer is not None else [f"%{number[id(source)]}" for source in node.inputs]
        if node.buffer is None and not isinstance(node.op, Custom):
            args += [f"{key}={value}" for key, value in node.attrs.items()]
        shape = ",".join(map(str, node.spec.shape))
        lines.append(f"%{node_number} = {name}({', '.join(args)}) : {node.spec.dtype.name}[{shape}]")
    return "\n".join([*lines, "return " + ", ".join(f"%{number[id(root)]}" for root in roots)])
