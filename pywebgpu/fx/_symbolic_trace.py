"""Tracing: a function is called once with proxies, and what it does becomes a graph."""

from __future__ import annotations

import builtins
import copy
import functools
import inspect
import math
import sys
import warnings
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from types import CodeType, FunctionType, ModuleType
from typing import Any

from pywebgpu.fx import names
from pywebgpu.fx.codegen import _PyTreeCodeGen, _PyTreeInfo
from pywebgpu.fx.graph import Graph
from pywebgpu.fx.graph_module import GraphModule
from pywebgpu.fx.node import base_types
from pywebgpu.fx.proxy import ParameterProxy, Scope, ScopeContextManager, TracerBase, find_proxy
from pywebgpu.nn.module import Module
from pywebgpu.nn.parameter import Parameter
from pywebgpu.tensor.tensor import Tensor
from pywebgpu.utils import _pytree

VARIADIC = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS
_proxyable_classes: dict[type, None] = {}
_is_fx_tracing_flag = False
# Names of a program's modules that stay calls: by the module's names and their name, those names.
_wrapped_fns_to_patch: dict[tuple[int, str], dict[str, Any]] = {}
# Methods that stay calls.
_wrapped_methods_to_patch: list[tuple[type, str]] = []


def is_fx_tracing() -> bool:
    """Whether a function is traced at the moment."""
    return _is_fx_tracing_flag


is_fx_symbolic_tracing = is_fx_tracing


class ProxyableClassMeta(type):
    """The metaclass of classes whose construction from proxies becomes a node."""

    def __init__(cls, name: str, bases: tuple[type, ...], attrs: dict[str, Any]) -> None:
        _proxyable_classes.setdefault(cls)
        super().__init__(name, bases, attrs)

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        proxy = find_proxy(args, kwargs) if _is_fx_tracing_flag else None
        if proxy is not None:
            return proxy.tracer.create_proxy("call_function", cls, args, kwargs)
        return super().__call__(*args, **kwargs)


class PHBase:
    """In concrete_args: a value that stays an argument."""

    def __repr__(self) -> str:
        return "PH"


PH = PHBase()


class PHWithMeta(PHBase):
    """As PH; its attributes become those of the node."""

    def __init__(self, ph_key: str | None = None) -> None:
        self.ph_key = ph_key


def _transfer_attrs(fr: Any, to: Any) -> None:
    for name in dir(fr):
        value = getattr(fr, name)
        if not (callable(value) or name.startswith("__") or hasattr(to, name)):
            setattr(to, name, value)


def _patch_function(fn: FunctionType, nargs: int) -> FunctionType:
    """The function with `*args` and `**kwargs` as arguments like others: a proxy stands for all of them."""
    code: CodeType = fn.__code__
    own = code.replace(co_argcount=nargs, co_posonlyargcount=0, co_kwonlyargcount=0, co_flags=code.co_flags & ~VARIADIC)
    return FunctionType(own, fn.__globals__, fn.__name__, fn.__defaults__, fn.__closure__)


def _by_name(arguments: Sequence[str], concrete_args: tuple[Any, ...]) -> dict[str, Any]:
    """Concrete arguments by the names of a function's. Raises RuntimeError where there are not as many."""
    if len(arguments) != len(concrete_args):
        raise RuntimeError(
            f"Tracing expected {len(arguments)} arguments but got {len(concrete_args)} concrete arguments"
        )
    return dict(zip(arguments, concrete_args, strict=True))


