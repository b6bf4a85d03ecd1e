"""The Python code of a graph."""

from __future__ import annotations

import enum
import inspect
import re
import types
import typing
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from pywebgpu.fx import names
from pywebgpu.fx.node import Node
from pywebgpu.utils import _pytree

Transform = Callable[[list[str]], list[str]]
REFLECTED = {
    "add": "{} + {}", "sub": "{} - {}", "mul": "{} * {}", "floordiv": "{} // {}", "truediv": "{} / {}",
    "div": "{} / {}", "mod": "{} % {}", "pow": "{} ** {}", "lshift": "{} << {}", "rshift": "{} >> {}",
    "and_": "{} & {}", "or_": "{} | {}", "xor": "{} ^ {}", "getitem": "{}[{}]", "matmul": "{} @ {}",
}  # fmt: skip
OPERATORS = {
    "eq": "{} == {}", "ne": "{} != {}", "lt": "{} < {}", "gt": "{} > {}", "le": "{} <= {}", "ge": "{} >= {}",
    "pos": "+{}", "neg": "-{}", "invert": "~{}", **REFLECTED,
}  # fmt: skip
IN_PLACE = {
    "iadd": "{} += {}", "iand": "{} &= {}", "ifloordiv": "{} //= {}", "ilshift": "{} <<= {}", "imod": "{} %= {}",
    "imul": "{} *= {}", "imatmul": "{} @= {}", "ior": "{} |= {}", "ipow": "{} **= {}", "irshift": "{} >>= {}",
    "isub": "{} -= {}", "itruediv": "{} /= {}", "ixor": "{} ^= {}", "setitem": "{}[{}] = {}",
}  # fmt: skip
OLDER_TYPES = {
    list: typing.List, dict: typing.Dict, set: typing.Set, frozenset: typing.FrozenSet, tuple: typing.Tuple,  # noqa: UP006
}  # fmt: skip


@dataclass
class PythonCode:
    """src: the source of `forward`. globals: what it names. _lineno_map: the index of the node of each line."""

    src: str
    globals: dict[str, Any]
    _lineno_map: dict[int, int | None] | None
    _prologue_start: int = 0


class CodeGen:
    """Makes the code of a graph; a subclass changes its signature, its result, or what comes in and goes out."""

    def __init__(self) -> None:
        self._body_transformer: Transform | None = None
        self._func_name = "forward"

    def gen_fn_def(self, free_vars: list[str], maybe_return_annotation: str) -> str:
        """The line with `def`, and what follows it at once."""
        if free_vars[:1] != ["self"]:
            free_vars.insert(0, "self")
        return f"def {self._func_name}({', '.join(free_vars)}){maybe_return_annotation}:"

    def generate_output(self, output_args: Any, *, repr_fn: Callable[[Any], str] = repr) -> str:
        """The statement that returns."""
        return f"return {repr_fn(output_args)}"

    def process_inputs(self, *args: Any) -> Any:
        """The values of the placeholders, of the function's arguments."""
        return args

    def process_outputs(self, outputs: Any) -> Any:
        """The function's result, of the output's value."""
        return outputs

    def additional_globals(self) -> list[tuple[str, Any]]:
        """More that the code names."""
        return []

    def _gen_python_code(
        self, nodes: Sequence[Node] | Any, root_module: str, namespace: names.Namespace, *, verbose: bool = False
    ) -> PythonCode:
        return _Writer(self, root_module, namespace, verbose=verbose).write(nodes)


