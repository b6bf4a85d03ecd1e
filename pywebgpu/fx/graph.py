"""Graph: a function as a list of nodes that can be changed."""

from __future__ import annotations

import copy
import inspect
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from pywebgpu.fx import names
from pywebgpu.fx.codegen import IN_PLACE as inplace_methods  # noqa: F401
from pywebgpu.fx.codegen import OPERATORS as magic_methods  # noqa: F401
from pywebgpu.fx.codegen import REFLECTED as reflectable_magic_methods  # noqa: F401
from pywebgpu.fx.codegen import CodeGen as CodeGen
from pywebgpu.fx.codegen import PythonCode as PythonCode
from pywebgpu.fx.codegen import Transform, _PyTreeCodeGen, _PyTreeInfo  # noqa: F401
from pywebgpu.fx.names import Namespace as _Namespace
from pywebgpu.fx.names import is_ours as _is_from_torch  # noqa: F401
from pywebgpu.fx.names import snake_case as _snake_case
from pywebgpu.fx.node import OPS, Argument, Node, Target, map_arg

if TYPE_CHECKING:
    from types import TracebackType


class _InsertPoint:
    """Where new nodes go, at once; in a `with`, until its end."""

    def __init__(self, graph: Graph, insert: Callable[[Node], None]) -> None:
        self.graph = graph
        self.before, graph._insert = graph._insert, insert

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.graph._insert = self.before


class _node_list:
    """The nodes in order, also while they change."""

    def __init__(self, graph: Graph, direction: str = "_next") -> None:
        self.graph, self.direction = graph, direction

    def __len__(self) -> int:
        return self.graph._len

    def __iter__(self) -> Iterator[Any]:
        root = self.graph._root
        node = getattr(root, self.direction)
        while node is not root:
            if not node._erased:
                yield node
            node = getattr(node, self.direction)

    def __reversed__(self) -> Iterator[Any]:
        return iter(_node_list(self.graph, "_prev" if self.direction == "_next" else "_next"))


