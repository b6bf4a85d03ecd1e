"""A kernel's IR as WGSL: the one place that prints it, and which finds on its way what else the text must declare."""

from collections.abc import Callable
from struct import pack, unpack
from typing import Any

from pywebgpu.kernels import ir, prelude
from pywebgpu.kernels.kernel import Kernel
from pywebgpu.symbolic import Sym, text

_SMALLEST = 1.1754943508222875e-38  # of the floats that translators do not round to 0


def kernel(function: ir.Function) -> Kernel:
    """The text of a kernel, and how to launch it."""
    out = _Printer()
    out.block(function.body, "  ")
    helpers, faults = prelude.declarations(frozenset(out.helpers))
    kinds = [("storage", "read_write" if a.name in out.written else "read", a) for a in function.bindings]
    bindings = [f"var<{space}, {access}> {_declared(array)}" for space, access, array in kinds]
    if out.numbers:
        bindings.append(f"var<uniform> numbers: array<vec4u, {-(-function.numbers // 4)}>")
    if faults:
        bindings.append("var<storage, read_write> fault: array<atomic<u32>>")
    wgsl = "".join(
        (
            *(f"@group(0) @binding({at}) {binding};\n" for at, binding in enumerate(bindings)),
            helpers,
            *(f"var<workgroup> {_declared(array)};\n" for array in function.shared),
            f"@compute @workgroup_size({function.lanes})\n",
            "fn main(@builtin(workgroup_id) w: vec3u, @builtin(local_invocation_index) lane: u32) {\n",
            "\n".join(out.lines),
            "\n}\n",
        )
    )
    writes = tuple(array.name in out.written for array in function.bindings)
    return Kernel(function.name, wgsl, function.grid, writes, out.numbers, faults)


def _declared(array: ir.Array) -> str:
    return f"{array.name}: array<{array.type}{f', {array.length}' if array.length else ''}>"


class _Printer:
    """lines: the text so far; helpers, written (bindings) and numbers: what was met in it."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.helpers: set[str] = set()
        self.written: set[str] = set()
        self.numbers = False

    def block(self, body: ir.Block, indent: str) -> None:
        for statement in body:
            _STATEMENTS[statement.__class__](self, statement, indent)

    def declare(self, one: ir.Declare, indent: str) -> None:
        word, target, value = one
        given = f": {target.type}" if value is None else f" = {self.text(value)}"
        self.lines.append(f"{indent}{word} {target.name}{given};")

    def assign(self, one: ir.Assign, indent: str) -> None:
        self.lines.append(f"{indent}{self.assigned(one)};")

    def assigned(self, one: ir.Assign) -> str:
        target = one.target
        if isinstance(target, ir.Load) and target.array.space == "storage":
            self.written.add(target.array.name)
        return f"{self.text(target)} {one.sign} {self.text(one.value)}"

    def condition(self, one: ir.If, indent: str, word: str = "if") -> None:
        head, otherwise = f"{indent}{word} ({self.text(one.condition)}) {{", one.otherwise
        if len(one.body) == 1 and isinstance(one.body[0], ir.Jump) and not otherwise:
            self.lines.append(f"{head} {one.body[0].word}; }}")
            return
        self.inner(head, one.body, indent)
        if len(otherwise) == 1 and isinstance(otherwise[0], ir.If):
            self.condition(otherwise[0], indent, "else if")
        elif otherwise:
            self.inner(f"{indent}else {{", otherwise, indent)

    def inner(self, head: str, body: ir.Block, indent: str) -> None:
        self.lines.append(head)
        self.block(body, indent + "  ")
        self.lines.append(indent + "}")

    def loop(self, one: ir.For, indent: str) -> None:
        name, step = one.variable.name, one.step
        by_one = step.sign == "+=" and isinstance(step.value, ir.Const) and step.value.value == 1
        then = f"{name}++" if by_one else self.assigned(step)
        head = f"{indent}for (var {name} = {self.text(one.start)}; {self.text(one.condition)}; {then}) {{"
        self.inner(head, one.body, indent)

    def repeat(self, one: ir.While, indent: str) -> None:
        self.inner(f"{indent}while ({self.text(one.condition)}) {{", one.body, indent)

    def scope(self, one: ir.Scope, indent: str) -> None:
        self.inner(indent + "{", one.body, indent)

    def jump(self, one: ir.Jump, indent: str) -> None:
        self.lines.append(f"{indent}{one.word};")

    def text(self, e: ir.Expr, level: int = 0) -> str:
        """An expression; in parentheses, where it binds less than `level`."""
        kind = e.__class__
        if kind is ir.Var:
            return e.name  # type: ignore[attr-defined,no-any-return]
        return _EXPRESSIONS[kind](self, e, level)

    def binary(self, e: ir.Binary, level: int) -> str:
        own, left, right = ir.LEVELS[e.sign]
        if own == 1 and isinstance(e.left, ir.Binary) and e.left.sign == e.sign:
            left = 1
        out = f"{self.text(e.left, left)} {e.sign} {self.text(e.right, right)}"
        return f"({out})" if own < level else out

    def call(self, e: ir.Call, level: int) -> str:
        template, helpers, inner = e.intrinsic
        if helpers:
            self.helpers.update(helpers)
        return template.format(*[self.text(arg, inner) for arg in e.args])

    def load(self, e: ir.Load, level: int) -> str:
        return f"{e.array.name}[{self.text(e.index)}]"

    def component(self, e: ir.Component, level: int) -> str:
        vector = self.text(e.vector, 5)
        return f"{vector}[{self.text(e.at)}]" if isinstance(e.at, ir.Expr) else f"{vector}.{'xyzw'[e.at]}"

    def number(self, e: ir.HostNumber, level: int) -> str:
        self.numbers = True
        word = f"numbers[{e.at // 4}].{'xyzw'[e.at % 4]}"
        return word if e.type == ir.U32 else f"bitcast<{e.type}>({word})"

    def index(self, e: ir.Index, level: int) -> str:
        out = text(e.at, "u")
        return f"({out})" if level > 3 and level > _bound(e.at) else out

    def literal(self, e: ir.Const, level: int) -> str:
        return literal(e)


def _bound(at: Sym) -> int:
    """How tightly the text of an index holds together."""
    if len(at.terms) + (at.const != 0) > 1:
        return 3
    return 5 if not at.terms or at.terms[0][1] == 1 else 4


def literal(e: ir.Const) -> str:
    value = e.value
    if e.type == ir.U32:
        return f"{value}u"
    if e.type != ir.F32:
        return f"{value}" if value > -(2**31) else "(-2147483647 - 1)"
    if value and abs(value) < _SMALLEST:
        return f"bitcast<f32>({unpack('I', pack('f', value))[0]}u)"
    out = repr(float(value))
    return f"({out})" if value < 0 else out


_STATEMENTS: dict[Any, Callable[[_Printer, Any, str], None]] = {
    ir.Declare: _Printer.declare,
    ir.Assign: _Printer.assign,
    ir.If: _Printer.condition,
    ir.For: _Printer.loop,
    ir.While: _Printer.repeat,
    ir.Scope: _Printer.scope,
    ir.Jump: _Printer.jump,
}
_EXPRESSIONS: dict[Any, Callable[[_Printer, Any, int], str]] = {
    ir.Binary: _Printer.binary,
    ir.Call: _Printer.call,
    ir.Load: _Printer.load,
    ir.Component: _Printer.component,
    ir.Const: _Printer.literal,
    ir.HostNumber: _Printer.number,
    ir.Index: _Printer.index,
}
