"""Between which numbers an expression of a kernel lies: what is known of the variables decides it."""

from __future__ import annotations

from pywebgpu.kernels import ir
from pywebgpu.kernels.ir import Call, Const, Expr, Index
from pywebgpu.support.symbolic import Atom, Quotient, Remainder, Sym, Var

Interval = tuple[int, int]
_WORD = 1 << 32


class Intervals:
    """Of u32 expressions. `known`: by name, what a variable lies between; `enter` adds what statements say."""

    def __init__(self, known: dict[str, Interval]) -> None:
        self.known: dict[str, Interval | None] = {**known}

    def declare(self, statement: ir.Declare) -> None:
        """A variable that is assigned to later may be anything."""
        self.known[statement.target.name] = (
            self.of(statement.value) if statement.word == "let" and statement.value is not None else None
        )

    def count(self, loop: ir.Loop) -> None:
        """The variable of a loop: from its start, up or down to what it is compared with."""
        if loop.head is None:
            return
        start, step = loop.head
        assert start.value is not None
        assert isinstance(loop.condition, Call)
        first, end = self.of(start.value), self.of(loop.condition.args[1])
        interval: Interval | None = None
        if first is not None and end is not None:
            interval = (first[0], max(end[1] - 1, first[0])) if step.sign == "+=" else (min(end[0], first[1]), first[1])
        self.known[start.target.name] = interval

    def of(self, e: Expr) -> Interval | None:
        """None where nothing is known."""
        match e:
            case Const(value=value):
                return (int(value), int(value)) if e.type == ir.U32 else None
            case ir.Var():
                return self.known.get(e.name)
            case Index():
                return self.index(e.at)
            case Call():
                return self._call(e)
        return None

    def _call(self, e: Call) -> Interval | None:
        if e.intrinsic.template == "select({0}, {1}, {2})":
            parts = [self.of(arg) for arg in e.args[:2]]
            known = [part for part in parts if part is not None]
            return (min(k[0] for k in known), max(k[1] for k in known)) if len(known) == 2 else None
        if e.type != ir.U32 or len(e.args) != 2:
            return None
        a, b = (self.of(arg) for arg in e.args)
        return None if a is None or b is None else _joined(e.intrinsic.template, a, b)

    def index(self, position: Sym) -> Interval:
        """Of an index, whose variables have bounds of their own."""
        low = high = position.const
        for atom, factor in position.terms:
            ends = [factor * end for end in self._atom(atom)]
            low, high = low + min(ends), high + max(ends)
        return max(low, position.low), min(high, position.high)

    def _atom(self, atom: Atom) -> Interval:
        match atom:
            case Var(name=name, low=low, high=high):
                known = self.known.get(name)
                return (low, high) if known is None else (max(low, known[0]), min(high, known[1]))
            case Quotient(of=of, by=by):
                low, high = self.index(of)
                return low // by, high // by
            case Remainder(of=of, by=by):
                low, high = self.index(of)
                return (low % by, high % by) if low // by == high // by else (0, by - 1)


def _joined(template: str, a: Interval, b: Interval) -> Interval | None:
    """Of two operands; None where the result may not fit in 32 bits."""
    match template:
        case "{0} + {1}":
            interval = a[0] + b[0], a[1] + b[1]
        case "{0} - {1}":
            interval = a[0] - b[1], a[1] - b[0]
        case "{0} * {1}":
            interval = a[0] * b[0], a[1] * b[1]
        case "{0} / {1}" if b[0] > 0:
            interval = a[0] // b[1], a[1] // b[0]
        case "({0} >> {1})" if b[0] == b[1]:
            interval = a[0] >> b[0], a[1] >> b[0]
        case "{0} % {1}" if b[0] == b[1] > 0:
            interval = (a[0] % b[0], a[1] % b[0]) if a[0] // b[0] == a[1] // b[0] else (0, b[0] - 1)
        case "min({0}, {1})":
            interval = min(a[0], b[0]), min(a[1], b[1])
        case "max({0}, {1})":
            interval = max(a[0], b[0]), max(a[1], b[1])
        case _:
            return None
    return interval if 0 <= interval[0] <= interval[1] < _WORD else None
