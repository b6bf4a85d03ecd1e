"""Replacing a pattern in a graph by another."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from pywebgpu.fx._symbolic_trace import symbolic_trace
from pywebgpu.fx.graph import Graph
from pywebgpu.fx.graph_module import GraphModule
from pywebgpu.fx.node import Node
from pywebgpu.fx.passes.utils.matcher_utils import InternalMatch, SubgraphMatcher
from pywebgpu.nn.module import Module

Filter = Callable[[InternalMatch, Graph, Graph], bool]


class Match(NamedTuple):
    """A place of the pattern. anchor: the pattern's last node. nodes_map: by node of the pattern, the node there."""

    anchor: Node
    nodes_map: dict[Node, Node]


@dataclass
class ReplacedPatterns:
    """A place of the pattern, and the nodes that are there now."""

    anchor: Node
    nodes_map: dict[Node, Node]
    replacements: list[Node]


def replace_pattern(gm: GraphModule, pattern: Any, replacement: Any) -> list[Match]:
    """Replaces all places of a pattern in a module's graph that do not overlap, and returns them.

    pattern, replacement: functions or graph modules of equally many arguments.
    """
    return [Match(place.anchor, place.nodes_map) for place in replace_pattern_with_filters(gm, pattern, replacement)]


def replace_pattern_with_filters(
    gm: GraphModule,
    pattern: Any,
    replacement: Any = None,
    match_filters: list[Filter] | None = None,
    ignore_literals: bool = False,
    replacement_callback: Callable[[InternalMatch, Graph, Graph], Graph] | None = None,
    node_name_match: str = "",
) -> list[ReplacedPatterns]:
    """As replace_pattern, where all filters say so. replacement_callback: the replacement for one place."""
    graph, searched = gm.graph, _graph(pattern)
    matcher = SubgraphMatcher(searched, ignore_literals=ignore_literals)
    matches = [
        match
        for match in matcher.match(graph, node_name_match=node_name_match)
        if all(allows(match, graph, searched) for allows in match_filters or ())
    ]
    fixed = None if replacement_callback else _graph(replacement)
    moved: dict[Node, Node] = {}
    places = []
    for match in matches:
        new = replacement_callback(match, graph, searched) if replacement_callback else fixed
        assert new is not None
        places.append(_replace(graph, match, new, moved, matcher.pattern_anchors[0]))
    gm.recompile()
    if isinstance(replacement, Module):
        _replace_attributes(gm, replacement)
    return places


def _graph(pattern: Any) -> Graph:
    if isinstance(pattern, Graph):
        return pattern
    return pattern.graph if isinstance(pattern, GraphModule) else symbolic_trace(pattern).graph


def _replace(
    graph: Graph, match: InternalMatch, replacement: Graph, moved: dict[Node, Node], anchor: Node
) -> ReplacedPatterns:
    """Puts a replacement in one place. moved: by node that was replaced before, the one in its place."""
    arguments = [node for node in replacement.nodes if node.op == "placeholder"]
    assert len(arguments) == len(match.placeholder_nodes), (
        f"Placeholder count mismatch: {len(match.placeholder_nodes)} vs {len(arguments)}"
    )
    for own, node in match.nodes_map.items():
        if isinstance(node, Node) and node in moved:
            match.nodes_map[own] = moved[node]
    inputs = match.placeholder_nodes = [
        moved.get(node, node) if isinstance(node, Node) else node for node in match.placeholder_nodes
    ]
    values: dict[Node, Any] = dict(zip(arguments, inputs, strict=True))
    with graph.inserting_before(_first_reader(graph, match)):
        result = graph.graph_copy(replacement, values)
    results = (result,) if isinstance(result, Node) else tuple(result or ())
    added = [node for node in values.values() if isinstance(node, Node) and node not in inputs]
    assert len(results) == len(match.returning_nodes), (
        f"Returning nodes count mismatch: {len(match.returning_nodes)} vs {len(results)}"
    )
    for node, new in zip(match.returning_nodes, results, strict=True):
        node.replace_all_uses_with(new)
        moved[node] = new
    for own in reversed(matcher_order(match)):
        graph.erase_node(match.nodes_map[own])
    return ReplacedPatterns(anchor=anchor, nodes_map=match.nodes_map, replacements=added)


def matcher_order(match: InternalMatch) -> list[Node]:
    """The pattern's nodes that go with a match, in order."""
    return sorted(own for own in match.nodes_map if own.op not in ("placeholder", "output"))


def _first_reader(graph: Graph, match: InternalMatch) -> Node:
    """In front of which node a replacement has to be."""
    results: list[Node] = match.returning_nodes
    readers = {user for node in results for user in node.users}
    return min(readers) if readers else max(results).next


def _replace_attributes(gm: GraphModule, replacement: Module) -> None:
    """Gives the module what the replacement's nodes name, and takes away what no node names."""
    gm.delete_all_unused_submodules()
    if isinstance(replacement, GraphModule):
        replacement.graph.lint()
    for node in gm.graph.nodes:
        if node.op not in ("call_module", "get_attr") or _value(gm, node.target) is not None:
            continue
        value = _value(replacement, node.target)
        if value is None:
            raise RuntimeError(
                f'Attempted to create a "{node.op}" node during subgraph rewriting with target {node.target}, but the '
                "referenced attribute does not exist in the replacement GraphModule"
            )
        if isinstance(value, Module):
            gm.add_submodule(node.target, copy.deepcopy(value))
        else:
            setattr(gm, node.target, copy.deepcopy(value))
    gm.graph.lint()


def _value(module: Module, path: str) -> Any:
    above, _, name = path.rpartition(".")
    try:
        return getattr(module.get_submodule(above), name, None)
    except AttributeError:
        return None
