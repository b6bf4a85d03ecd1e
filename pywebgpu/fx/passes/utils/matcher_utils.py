"""Where a graph occurs inside another."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from pywebgpu.fx.graph import Graph
from pywebgpu.fx.graph_module import GraphModule, _get_attr
from pywebgpu.fx.node import Node
from pywebgpu.tensor.tensor import Tensor


@dataclass
class InternalMatch:
    """One place. nodes_map: by node of the pattern, the node there. anchors: the pattern's last ones."""

    anchors: list[Node]
    nodes_map: dict[Node, Any] = field(default_factory=dict)
    placeholder_nodes: list[Any] = field(default_factory=list)
    returning_nodes: list[Any] = field(default_factory=list)
    name_node_map: dict[str, Node] = field(default_factory=dict)

    def __copy__(self) -> InternalMatch:
        return replace(
            self,
            nodes_map=self.nodes_map.copy(),
            placeholder_nodes=[*self.placeholder_nodes],
            returning_nodes=[*self.returning_nodes],
        )


class SubgraphMatcher:
    """Finds a pattern in graphs, from its results backwards.

    match_output, match_placeholder: ends must be ends there; else a placeholder stands for anything.
    remove_overlapping_matches: of places that share nodes the first counts. ignore_literals: constants may differ.
    """

    def __init__(
        self,
        pattern: Graph,
        match_output: bool = False,
        match_placeholder: bool = False,
        remove_overlapping_matches: bool = True,
        ignore_literals: bool = False,
    ) -> None:
        self.pattern = pattern
        self.match_output, self.match_placeholder = match_output, match_placeholder
        self.remove_overlapping_matches, self.ignore_literals = remove_overlapping_matches, ignore_literals
        if len(pattern.nodes) == 0:
            raise ValueError("SubgraphMatcher cannot be initialized with an empty pattern")
        for node in pattern.nodes:
            assert node.op in ("output", "placeholder") or node.users, (
                "SubgraphMatcher cannot be initialized with an pattern with dead code"
            )
        output = pattern.output_node()
        self.pattern_placeholder_nodes = [node for node in pattern.nodes if node.op == "placeholder"]
        self.pattern_returning_nodes = output.all_input_nodes
        last = [node for node in output.all_input_nodes if len(node.users) == 1]
        self.pattern_anchors = [output] if match_output else last

    def match(self, graph: Graph, node_name_match: str = "") -> list[InternalMatch]:
        """All places in a graph. node_name_match: a part of a name that makes a node equal to any."""
        candidates = [
            (anchor, [node for node in graph.nodes if self._nodes_are_equal(anchor, node, node_name_match)])
            for anchor in self.pattern_anchors
        ]
        candidates = [(anchor, nodes) for anchor, nodes in candidates if nodes]
        matches = []
        if candidates:
            start = InternalMatch(anchors=self.pattern_anchors)
            for match in self._combinations(candidates, start, node_name_match):
                known = match.nodes_map
                if all(node in known for node in self.pattern_placeholder_nodes + self.pattern_returning_nodes):
                    match.placeholder_nodes = [known[node] for node in self.pattern_placeholder_nodes]
                    match.returning_nodes = [known[node] for node in self.pattern_returning_nodes]
                    matches.append(match)
        matches = [match for match in matches if self._is_contained(match.nodes_map) and not _has_way_around(match)]
        return _apart(matches) if self.remove_overlapping_matches else matches

    def _combinations(
        self, candidates: list[tuple[Node, list[Node]]], match: InternalMatch, name: str
    ) -> Iterator[InternalMatch]:
        """The matches of all anchors."""
        if not candidates:
            yield match
            return
        (anchor, nodes), *rest = candidates
        for node in nodes:
            attempt = match.__copy__()
            if self._match_nodes(anchor, node, attempt, name):
                yield from self._combinations(rest, attempt, name)

    def _nodes_are_equal(self, own: Node, node: Node, node_name_match: str = "") -> bool:
        if own.op == "placeholder" and not self.match_placeholder:
            return True
        if node_name_match and node_name_match in node.name:
            return True
        if own.op != node.op:
            return False
        if own.op == "get_attr":
            return self._match_attributes(own, node)
        return own.op in ("placeholder", "output") or own.target == node.target

    def _match_attributes(self, own: Node, node: Node) -> bool:
        values = [_get_attr(item.graph.owning_module, str(item.target)) for item in (own, node)]
        if type(values[0]) is not type(values[1]):
            return False
        if not isinstance(values[0], Tensor):
            raise RuntimeError(f"Unsupported type {values[0]} when matching attributes")
        return True

    def _match_nodes(self, own: Node, node: Node, match: InternalMatch, node_name_match: str = "") -> bool:
        """Whether a node and what it is made of are the pattern's; notes the pairs in the match."""
        if own in match.nodes_map:
            return match.nodes_map[own] is node
        if node in match.nodes_map.values() or not self._nodes_are_equal(own, node, node_name_match):
            return False
        match.nodes_map[own] = node
        if own.op == "placeholder":
            return True
        if len(own.args) != len(node.args) or [*own.kwargs] != [*node.kwargs]:
            return False
        return self._match_arguments((*own.args, *own.kwargs.values()), (*node.args, *node.kwargs.values()), match)

    def _match_arguments(self, own: Any, values: Any, match: InternalMatch) -> bool:
        if len(own) != len(values):
            return False
        for mine, value in zip(own, values, strict=True):
            if isinstance(mine, Node) and isinstance(value, Node):
                equal = self._match_nodes(mine, value, match)
            elif isinstance(mine, list | tuple) and isinstance(value, list | tuple):
                equal = self._match_arguments(mine, value, match)
            else:
                equal = self._match_literals(mine, value, match) or self.ignore_literals
            if not equal:
                return False
        return True

    def _match_literals(self, own: Any, value: Any, match: InternalMatch) -> bool:
        if isinstance(own, Node) and own.op == "placeholder":
            if own in match.nodes_map:
                return bool(match.nodes_map[own] == value)
            match.nodes_map[own] = value
            return True
        if isinstance(own, Node) or isinstance(value, Node):
            return False
        return type(own) is type(value) and own == value

    def _is_contained(self, nodes_map: dict[Node, Any]) -> bool:
        """Whether only results are used outside of a match."""
        inside = {node: own for own, node in nodes_map.items() if own.op != "placeholder"}
        return all(
            own in self.pattern_returning_nodes or all(user in inside for user in node.users)
            for node, own in inside.items()
        )


