"""GraphModule: a module whose forward is the code of a graph."""

from __future__ import annotations

import ast
import copy
import itertools
import linecache
import os
import re
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

from pywebgpu.fx import names
from pywebgpu.fx.codegen import PythonCode, _PyTreeCodeGen
from pywebgpu.fx.graph import Graph
from pywebgpu.nn.module import Module
from pywebgpu.nn.parameter import Parameter
from pywebgpu.tensor.tensor import Tensor

# What copies keep besides what the graph names.
KEPT = ("_state_dict_hooks", "_load_state_dict_pre_hooks", "_load_state_dict_post_hooks")
GRAPH_HOOKS = ("_replace_hooks", "_create_node_hooks", "_erase_node_hooks", "_deepcopy_hooks")
_USER_PRESERVED_ATTRIBUTES_KEY = "_user_preserved_attributes"
_sources: dict[str, str] = {}
_numbers = itertools.count()


class _Sources:
    """The loader of generated modules: tracebacks ask it for their lines."""

    @staticmethod
    def get_source(name: str) -> str | None:
        return _sources.get(name)


def _forward_from_src(src: str, globals: dict[str, Any], co_fields: dict[str, Any] | None = None) -> Any:
    """The function `forward` of a source; the lines of its tracebacks are those of the source."""
    file = f"<eval_with_key>.{next(_numbers)}"
    if co_fields:
        file += " from {co_filename}:{co_firstlineno} in {co_name}".format(**co_fields)
    _sources[file] = src
    space = globals.copy()
    linecache.lazycache(file, {**space, "__file__": file, "__name__": file, "__loader__": _Sources})
    exec(compile(src, file, "exec", dont_inherit=True), space)
    return space.pop("forward")


def _imports(globals: dict[str, Any]) -> str:
    """The statements that import what a source names, as files have them."""
    lines = set()
    for name, value in globals.items():
        if name in names.standard_globals():
            lines.add(names.standard_globals()[name][0])
        elif isinstance(value, str):  # an annotation that is a text
            lines.add(f"{name} = {value!r}")
        else:
            home = re.sub("^pywebgpu", "torch", value.__module__)
            lines.add(f"from {home} import {getattr(value, '__qualname__', value.__name__)} as {name}")
    return "\n".join(sorted(lines))


def _imported(block: str) -> dict[str, Any]:
    """What such statements import. Those of torch are of this library."""
    space = {name: value for name, (_, value) in names.standard_globals().items()}
    for line in block.splitlines():
        if match := re.fullmatch(r"from (\S+) import (\S+) as (\S+)", line):
            home, path, name = match.groups()
            value: Any = names.import_module(re.sub(r"^torch(?=\.|$)", "pywebgpu", home))
            for part in path.split("."):
                value = getattr(value, part)
            space[name] = value
        elif match := re.fullmatch(r"(\w+) = ('.*')", line):
            space[match[1]] = ast.literal_eval(match[2])
    return space


def reduce_graph_module(body: dict[str, Any], import_block: str) -> Module:
    """The module of a file: its graph is traced from its code."""
    source = body.get("_code") or body["code"]
    return _deserialize_graph_module(_forward_from_src(source, _imported(import_block)), body)


class _CodeOnlyModule(Module):
    """The attributes of a module and its forward, from which the graph is traced."""

    def __init__(self, body: dict[str, Any]) -> None:
        super().__init__()
        self.__dict__ = body


def _deserialize_graph_module(
    forward: Callable[..., Any], body: dict[str, Any], graph_module_cls: type | None = None
) -> Module:
    holder = type("_CodeOnlyModule", (_CodeOnlyModule,), {"forward": forward})(body)
    tracer = body.get("_tracer_cls") or names.import_module("pywebgpu.fx._symbolic_trace").Tracer
    tracer_type = type("KeepModules", (tracer,), {"is_leaf_module": lambda self, module, path: True})  # As they were.
    graph = tracer_type().trace(holder, **(body.get("_tracer_extras") or {}))
    traces = body.pop("_graphmodule_graph_node_meta_stack_trace", {})
    for node in graph.nodes:
        if node.name in traces:
            node.meta["stack_trace"] = traces[node.name]
    graph._tracer_cls = tracer
    module: Module = (graph_module_cls or GraphModule)(holder, graph, body.get("_graphmodule_cls_name", "GraphModule"))
    for name, value in body.items():
        if not hasattr(module, name):
            setattr(module, name, value)
    return module


