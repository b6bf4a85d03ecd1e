"""Proxies: values of a function that is traced, and what makes nodes of what happens to them."""

from __future__ import annotations

import copy
import dis
import enum
import operator
import sys
import traceback
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from types import FrameType
from typing import Any

from pywebgpu.errors import PACKAGE
from pywebgpu.fx import names
from pywebgpu.fx.codegen import OPERATORS, REFLECTED
from pywebgpu.fx.graph import Graph
from pywebgpu.fx.node import Argument, Node, Target, _is_tensor_method, constant_types, map_aggregate, map_arg
from pywebgpu.ir.graph import used
from pywebgpu.tensor import dispatch
from pywebgpu.utils import _pytree

_FX = PACKAGE + "fx"


class TraceError(ValueError):
    """What a proxy is asked has no answer before the function runs."""


class Scope:
    """The module in whose forward a node was made: its path and its class."""

    def __init__(self, module_path: str, module_type: Any) -> None:
        self.module_path, self.module_type = module_path, module_type


class ScopeContextManager:
    """A block in which a scope has other values."""

    def __init__(self, scope: Scope, current_scope: Scope) -> None:
        self._before, self._scope = copy.copy(scope), scope
        scope.module_path, scope.module_type = current_scope.module_path, current_scope.module_type

    def __enter__(self) -> Scope:
        return self._scope

    def __exit__(self, *args: object) -> None:
        self._scope.module_path, self._scope.module_type = self._before.module_path, self._before.module_type


class TracerBase:
    """Makes nodes of a graph, and proxies for them."""

    graph: Graph
    record_stack_traces = False
    check_mutable_operations = False
    trace_asserts = False
    proxy_buffer_attributes = False
    traced_func_name = "forward"
    scope: Scope
    module_stack: OrderedDict[str, Any]
    node_name_to_scope: dict[str, tuple[str, Any]]

    def create_node(
        self,
        kind: str,
        target: Target,
        args: tuple[Argument, ...],
        kwargs: dict[str, Argument],
        name: str | None = None,
        type_expr: Any = None,
    ) -> Node:
        """Adds a node to the graph."""
        if kind == "call_function" and self.check_mutable_operations:
            names.import_module("pywebgpu.fx.operator_schemas").check_for_mutable_operation(target, args, kwargs)
        node = self.graph.create_node(kind, target, args, kwargs, name, type_expr)
        self.node_name_to_scope[node.name] = (self.scope.module_path, self.scope.module_type)
        notes = names.import_module("pywebgpu.fx.traceback")
        if notes.has_preserved_node_meta():
            notes.copy_meta(node)
        elif self.module_stack:
            node.meta["nn_module_stack"] = copy.copy(self.module_stack)
        if self.record_stack_traces and not node.stack_trace:
            frames = _frames_of_program()
            if frames:
                node.stack_trace = "".join(traceback.StackSummary.from_list(frames).format()).strip()
        return node

    def proxy(self, node: Node) -> Proxy:
        """The proxy of a node."""
        return Proxy(node, self)

    def create_proxy(
        self,
        kind: str,
        target: Target,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        name: str | None = None,
        type_expr: Any = None,
        proxy_factory_fn: Callable[[Node], Proxy] | None = None,
    ) -> Any:
        """Adds a node whose arguments may have proxies; returns its proxy."""
        own_args, own_kwargs = self.create_arg(args), self.create_arg(kwargs)
        node = self.create_node(kind, target, own_args, own_kwargs, name, type_expr)
        return proxy_factory_fn(node) if proxy_factory_fn else self.proxy(node)

    def create_arg(self, a: Any) -> Argument:
        """A value as nodes have it. Raises NotImplementedError for one that no node can have."""
        if isinstance(a, Proxy):
            return a.node
        if hasattr(a, "__fx_create_arg__"):
            return a.__fx_create_arg__(self)
        if isinstance(a, tuple):
            items = [self.create_arg(item) for item in a]
            return type(a)(*items) if hasattr(a, "_fields") else type(a)(items)
        if isinstance(a, list):
            return [self.create_arg(item) for item in a]
        if isinstance(a, dict):
            return {self._key(key): self.create_arg(item) for key, item in a.items()}
        if isinstance(a, slice | range):
            return type(a)(*map(self.create_arg, (a.start, a.stop, a.step)))
        if is_dataclass(a) and not isinstance(a, (type, *constant_types())):
            values = {field.name: self.create_arg(getattr(a, field.name)) for field in fields(a)}
            return self.create_node("call_function", type(a), (), values)
        if isinstance(a, (*constant_types(), enum.Enum)) or hasattr(a, "_operator_path"):
            return a
        if isinstance(a, _plain_types()):
            return a
        raise NotImplementedError(f"argument of type: {type(a)}")

    def _key(self, key: Any) -> Any:
        def refuse(node: Node) -> None:
            raise RuntimeError(f"Keys for dictionaries used as an argument cannot contain a Node. Got key: {key}")

        if not isinstance(key, str):
            key = self.create_arg(key)
            map_arg(key, refuse)
        return key

    def to_bool(self, obj: Proxy) -> bool:
        """Whether a proxy is true. Raises TraceError; a subclass may know."""
        raise TraceError("symbolically traced variables cannot be used as inputs to control flow")

    def iter(self, obj: Proxy) -> Iterator[Any]:
        """The items of a proxy. Raises TraceError; a subclass may know."""
        raise TraceError(
            "Proxy object cannot be iterated. This can be attempted when the Proxy is used in a loop or as a *args or "
            "**kwargs function argument. See the torch.fx docs on pytorch.org for a more detailed explanation of what "
            "types of control flow can be traced, and check out the Proxy docstring for help troubleshooting Proxy "
            "iteration errors"
        )

    def keys(self, obj: Proxy) -> Any:
        """The keys of a proxy: a proxy; a subclass may know them, which `**` needs."""
        return Attribute(obj, "keys")()