class Tracer(TracerBase):
    """Makes a graph of a module or a function. A subclass says which modules stay calls, and what else is done."""

    _qualname_counter: dict[str, int] = defaultdict(int)  # noqa: RUF012 - of all tracers, as PyTorch's

    def __init__(
        self,
        autowrap_modules: tuple[ModuleType, ...] = (math,),
        autowrap_functions: tuple[Callable[..., Any], ...] = (),
        param_shapes_constant: bool = False,
    ) -> None:
        """autowrap_modules, autowrap_functions: what stays calls without `wrap`. param_shapes_constant: the shape of a
        parameter is that which it has."""
        functions = [
            value
            for module in autowrap_modules
            for name, value in vars(module).items()
            if not name.startswith("_") and callable(value)
        ]
        self._autowrap_function_ids = {id(function) for function in (*functions, *autowrap_functions)}
        self._autowrap_search = [*autowrap_modules]
        self.param_shapes_constant = param_shapes_constant
        self.submodule_paths: dict[Module, str] | None = None
        self.root_module_name = ""
        self.scope = Scope("", None)
        self.module_stack = OrderedDict()
        self.num_calls: dict[str, int] = {}
        self.node_name_to_scope = {}

    def get_fresh_qualname(self, prefix: str) -> str:
        """A name that no attribute of the root has yet."""
        if not hasattr(self.root, f"{prefix}0"):
            self._qualname_counter[prefix] = 0
            return f"{prefix}0"
        number = self._qualname_counter[prefix]
        while hasattr(self.root, f"{prefix}{number}"):
            number += 1
        self._qualname_counter[prefix] = number + 1
        return f"{prefix}{number}"

    def create_arg(self, a: Any) -> Any:
        """A value as nodes have it: a parameter, tensor or module is an attribute of the root."""
        for kind, listed in (
            (Parameter, self.root.named_parameters),
            (Tensor, self.root.named_buffers),
            (Module, self.root.named_modules),
        ):
            if isinstance(a, kind):
                for name, value in listed():
                    if value is a:
                        return self.create_node("get_attr", name, (), {})
                if kind is Parameter:
                    raise NameError("parameter is not a member of this module")
                break
        if isinstance(a, tuple) and hasattr(a, "_fields"):
            return self.create_node("call_function", type(a), tuple(map(self.create_arg, a)), {})
        if isinstance(a, Tensor):
            return self._constant(a, "_tensor_constant")
        if isinstance(a, _pytree.TreeSpec):
            return self._constant(a, "_tree_spec_constant")
        if type(a) in _proxyable_classes:
            name = self.get_fresh_qualname(f"_{type(a).__name__}_constant_")
            setattr(self.root, name, a)
            return self.create_node("get_attr", name, (), {})
        return super().create_arg(a)

    def _constant(self, value: Any, prefix: str) -> Any:
        """An attribute with this value, which the root gets if it has none."""
        name = self.tensor_attrs.get(id(value))
        if name is None:
            name = self.tensor_attrs[id(value)] = self.get_fresh_qualname(prefix)
            setattr(self.root, name, value)
        return self.create_node("get_attr", name, (), {})

    def is_leaf_module(self, m: Module, module_qualified_name: str) -> bool:
        """Whether a module's call stays a call: those of torch.nn do, but for Sequential."""
        home = type(m).__module__
        return home.startswith(("torch.nn", "torch.ao.nn", "pywebgpu.nn")) and not isinstance(
            m, names.torch().nn.Sequential
        )

    def path_of_module(self, mod: Module) -> str:
        """The path of a module below the root. Raises NameError for one that is not there."""
        if self.submodule_paths:
            path = self.submodule_paths.get(mod)
        else:
            path = next((name for name, module in self.root.named_modules() if module is mod), None)
        if path is None:
            raise NameError("module is not installed as a submodule")
        return path

    def call_module(self, m: Module, forward: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """What a call of a module gives: a proxy of the call for a leaf, else what its forward gives."""
        path = self.path_of_module(m)
        with ScopeContextManager(self.scope, Scope(path, type(m))) as scope:
            calls = self.num_calls.get(path, 0)
            key = f"{scope.module_path}@{calls}" if calls else scope.module_path
            self.module_stack[key] = (path, scope.module_type)
            self.num_calls[path] = calls + 1
            if self.is_leaf_module(m, path):
                result = self.create_proxy("call_module", path, args, kwargs)
            else:
                result = forward(*args, **kwargs)
            self.module_stack.popitem()
        return result

    def getattr(self, attr: str, attr_val: Any, parameter_proxy_cache: dict[str, Any]) -> Any:
        """What an attribute of a module is: a proxy for a parameter."""
        if isinstance(attr_val, Parameter):
            return self._attribute(attr_val, self.root.named_parameters(), parameter_proxy_cache)
        if self.proxy_buffer_attributes and isinstance(attr_val, Tensor):
            return self._attribute(attr_val, self.root.named_buffers(), parameter_proxy_cache)
        return attr_val

    def _attribute(self, value: Any, listed: Iterable[tuple[str, Any]], cache: dict[str, Any]) -> Any:
        name = next((name for name, item in listed if item is value), None)
        if name is None:
            return value
        if name not in cache:
            options: dict[str, Any] = {}
            if self.param_shapes_constant:
                options["proxy_factory_fn"] = lambda node: ParameterProxy(self, node, name, value)
            cache[name] = self.create_proxy("get_attr", name, (), {}, **options)
        return cache[name]

    def _numbered_placeholders(self, concrete_args: tuple[Any, ...]) -> Iterator[Any]:
        """One for each argument of a function that takes any number of them."""
        for index, value in enumerate(concrete_args):
            proxy = self.create_proxy("placeholder", f"input_{index}", (), {})
            if isinstance(value, PHBase) and value is not PH:
                _transfer_attrs(value, proxy.node)
            yield proxy

    def create_args_for_root(
        self,
        root_fn: Any,
        is_module: bool,
        concrete_args: dict[str, Any] | tuple[Any, ...] | None = None,
    ) -> tuple[Any, list[Any]]:
        """The function to call, and its arguments: placeholders, or what concrete_args has."""
        original = inspect.unwrap(root_fn)
        code: CodeType = original.__code__
        count = code.co_argcount + code.co_kwonlyargcount
        signature = inspect.signature(original)
        args: list[Any] = []
        if is_module:
            if count == 0:
                raise RuntimeError("``self`` argument cannot be part of *args expansion!")
            args.append(self.root)
        if isinstance(concrete_args, tuple) and concrete_args and code.co_flags & VARIADIC and count == 1:
            return root_fn, [*args, *self._numbered_placeholders(concrete_args)]
        arguments = code.co_varnames[int(is_module) : count]
        if isinstance(concrete_args, tuple):
            concrete_args = _by_name(arguments, concrete_args)

        def placeholder(name: str) -> Any:
            return self._proxy_placeholder(name, concrete_args, signature, original)

        args += map(placeholder, arguments)
        if code.co_kwonlyargcount or code.co_flags & VARIADIC:
            rest = iter(code.co_varnames[count:])
            if code.co_flags & inspect.CO_VARARGS:
                args.append(placeholder("*" + next(rest)))
            if code.co_flags & inspect.CO_VARKEYWORDS:
                args.append(placeholder("**" + next(rest)))
            root_fn = _patch_function(root_fn, len(args))
        leaves, spec = _pytree.tree_flatten(tuple(args))
        if all(child.is_leaf() for child in spec.children_specs):
            return root_fn, args
        return self._flattened(root_fn, spec, [*code.co_varnames[:count]]), leaves

    def _flattened(self, function: Callable[..., Any], spec: Any, arguments: list[str]) -> Callable[..., Any]:
        """The function of the leaves of arguments that are containers; its results are leaves, too."""
        codegen = self.graph._codegen = _PyTreeCodeGen(_PyTreeInfo(arguments, spec, None))

        def call(*leaves: Any) -> Any:
            result = function(*_pytree.tree_unflatten([*leaves], spec))
            values, out_spec = _pytree.tree_flatten(result)
            codegen.pytree_info = codegen.pytree_info._replace(out_spec=out_spec)
            return values

        call.__annotations__ = {}  # They would be those of the graph's code.
        return call

    def _proxy_placeholder(
        self, name: str, concrete_args: dict[str, Any] | None, sig: inspect.Signature, fn_for_analysis: Any
    ) -> Any:
        parameter = sig.parameters.get(name)
        has_default = parameter is not None and parameter.default is not inspect.Parameter.empty
        default = (parameter.default,) if parameter is not None and has_default else ()
        if concrete_args is None or name not in concrete_args:
            kind = fn_for_analysis.__annotations__.get(name)
            return self.create_proxy("placeholder", name, default, {}, type_expr=kind)
        numbers = iter(range(1, sys.maxsize))

        def specialized(value: Any) -> Any:
            proxy = self.create_proxy("placeholder", f"{name}_{next(numbers)}", default, {})
            if isinstance(value, PHBase):
                if value is not PH:
                    _transfer_attrs(value, proxy.node)
                return proxy
            text = f"{name} has been specialized to have value {value} but got another value"
            if type(value) in base_types:
                names.torch()._assert(proxy == value, text)
            elif value is None:
                self.create_proxy("call_function", _assert_is_none, (proxy, text), {})
            else:
                warnings.warn(
                    f"Was not able to add assertion to guarantee correct input {name} to specialized function. It is "
                    "up to the user to make sure that your inputs match the inputs you specialized the function with.",
                    stacklevel=2,
                )
            return value

        return _pytree.tree_map(specialized, concrete_args[name])

    def trace(self, root: Any, concrete_args: Any = None) -> Graph:
        """The graph of a module's forward, or of a function.

        concrete_args: by name, values that arguments have; containers may have PH for those that stay open.
        """
        global _is_fx_tracing_flag
        before, _is_fx_tracing_flag = _is_fx_tracing_flag, True
        try:
            if isinstance(root, Module):
                self.root: Any = root
                assert hasattr(type(root), self.traced_func_name), (
                    f"traced_func_name={self.traced_func_name} doesn't exist in {type(root).__name__}"
                )
                function = getattr(type(root), self.traced_func_name)
                self.root_module_name = root._get_name()
                self.submodule_paths = {module: name for name, module in root.named_modules()}
            else:
                self.root, function = Module(), root
            self.graph = Graph(tracer_cls=type(self))
            code = getattr(function, "__code__", None)
            if code is not None:
                fields = ("co_name", "co_filename", "co_firstlineno")
                self.graph._co_fields = {field: getattr(code, field) for field in fields}
            self.tensor_attrs: dict[Any, str] = {}
            for path, module in self.root.named_modules():
                for name, value in vars(module).items():
                    if isinstance(value, Tensor):
                        self.tensor_attrs[id(value)] = f"{path}.{name}".lstrip(".")
            assert isinstance(function, FunctionType), f"Expected FunctionType, got {type(function)}"
            home = function.__globals__
            call, args = self.create_args_for_root(function, isinstance(root, Module), concrete_args)
            with self._patched(home):
                kind = inspect.get_annotations(inspect.unwrap(call)).get("return")
                self.create_node("output", "output", (self.create_arg(call(*args)),), {}, type_expr=kind)
            self.submodule_paths = None
        finally:
            _is_fx_tracing_flag = before
        return self.graph

    @contextmanager
    def _patched(self, home: dict[str, Any]) -> Iterator[None]:
        """A block in which calls and attributes of modules, and wrapped functions, are this tracer's."""
        cache: dict[str, Any] = {}
        own_getattr, own_call = Module.__getattr__, Module.__call__
        patcher = _Patcher()

        @functools.wraps(own_getattr)
        def attribute(module: Module, name: str) -> Any:
            return self.getattr(name, own_getattr(module, name), cache)

        @functools.wraps(own_call)
        def call(module: Module, *args: Any, **kwargs: Any) -> Any:
            patcher.wrap_known(getattr(module.forward, "__globals__", {}), self._autowrap_function_ids)
            return self.call_module(module, lambda *own, **named: own_call(module, *own, **named), args, kwargs)

        try:
            patcher.set_attribute(Module, "__getattr__", attribute)
            patcher.set_attribute(Module, "__call__", call)
            for (_, name), space in [*_wrapped_fns_to_patch.items()]:
                patcher.wrap(space, name)
            for kind, name in _wrapped_methods_to_patch:
                patcher.set_attribute(kind, name, _wrapped_method(kind, name))
            for space in (home, *(vars(module) for module in self._autowrap_search)):
                patcher.wrap_known(space, self._autowrap_function_ids)
            yield
        finally:
            patcher.revert()

    def __deepcopy__(self, memo: dict[int, Any]) -> Tracer:
        copied = Tracer.__new__(Tracer)
        for name, value in self.__dict__.items():  # Modules cannot be copied.
            copied.__dict__[name] = copy.copy(value) if name == "_autowrap_search" else copy.deepcopy(value, memo)
        return copied


class _Patcher:
    """Names that mean something else while a function is traced."""

    def __init__(self) -> None:
        self._undo: list[Callable[[], None]] = []
        self._seen: set[int] = set()

    def set_attribute(self, owner: Any, name: str, value: Any) -> None:
        """Replaces an attribute of a class."""
        before = owner.__dict__.get(name)
        self._undo.append(
            functools.partial(delattr, owner, name)
            if before is None
            else functools.partial(setattr, owner, name, before)
        )
        setattr(owner, name, value)

    def wrap(self, space: dict[str, Any], name: str) -> None:
        """Replaces a function of a module by one that stays a call."""
        function = space.get(name, getattr(builtins, name, None))
        if function is None:
            raise KeyError(name)
        if getattr(function, "_fx_wrapped", False):
            return
        if name in space:
            self._undo.append(functools.partial(space.__setitem__, name, function))
        else:
            self._undo.append(functools.partial(space.__delitem__, name))
        space[name] = _wrapped(function)

    def wrap_known(self, space: dict[str, Any], functions: set[int]) -> None:
        """Replaces those of a module's names that are such functions, once."""
        if id(space) not in self._seen:
            self._seen.add(id(space))
            for name, value in [*space.items()]:
                if not name.startswith("_") and callable(value) and id(value) in functions:
                    self.wrap(space, name)

    def revert(self) -> None:
        """Puts all back, last first."""
        while self._undo:
            self._undo.pop()()


def _wrapped(function: Any) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        proxy = find_proxy(args, kwargs)
        if proxy is None:
            return function(*args, **kwargs)
        result = proxy.tracer.create_proxy("call_function", function, args, kwargs)
        result.node.meta["is_wrapped"] = True
        return result

    if hasattr(function, "__name__"):
        functools.update_wrapper(call, function)
    call._fx_wrapped = True  # type: ignore[attr-defined]
    return call


def _wrapped_method(kind: type, name: str) -> Callable[..., Any]:
    function = getattr(kind, name)

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        proxy = find_proxy(args, kwargs)
        if proxy is None:
            return function(*args, **kwargs)
        return proxy.tracer.create_proxy("call_method", name, args, kwargs)

    return call


def wrap(fn_or_name: Any) -> Any:
    """Says that calls of a function stay calls in graphs. Of a module's function or its name, at the top of the module.

    Raises: NotImplementedError elsewhere; RuntimeError for what is neither.
    """
    if not (callable(fn_or_name) or isinstance(fn_or_name, str)):
        raise RuntimeError("Unsupported type for global function! Must be either a callable or string name")
    frame = sys._getframe(1)
    if frame.f_code.co_name != "<module>":
        raise NotImplementedError("wrap must be called at the top level of a module")
    name = fn_or_name if isinstance(fn_or_name, str) else fn_or_name.__name__
    _wrapped_fns_to_patch[(id(frame.f_globals), name)] = frame.f_globals
    return fn_or_name


def symbolic_trace(root: Any, concrete_args: Any = None) -> GraphModule:
    """The graph of a module or a function, as a module: see Tracer.trace."""
    tracer = Tracer()
    graph = tracer.trace(root, concrete_args)
    name = type(root).__name__ if isinstance(root, Module) else root.__name__
    return GraphModule(tracer.root, graph, name)


@wrap
def _assert_is_none(value: object, msg: str) -> None:
    assert value is None, msg