def _get_attr(model: Any, attr_name: str) -> Any:
    """The attribute at a path."""
    for name in attr_name.split("."):
        model = getattr(model, name)
    return model


def _has_attr(model: Any, attr_name: str) -> bool:
    try:
        _get_attr(model, attr_name)
    except AttributeError:
        return False
    return True


def _assign_attr(value: Any, module: Module, path: str) -> None:
    """Sets the attribute at a path, through empty modules where there are none. A tensor becomes a buffer."""
    *above, name = path.split(".")
    for part in above:
        if getattr(module, part, None) is None:
            setattr(module, part, Module())
        module = getattr(module, part)
    if isinstance(value, Tensor) and not isinstance(value, Parameter):
        module.register_buffer(name, value)
    else:
        setattr(module, name, value)


def _copy_attr(source: Any, module: Module, path: str) -> None:
    """Sets the attribute at a path to that of another module, unless a module on the way is shared."""
    *above, name = path.split(".")
    own: Any = module
    for part in above:
        source, own = getattr(source, part), getattr(own, part, None)
        if source is own:
            return
    _assign_attr(getattr(source, name), module, path)


class GraphModule(Module):
    """A module made of a graph: `code` is its forward. After a change of the graph, `recompile` makes it anew.

    root: a module, or a dict by path, from which what the graph names is taken. class_name: what the module is called.
    """

    _graph: Graph
    _code: str
    meta: dict[str, Any]

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        base: Any = next(kind for kind in cls.__mro__ if kind.__qualname__.rpartition(".")[2] != "GraphModuleImpl")

        class GraphModuleImpl(base):  # type: ignore[misc]  # Each module has a forward of its own.
            pass

        return super().__new__(GraphModuleImpl)

    def __init__(self, root: Any, graph: Graph, class_name: str = "GraphModule") -> None:
        super().__init__()
        type(self).__name__ = class_name
        paths = [node.target for node in graph.nodes if node.op in ("get_attr", "call_module")]
        if isinstance(root, Module):
            if hasattr(root, "training"):
                self.training = root.training
            if isinstance(root, _CodeOnlyModule):
                listed = (root.named_children(), root.named_buffers(), root.named_parameters())
                paths = [*(name for name, _ in itertools.chain(*listed)), *paths]
            for path in paths:
                _copy_attr(root, self, path)
        elif isinstance(root, dict):
            for node in graph.nodes:
                if node.op in ("get_attr", "call_module") and node.target not in root:
                    raise RuntimeError(
                        f"Node {node} referenced target {node.target} but that target was not provided in ``root``!"
                    )
            for path in sorted(paths, key=lambda path: path.count(".")):  # What contains others comes first.
                _assign_attr(root[path], self, path)
        else:
            raise RuntimeError(f"Unsupported type {root} passed for root!")
        self.graph = graph
        tracer = graph._tracer_cls
        self._tracer_cls = tracer if tracer and "<locals>" not in tracer.__qualname__ else None  # Others have no name.
        self._tracer_extras = graph._tracer_extras or {}
        self.meta = {}
        for name in GRAPH_HOOKS:
            setattr(self, name, [])

    @property
    def graph(self) -> Graph:
        """The graph. Assigning one makes the code of it."""
        return self._graph

    @graph.setter
    def graph(self, g: Graph) -> None:
        assert isinstance(g, Graph), f"Expected a Graph instance, but got {type(g)}"
        self._graph = g
        g.owning_module = self
        self.recompile()

    @property
    def code(self) -> str:
        """The source of forward."""
        if not hasattr(self, "_code"):
            raise RuntimeError("Code has not been generated! Please report a bug")
        return self._code

    def recompile(self) -> PythonCode:
        """Makes forward of the graph as it is now."""
        codegen = self._graph._codegen
        if isinstance(codegen, _PyTreeCodeGen):
            self._in_spec, self._out_spec = codegen.pytree_info.in_spec, codegen.pytree_info.out_spec
        code = self._graph.python_code("self")
        self._code, self._lineno_map, self._prologue_start = code.src, code._lineno_map, code._prologue_start
        kind: Any = type(self)
        kind.forward = _forward_from_src(self._code, code.globals, self._graph._co_fields)
        if "_wrapped_call" not in vars(kind):
            kind._wrapped_call = _WrappedCall(kind, vars(kind).get("__call__"))
        kind.__call__ = _call
        for child in self.children():
            if isinstance(child, GraphModule):
                child.recompile()
        return code

    # Its modules

    def add_submodule(self, target: str, m: Module) -> bool:
        """Adds a module at a path, through empty ones; False where something else is on the way."""
        *above, name = target.split(".")
        module: Any = self
        for part in above:
            if getattr(module, part, None) is None:
                setattr(module, part, Module())
            module = getattr(module, part)
            if not isinstance(module, Module):
                return False
        module.add_module(name, m)
        return True

    def delete_submodule(self, target: str) -> bool:
        """Takes the module at a path away; False where there is none."""
        above, _, name = target.rpartition(".")
        try:
            holder = self.get_submodule(above)
        except AttributeError:
            return False
        if not isinstance(getattr(holder, name, None), Module):
            return False
        delattr(holder, name)
        return True

    def delete_all_unused_submodules(self) -> None:
        """Takes away the modules that neither the graph names nor lie below one that it calls."""
        used = {""}
        for node in self.graph.nodes:
            if node.op in ("call_module", "get_attr"):
                parts = node.target.split(".")
                used |= {".".join(parts[: index + 1]) for index in range(len(parts))}
                if node.op == "call_module" and _has_attr(self, node.target):
                    inside = self.get_submodule(node.target).named_modules()
                    used |= {f"{node.target}.{name}" for name, _ in inside if name}
        for name in [name for name, _ in self.named_modules() if name not in used]:
            self.delete_submodule(name)

    # Copies and files

    def __reduce__(self) -> tuple[Any, ...]:
        body = self.__dict__.copy()
        code = self.recompile()
        del body["_graph"]
        body["_graphmodule_cls_name"] = type(self).__name__
        traces = {node.name: node.stack_trace for node in self.graph.nodes if node.stack_trace}
        if traces:
            body["_graphmodule_graph_node_meta_stack_trace"] = traces
        return reduce_graph_module, (body, _imports(code.globals))

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        return self.__reduce__()

    def _deepcopy_init(self) -> Callable[..., None]:
        return GraphModule.__init__

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        copied = type(self).__new__(type(self))
        memo[id(self)] = copied
        body = _CodeOnlyModule(copy.deepcopy(self.__dict__, memo))
        self._deepcopy_init()(copied, body, body.__dict__["_graph"], type(self).__name__)
        for name in (*KEPT, *GRAPH_HOOKS):
            if name in self.__dict__:
                setattr(copied, name, copy.deepcopy(self.__dict__[name], memo))
        copied.meta = copy.deepcopy(getattr(self, "meta", {}), memo)
        for name, value in copied.meta.get(_USER_PRESERVED_ATTRIBUTES_KEY, {}).items():
            setattr(copied, name, value)
        for hook in self.__dict__.get("_deepcopy_hooks", ()):
            hook(copied)
        return copied

    def __copy__(self) -> GraphModule:
        copied = GraphModule(self, self.graph)
        copied.meta = getattr(self, "meta", {})
        return copied

    def _replicate_for_data_parallel(self) -> GraphModule:
        copied = self.__copy__()
        object.__setattr__(copied, "_is_replica", True)
        return copied

    def to_folder(self, folder: str | os.PathLike[str], module_name: str = "FxModule") -> None:
        """Writes the module as a package with its weights: `from folder import module_name`."""
        torch = names.torch()
        path = Path(folder)
        path.mkdir(exist_ok=True)
        torch.save(self.state_dict(), path / "state_dict.pt")
        lines = ["import torch", *(text for text, _ in names.standard_globals().values()), "", "from torch.nn import *"]
        lines += [f"class {module_name}(torch.nn.Module):", "    def __init__(self):", "        super().__init__()"]
        plain = (*(f"Conv{n}d" for n in (1, 2, 3)), *(f"BatchNorm{n}d" for n in (1, 2, 3)), "Linear")
        files = []
        for name, module in self.named_children():
            text = repr(module)
            if type(module) not in [getattr(torch.nn, kind) for kind in plain]:
                file = path / f"{name}.pt"
                torch.save(module, file)
                files.append(name)
                text = f"torch.load(r'{file}', weights_only=False) # {' '.join(text.split())}"
            lines.append(f"        setattr(self, '{name}', {text})")
        for name, buffer in self._buffers.items():
            if buffer is not None:
                empty = f"torch.empty({[*buffer.shape]}, dtype={buffer.dtype})"
                lines.append(f"        self.register_buffer('{name}', {empty})")
        for name, parameter in self._parameters.items():
            if parameter is not None:
                empty = f"torch.empty({[*parameter.shape]}, dtype={parameter.dtype})"
                lines.append(f"        setattr(self, '{name}', torch.nn.Parameter({empty}))")
        lines.append(f"        self.load_state_dict(torch.load(r'{path}/state_dict.pt'))")
        lines += ["    " + line for line in self.code.splitlines()]
        (path / "module.py").write_text("\n".join(lines) + "\n")
        (path / "__init__.py").write_text("from .module import *")
        if files:
            warnings.warn(
                "Was not able to save the following children modules as reprs -"
                f"saved as pickled files instead: {files}",
                stacklevel=2,
            )

    # Text

    def print_readable(self, print_output: bool = True, *args: Any, **options: Any) -> str:
        """The code with shapes and the program's lines, and that of the modules below; printed, too."""
        text = _readable(self, self._get_name())
        if print_output:
            print(text)
        return text

    def __str__(self) -> str:
        hint = "# To see more debug info, please use `graph_module.print_readable()`"
        return "\n".join([super().__str__(), self._code, hint])

    # Hooks

    @contextmanager
    def _set_replace_hook(self, f: Callable[..., object]) -> Iterator[None]:
        """A block in which f(old=, new=, user=) is called when a node takes another's place."""
        self._replace_hooks.append(f)
        try:
            yield
        finally:
            self._replace_hooks.remove(f)

    def _register_replace_node_hook(self, f: Callable[..., object]) -> None:
        self._replace_hooks.append(f)

    def _unregister_replace_node_hook(self, f: Callable[..., object]) -> None:
        self._replace_hooks.remove(f)

    def _register_create_node_hook(self, f: Callable[..., object]) -> None:
        self._create_node_hooks.append(f)

    def _unregister_create_node_hook(self, f: Callable[..., object]) -> None:
        self._create_node_hooks.remove(f)

    def _register_erase_node_hook(self, f: Callable[..., object]) -> None:
        self._erase_node_hooks.append(f)

    def _unregister_erase_node_hook(self, f: Callable[..., object]) -> None:
        self._erase_node_hooks.remove(f)


