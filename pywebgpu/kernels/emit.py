"""Elements of nodes as WGSL: the one place where views, pointwise ops and loads become text.

`Emitter.value(node, at)` gives the name of the node's element at symbolic coordinates, writing what is needed to
compute it into the current block. Views only change the coordinates. What was computed before at the same place is
found again, so a kernel generator puts the results of its own loops (a row's sum, a tile's product) there with
`define`.
"""

from __future__ import annotations

import struct
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from math import isinf, isnan, prod
from typing import Any

from pywebgpu import dtypes
from pywebgpu.dtypes import DType, Kind
from pywebgpu.errors import CompileError
from pywebgpu.graph.ir import HOST, Custom, Generator, Movement, Node, Pointwise, Reduction, Structural
from pywebgpu.kernels import prelude
from pywebgpu.kernels.kernel import Kernel, Limits
from pywebgpu.kernels.places import Places
from pywebgpu.numbers import WORD, too_wide
from pywebgpu.ops import indexing, movement, pointwise
from pywebgpu.symbolic import Sym, flatten, text, unflatten, variable

Coords = tuple[Sym, ...]


class Emitter:
    """Writes one kernel's body. `stored` are ids of nodes that have a buffer; `numbers` places host numbers.

    alias: id of a node that is written -> the node whose buffer it takes over.
    """

    def __init__(
        self, stored: Collection[int], numbers: Mapping[int, int], alias: Mapping[int, Node], limits: Limits
    ) -> None:
        self._stored, self._numbers, self._alias = stored, numbers, alias
        self.limits = limits
        self.bound: dict[int, tuple[Node, bool]] = {}  # id of the buffer's node -> node, written
        self.lines: list[str] = []
        self._known: list[dict[tuple[int, Sym], str]] = [{}]
        self.places = Places(self) if limits.emulated else None
        self._named = 0
        self._uses_numbers = False
        self.declarations: list[str] = []

    # Blocks

    def line(self, text: str) -> None:
        if self.places:
            self.places.declare(text)
        self.lines.append("  " * len(self._known) + text)

    @contextmanager
    def block(self, opening: str) -> Iterator[None]:
        """`opening {` ... `}`: what is computed inside is not known outside."""
        if self.places:
            self.places.open(opening)
        self.line(f"{opening} {{".lstrip())
        self._known.append({})
        yield
        self._known.pop()
        if self.places:
            self.places.close()
        self.line("}")

    def fresh(self, letter: str = "v") -> str:
        self._named += 1
        return f"{letter}{self._named}"

    def define(self, node: Node, at: Sym, name: str) -> None:
        """Says that `name` is the node's element at a flat position."""
        self._known[-1][id(node), at] = name

    def let(self, expression: str) -> str:
        name = self.fresh()
        self.line(f"let {name} = {expression};")
        return name

    # Buffers

    def buffer(self, node: Node, *, written: bool = False) -> str:
        """The name of the binding for the node's buffer."""
        owner = self._alias.get(id(node), node)
        before = self.bound.get(id(owner))
        self.bound[id(owner)] = (owner, written or (before is not None and before[1]))
        return f"b{list(self.bound).index(id(owner))}"

    def has_buffer(self, node: Node) -> bool:
        """Whether the value is loaded rather than computed here."""
        return node.buffer is not None or id(node) in self._stored

    def store(self, node: Node, at: Sym, value: str) -> None:
        self.line(f"{self.buffer(node, written=True)}[{self.index(at)}] = {rounded(value, node.spec.dtype)};")

    # Elements

    def index(self, at: Sym) -> str:
        """A place in memory, or a part of it, as text."""
        return self.places.text(at) if self.places else text(at, "u")

    def value(self, node: Node, at: Coords) -> str:
        """The name (or literal) of the node's element at `at`."""
        while isinstance(node.op, Movement) and node.buffer is None and id(node) not in self._stored:
            source = node.inputs[0]
            inner, bounds = node.op.index(at, source.spec.shape, **node.attrs)
            if bounds:
                return self._guarded(node, source, at, inner, bounds)
            node, at = source, inner
        flat = flatten(at, node.spec.shape)
        for known in reversed(self._known):
            name = known.get((id(node), flat))
            if name is not None:
                return name
        name = self._compute(node, at, flat)
        self.define(node, flat, name)
        return name

    def _compute(self, node: Node, at: Coords, flat: Sym) -> str:
        if node.op is HOST:
            return self._number(node)
        if node.buffer is not None or id(node) in self._stored:
            return self.let(f"{self.buffer(node)}[{self.index(flat)}]")
        match node.op:
            case Pointwise():
                return self._pointwise(node, [self.value(n, at if n.spec.shape else ()) for n in node.inputs])
            case Generator():
                return self._generator(node, at, flat)
            case Structural() if node.op is indexing.take:
                return self._take(node, at)
            case Structural() if node.op is indexing.offset_slice:
                return self._offset_slice(node, at)
            case Structural() if node.op is indexing.cat:
                return self._cat(node, at)
            case Structural() if node.op is indexing.write_slice:
                return self._write_slice(node, at)
            case Custom():
                return self.value(node.inputs[0], at)
            case Reduction() | Structural():
                raise CompileError(f"{node.op.name}: its value is needed in a kernel that does not have it")
            case _:
                raise CompileError(f"{node.op.name}: no rule")

    def _pointwise(self, node: Node, args: list[str]) -> str:
        op = node.op
        assert isinstance(op, Pointwise)
        template = op.wgsl if isinstance(op.wgsl, str) else op.wgsl(*(n.spec.dtype for n in node.inputs), **node.attrs)
        if template == "{0}":
            return args[0]
        if all(_is_literal(arg) for arg in args):
            args[0] = self.let(args[0])  # A translator refuses constant expressions that overflow or divide by 0.
        expression = template.format(*args)
        if op is pointwise.cast or node.spec.dtype in _NARROW:
            expression = rounded(expression, node.spec.dtype)
        return self.let(expression)

    def _generator(self, node: Node, at: Coords, flat: Sym) -> str:
        dtype = node.spec.dtype
        if node.op is pointwise.const:
            return literal(node.attrs["value"], dtype)
        if node.op is pointwise.iota:
            return f"{dtype.wgsl}({self.index(at[node.attrs['axis']])})"
        words = [self.value(source, ()) for source in node.inputs]
        return self.let(f"p_philox({self.index(flat)}, {', '.join(words)})")

    def _number(self, node: Node) -> str:
        self._uses_numbers = True
        at = self._numbers[id(node)]
        word = f"numbers[{at // 4}].{'xyzw'[at % 4]}"
        wgsl = node.spec.dtype.wgsl
        return word if wgsl == "u32" else f"bitcast<{wgsl}>({word})"

    def _guarded(self, node: Node, source: Node, at: Coords, inner: Coords, bounds: tuple[Any, ...]) -> str:
        known = (id(node), flatten(at, node.spec.shape))
        for level in reversed(self._known):
            if known in level:
                return level[known]
        fill = literal(node.attrs.get("value", 0.0), node.spec.dtype)
        if 0 in source.spec.shape:
            return fill
        name = self.fresh()
        self.line(f"var {name} = {fill};")
        with self.block(f"if ({self._conditions(bounds)})"):
            self.line(f"{name} = {self.value(source, inner)};")
        self._known[-1][known] = name
        return name

    def _take(self, node: Node, at: Coords) -> str:
        rows, index = node.inputs
        row = self.value(index, at[:1])
        name = self.fresh("i")
        self.line(f"let {name} = u32({row});")
        return self.value(rows, (variable(name, rows.spec.shape[0]), at[1]))

    def _offset_slice(self, node: Node, at: Coords) -> str:
        source, *starts = node.inputs
        coords = [i * step for i, step in zip(at, node.attrs["steps"], strict=True)]
        for axis, start in zip(node.attrs["axes"], starts, strict=True):
            name = self.fresh("s")
            self.line(f"let {name} = u32({self.value(start, ())});")
            span = (node.spec.shape[axis] - 1) * node.attrs["steps"][axis]
            coords[axis] = coords[axis] + variable(name, source.spec.shape[axis] - span)
        return self.value(source, tuple(coords))

    def _cat(self, node: Node, at: Coords) -> str:
        axis, name = node.attrs["axis"], self.fresh()
        self.line(f"var {name}: {node.spec.dtype.wgsl};")
        end, word, place = 0, "if", self.index(at[axis])
        for part in node.inputs:
            start, end = end, end + part.spec.shape[axis]
            if end == start or at[axis].low >= end or at[axis].high < start:
                continue
            moved = (*at[:axis], at[axis] - start, *at[axis + 1 :])
            with self.block(f"{word} ({place} < {end}u)"):
                self.line(f"{name} = {self.value(part, moved)};")
            word = "else if"
        return name

    def _write_slice(self, node: Node, at: Coords) -> str:
        base, value = node.inputs
        starts, steps = node.attrs["starts"], node.attrs["steps"]
        inner, bounds = movement.place.index(at, value.spec.shape, node.spec.shape, starts, steps)
        if not bounds:
            return self.value(value, inner)
        if 0 in value.spec.shape:
            return self.value(base, at)
        name = self.fresh()
        self.line(f"var {name}: {node.spec.dtype.wgsl};")
        with self.block(f"if ({self._conditions(bounds)})"):
            self.line(f"{name} = {self.value(value, inner)};")
        with self.block("else"):
            self.line(f"{name} = {self.value(base, at)};")
        return name

    def _conditions(self, bounds: tuple[Any, ...]) -> str:
        """Tests in unsigned arithmetic, where a negative number is larger than any bound."""
        parts = []
        for expression, low, high in bounds:
            if low == "multiple":
                parts.append(f"({self.index(expression)}) % {high}u == 0u")
            else:
                parts.append(f"({self.index(expression)}) <= {high}u")
        return " && ".join(parts)

    # The whole

    def _elements(self, node: Node) -> str:
        """What a binding's array has. Where a CPU plays the GPU, how many too: it would ask at every load."""
        return f"{node.spec.dtype.wgsl}" + (f", {max(count(node), 1)}" if self.limits.emulated else "")

    def kernel(self, name: str, lanes: int, groups: int, uses: str = "") -> Kernel:
        """The finished kernel: `groups` workgroups of `lanes` invocations, numbered by `group`."""
        width = min(groups, self.limits.workgroups)
        height = -(-groups // max(width, 1))
        head = [
            f"@compute @workgroup_size({lanes})",
            "fn main(@builtin(workgroup_id) w: vec3u, @builtin(local_invocation_index) lane: u32) {",
            f"  let group = w.x + w.y * {width}u;" if height > 1 else "  let group = w.x;",
        ]
        if width * height > groups:
            head.append(f"  if (group >= {groups}u) {{ return; }}")
        body = "\n".join([*self.declarations, *head, *self.lines, "}", ""])
        bindings = [
            f"@group(0) @binding({at}) var<storage, {'read_write' if written else 'read'}> b{at}: "
            f"array<{self._elements(node)}>;\n"
            for at, (node, written) in enumerate(self.bound.values())
        ]
        at = len(bindings)
        if self._uses_numbers:
            vectors = -(-len(self._numbers) // 4)
            bindings.append(f"@group(0) @binding({at}) var<uniform> numbers: array<vec4u, {vectors}>;\n")
            at += 1
        helpers = prelude.used_by(body)
        faults = "fault[" in helpers
        if faults:
            bindings.append(f"@group(0) @binding({at}) var<storage, read_write> fault: array<atomic<u32>>;\n")
        writes = tuple(written for _, written in self.bound.values())
        wgsl = "".join(bindings) + helpers + body
        return Kernel(name, wgsl, (width, height, 1), writes, self._uses_numbers, faults)


def _is_literal(text: str) -> bool:
    return not text[0].isalpha() and "p_" not in text and "(" not in text[1:]


_NARROW = (dtypes.int8, dtypes.uint8, dtypes.int16, dtypes.float16, dtypes.bfloat16)


def rounded(expression: str, dtype: DType) -> str:
    """Brings a value of the 32-bit type to one that the dtype can hold."""
    match dtype.name:
        case "float16":
            return f"p_half({expression})"
        case "bfloat16":
            return f"p_bfloat({expression})"
        case "uint8":
            return f"({expression} & 0xffu)"
        case "int8":
            return f"(({expression} << 24u) >> 24u)"
        case "int16":
            return f"(({expression} << 16u) >> 16u)"
        case _:
            return expression


def literal(value: float, dtype: DType) -> str:
    """A Python number as WGSL text, exactly."""
    if dtype.kind is not Kind.FLOAT:
        whole = int(value)
        if dtype.wgsl == "u32":
            return f"{whole & 0xFFFFFFFF}u"
        if not WORD[0] <= whole <= WORD[1]:
            raise too_wide(whole)
        return f"{whole}" if whole > -(2**31) else "(-2147483647 - 1)"
    number = float(value)
    if isnan(number):
        return "p_nan()"
    if not isinf(number):
        try:
            number = struct.unpack("f", struct.pack("f", number))[0]
        except OverflowError:
            number = float("inf") if number > 0 else float("-inf")
    if isinf(number):
        return "p_inf()" if number > 0 else "(-p_inf())"
    if number != 0 and abs(number) < 1.1754943508222875e-38:
        return f"bitcast<f32>({struct.unpack('I', struct.pack('f', number))[0]}u)"
    out = repr(number)
    out = out if "." in out or "e" in out else out + ".0"
    return f"({out})" if number < 0 else out


def element(position: Sym, node: Node) -> Coords:
    """Coordinates of the element at a flat position."""
    return unflatten(position, node.spec.shape)


def count(node: Node) -> int:
    return prod(node.spec.shape)
