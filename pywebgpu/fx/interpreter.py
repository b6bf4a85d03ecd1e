"""Running a graph node by node: an Interpreter for values, a Transformer for another graph."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Any

from pywebgpu.fx import traceback as notes
from pywebgpu.fx._symbolic_trace import Tracer
from pywebgpu.fx.codegen import last_users
from pywebgpu.fx.graph import Graph
from pywebgpu.fx.graph_module import GraphModule
from pywebgpu.fx.node import Node, map_aggregate, map_arg
from pywebgpu.fx.proxy import Proxy
from pywebgpu.nn.module import Module

Arguments = tuple[Any, ...]


class Interpreter:
    """Runs the graph of a module; a subclass says what each kind of node does.

    garbage_collect_values: values are forgotten after their last use; else `env` has all of them after a run.
    graph: another graph than the module's, of its attributes.
    """

    def __init__(self, module: Any, garbage_collect_values: bool = True, graph: Graph | None = None) -> None:
        self.module = module
        self.submodules = dict(module.named_modules())
        self.graph: Graph = module.graph if graph is None else graph
        self.env: dict[Node, Any] = {}
        self.name = "Interpreter"
        self.garbage_collect_values, self.extra_traceback = garbage_collect_values, True
        self.user_to_last_uses = last_users(self.graph.nodes) if garbage_collect_values else {}

    def run(self, *args: Any, initial_env: dict[Node, Any] | None = None, enable_io_processing: bool = True) -> Any:
        """The result for these arguments. initial_env: values that nodes have already."""
        self.env = {} if initial_env is None else initial_env
        values = self.graph.process_inputs(*args) if enable_io_processing else args
        self.args_iter: Iterator[Any] = iter(values)
        for node in self.graph.nodes:
            if node in self.env:
                continue
            try:
                self.env[node] = self.run_node(node)
            except Exception as error:
                if self.extra_traceback:
                    text = f"While executing {node.format_node()}\nOriginal traceback:\n{node.stack_trace}"
                    text = f"{error.args[0]}\n\n{text}" if error.args else text
                    error.args = (text, *error.args[1:])
                    if isinstance(error, KeyError):
                        raise RuntimeError(*error.args) from error
                raise
            for unused in self.user_to_last_uses.get(node, ()):
                del self.env[unused]
            if node.op == "output":
                result = self.env[node]
                return self.graph.process_outputs(result) if enable_io_processing else result
        return None

    def boxed_run(self, args_list: list[Any]) -> Any:
        """As run, of a list of arguments, which is emptied."""
        nodes = [node for node in self.graph.nodes if node.op == "placeholder"]
        if len(nodes) != len(args_list):
            detail = "extra arguments" if len(args_list) > len(nodes) else "missing arguments"
            raise RuntimeError(
                f"Interpreter.boxed_run expected {len(nodes)} arguments for placeholders but received {len(args_list)} "
                f"({detail})"
            )
        values = dict(zip(nodes, args_list, strict=True))
        args_list.clear()
        return self.run(initial_env=values)

    def _set_current_node(self, node: Node) -> AbstractContextManager[None]:
        return notes.set_current_meta(node, f"Interpreter_{type(self).__name__}")

    def run_node(self, n: Node) -> Any:
        """The value of a node: what the method of its op's name gives."""
        with self._set_current_node(n):
            args, kwargs = self.fetch_args_kwargs_from_env(n)
            return getattr(self, n.op)(n.target, args, kwargs)

    def placeholder(self, target: Any, args: Arguments, kwargs: dict[str, Any]) -> Any:
        """The next argument, or its default."""
        if target.startswith("*"):
            return [*self.args_iter]
        for value in self.args_iter:
            return value
        if not args:
            raise RuntimeError(f"Expected positional argument for parameter {target}, but one was not passed in!")
        return args[0]

    def get_attr(self, target: Any, args: Arguments, kwargs: dict[str, Any]) -> Any:
        """The attribute at a path."""
        return self.fetch_attr(target)

    def call_function(self, target: Any, args: Arguments, kwargs: dict[str, Any]) -> Any:
        """What a function gives."""
        return target(*args, **kwargs)

    def call_method(self, target: Any, args: Arguments, kwargs: dict[str, Any]) -> Any:
        """What a method of the first argument gives."""
        owner, *rest = args
        return getattr(owner, target)(*rest, **kwargs)

    def call_module(self, target: Any, args: Arguments, kwargs: dict[str, Any]) -> Any:
        """What the module at a path gives."""
        return self.fetch_attr(target)(*args, **kwargs)

    def output(self, target: Any, args: Arguments, kwargs: dict[str, Any]) -> Any:
        """The result."""
        return args[0]

    def fetch_attr(self, target: str) -> Any:
        """The attribute of the module at a path. Raises RuntimeError where there is none."""
        value, parts = self.module, target.split(".")
        for index, part in enumerate(parts):
            if not hasattr(value, part):
                raise RuntimeError(f"Node referenced nonexistent target {'.'.join(parts[: index + 1])}")
            value = getattr(value, part)
        return value

    def fetch_args_kwargs_from_env(self, n: Node) -> tuple[Arguments, dict[str, Any]]:
        """The values of a node's arguments."""
        return self.map_nodes_to_values(n.args, n), self.map_nodes_to_values(n.kwargs, n)

    def map_nodes_to_values(self, args: Any, n: Node) -> Any:
        """Arguments with values in place of nodes. Raises RuntimeError for a node that has none."""

        def value(node: Node) -> Any:
            if node not in self.env:
                raise RuntimeError(
                    f"Node {n} referenced nonexistent value {node}! Run Graph.lint() to diagnose such issues"
                )
            return self.env[node]

        return map_arg(args, value)