def _has_way_around(match: InternalMatch) -> bool:
    """Whether something outside is made of the match and is an input of it: it could not be one step."""
    inside = {node for own, node in match.nodes_map.items() if own.op not in ("placeholder", "output")}
    waiting = [user for node in inside for user in node.users if user not in inside]
    seen = set(waiting)
    while waiting:
        for user in waiting.pop().users:
            if user in inside:
                return True
            if user not in seen:
                seen.add(user)
                waiting.append(user)
    return False


def _apart(matches: list[InternalMatch]) -> list[InternalMatch]:
    """Those that share no node with one before."""
    taken: set[Node] = set()
    result = []
    for match in matches:
        nodes = {node for own, node in match.nodes_map.items() if own.op not in ("placeholder", "output")}
        if not nodes & taken:
            taken |= nodes
            result.append(match)
    return result


class SubgraphMatcherWithNameNodeMap(SubgraphMatcher):
    """As SubgraphMatcher, of a pattern that returns a dict of its nodes by name as its last result."""

    def __init__(self, pattern_gm: GraphModule, *args: Any, **options: Any) -> None:
        pattern = pattern_gm.graph
        output = pattern.output_node()
        *results, self.name_to_node = output.args[0]
        output.args = (results[0] if len(results) == 1 else tuple(results),)
        super().__init__(pattern, *args, **options)

    def match(self, graph: Graph, node_name_match: str = "") -> list[InternalMatch]:
        """All places, with the nodes by name."""
        matches = super().match(graph, node_name_match)
        for match in matches:
            match.name_node_map = {name: match.nodes_map[node] for name, node in self.name_to_node.items()}
        return matches
