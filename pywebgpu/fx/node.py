"""Node: one operation of a Graph, with its arguments and its users."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from pywebgpu.fx import names
from pywebgpu.fx.immutable_collections import immutable_dict, immutable_list

if TYPE_CHECKING:
    from pywebgpu.fx.graph import Graph

Argument = Any  # a Node, a plain value, or a container of these
Target = Callable[..., Any] | str
OPS = ("placeholder", "call_method", "call_module", "call_function", "get_attr", "output")
base_types = (str, int, float, bool, complex)  # with dtypes, devices and their like: see constant_types
_side_effectful_functions: set[Any] = {operator.setitem}
# Functions that draw: they change the state of a generator.
RANDOM = frozenset((
    "bernoulli", "dropout", "dropout2d", "dropout3d", "feature_dropout", "multinomial", "normal", "poisson", "rand",
    "rand_like", "randint", "randint_like", "randn", "randn_like", "randperm", "rrelu",
))  # fmt: skip
PURE_DROPOUTS = frozenset(name for name in RANDOM if "dropout" in name or name == "rrelu")


def constant_types() -> tuple[type, ...]:
    """The types of values that nodes have as they are."""
    torch = names.torch()
    return (*base_types, torch.dtype, torch.Tensor, torch.device, type(None), type(...))


def has_side_effect(fn: Any) -> Any:
    """Says that calls of a function stay in a graph though nobody uses their results. May decorate it."""
    _side_effectful_functions.add(fn)
    return fn


def map_aggregate(a: Argument, fn: Callable[[Any], Any]) -> Any:
    """The same containers with fn(leaf) for each leaf; lists and dicts become immutable, keys of dicts stay."""
    if isinstance(a, tuple):
        items = [map_aggregate(item, fn) for item in a]
        return type(a)(*items) if hasattr(a, "_fields") else tuple(items)
    if isinstance(a, list):
        return immutable_list(map_aggregate(item, fn) for item in a)
    if isinstance(a, dict):
        return immutable_dict((key, map_aggregate(item, fn)) for key, item in a.items())
    if isinstance(a, slice):
        return slice(*(map_aggregate(item, fn) for item in (a.start, a.stop, a.step)))
    return fn(a)


def map_arg(a: Argument, fn: Callable[[Node], Any]) -> Any:
    """The same containers with fn(node) for each node."""
    assert callable(fn), "torch.fx.map_arg(a, fn): fn must be a callable"
    return map_aggregate(a, lambda leaf: fn(leaf) if isinstance(leaf, Node) else leaf)


def _format_arg(arg: Any, max_list_len: float = float("inf")) -> str:
    """An argument as listings of graphs have it."""
    if hasattr(arg, "_custom_fx_repr_fn"):
        return str(arg._custom_fx_repr_fn())
    if isinstance(arg, list | tuple):
        items = ", ".join(_format_arg(item) for index, item in enumerate(arg) if index < max_list_len)
        more = f", ...[total_len={len(arg)}]" if len(arg) > max_list_len else ""
        if isinstance(arg, list):
            return f"[{items}{more}]"
        return f"({items}{',' if len(arg) == 1 else ''}{more})"
    if isinstance(arg, dict):
        return "{" + ", ".join(f"{key}: {_format_arg(value)}" for key, value in arg.items()) + "}"
    return f"%{arg}" if isinstance(arg, Node) else str(arg)


class Node:
    """One operation of a Graph: its op says what `target`, `args` and `kwargs` mean.

    placeholder: an argument of the function, named target; args has its default, if any. get_attr: the attribute at the
    path target of the module. call_function: target(*args, **kwargs). call_module: the module at the path target.
    call_method: the method target of args[0]. output: args[0] is what the function returns.
    """

    def __init__(
        self,
        graph: Graph,
        name: str,
        op: str,
        target: Target,
        args: tuple[Argument, ...],
        kwargs: dict[str, Argument],
        return_type: Any = None,
    ) -> None:
        def describe() -> str:
            return f"Node [graph = {graph}, name = '{name}'] target {target}"

        if op == "call_function":
            names.check_callable(target, describe)
        else:
            assert op in (*OPS, "root"), op
            if not isinstance(target, str):
                raise ValueError(f"{describe()} has type {names.type_text(type(target))} but a str is expected")
        self.graph, self.name, self.op, self.target = graph, name, op, target
        self.type = return_type
        self.meta: dict[str, Any] = {}
        self.users: dict[Node, None] = {}
        self._input_nodes: dict[Node, None] = {}
        self._prev = self._next = self
        self._erased = False
        self._position = 0
        self._repr_fn: Callable[[Node], str] | None = None
        self._args: tuple[Argument, ...] = ()
        self._kwargs: dict[str, Argument] = immutable_dict()
        self._set_arguments(args, kwargs)

    # Its place among the others

    @property
    def next(self) -> Node:
        """The node behind it; behind the last one, the graph's root."""
        return self._next

    @property
    def prev(self) -> Node:
        """The node before it; before the first one, the graph's root."""
        return self._prev

    def prepend(self, x: Node) -> None:
        """Moves x in front of this node."""
        assert self.graph == x.graph, "Attempting to move a Node into a different Graph"
        if x is self:
            return
        x._remove_from_list()
        before = self._prev
        before._next, x._prev = x, before
        x._next, self._prev = self, x
        self.graph._are_counted = False

    def append(self, x: Node) -> None:
        """Moves x behind this node."""
        if x is not self:
            self._next.prepend(x)

    def _remove_from_list(self) -> None:
        before, after = self._prev, self._next
        before._next, after._prev = after, before

    def __lt__(self, other: Node) -> bool:
        self.graph._count()
        return self._position < other._position

    def __gt__(self, other: Node) -> bool:
        return other < self

    def __le__(self, other: Node) -> bool:
        return self is other or self < other

    def __ge__(self, other: Node) -> bool:
        return self is other or other < self

    # Its arguments

    @property
    def args(self) -> tuple[Argument, ...]:
        """The positional arguments. Assigning to it keeps the users of nodes."""
        return self._args

    @args.setter
    def args(self, value: tuple[Argument, ...]) -> None:
        self._set_arguments(value, self._kwargs)

    @property
    def kwargs(self) -> dict[str, Argument]:
        """The arguments with names. Assigning to it keeps the users of nodes."""
        return self._kwargs

    @kwargs.setter
    def kwargs(self, value: dict[str, Argument]) -> None:
        self._set_arguments(self._args, value)

    def _set_arguments(self, args: tuple[Argument, ...], kwargs: dict[str, Argument]) -> None:
        for node in self._input_nodes:
            node.users.pop(self, None)
        self._input_nodes = {}

        def note(node: Node) -> Node:
            self._input_nodes.setdefault(node)
            node.users.setdefault(self)
            return node

        self._args, self._kwargs = map_arg(args, note), map_arg(kwargs, note)

    _update_args_kwargs = _set_arguments

    @property
    def all_input_nodes(self) -> list[Node]:
        """The nodes among its arguments, each once."""
        return [*self._input_nodes]

    def update_arg(self, idx: int, arg: Argument) -> None:
        """Replaces a positional argument."""
        args = [*self.args]
        args[idx] = arg
        self.args = tuple(args)

    def insert_arg(self, idx: int, arg: Argument) -> None:
        """Puts a positional argument in front of another."""
        assert 0 <= idx <= len(self.args), "insert_args index must be between 0 and len(self.args)"
        self.args = (*self.args[:idx], arg, *self.args[idx:])

    def update_kwarg(self, key: str, arg: Argument) -> None:
        """Replaces an argument with a name, or adds it."""
        self.kwargs = {**self.kwargs, key: arg}

    def replace_all_uses_with(
        self,
        replace_with: Node,
        delete_user_cb: Callable[[Node], bool] | None = None,
        *,
        propagate_meta: bool = False,
    ) -> list[Node]:
        """Puts another node in place of this one in its users, and returns them. delete_user_cb: which of them."""
        if propagate_meta:
            assert not replace_with.meta, "propagate_meta: replace_with already has .meta keys"
            replace_with.meta.update(self.meta)
        users = [user for user in self.users if delete_user_cb is None or delete_user_cb(user)]
        for user in users:
            user.replace_input_with(self, replace_with)
        return users

    def replace_input_with(self, old_input: Node, new_input: Node) -> None:
        """Puts another node in place of one of its arguments."""
        for hook in getattr(self.graph.owning_module, "_replace_hooks", None) or ():
            hook(old=old_input, new=new_input.name, user=self)
        args, kwargs = map_arg((self.args, self.kwargs), lambda node: new_input if node is old_input else node)
        self._set_arguments(args, kwargs)

    # What it is

    @property
    def stack_trace(self) -> str | None:
        """Where the call was made, if the tracer notes it."""
        return self.meta.get("stack_trace")

    @stack_trace.setter
    def stack_trace(self, trace: str | None) -> None:
        self.meta["stack_trace"] = trace

    def __repr__(self) -> str:
        return self._repr_fn(self) if self._repr_fn else self.name

    @staticmethod
    def _pretty_print_target(target: Any) -> str:
        if isinstance(target, str):
            return target
        name = getattr(target, "__name__", None)
        homes = {"builtins": "builtins", "_operator": "operator"}
        home = homes.get(getattr(target, "__module__", ""))
        return names.qualified_name(target) if name is None or home is None else f"{home}.{name}"

    def format_node(
        self,
        placeholder_names: list[str] | None = None,
        maybe_return_typename: list[str] | None = None,
        *,
        include_tensor_metadata: bool = False,
    ) -> str | None:
        """A line about it. placeholder_names: a list that takes that of a placeholder, which then is not returned."""
        kind = f"{names.type_text(self.type)} " if self.type is not None else ""
        head = f"%{self.name} : {kind}[num_users={len(self.users)}] = {self.op}"
        match self.op:
            case "placeholder":
                if placeholder_names:
                    placeholder_names.append(f"{self.target}{f': {kind.strip()}' if kind else ''}")
                    return None
                return f"{head}[target={self.target}]{f'(default={self.args[0]})' if self.args else ''}"
            case "get_attr":
                return f"{head}[target={self._pretty_print_target(self.target)}]"
            case "output":
                if kind and maybe_return_typename:
                    maybe_return_typename[0] = f" -> {kind.strip()}"
                return f"return {self.args[0]}"
        value = self.meta.get("val", self.meta.get("example_value"))
        if include_tensor_metadata and isinstance(value, names.torch().Tensor):
            layout = f"{_list(value.shape)}{_list(value.stride())}{value.device}"
            head = f'%{self.name} : Tensor "{value.dtype}{layout}"[num_users={len(self.users)}] = {self.op}'
        arguments = f"args = {_format_arg(self.args)}, kwargs = {_format_arg(self.kwargs)}"
        return f"{head}[target={self._pretty_print_target(self.target)}]({arguments})"

    def is_impure(self, impure_random: bool = True) -> bool:
        """Whether it stays in a graph without users: it is an end of the graph, or its call has an effect."""
        if self.op in ("placeholder", "output"):
            return True
        if self.op == "call_module":
            assert self.graph.owning_module is not None, "self.graph.owning_module not set for purity check"
            return bool(getattr(self.graph.owning_module.get_submodule(self.target), "_is_impure", False))
        if self.op != "call_function":
            return False
        target: Any = self.target
        if target in _side_effectful_functions or getattr(target, "has_effect", False):
            return True
        name = getattr(target, "__name__", "")
        if name == "_assert":
            return names.is_ours(target)
        return name in RANDOM - PURE_DROPOUTS and impure_random and names.is_ours(target)

    def normalized_arguments(
        self,
        root: Any,
        arg_types: tuple[Any, ...] | None = None,
        kwarg_types: dict[str, Any] | None = None,
        normalize_to_only_use_kwargs: bool = False,
    ) -> Any:
        """The arguments with defaults, by the target's signature; None where that cannot say it."""
        schemas = names.import_module("pywebgpu.fx.operator_schemas")
        options = {"normalize_to_only_use_kwargs": normalize_to_only_use_kwargs}
        if self.op == "call_function":
            return schemas.normalize_function(self.target, self.args, self.kwargs, arg_types, kwarg_types, **options)
        if self.op == "call_module":
            return schemas.normalize_module(root, self.target, self.args, self.kwargs, **options)
        return None

    def _rename(self, candidate: str) -> None:
        if candidate != self.name:
            space = self.graph._graph_namespace
            name = space.create_name(candidate, None)
            for user in self.users:
                for hook in getattr(self.graph.owning_module, "_replace_hooks", None) or ():
                    hook(old=self, new=name, user=user)
            self.name = name
            space._rename_object(self, name)


def _list(numbers: Iterable[Any]) -> str:
    return f"[{', '.join(map(str, numbers))}]"


def _get_qualified_name(func: Callable[..., Any]) -> str:
    return names.qualified_name(func)


def _type_repr(obj: object) -> str:
    return names.type_text(obj)


def _is_tensor_method(function: Any) -> bool:
    """Whether it is a method of Tensor, or `__get__` of one of its properties."""
    name = getattr(function, "__name__", "")
    return name == "__get__" or getattr(names.torch().Tensor, name, None) is function
