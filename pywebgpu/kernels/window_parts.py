"""Parts of a kernel rewritten so that they bind windows of its long buffers: see windows.py."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pywebgpu.kernels import ir
from pywebgpu.kernels.intervals import Intervals
from pywebgpu.kernels.ir import Array, Expr, Load
from pywebgpu.kernels.kernel import Limits
from pywebgpu.kernels.windows import Part, array_bytes, nbytes
from pywebgpu.support.formats import WORD

MOST = 256  # parts of a kernel


def divisions(
    body: ir.Block, arrays: Sequence[Array], long: Sequence[Array], lanes: int, groups: int, limits: Limits
) -> Iterator[list[Part]]:
    """Ways to run a kernel of long arrays: whole, then in more and more parts, which bind less and less."""
    size = groups
    largest = max(array_bytes(array) for array in long)
    while True:
        starts = range(0, groups, size)
        yield [_part(body, arrays, lanes, first, min(size, groups - first), limits) for first in starts]
        size = min(size, max(groups * nbytes(limits) // largest, 1) * 2) // 2
        if not size or -(-groups // size) > MOST:
            return


def _part(body: ir.Block, arrays: Sequence[Array], lanes: int, first: int, groups: int, limits: Limits) -> Part:
    known = {ir.GROUP.name: (first, first + groups - 1), ir.LANE.name: (0, lanes - 1)}
    rewriter = _Windows(arrays, Intervals(known), limits)
    done = rewriter.block(body)
    bound: list[tuple[int, int | None]] = []
    bindings: list[Array] = []
    for index, array in enumerate(arrays):
        windows = sorted(rewriter.used[array.name].items()) if array.name in rewriter.used else [(None, array)]
        bound += [(index, window) for window, _ in windows]
        bindings += [binding for _, binding in windows]
    return Part(first, groups, done, tuple(bindings), tuple(bound), tuple(rewriter.functions.values()))


class _Windows:
    """used: by name of a long array, the windows of it that are reached.  functions: that look for the right one."""

    def __init__(self, arrays: Sequence[Array], intervals: Intervals, limits: Limits) -> None:
        self._intervals, self._limits = intervals, limits
        self.used: dict[str, dict[int, Array]] = {a.name: {} for a in arrays if array_bytes(a) > limits.binding_bytes}
        self.functions: dict[str, ir.Windowed] = {}

    def block(self, body: ir.Block) -> ir.Block:
        before = dict(self._intervals.known)
        statements = [self._statement(statement) for statement in body]
        self._intervals.known = before
        return statements

    def _statement(self, statement: ir.Statement) -> ir.Statement:
        match statement:
            case ir.Declare(word, target, value):
                self._intervals.declare(statement)
                return ir.Declare(word, target, value and self._expr(value))
            case ir.Assign(Load() as target, value, sign) if target.array.name in self.used:
                return self._store(target, self._expr(value), sign)
            case ir.Assign(target, value, sign):
                return ir.Assign(self._expr(target), self._expr(value), sign)
            case ir.If(branches):
                return ir.If([(condition and self._expr(condition), self.block(body)) for condition, body in branches])
            case ir.Loop(condition, body, head):
                self._intervals.count(statement)
                return ir.Loop(self._expr(condition), self.block(body), head)
            case ir.Scope(body):
                return ir.Scope(self.block(body))
        return statement

    def _expr(self, e: Expr) -> Expr:
        match e:
            case Load():
                index = self._expr(e.index)
                return self._load(e, index) if e.array.name in self.used else Load(e.array, index, e.width)
            case ir.Call():
                return ir.Call(e.intrinsic, e.type, *map(self._expr, e.args))
        return e

    def _reached(self, target: Load) -> list[tuple[int, Array]]:
        """The windows that an index may lie in, each with its first element."""
        array = target.array
        length = nbytes(self._limits) // (WORD * array.type.width)
        low, high = self._intervals.of(target.index) or (0, array.size - 1)
        # Outside it is read where a condition forbids it.
        first, last = (min(max(end, 0), array.size - 1) // length for end in (low, high))
        windows = []
        for window in range(first, max(first, last) + 1):
            if window not in self.used[array.name]:
                size = min(length, array.size - window * length)
                name, fixed_length = f"{array.name}_{window}", size if array.length else 0
                self.used[array.name][window] = Array("storage", name, array.type, fixed_length, size, array.name)
            windows.append((window * length, self.used[array.name][window]))
        return windows

    def _load(self, e: Load, index: Expr) -> Expr:
        reached = self._reached(e)
        if len(reached) == 1:
            start, window = reached[0]
            return Load(window, _moved(index, start), e.width)
        name = f"{reached[0][1].name}_to_{reached[-1][1].name}" + (f"_by_{e.width}" if e.width > 1 else "")
        self.functions[name] = ir.Windowed(name, e.width, tuple(reached))
        return ir.call(name, e.type, index)

    def _store(self, target: Load, value: Expr, sign: str) -> ir.Statement:
        reached, index = self._reached(target), self._expr(target.index)
        if len(reached) == 1:
            start, window = reached[0]
            return ir.Assign(Load(window, _moved(index, start), target.width), value, sign)
        stored_at, stored = ir.Var(ir.U32, "stored_at"), ir.Var(value.type, "stored")
        branches: list[tuple[Expr | None, ir.Block]] = []
        for (start, window), (end, _) in zip(reached, [*reached[1:], (0, None)], strict=True):
            put = ir.Assign(Load(window, _moved(stored_at, start), target.width), stored, sign)
            branches.append((stored_at < end if end else None, [put]))
        return ir.Scope([ir.Declare("let", stored_at, index), ir.Declare("let", stored, value), ir.If(branches)])


def _moved(index: Expr, start: int) -> Expr:
    return index - start if start else index