class _Writer:
    """One graph's code in the making."""

    def __init__(self, codegen: CodeGen, root_module: str, namespace: names.Namespace, *, verbose: bool) -> None:
        self.codegen, self.root, self.namespace, self.verbose = codegen, root_module, namespace, verbose
        self.globals: dict[str, Any] = {}
        self.arguments: list[str] = []
        self.body: list[str] = []
        self.wrapped: dict[str, None] = {}
        self.returned = ""
        self.trace = ""
        for name, (_, value) in names.standard_globals().items():
            self.globals[namespace.create_name(name, value)] = value

    def write(self, nodes: Any) -> PythonCode:
        last_uses = last_users(nodes)
        for index, node in enumerate(nodes):
            if self.verbose:
                self.say_where(node)
            self.body.append(f"# COUNTER: {index}\n")
            self.emit(node)
            self.release(node, last_uses.get(node, []))
        if not self.body:
            self.body.append("pass\n")
        wraps = ""
        if self.wrapped:
            name = self.named("wrap", names.import_module("pywebgpu.fx").wrap)
            wraps = "\n".join(f'{name}("{function}")' for function in self.wrapped)
        if self.codegen._body_transformer:
            self.body = self.codegen._body_transformer(self.body)
        for name, value in self.codegen.additional_globals():
            self.named(name, value)
        prologue = self.codegen.gen_fn_def(self.arguments, self.returned)
        lines, numbers = _without_counters("".join(self.body), prologue.count("\n") + 1)
        code = "\n".join("    " + line for line in "\n".join(lines).lstrip("\n").split("\n"))
        source = f"\n{wraps}\n\n{prologue}\n{code}"
        return PythonCode(source, self.globals, numbers, wraps.count("\n") + 4)

    # Names and values

    def named(self, hint: str, value: Any) -> str:
        """The name by which the code knows an object."""
        if names.is_ours(value) and value is not names.torch().device:
            return names.qualified_name(value)
        name = self.namespace.create_name(hint, value)
        self.globals.setdefault(name, value)
        return name

    def text(self, value: Any) -> str:
        """A value as the code has it."""
        if isinstance(value, Node):
            return repr(value)
        if isinstance(value, tuple):
            if hasattr(value, "_fields"):
                kind = type(value)
                return f"{self.named(names.qualified_name(kind), kind)}{tuple(value)!r}"
            return f"({self.text(value[0])},)" if len(value) == 1 else f"({', '.join(map(self.text, value))})"
        if isinstance(value, enum.Enum):
            return f"{self.named(type(value).__name__, type(value))}.{value.name}"
        if isinstance(value, list):
            return f"[{', '.join(map(self.text, value))}]"
        if isinstance(value, slice):
            return f"slice({', '.join(map(self.text, (value.start, value.stop, value.step)))})"
        if isinstance(value, names.torch().Tensor):
            return f"torch.Tensor(size={[*value.size()]}, dtype={str(value.dtype).rpartition('.')[2]})"
        if hasattr(value, "_operator_path"):
            return names.qualified_name(value)
        return repr(value)

    def type_text(self, kind: Any) -> str:
        """A type as annotations of the code have it."""
        if kind == ():
            return "()"
        name = names.type_text(kind)
        if isinstance(kind, types.UnionType) and "|" in name:
            return "|".join(self.type_text(part) for part in typing.get_args(kind))
        origin = getattr(kind, "__origin__", None)
        if origin is None:
            return self.named(name, kind)
        if isinstance(kind, typing._GenericAlias):  # type: ignore[attr-defined]
            origin = OLDER_TYPES.get(origin, origin)
        outer = self.named(names.type_text(origin), origin)
        parts = getattr(kind, "dims", None) or typing.get_args(kind)
        return f"{outer}[{','.join(self.type_text(part) for part in parts)}]" if parts else outer

    # Statements

    def emit(self, node: Node) -> None:
        """Adds the statement of a node, without its end."""
        kind = self.annotation(node)
        head = f"{node!r}{kind} = "
        args, kwargs = node.args, node.kwargs
        target: Any = node.target
        match node.op:
            case "placeholder":
                default = f" = {self.text(args[0])}" if args else ""
                self.arguments.append(f"{target}{kind}{default}")
                name = target.replace("*", "")
                if name != repr(node):
                    self.body.append(f"{node!r} = {name}\n")
            case "call_method":
                self.body.append(f"{head}{member(self.text(args[0]), target)}({self.listed(args[1:], kwargs)})")
            case "call_function":
                self.body.append(self.call(node, head))
            case "call_module":
                self.body.append(f"{head}{member(self.root, target)}({self.listed(args, kwargs)})")
            case "get_attr":
                self.body.append(f"{head}{member(self.root, target)}")
            case "output":
                if node.type is not None:
                    self.returned = f" -> {self.type_text(node.type)}"
                self.body.append(self.output(args[0]))

    def call(self, node: Node, head: str) -> str:
        target: Any = node.target
        if getattr(target, "__module__", None) == "_operator":
            texts = [*map(self.text, node.args)]
            if target.__name__ in OPERATORS:
                return head + OPERATORS[target.__name__].format(*texts)
            if target.__name__ in IN_PLACE:
                return f"{IN_PLACE[target.__name__].format(*texts)};  {head}{texts[0]}"
        name = self.named(names.qualified_name(target), target)
        if name == "getattr" and len(node.args) == 2 and isinstance(node.args[1], str) and node.args[1].isidentifier():
            return head + member(self.text(node.args[0]), node.args[1])
        if node.meta.get("is_wrapped"):
            self.wrapped.setdefault(name)
        return f"{head}{name}({self.listed(node.args, node.kwargs)})"

    def output(self, value: Any) -> str:
        own = self.codegen.generate_output
        if "repr_fn" in inspect.signature(own).parameters:  # One of a program may take the value alone.
            return own(value, repr_fn=self.text)
        return own(value)

    def listed(self, args: Iterable[Any], kwargs: dict[str, Any]) -> str:
        return ", ".join([*map(self.text, args), *(f"{key} = {self.text(value)}" for key, value in kwargs.items())])

    def annotation(self, node: Node) -> str:
        value: Any = node.meta.get("val", node.meta.get("tensor_meta", node.meta.get("example_value")))
        if self.verbose and hasattr(value, "dtype") and hasattr(value, "shape"):
            return f': "{abbreviated(value.dtype)}[{", ".join(map(str, value.shape))}]"'
        return "" if node.type is None else f" : {self.type_text(node.type)}"

    def release(self, node: Node, last_used: list[Node]) -> None:
        """Ends the statement of a node, and forgets the values that it used last."""
        if node.op == "placeholder":
            return
        unused = last_used if node.users or node.op == "output" else [*last_used, node]
        if node.op == "output" or not unused:
            self.body.append("\n")
        else:
            self.body.append(f";  {' = '.join(map(repr, unused))} = None\n")

    def say_where(self, node: Node) -> None:
        """A comment about the lines of the program that a node comes from, if they are others than before."""
        if node.op in ("placeholder", "output"):
            return
        frames = re.findall(r'File "(.+)", line (\d+), in (.+)\n\s*(.+)', node.stack_trace or "")
        where = "No stacktrace found for following nodes"
        if frames:
            file, line, function, text = frames[-1]
            where = f"File: {file}:{line} in {function}, code: {text.strip()}"
        if where != self.trace:
            self.trace = where
            self.body.append(f"\n# {where}\n")


