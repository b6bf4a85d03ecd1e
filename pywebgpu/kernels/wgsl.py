"""A kernel's IR as WGSL: the one file that prints it, and which finds on its way what else the text must declare."""

from struct import pack, unpack

from pywebgpu.errors import CompileError
from pywebgpu.kernels import ir, prelude
from pywebgpu.kernels.ir import Call, Const, Load, Var
from pywebgpu.kernels.kernel import Checks, Kernel
from pywebgpu.kernels.target import F16, MATRICES, SUBGROUPS
from pywebgpu.support.symbolic import Sym, text

ENABLES = {F16: "f16", SUBGROUPS: "subgroups", MATRICES: "chromium_experimental_subgroup_matrix"}  # as NEEDED has them
UNIFORM = "diagnostic(off, chromium.subgroup_matrix_uniformity);\n"  # Where a matrix lies, is the same for a subgroup.
LARGEST = (1 << 32) - 1  # of the numbers that are sizes and positions
_SMALLEST = 1.1754943508222875e-38  # of the floats that translators do not round to 0


def kernel(function: ir.Function, checks: Checks = Checks.BOUNDS) -> Kernel:
    """The text of a kernel, and how to launch it."""
    out = _Printer()
    out.block(function.body, "  ")
    helpers, faults = prelude.declarations(frozenset(out.helpers))
    # No kernel may bind one buffer for reading and for writing, not even two windows of it.
    written = {array.whole for array in function.bindings if array.name in out.written}
    writes = tuple(array.whole in written for array in function.bindings)
    bindings = [
        (f"storage, {'read_write' if written else 'read'}", array)
        for array, written in zip(function.bindings, writes, strict=True)
    ]
    bindings += [("uniform", function.numbers)] * out.numbers + [("storage, read_write", ir.FAULT)] * faults
    declared = [f"@group(0) @binding({index}) {_declared(*binding)}" for index, binding in enumerate(bindings)]
    if MATRICES in out.needs:
        out.needs |= {F16, SUBGROUPS}  # What they are made of.
    needs = tuple([name for name in ENABLES if name in out.needs])
    wgsl = "".join(
        (
            *[f"enable {ENABLES[name]};\n" for name in needs],
            UNIFORM if MATRICES in needs else "",
            *declared,
            helpers,
            *map(_windowed, function.windowed),
            *(_declared("workgroup", array) for array in function.shared),
            f"@compute @workgroup_size({function.lanes})\n",
            "fn main(@builtin(workgroup_id) w: vec3u, @builtin(local_invocation_index) lane: u32) {\n",
            "\n".join([*out.lines, "}", ""]),
        )
    )
    return Kernel(function.name, wgsl, function.grid, writes, out.numbers, faults, needs, checks=checks)


def _windowed(function: ir.Windowed) -> str:
    """The function that finds the window of an index. No condition in the last one."""
    kind = function.windows[0][1].type
    kind = kind if function.width == 1 else ir.Type(kind.kind, kind.width * function.width)
    lines = [f"fn {function.name}(i: u32) -> {kind} {{"]
    for index, (start, array) in enumerate(function.windows):
        position = f"i - {start}u" if start else "i"
        test = f"if (i < {function.windows[index + 1][0]}u) " if index + 1 < len(function.windows) else ""
        value = _Printer().text(ir.Load(array, ir.Var(ir.U32, position), function.width))
        lines.append(f"  {test}{{ return {value}; }}" if test else f"  return {value};")
    return "\n".join([*lines, "}", ""])


def _declared(space: str, array: ir.Array) -> str:
    length = f", {array.length}" if array.length else ""
    array_type = f"array<{array.type}{length}>"
    for count in (array.rows, array.planes):
        array_type = f"array<{array_type}, {count}>" if count else array_type
    return f"var<{space}> {array.name}: {array_type};\n"


class _Printer:
    """lines: the text so far; helpers, needs, written (bindings) and numbers: what was met in it."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.helpers: set[str] = set()
        self.needs: set[str] = set()
        self.written: set[str] = set()
        self.numbers = False

    def block(self, body: ir.Block, indent: str) -> None:
        add = self.lines.append
        for statement in body:
            match statement:
                case ir.Declare():
                    add(f"{indent}{self.declared(statement)};")
                case ir.Assign():
                    add(f"{indent}{self.assigned(statement)};")
                case ir.Jump(word):
                    add(f"{indent}{word};")
                case ir.If(branches):
                    for index, (condition, inner) in enumerate(branches):
                        head = "else " * (index > 0) + (f"if ({self.text(condition)}) " if condition else "")
                        if len(inner) == len(branches) == 1 and isinstance(inner[0], ir.Jump):
                            add(f"{indent}{head}{{ {inner[0].word}; }}")
                        else:
                            self.inner(head, inner, indent)
                case ir.Loop(condition, inner, None):
                    self.inner(f"while ({self.text(condition)}) ", inner, indent)
                case ir.Loop(condition, inner, (start, step)):
                    head = f"for ({self.declared(start)}; {self.text(condition)}; {self.assigned(step)}) "
                    self.inner(head, inner, indent)
                case ir.Scope(inner):
                    self.inner("", inner, indent)

    def inner(self, head: str, body: ir.Block, indent: str) -> None:
        self.lines.append(f"{indent}{head}{{")
        self.block(body, indent + "  ")
        self.lines.append(indent + "}")

    def declared(self, statement: ir.Declare) -> str:
        word, target, value = statement
        return f"{word} {target.name}" + (f": {target.type}" if value is None else f" = {self.text(value)}")

    def assigned(self, statement: ir.Assign) -> str:
        target, value, sign = statement
        if isinstance(target, Load):
            self.written.add(target.array.name)
        out, to = self.text(value), self.text(target)
        return f"{to}++" if sign == "+=" and out == "1u" else f"{to} {sign} {out}"

    def text(self, e: ir.Expr, level: int = 0) -> str:
        """An expression; in parentheses, where it binds less tightly than `level`."""
        if type(e) is Var:
            return e.name
        if type(e) is Call:
            template, helpers, own, first, others, needs = e.intrinsic
            if helpers:
                self.helpers.update(helpers)
            if needs:
                self.needs.add(needs)
            if first == others:
                out = template.format(*[a.name if type(a) is Var else self.text(a, first) for a in e.args])
            else:
                left, right = e.args
                out = template.format(self.text(left, first), self.text(right, others))
        elif type(e) is Const:
            return literal(e)
        elif type(e) is Load:
            self.numbers = self.numbers or e.array.space == "uniform"
            return f"{e.array.name}[{self.text(e.index)}]"
        else:
            assert isinstance(e, ir.Index)
            out, own = text(e.at, "u"), _bound(e.at)
        return f"({out})" if own < level else out


def _check(number: float) -> None:
    """Raises CompileError for a size that wraps."""
    if number > LARGEST:
        raise CompileError(f"it counts elements up to {number}, and a kernel counts to {LARGEST}; use smaller tensors")


def _bound(index: Sym) -> int:
    """How tightly the text of an index holds together."""
    if len(index.terms) + (index.const != 0) > 1:
        return 3
    return 5 if not index.terms or index.terms[0][1] == 1 else 4


def literal(e: Const) -> str:
    value = e.value
    if e.type == ir.U32:
        _check(value)
        return f"{value}u"
    if e.type != ir.F32:
        return f"{value}" if value > -(2**31) else "(-2147483647 - 1)"
    if value and abs(value) < _SMALLEST:
        return f"bitcast<f32>({unpack('I', pack('f', value))[0]}u)"
    out = repr(float(value))
    return f"({out})" if value < 0 else out
