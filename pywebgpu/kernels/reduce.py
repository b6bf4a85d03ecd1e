"""Row programs: reductions over the same rows, with pointwise work before, between and after, in one kernel.

Each row has `lanes` invocations. Reductions that depend on one another run one after the other, each a pass over the
row and a tree in workgroup memory, so every lane has the result; values of the row are computed again in each pass.
Partial results are joined in an order that only the shapes decide: two runs give the same bits.
"""

from collections.abc import Sequence
from typing import Any

from pywebgpu.dtypes import DType, Kind
from pywebgpu.graph.ir import Node, Reduction
from pywebgpu.kernels.emit import Emitter, element, literal, rounded
from pywebgpu.kernels.kernel import Kernel, Limits
from pywebgpu.symbolic import Sym, variable

FULL, OUTER = "full", "outer"
WIDTH = 64  # invocations of a workgroup that has several rows: what it shares is cleared first, which takes time
SECTOR = 8  # neighbours in memory that are as cheap to read as one
BUSY = 64  # workgroups that keep a device busy
FEW = 32  # invocations that keep a CPU's cores busy: where there are as many rows, each has one
PART = 8  # columns that one invocation adds before it adds them to the rest: errors stay small
SHARE = 64  # columns, at least, for each of several that share a row there


class Rows:
    """How a kernel walks rows: which invocation belongs to which row and column."""

    def __init__(self, geometry: Any, limits: Limits) -> None:
        self.rows, self.columns = geometry.rows, geometry.columns
        limit = 1 << (limits.workgroup_size.bit_length() - 1)  # A tree halves its lanes.
        self.full: Sym = geometry.full()
        self.row = variable("row", self.rows)
        axes = [axis for axis, n in enumerate(geometry.shape) if n > 1]
        self.along = not axes or axes[-1] in geometry.axes  # neighbours in memory lie in one row
        if limits.emulated:
            self.lanes = min(_power(FEW // max(self.rows, 1)), _power(self.columns // SHARE), WIDTH, limit)
            size = max(min(_power(self.rows * self.lanes // FEW), WIDTH, limit), 4, self.lanes)
        elif self.along:
            self.lanes = min(_power(-(-self.columns // 4)), limit)
            size = min(limit, WIDTH)
        else:
            beside = min(_power(self.rows), limit, 32 if self.columns > 8 else limit)
            while beside > SECTOR and self.rows < BUSY * beside and limit // beside < self.columns:
                beside //= 2
            self.lanes = min(limit // beside, _power(self.columns))
            size = limit
        self.beside = max(size // self.lanes, 1)  # rows of one workgroup
        self.size = self.lanes * self.beside
        self.groups = -(-self.rows // self.beside)


def _power(n: int) -> int:
    """The next power of two."""
    return 1 << max(n - 1, 0).bit_length()


def generate(
    nodes: Sequence[Node], outputs: Sequence[Node], geometry: Any, levels: dict[int, str], emit: Emitter
) -> Kernel:
    walk = Rows(geometry, emit.limits)
    _open(walk, emit)
    depth = _depths(nodes, emit)
    above = _ancestors(nodes, emit)
    reductions = [node for node in nodes if isinstance(node.op, Reduction)]
    between = [node for node in nodes if levels[id(node)] == OUTER and not isinstance(node.op, Reduction)]
    for level in sorted({depth[id(node)] for node in reductions}):
        _outer_values(between, depth, level, walk, emit)
        _reduce([n for n in reductions if depth[id(n)] == level], nodes, above, levels, walk, emit)
    deepest = max((depth[id(node)] for node in reductions), default=0)
    _outer_values(between, depth, deepest + 1, walk, emit)
    small = [node for node in outputs if levels[id(node)] == OUTER]
    if small:
        with emit.block("if (inside && place == 0u)"):
            values = [emit.value(node, element(walk.row, node)) for node in small]
            for node, value in zip(small, values, strict=True):
                emit.store(node, walk.row, value)
    large = [node for node in outputs if levels[id(node)] == FULL]
    if large:
        with emit.block("if (inside)"), _columns(walk, emit):
            for node in nodes:
                if levels[id(node)] == FULL and any(node is o or id(node) in above[id(o)] for o in large):
                    value = emit.value(node, element(walk.full, node))
                    if any(node is o for o in large):
                        emit.store(node, walk.full, value)
    name = "_".join(dict.fromkeys(node.op.name for node in reductions))
    return emit.kernel(f"rows_{name}", walk.size, walk.groups)


def _open(walk: Rows, emit: Emitter) -> None:
    """row: this invocation's row (the last row again past the end). place: its number among the row's lanes."""
    if walk.lanes == 1:
        own, place = "lane", "0u"
    elif walk.along:
        own, place = f"lane / {walk.lanes}u", f"lane % {walk.lanes}u"
    else:
        own, place = f"lane % {walk.beside}u", f"lane / {walk.beside}u"
    emit.line(f"let wanted = group * {walk.beside}u + {own};")
    emit.line(f"let inside = wanted < {walk.rows}u;")
    emit.line(f"let row = min(wanted, {max(walk.rows - 1, 0)}u);")
    emit.line(f"let place = {place};")


def _columns(walk: Rows, emit: Emitter) -> Any:
    if walk.columns == 1:
        return emit.block("for (var column = place; column < 1u; column++)")
    return emit.block(f"for (var column = place; column < {walk.columns}u; column += {walk.lanes}u)")


def _outer_values(between: list[Node], depth: dict[int, int], level: int, walk: Rows, emit: Emitter) -> None:
    for node in between:
        if depth[id(node)] == level - 1:
            emit.value(node, element(walk.row, node))


def _reduce(
    reductions: list[Node], nodes: Sequence[Node], above: Any, levels: dict[int, str], walk: Rows, emit: Emitter
) -> None:
    accumulators = {id(node): _Accumulator(node, walk, emit) for node in reductions}
    needed = [n for n in nodes if levels[id(n)] == FULL and any(id(n) in above[id(r)] for r in reductions)]
    with _columns(walk, emit):
        for node in needed:
            emit.value(node, element(walk.full, node))
        for node in reductions:
            source = node.inputs[0]
            accumulators[id(node)].take(emit.value(source, element(walk.full, source)), emit)
    for at, node in enumerate(reductions):
        name = accumulators[id(node)].join(walk, at, emit)
        emit.define(node, walk.row, name)


class _Accumulator:
    """The running value of one reduction: a variable, or a value and its place for argmax and argmin."""

    def __init__(self, node: Node, walk: Rows, emit: Emitter) -> None:
        op = node.op
        assert isinstance(op, Reduction)
        self.name, self.dtype = op.name, node.inputs[0].spec.dtype
        self.positional = op.name in ("argmax", "argmin")
        self.combine = op.combine
        self.value = emit.fresh("acc")
        emit.line(f"var {self.value} = {self._identity()};")
        floats = self.name == "sum" and self.dtype.kind is Kind.FLOAT
        self.part = emit.fresh("acc") if floats and walk.lanes == 1 and walk.columns > PART else ""
        if self.part:
            emit.line(f"var {self.part} = {self._identity()};")
        if self.positional:
            self.place = emit.fresh("acc")
            emit.line(f"var {self.place} = 0xffffffffu;")

    def _identity(self) -> str:
        match self.name:
            case "sum":
                return literal(0, self.dtype)
            case "prod":
                return literal(1, self.dtype)
            case "max" | "argmax":
                return _extreme(self.dtype, low=True)
            case _:
                return _extreme(self.dtype, low=False)

    def take(self, value: str, emit: Emitter) -> None:
        if self.positional:
            self._choose(value, "column", emit)
        elif self.part:
            emit.line(f"{self.part} += {value};")
            with emit.block(f"if ((column & {PART - 1}u) == {PART - 1}u)"):
                emit.line(f"{self.value} += {self.part};")
                emit.line(f"{self.part} = 0.0;")
        else:
            emit.line(f"{self.value} = {self._joined(self.value, value)};")

    def _joined(self, a: str, b: str) -> str:
        if self.combine in ("max", "min"):
            name = f"p_{self.combine}" if self.dtype.kind is Kind.FLOAT else self.combine
            return f"{name}({a}, {b})"
        return self.combine.format(a, b)

    def _choose(self, value: str, place: str, emit: Emitter) -> None:
        """Takes a candidate that is larger (smaller), or equal and earlier; NaN is larger (smaller) than all."""
        sign = ">" if self.name == "argmax" else "<"
        better = f"{value} {sign} {self.value}"
        same = f"{value} == {self.value}"
        if self.dtype.kind is Kind.FLOAT:
            better = f"(({better}) || (p_isnan({value}) && !p_isnan({self.value}))) && !p_isnan({self.value})"
            better = f"({better}) || (p_isnan({value}) && !p_isnan({self.value}))"
            same = f"(({same}) || (p_isnan({value}) && p_isnan({self.value})))"
        with emit.block(f"if (({better}) || ({same} && {place} < {self.place}))"):
            emit.line(f"{self.value} = {value};")
            emit.line(f"{self.place} = {place};")

    def join(self, walk: Rows, at: int, emit: Emitter) -> str:
        """Joins the lanes of a row; the name of the result, which every lane of the row has."""
        if self.part:
            emit.line(f"{self.value} += {self.part};")
        if walk.lanes > 1:
            self._tree(walk, at, emit)
        return emit.let(f"i32({self.place})" if self.positional else rounded(self.value, self.dtype))

    def _tree(self, walk: Rows, at: int, emit: Emitter) -> None:
        values = f"shared_{self.dtype.wgsl}_{at}"
        declaration = f"var<workgroup> {values}: array<{self.dtype.wgsl}, {walk.size}>;"
        if declaration not in emit.declarations:
            emit.declarations.append(declaration)
        places = f"shared_place_{at}"
        if self.positional and (line := f"var<workgroup> {places}: array<u32, {walk.size}>;") not in emit.declarations:
            emit.declarations.append(line)
        apart = 1 if walk.along else walk.beside
        emit.line(f"{values}[lane] = {self.value};")
        if self.positional:
            emit.line(f"{places}[lane] = {self.place};")
        emit.line("workgroupBarrier();")
        with emit.block(f"for (var step = {walk.lanes // 2}u; step > 0u; step >>= 1u)"):
            with emit.block("if (place < step)"):
                other = emit.let(f"{values}[lane + step * {apart}u]")
                if self.positional:
                    self._choose(other, emit.let(f"{places}[lane + step * {apart}u]"), emit)
                    emit.line(f"{places}[lane] = {self.place};")
                else:
                    emit.line(f"{self.value} = {self._joined(self.value, other)};")
                emit.line(f"{values}[lane] = {self.value};")
            emit.line("workgroupBarrier();")
        first = f"lane - place * {apart}u"
        emit.line(f"{self.value} = {values}[{first}];")
        if self.positional:
            emit.line(f"{self.place} = {places}[{first}];")
        emit.line("workgroupBarrier();")


def _extreme(dtype: DType, *, low: bool) -> str:
    if dtype.kind is Kind.FLOAT:
        return "(-p_inf())" if low else "p_inf()"
    bound = max(dtype.low, -(2**31)) if low else min(dtype.high, 2**31 - 1 if dtype.wgsl == "i32" else 2**32 - 1)
    return literal(bound, dtype)


def _depths(nodes: Sequence[Node], emit: Emitter) -> dict[int, int]:
    """How many reductions of the group lie on the way to a node, itself included."""
    depth: dict[int, int] = {}
    for node, inner in _inner_inputs(nodes, emit):
        below = max((depth[id(n)] for n in inner), default=0)
        depth[id(node)] = below + isinstance(node.op, Reduction)
    return depth


def _ancestors(nodes: Sequence[Node], emit: Emitter) -> dict[int, set[int]]:
    """Group members that a member needs in the same pass: not those behind a reduction."""
    above: dict[int, set[int]] = {}
    for node, inner in _inner_inputs(nodes, emit):
        found: set[int] = set()
        for source in inner:
            found.add(id(source))
            if not isinstance(source.op, Reduction):
                found |= above[id(source)]
        above[id(node)] = found
    return above


def _inner_inputs(nodes: Sequence[Node], emit: Emitter) -> list[tuple[Node, list[Node]]]:
    """Each node with the members of the group that it reads, through whatever is computed in place."""
    inside = {id(node): node for node in nodes}
    out = []
    for node in nodes:
        found: dict[int, Node] = {}
        seen: set[int] = set()
        stack = list(node.inputs)
        while stack:
            at = stack.pop()
            if id(at) in inside:
                found[id(at)] = at
            elif id(at) not in seen and not emit.has_buffer(at):
                seen.add(id(at))
                stack.extend(at.inputs)
        out.append((node, list(found.values())))
    return out