class TransformerTracer(Tracer):
    """The tracer of a Transformer: it adds to a graph, and looks into no module."""

    def __init__(self, graph: Graph, root: Any) -> None:
        super().__init__()
        self.graph, self.root = graph, root
        self.tensor_attrs: dict[Any, str] = {}

    def is_leaf_module(self, m: Module, module_qualified_name: str) -> bool:
        """All are."""
        return True


class Transformer(Interpreter):
    """Makes another module of a graph's: its methods get proxies, and what they do is the new graph."""

    def __init__(self, module: GraphModule) -> None:
        super().__init__(module)
        self.new_graph = Graph()
        self.new_graph.set_codegen(module.graph._codegen)
        self.tracer = TransformerTracer(self.new_graph, module)

    def placeholder(self, target: Any, args: Arguments, kwargs: dict[str, Any]) -> Any:
        """An argument of the new graph."""
        default = args[0] if args else inspect.Signature.empty
        return Proxy(self.new_graph.placeholder(target, default_value=default), self.tracer)

    def get_attr(self, target: Any, args: Arguments, kwargs: dict[str, Any]) -> Any:
        """An attribute in the new graph."""
        return self.tracer.create_proxy("get_attr", target, args, kwargs)

    def call_module(self, target: Any, args: Arguments, kwargs: dict[str, Any]) -> Any:
        """A call in the new graph."""
        module = self.fetch_attr(target)
        return self.tracer.call_module(module, module.forward, args, kwargs)

    def call_function(self, target: Any, args: Arguments, kwargs: dict[str, Any]) -> Any:
        """A call in the new graph."""
        return self.tracer.create_proxy("call_function", target, args, kwargs)

    def transform(self) -> GraphModule:
        """The new module."""
        with notes.preserve_node_meta():
            result = super().run(enable_io_processing=False)
        if result is not None:
            before = self.graph.output_node()
            value = map_aggregate(result, lambda leaf: leaf.node if isinstance(leaf, Proxy) else leaf)
            self.new_graph.output(value, before.type).meta.update(before.meta)
        return GraphModule(self.module, self.new_graph)
