"""Row programs: reductions over the same rows, with pointwise work before, between and after, in one kernel.

Each row has `lanes` invocations. Reductions that depend on one another run one after the other, each a pass over the
row and a tree in workgroup memory, so every lane has the result; values of the row are computed again in each pass.
Partial results are joined in an order that only the shapes decide: two runs give the same bits.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from pywebgpu.dtypes import DType, Kind
from pywebgpu.ir.graph import Node, Reduction
from pywebgpu.kernels.builder import Builder, element, rounded
from pywebgpu.kernels.combine import combine
from pywebgpu.kernels.ir import (
    GROUP,
    I32,
    LANE,
    U32,
    Const,
    Expr,
    Type,
    Var,
    constant,
    construct,
    isnan_,
    scalar,
    smaller,
)
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

    def __init__(self, space: Any, limits: Limits) -> None:
        self.rows, self.columns = space.rows, space.columns
        limit = 1 << (limits.workgroup_size.bit_length() - 1)  # A tree halves its lanes.
        self.full: Sym = space.full()
        self.row = variable("row", self.rows)
        axes = [axis for axis, n in enumerate(space.shape) if n > 1]
        self.along = not axes or axes[-1] in space.axes  # neighbours in memory lie in one row
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

    def open(self, build: Builder) -> None:
        """inside: whether there is a row. place: an invocation's number among its row's lanes. Else the last row."""
        own: Expr = LANE
        position: Expr = Const(U32, 0)
        if self.lanes > 1:
            down, along = LANE // self.lanes, LANE % self.lanes
            own, position = (down, along) if self.along else (LANE % self.beside, LANE // self.beside)
        wanted = build.let(GROUP * self.beside + own, "wanted")
        self.inside = build.let(wanted < self.rows, "inside")
        build.let(smaller(wanted, max(self.rows - 1, 0)), "row")
        self.position = build.let(position, "position")

    @contextmanager
    def each_column(self, build: Builder, each: int = 1) -> Iterator[Var]:
        """each: neighbours that one lane visits, a divisor of the columns."""
        if each == 1:
            with build.loop("column", self.position, self.columns, 1 if self.columns == 1 else self.lanes) as column:
                yield column
            return
        step = self.lanes * each
        with (
            build.loop("at", self.position * each, self.columns, step) as at,
            build.loop("column", at, at + each) as column,
        ):
            yield column


def _power(n: int) -> int:
    """The next power of two."""
    return 1 << max(n - 1, 0).bit_length()


def generate(
    nodes: Sequence[Node], outputs: Sequence[Node], space: Any, levels: dict[int, str], build: Builder
) -> Kernel:
    walk = Rows(space, build.limits)
    walk.open(build)
    depth = _depths(nodes, build)
    above = _ancestors(nodes, build)
    reductions = [node for node in nodes if isinstance(node.op, Reduction)]
    between = [node for node in nodes if levels[id(node)] == OUTER and not isinstance(node.op, Reduction)]
    for level in sorted({depth[id(node)] for node in reductions}):
        _outer_values(between, depth, level, walk, build)
        _reduce([n for n in reductions if depth[id(n)] == level], nodes, above, levels, walk, build)
    deepest = max((depth[id(node)] for node in reductions), default=0)
    _outer_values(between, depth, deepest + 1, walk, build)
    small = [node for node in outputs if levels[id(node)] == OUTER]
    if small:
        with build.if_(walk.inside, walk.position.eq(0)):
            values = [build.value(node, element(walk.row, node)) for node in small]
            for node, value in zip(small, values, strict=True):
                build.store(node, walk.row, value)
    large = [node for node in outputs if levels[id(node)] == FULL]
    if large:
        each = build.gather(large)
        with build.if_(walk.inside), walk.each_column(build, each):
            for node in nodes:
                if levels[id(node)] == FULL and any(node is o or id(node) in above[id(o)] for o in large):
                    value = build.value(node, element(walk.full, node))
                    if any(node is o for o in large):
                        build.store(node, walk.full, value)
    name = "_".join(dict.fromkeys(node.op.name for node in reductions))
    return build.kernel(f"rows_{name}", walk.size, walk.groups)


def _outer_values(between: list[Node], depth: dict[int, int], level: int, walk: Rows, build: Builder) -> None:
    for node in between:
        if depth[id(node)] == level - 1:
            build.value(node, element(walk.row, node))


def _reduce(
    reductions: list[Node], nodes: Sequence[Node], above: Any, levels: dict[int, str], walk: Rows, build: Builder
) -> None:
    accumulators = {id(node): _Accumulator(node, walk, build) for node in reductions}
    needed = [n for n in nodes if levels[id(n)] == FULL and any(id(n) in above[id(r)] for r in reductions)]
    with walk.each_column(build) as column:
        for node in needed:
            build.value(node, element(walk.full, node))
        for node in reductions:
            source = node.inputs[0]
            accumulators[id(node)].take(build.value(source, element(walk.full, source)), column, build)
    for at, node in enumerate(reductions):
        result = accumulators[id(node)].join(walk, at, build)
        build.define(node, walk.row, result)


class _Accumulator:
    """The running value of one reduction: a variable, or a value and its place for argmax and argmin."""

    def __init__(self, node: Node, walk: Rows, build: Builder) -> None:
        op = node.op
        assert isinstance(op, Reduction)
        self.name, self.dtype = op.name, node.inputs[0].spec.dtype
        self.positional = op.name in ("argmax", "argmin")
        self.combine = op.combine
        start = self._identity(scalar(self.dtype))
        self.value = build.var(start, build.fresh("acc"))
        floats = self.name == "sum" and self.dtype.kind is Kind.FLOAT
        self.part: Var | None = None
        if floats and walk.lanes == 1 and walk.columns > PART:
            self.part = build.var(start, build.fresh("acc"))
        if self.positional:
            self.position = build.var(Const(U32, 0xFFFFFFFF), build.fresh("acc"))

    def _identity(self, kind: Type) -> Expr:
        match self.name:
            case "sum":
                return Const(kind, 0)
            case "prod":
                return Const(kind, 1)
            case "max" | "argmax":
                return _extreme(self.dtype, kind, low=True)
            case _:
                return _extreme(self.dtype, kind, low=False)

    def take(self, value: Expr, column: Var, build: Builder) -> None:
        if self.positional:
            self._choose(value, column, build)
        elif self.part is not None:
            build.assign(self.part, value, "+=")
            with build.if_((column & (PART - 1)).eq(PART - 1)):
                build.assign(self.value, self.part, "+=")
                build.assign(self.part, 0.0)
        else:
            build.assign(self.value, combine(self.combine, self.value, value))

    def _choose(self, value: Expr, position: Expr, build: Builder) -> None:
        """Takes a candidate that is larger (smaller), or equal and earlier; NaN is larger (smaller) than all."""
        better = value > self.value if self.name == "argmax" else value < self.value
        same = value.eq(self.value)
        if self.dtype.kind is Kind.FLOAT:
            better = (better | isnan_(value)) & ~isnan_(self.value)
            same = same | (isnan_(value) & isnan_(self.value))
        with build.if_(better | (same & (position < self.position))):
            build.assign(self.value, value)
            build.assign(self.position, position)

    def join(self, walk: Rows, at: int, build: Builder) -> Expr:
        """Joins the lanes of a row; the result, which every lane of the row has."""
        if self.part is not None:
            build.assign(self.value, self.part, "+=")
        if walk.lanes > 1:
            self._tree(walk, at, build)
        return build.let(construct(I32, self.position) if self.positional else rounded(self.value, self.dtype))

    def _tree(self, walk: Rows, at: int, build: Builder) -> None:
        kind = self.value.type
        shared = [(self.value, build.workgroup_array(f"shared_{kind}_{at}", kind, walk.size))]
        if self.positional:
            shared.append((self.position, build.workgroup_array(f"shared_position_{at}", U32, walk.size)))
        apart = 1 if walk.along else walk.beside
        for own, array in shared:
            build.assign(array[LANE], own)
        build.barrier()
        with build.loop("step", walk.lanes // 2, 0, 1, ">>=") as step:
            with build.if_(walk.position < step):
                value, *positions = [build.let(array[LANE + step * apart]) for _, array in shared]
                if self.positional:
                    self._choose(value, positions[0], build)
                else:
                    build.assign(self.value, combine(self.combine, self.value, value))
                for own, array in shared:
                    build.assign(array[LANE], own)
            build.barrier()
        for own, array in shared:
            build.assign(own, array[LANE - walk.position * apart])
        build.barrier()


def _extreme(dtype: DType, kind: Type, *, low: bool) -> Expr:
    if dtype.kind is Kind.FLOAT:
        return constant(float("-inf" if low else "inf"), kind)
    return constant(max(dtype.low, -(2**31)) if low else min(dtype.high, 2**31 - 1 if kind == I32 else 2**32 - 1), kind)


def _depths(nodes: Sequence[Node], build: Builder) -> dict[int, int]:
    """How many reductions of the group lie on the way to a node, itself included."""
    depth: dict[int, int] = {}
    for node, inner in _inner_inputs(nodes, build):
        below = max((depth[id(n)] for n in inner), default=0)
        depth[id(node)] = below + isinstance(node.op, Reduction)
    return depth


def _ancestors(nodes: Sequence[Node], build: Builder) -> dict[int, set[int]]:
    """Group members that a member needs in the same pass: not those behind a reduction."""
    above: dict[int, set[int]] = {}
    for node, inner in _inner_inputs(nodes, build):
        found: set[int] = set()
        for source in inner:
            found.add(id(source))
            if not isinstance(source.op, Reduction):
                found |= above[id(source)]
        above[id(node)] = found
    return above


def _inner_inputs(nodes: Sequence[Node], build: Builder) -> list[tuple[Node, list[Node]]]:
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
            elif id(at) not in seen and not build.has_buffer(at):
                seen.add(id(at))
                stack.extend(at.inputs)
        out.append((node, list(found.values())))
    return out