def _plain_types() -> tuple[type, ...]:
    """Further types of values whose text is code."""
    torch = names.torch()
    return tuple(kind for kind in (torch.layout, torch.memory_format) if isinstance(kind, type))


class GraphAppendingTracer(TracerBase):
    """Adds to a graph that is there."""

    def __init__(self, graph: Graph) -> None:
        self.graph, self.scope = graph, Scope("", None)
        self.module_stack, self.node_name_to_scope = OrderedDict(), {}


def assert_fn(x: object) -> None:
    """An `assert` of the traced function."""
    assert x


class Proxy:
    """Stands for the value of a node: calls, methods and operators add nodes to its graph.

    It cannot be gone through or be asked whether it is true: what depends on values is no graph. `torch.fx.wrap` has a
    function called as it is.
    """

    node: Node
    tracer: TracerBase

    def __init__(self, node: Node, tracer: TracerBase | None = None) -> None:
        if used.overrides is None:
            dispatch.start()  # From now on functions ask proxies.
        self.tracer = GraphAppendingTracer(node.graph) if tracer is None else tracer
        self.node = node

    def __repr__(self) -> str:
        return f"Proxy({self.node.name})"

    def __getattr__(self, k: str) -> Attribute:
        return Attribute(self, k)  # No node yet: most attributes are methods that are called.

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__

    def __setstate__(self, d: dict[str, Any]) -> None:
        self.__dict__ = d

    def __deepcopy__(self, memo: dict[int, Any]) -> Proxy:
        copied = Proxy.__new__(Proxy)
        for name, value in self.__dict__.items():
            try:
                copied.__dict__[name] = copy.deepcopy(value, memo)
            except Exception:  # A tracer may have anything: modules, frames.
                copied.__dict__[name] = copy.copy(value)
        return copied

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.tracer.create_proxy("call_method", "__call__", (self, *args), kwargs)

    def __iter__(self) -> Iterator[Any]:
        instruction = _instructions(sys._getframe(1))[0]
        if instruction.opname == "UNPACK_SEQUENCE":  # `a, b = proxy` says how many there are.
            return (self[index] for index in range(instruction.argval))  # type: ignore[index]
        return self.tracer.iter(self)

    def __abs__(self) -> Any:
        return self.tracer.create_proxy("call_function", operator.abs, (self,), {})

    def __bool__(self) -> bool:
        if self.tracer.trace_asserts and _asserts(_instructions(sys._getframe(1))):
            self.tracer.create_proxy("call_function", assert_fn, (self,), {})
            return True
        return self.tracer.to_bool(self)

    def keys(self) -> Any:
        """Its keys."""
        return self.tracer.keys(self)

    def __len__(self) -> int:
        raise RuntimeError(
            "'len' is not supported in symbolic tracing by default. If you want this call to be recorded, please call "
            "torch.fx.wrap('len') at module scope"
        )

    @classmethod
    def __torch_function__(
        cls, orig_method: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        leaves = _pytree.tree_leaves((args, kwargs))
        tracers = {id(leaf.tracer): leaf.tracer for leaf in leaves if isinstance(leaf, cls)}
        if len(tracers) > 1:
            raise RuntimeError(
                f"Found multiple different tracers {[*tracers.values()]} while trying to trace operations {orig_method}"
            )
        (tracer,) = tracers.values()
        if _is_tensor_method(orig_method):
            return tracer.create_proxy("call_method", orig_method.__name__, args, kwargs)
        name = tracer.graph._target_to_str(orig_method.__name__)
        args, kwargs = names.passed_on(orig_method, args, kwargs)
        return tracer.create_proxy("call_function", orig_method, args, kwargs, name=name)


class Attribute(Proxy):
    """An attribute of a proxy; a node is made of it if it is more than a method that is called."""

    def __init__(self, root: Proxy, attr: str) -> None:
        self.root, self.attr, self.tracer = root, attr, root.tracer
        self._node: Node | None = None

    @property
    def node(self) -> Node:  # type: ignore[override]
        if self._node is None:
            self._node = self.tracer.create_proxy("call_function", getattr, (self.root, self.attr), {}).node
        return self._node

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.tracer.create_proxy("call_method", self.attr, (self.root, *args), kwargs)


class ParameterProxy(Proxy):
    """A proxy of a parameter that knows its shape."""

    def __init__(self, tracer: TracerBase, node: Node, name: str, param: Any) -> None:
        super().__init__(node, tracer)
        assert isinstance(param, names.torch().nn.Parameter)
        self.param, self.name = param, name

    def __repr__(self) -> str:
        return f"ParameterProxy({self.name})"

    @property
    def shape(self) -> Any:
        """Its shape."""
        return self.param.shape

    @property
    def ndim(self) -> int:
        """The number of its dimensions."""
        return int(self.param.ndim)

    def size(self) -> Any:
        """Its shape."""
        return self.param.size()

    def dim(self) -> int:
        """The number of its dimensions."""
        return int(self.param.dim())

    def numel(self) -> int:
        """The number of its elements."""
        return int(self.param.numel())

    def nelement(self) -> int:
        """The number of its elements."""
        return int(self.param.numel())


def _operator(name: str, *, reflected: bool) -> Callable[..., Any]:
    function = getattr(operator, name)

    def call(self: Proxy, *others: Any) -> Any:
        args = (*others, self) if reflected else (self, *others)
        return self.tracer.create_proxy("call_function", function, args, {})

    return call


for _name in OPERATORS:
    if hasattr(operator, _name):
        setattr(Proxy, f"__{_name.strip('_')}__", _operator(_name, reflected=False))
for _name in REFLECTED:
    if hasattr(operator, _name):
        setattr(Proxy, f"__r{_name.strip('_')}__", _operator(_name, reflected=True))


def find_proxy(*values: Any) -> Proxy | None:
    """A proxy among values and what they contain, if there is one."""
    proxies: list[Proxy] = []
    map_aggregate(values, lambda leaf: proxies.append(leaf) if isinstance(leaf, Proxy) else None)
    return proxies[-1] if proxies else None


def _instructions(frame: FrameType) -> list[dis.Instruction]:
    """The instructions of a frame from the one that it is at."""
    return [step for step in dis.get_instructions(frame.f_code) if step.offset >= frame.f_lasti]


def _asserts(instructions: list[dis.Instruction]) -> bool:
    """Whether the first one is the question of an `assert`."""
    first, *rest = instructions
    if first.opname == "TO_BOOL":
        first, *rest = rest
    rest = [step for step in rest if step.opname not in ("CACHE", "NOT_TAKEN")]
    return first.opname.startswith("POP_JUMP") and "TRUE" in first.opname and rest[0].opname == "LOAD_ASSERTION_ERROR"


def _frames_of_program() -> list[traceback.FrameSummary]:
    """The frames from the first `forward` on, without those of this package."""
    frames = [frame for frame in traceback.extract_stack() if not frame.filename.startswith(_FX)]
    starts = [index for index, frame in enumerate(frames) if frame.name == "forward"]
    return frames[starts[0] :] if starts else []