def _call(self: Any, *args: Any, **kwargs: Any) -> Any:
    return self._wrapped_call(self, *args, **kwargs)


class _WrappedCall:
    """The call of a graph's module: an error of its code is shown with the lines around."""

    def __init__(self, cls: Any, cls_call: Callable[..., Any] | None) -> None:
        self.cls, self.cls_call = cls, cls_call

    def __call__(self, obj: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            if self.cls_call is not None:
                return self.cls_call(obj, *args, **kwargs)
            return super(self.cls, obj).__call__(*args, **kwargs)  # type: ignore[misc]
        except Exception as error:
            frame = traceback.extract_tb(error.__traceback__)[-1]
            if "eval_with_key" not in frame.filename:
                raise
            print(self._generate_error_message(frame), file=sys.stderr)
            raise error.with_traceback(None) from None

    @staticmethod
    def _generate_error_message(frame_summary: traceback.FrameSummary) -> str:
        number, line = frame_summary.lineno or 0, frame_summary.line or ""
        lines = linecache.getlines(frame_summary.filename)
        return "\n".join([
            traceback.format_exc(),
            f"Call using an FX-traced Module, line {number} of the traced Module's generated forward function:",
            "".join(lines[number - 2 : number]),
            "~" * len(line) + "~~~ <--- HERE",
            "\n".join(lines[number : number + 2]),
        ])  # fmt: skip


def _readable(module: Any, name: str) -> str:
    code = module.graph.python_code("self", verbose=True).src.lstrip("\n")
    parts = [f"class {name}(torch.nn.Module):", *code.split("\n")]
    text = ("\n" + " " * 4).join(parts)
    below = [_readable(child, key) for key, child in module.named_children() if isinstance(child, GraphModule)]
    return text + "".join("\n" + "\n".join(" " * 4 + line for line in part.split("\n")) for part in below)
