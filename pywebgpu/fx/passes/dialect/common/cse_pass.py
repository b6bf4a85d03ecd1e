"""Equal calls once: common subexpressions of a graph."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from pywebgpu.fx.graph import Graph
from pywebgpu.fx.graph_module import GraphModule
from pywebgpu.fx.node import Node
from pywebgpu.fx.passes.infra.pass_base import PassBase, PassResult
from pywebgpu.utils import _pytree

# Operators whose equal calls differ: they draw, or make memory that is written afterwards.
DRAWING = (
    "bernoulli", "bernoulli_", "cauchy_", "dropout", "empty", "empty_like", "exponential_", "geometric_",
    "log_normal_", "multinomial", "native_dropout", "normal", "normal_", "poisson", "rand", "rand_like", "randint",
    "randint_like", "randn", "randn_like", "random_", "randperm", "rrelu", "rrelu_", "uniform_",
)  # fmt: skip


def get_CSE_banned_ops() -> set[str]:
    """The names of operators whose equal calls stay."""
    return {*DRAWING}


def _name(target: Any) -> str:
    packet = getattr(target, "overloadpacket", target)
    return str(getattr(packet, "__name__", packet))


class CSEPass(PassBase):
    """Replaces calls that are equal to an earlier one. banned_ops: names or operators whose calls stay."""

    def __init__(self, banned_ops: Collection[Any] | None = None) -> None:
        self.banned_ops = {*(() if banned_ops is None else banned_ops)}
        super().__init__()

    def _stays(self, node: Node) -> bool:
        if node.op != "call_function":
            return True
        own = {node.target, _name(node.target), getattr(node.target, "overloadpacket", node.target)}
        return bool(own & self.banned_ops) or node.is_impure()

    def call(self, graph_module: GraphModule) -> PassResult:
        """A module with a graph of its own."""
        graph, modified = Graph(), False
        copies: dict[Node, Node] = {}
        calls: dict[Any, Node] = {}
        for node in graph_module.graph.nodes:
            if node.op == "output":
                graph.output(_pytree.tree_map(lambda leaf: copies.get(leaf, leaf), node.args[0]))
                continue
            key = None if self._stays(node) else self._key(node, copies)
            equal = None if key is None else calls.get(key)
            modified = modified or equal is not None
            copies[node] = graph.node_copy(node, copies.__getitem__) if equal is None else equal
            if key is not None:
                calls.setdefault(key, copies[node])
        return PassResult(GraphModule(graph_module, graph), modified)

    @staticmethod
    def _key(node: Node, copies: dict[Node, Node]) -> Any:
        """What equal calls share; None of arguments that cannot be compared."""
        leaves, spec = _pytree.tree_flatten((node.args, node.kwargs))
        parts = tuple((type(leaf), copies[leaf] if isinstance(leaf, Node) else leaf) for leaf in leaves)
        key = node.target, parts, repr(spec)
        try:
            hash(key)
        except TypeError:
            return None
        return key