class Graph:
    """A function as a list of nodes: placeholders, calls, attributes and an output."""

    def __init__(
        self, owning_module: Any = None, tracer_cls: type | None = None, tracer_extras: dict[str, Any] | None = None
    ) -> None:
        self._root = Node(self, "", "root", "", (), {})
        self._insert: Callable[[Node], None] = self._root.prepend
        self._len = 0
        self._are_counted = True
        self._graph_namespace = _Namespace()
        self.owning_module = owning_module
        self._tracer_cls, self._tracer_extras = tracer_cls, tracer_extras
        self._codegen = CodeGen()
        self._co_fields: dict[str, Any] = {}

    @property
    def nodes(self) -> _node_list:
        """The nodes in order; it may change while one goes through it."""
        return _node_list(self)

    def output_node(self) -> Node:
        """The output, which is the last node."""
        node: Node = next(reversed(self.nodes))
        assert node.op == "output", node.op
        return node

    def find_nodes(self, *, op: str, target: Target | None = None, sort: bool = True) -> list[Any]:
        """The nodes of a kind, and of a target if one is given, in order."""
        if op == "call_function":
            assert target is not None, "find_nodes: a call_function needs its target"
        return [node for node in self.nodes if node.op == op and (target is None or node.target == target)]

    def _count(self) -> None:
        """Numbers the nodes, so that their order can be compared."""
        if not self._are_counted:
            for position, node in enumerate(self.nodes):
                node._position = position
            self._are_counted = True

    # New nodes

    def create_node(
        self,
        op: str,
        target: Target,
        args: tuple[Argument, ...] | None = None,
        kwargs: dict[str, Argument] | None = None,
        name: str | None = None,
        type_expr: Any = None,
    ) -> Node:
        """Adds a node where new nodes go. name: a wish, of the target otherwise. type_expr: the type of its value."""
        args, kwargs = args or (), kwargs or {}
        assert isinstance(args, tuple), f"args must be a tuple, got {type(args)}"
        assert isinstance(kwargs, dict), f"kwargs must be a dict, got {type(kwargs)}"
        space = self._graph_namespace
        own_name = space.create_name(self._target_to_str(target) if name is None else name, None)
        node = Node(self, own_name, op, target, args, kwargs, type_expr)
        for hook in getattr(self.owning_module, "_create_node_hooks", None) or ():
            hook(node)
        space.associate_name_with_obj(own_name, node)
        self._insert(node)
        self._len += 1
        return node

    def placeholder(self, name: str, type_expr: Any = None, default_value: Any = inspect.Signature.empty) -> Node:
        """Adds an argument of the function."""
        args = () if default_value is inspect.Signature.empty else (default_value,)
        return self.create_node("placeholder", name, args, type_expr=type_expr)

    def get_attr(self, qualified_name: str, type_expr: Any = None) -> Node:
        """Adds an attribute of the module. Warns where the module has none at this path."""
        if self.owning_module is not None and not _has_value(self.owning_module, qualified_name):
            warnings.warn(
                "Attempted to insert a get_attr Node with no underlying reference in the owning GraphModule! Call "
                "GraphModule.add_submodule to add the necessary submodule, GraphModule.add_parameter to add the "
                "necessary Parameter, or nn.Module.register_buffer to add the necessary buffer",
                stacklevel=2,
            )
        return self.create_node("get_attr", qualified_name, type_expr=type_expr)

    def call_module(
        self,
        module_name: str,
        args: tuple[Argument, ...] | None = None,
        kwargs: dict[str, Argument] | None = None,
        type_expr: Any = None,
    ) -> Node:
        """Adds a call of the module at a path. Raises AttributeError where the owning module has none."""
        if self.owning_module is not None:
            self.owning_module.get_submodule(module_name)
        return self.create_node("call_module", module_name, args, kwargs, type_expr=type_expr)

    def call_method(
        self,
        method_name: str,
        args: tuple[Argument, ...] | None = None,
        kwargs: dict[str, Argument] | None = None,
        type_expr: Any = None,
    ) -> Node:
        """Adds a call of a method of args[0]."""
        return self.create_node("call_method", method_name, args, kwargs, type_expr=type_expr)

    def call_function(
        self,
        the_function: Callable[..., Any],
        args: tuple[Argument, ...] | None = None,
        kwargs: dict[str, Argument] | None = None,
        type_expr: Any = None,
        name: str | None = None,
    ) -> Node:
        """Adds a call of a function."""
        return self.create_node("call_function", the_function, args, kwargs, name, type_expr)

    def output(self, result: Argument, type_expr: Any = None) -> Node:
        """Adds what the function returns."""
        return self.create_node("output", "output", (result,), type_expr=type_expr)

    def node_copy(self, node: Node, arg_transform: Callable[[Node], Argument] = lambda x: x) -> Node:
        """Adds a copy of a node of another graph. arg_transform: what its arguments are here."""
        args, kwargs = map_arg((node.args, node.kwargs), arg_transform)
        copied = self.create_node(node.op, node.target, args, kwargs, node.name, node.type)
        copied.meta = copy.copy(node.meta)
        return copied

    def graph_copy(self, g: Graph, val_map: dict[Node, Node], return_output_node: bool = False) -> Any:
        """Adds copies of the nodes of another graph but its output; returns the output's value here.

        val_map: what nodes of the other are here; takes those that are copied.
        """
        for node in g.nodes:
            if node in val_map:
                continue
            if node.op == "output":
                value = map_arg(node.args[0], lambda own: val_map[own])
                return (value, node) if return_output_node else value
            val_map[node] = self.node_copy(node, lambda own: val_map[own])
        return None

    def __deepcopy__(self, memo: dict[Any, Any] | None = None) -> Graph:
        memo = {} if memo is None else memo
        graph = Graph(tracer_cls=self._tracer_cls)
        result = graph.graph_copy(self, memo, return_output_node=True)
        graph._codegen = copy.deepcopy(self._codegen)
        if result is not None:
            value, output = result
            graph.output(value, output.type).meta = copy.copy(output.meta)
        return graph

    # Where they go

    def inserting_before(self, n: Node | None = None) -> _InsertPoint:
        """New nodes go in front of a node; of all, if none is given. May be used in a `with`, which ends that."""
        if n is None:
            return self.inserting_after(self._root)
        assert n.graph == self, "Node to insert before is not in graph."
        return _InsertPoint(self, n.prepend)

    def inserting_after(self, n: Node | None = None) -> _InsertPoint:
        """As inserting_before, behind a node, or all."""
        if n is None:
            return self.inserting_before(self._root)
        assert n.graph == self, "Node to insert after is not in graph."
        return _InsertPoint(self, n.append)

    # Nodes that go

    def erase_node(self, to_erase: Node) -> None:
        """Takes a node away. Raises RuntimeError where it has users, or is of another graph."""
        if to_erase.users:
            raise RuntimeError(
                f"Tried to erase Node {to_erase} but it still had {len(to_erase.users)} users in the graph: "
                f"{to_erase.users}!"
            )
        if to_erase.graph is not self:
            raise RuntimeError(f"Attempting to remove {to_erase} from wrong graph!")
        if to_erase._erased:
            warnings.warn(f"erase_node({to_erase}) on an already erased node", stacklevel=2)
            return
        for hook in getattr(self.owning_module, "_erase_node_hooks", None) or ():
            hook(to_erase)
        to_erase._remove_from_list()
        to_erase._erased = True  # Who goes through the list may be at it.
        self._len -= 1
        to_erase._set_arguments(*map_arg((to_erase.args, to_erase.kwargs), lambda node: None))

    def eliminate_dead_code(self, is_impure_node: Callable[[Node], bool] | None = None) -> bool:
        """Takes away the nodes without users and effects; returns whether there were some."""
        self.lint()
        has_effect = is_impure_node or Node.is_impure
        before = self._len
        for node in reversed(self.nodes):
            if not node.users and not has_effect(node):
                self.erase_node(node)
        changed = self._len < before
        used = {node.target for node in self.nodes if node.op == "get_attr"}
        for name, child in self.owning_module.named_children() if self.owning_module is not None else ():
            if name in used and isinstance(getattr(child, "graph", None), Graph):
                changed |= child.graph.eliminate_dead_code()
                child.recompile()
        return changed

    def _clear_nodes(self) -> None:
        for node in reversed(self.nodes):
            node.meta.clear()
            self.erase_node(node)

    # Text

    def _target_to_str(self, target: Target | None) -> str:
        name = getattr(target, "__name__", "") or type(target).__name__ if callable(target) else str(target)
        if not callable(target) and name.startswith("__") and name.endswith("__"):
            name = name[2:-2]
        return _snake_case(name)

    def python_code(
        self,
        root_module: str,
        *,
        verbose: bool = False,
        include_stride: bool = False,
        include_device: bool = False,
        colored: bool = False,
        **options: Any,
    ) -> PythonCode:
        """The code. root_module: what the module is called, "self". verbose: with shapes and the program's lines."""
        namespace = _Namespace()
        before = {node: node._repr_fn for node in self.nodes}
        for node in before:
            node._repr_fn = lambda own: namespace.create_name(own.name, own)
        try:
            return self._codegen._gen_python_code(self.nodes, root_module, namespace, verbose=verbose)
        finally:
            for node, text in before.items():
                node._repr_fn = text

    def __str__(self) -> str:
        lines = [node.format_node() or "" for node in self.nodes]
        return "\n    ".join(["graph():", *lines])

    def print_tabular(self) -> None:
        """Prints a table of the nodes."""
        heads = ("opcode", "name", "target", "args", "kwargs")
        rows = [[str(part) for part in (n.op, n.name, n.target, n.args, n.kwargs)] for n in self.nodes]
        widths = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]
        for row in (heads, ["-" * width for width in widths], *rows):
            print("  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip())

    def set_codegen(self, codegen: CodeGen) -> None:
        """Says what makes the code."""
        self._codegen = codegen

    def on_generate_code(self, make_transformer: Callable[[Transform | None], Transform]) -> Any:
        """Changes the lines of code when they are made. make_transformer: (what changed them before) -> what does now.

        May be used in a `with`, which ends that.
        """
        before = self._codegen._body_transformer
        self._codegen._body_transformer = make_transformer(before)

        @contextmanager
        def until_the_end() -> Iterator[None]:
            try:
                yield
            finally:
                self._codegen._body_transformer = before

        return until_the_end()

    def process_inputs(self, *args: Any) -> Any:
        """The values of the placeholders, of the function's arguments."""
        return self._codegen.process_inputs(*args)

    def process_outputs(self, out: Any) -> Any:
        """The function's result, of the output's value."""
        return self._codegen.process_outputs(out)

    # Checks

    def lint(self) -> None:
        """Raises RuntimeError for a graph that is not sound: order, owners, names, targets of the owning module."""
        seen: set[Node] = set()
        seen_names: set[str] = set()
        for node in self.nodes:
            if node.op not in OPS:
                raise RuntimeError(f"Node {node} had unknown opcode {node.op}!")
            if node.graph is not self:
                raise RuntimeError(f"Node '{node}' does not belong to this Graph!")
            for arg in node._input_nodes:
                if arg.graph is not self:
                    raise RuntimeError(
                        f"Argument '{arg}' of Node '{node}' does not belong to this Graph, but was used as an "
                        "argument! If you are copying nodes from another graph, make sure to use ``arg_transform`` on "
                        f"node_copy() to remap values\n{self}"
                    )
                if arg not in seen:
                    raise RuntimeError(
                        f"Argument '{arg}' of Node '{node}' was used before it has been defined! Please check that "
                        f"Nodes in the graph are topologically ordered\n{self}"
                    )
            if node.name in seen_names:
                raise RuntimeError(f"Node redefined name {node.name}!")
            seen.add(node)
            seen_names.add(node.name)
        if self.owning_module is not None:
            for node in self.nodes:
                _check_target(node, self.owning_module)


def _check_target(node: Node, module: Any) -> None:
    target: Any = node.target
    if node.op == "call_function":
        names.check_callable(target, lambda: f"Node {node} target {target}")
    elif not isinstance(target, str):
        raise ValueError(f"Node {node} target {target} has type {names.type_text(type(target))} but a str is expected")
    if node.op not in ("get_attr", "call_module"):
        return
    parts = target.split(".")
    value = module
    for index, part in enumerate(parts):
        value, path = getattr(value, part, None), ".".join(parts[:index])
        if value is None:
            raise RuntimeError(f"Node {node} target {target} references nonexistent attribute {part} of {path}")
        if node.op == "call_module" and not isinstance(value, names.torch().nn.Module):
            raise RuntimeError(f"Node {node} target {target} {part} of {path} does not reference an nn.Module")


def _has_value(module: Any, path: str) -> bool:
    """Whether a module has a module, parameter or buffer at a path."""
    above, _, name = path.rpartition(".")
    try:
        holder = module.get_submodule(above)
    except AttributeError:
        warnings.warn(f"Failed to fetch module {above}!", stacklevel=3)
        return False
    nn = names.torch().nn
    value = getattr(holder, name, None)
    return isinstance(value, nn.Module | nn.Parameter) or name in holder._buffers