def last_users(nodes: Any) -> dict[Node, list[Node]]:
    """By node, the inputs that no later node reads."""
    seen: set[Node] = set()
    result: dict[Node, list[Node]] = {}
    for node in reversed(nodes):
        for value in node._input_nodes:
            if value not in seen:
                seen.add(value)
                result.setdefault(node, []).append(value)
    return result


def member(base: str, path: str) -> str:
    """The attribute at a path; some of its parts may be no identifiers."""
    for part in path.split("."):
        base = f"{base}.{part}" if part.isidentifier() else f'getattr({base}, "{part}")'
    return base


def abbreviated(dtype: Any) -> str:
    """A dtype in three letters, such as f32."""
    name = str(dtype).rpartition(".")[2]
    special = {"bfloat16": "bf16", "bool": "b8", "complex32": "c32", "complex64": "c64", "complex128": "c128"}
    return special.get(name) or re.sub(r"^(uint|int|float)", lambda match: match[0][0], name)


def _without_counters(body: str, first: int) -> tuple[list[str], dict[int, int | None]]:
    """The lines of a body without the comments that say whose they are, and by line the index of the node."""
    lines: list[str] = []
    numbers: dict[int, int | None] = {}
    index = None
    for line in body.split("\n"):
        if match := re.search(r"# COUNTER: (\d+)", line):
            index = int(match[1])
        else:
            numbers[len(lines) + first] = index
            lines.append(line)
    return lines, numbers


class _PyTreeInfo(NamedTuple):
    orig_args: list[str]
    in_spec: _pytree.TreeSpec
    out_spec: _pytree.TreeSpec | None


class _PyTreeCodeGen(CodeGen):
    """The code of a function whose arguments and results are containers of the graph's."""

    def __init__(self, pytree_info: _PyTreeInfo) -> None:
        super().__init__()
        self.pytree_info = pytree_info

    def process_inputs(self, *inputs: Any) -> Any:
        return _pytree.arg_tree_leaves(*inputs)

    def process_outputs(self, outputs: Any) -> Any:
        if self.pytree_info.out_spec is None:
            return outputs
        leaves = outputs if isinstance(outputs, list | tuple) else [outputs]
        return _pytree.tree_unflatten(leaves, self.pytree_info.out_spec)

    def gen_fn_def(self, free_vars: list[str], maybe_return_annotation: str) -> str:
        arguments = self.pytree_info.orig_args
        if arguments[:1] == ["self"]:
            free_vars.insert(0, "self")
        text = super().gen_fn_def([*arguments], maybe_return_annotation)
        if not free_vars:
            return text
        annotated = [variable for variable in free_vars if ":" in variable]
        if annotated:  # A statement that unpacks cannot annotate.
            text += "\n    " + "".join(f"{variable}; " for variable in annotated) + "\n"
        variables = ", ".join(variable.split(":")[0].split("#")[0] for variable in free_vars)
        return f"{text}\n    {variables}, = fx_pytree.tree_flatten_spec({self._signature()}, self._in_spec)"

    def _signature(self) -> str:
        spec, names_ = self.pytree_info.in_spec, self.pytree_info.orig_args
        kinds = [child.type for child in spec.children_specs]
        if spec.type is not tuple or kinds != [tuple, dict]:
            return f"[{', '.join(names_)}]"
        positional, by_name = spec.children_specs
        count = positional.num_children
        pairs = zip(by_name.context, names_[count:], strict=False)
        named = ", ".join(f"'{key}':{value}" for key, value in pairs)
        return f"([{', '.join(names_[:count])}], {{{named}}})"

    def generate_output(self, output_args: Any, *, repr_fn: Callable[[Any], str] = repr) -> str:
        if self.pytree_info.out_spec is None:
            return super().generate_output(output_args, repr_fn=repr_fn)
        return f"return pytree.tree_unflatten({repr_fn(output_args)}, self._out_spec)"
