"""A pass for a device that a CPU plays: each part of an index is computed once, outside of loops.

A GPU's own compiler does all of this. There, every operation of an index is one of several machine instructions, and a
division of whole numbers is dozens.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from pywebgpu.kernels import ir
from pywebgpu.kernels.ir import Expr, Index
from pywebgpu.support.symbolic import Atom, Quotient, Remainder, Sym, Var, atoms

EXACT = 1 << 21  # Below it a quotient is right by float32: (x + 1/2) / n is further from a whole number than it errs.
_SHIFTED = ir.template("({0} >> {1})")
_QUOTIENT = ir.template("u32(i32((f32(i32({0})) + 0.5) * {1}))")


def hoist(body: ir.Block) -> ir.Block:
    return _Hoister().block(body)


@dataclass(slots=True)
class _Block:
    """body: as far as it is done.  named: parts of indices that have a name in it."""

    repeats: bool
    body: ir.Block = field(default_factory=list)
    named: dict[Sym, str] = field(default_factory=dict)


class _Hoister:
    """Walks a kernel in its order. A part of an index stands in the block that declares its last variable."""

    def __init__(self) -> None:
        self._blocks: list[_Block] = []
        self._depths: dict[str, int] = {}  # how deep the block is in which a variable was declared
        self._named = 0

    def block(self, body: ir.Block, repeats: bool = False) -> ir.Block:
        block = _Block(repeats)
        self._blocks.append(block)
        for statement in body:
            done = self._statement(statement)
            block.body.append(done)
        self._blocks.pop()
        return block.body

    def _statement(self, statement: ir.Statement) -> ir.Statement:
        match statement:
            case ir.Declare(word, target, value):
                done = ir.Declare(word, target, value and self._expr(value))
                self._depths[target.name] = len(self._blocks) - 1
                return done
            case ir.Assign(target, value, sign):
                return ir.Assign(self._expr(target), self._expr(value), sign)
            case ir.If(branches):
                # Nothing may stand between a block and its "else".
                conditions = [condition and self._expr(condition) for condition, _ in branches]
                return ir.If([(test, self.block(body)) for test, (_, body) in zip(conditions, branches, strict=True)])
            case ir.Loop(condition, body, head):
                if head:
                    start, step = head
                    declared = self._statement(start)
                    assert isinstance(declared, ir.Declare)
                    head = declared, step
                    self._depths[start.target.name] += 1  # A loop's variable belongs to its block.
                return ir.Loop(condition, self.block(body, repeats=True), head)
            case ir.Scope(body):
                return ir.Scope(self.block(body))
        return statement

    def _expr(self, e: Expr) -> Expr:
        match e:
            case Index():
                return Index(self._index(e.at))
            case ir.Load():
                return ir.Load(e.array, self._expr(e.index), e.width)
            case ir.Call():
                return ir.Call(e.intrinsic, e.type, *map(self._expr, e.args))
        return e

    def _index(self, position: Sym) -> Sym:
        here = len(self._blocks) - 1
        parts: dict[int, list[tuple[Atom, int]]] = {}
        for atom, factor in position.terms:
            parts.setdefault(self._depth(Sym(((atom, 1),), 0)), []).append((atom, factor))
        if len(parts) < 2 and (not parts or here in parts):
            return self._plain(position)
        outer = min(parts)
        named: list[tuple[Atom, int]] = []
        for depth, terms in sorted(parts.items()):
            part = Sym(tuple(terms), position.const if depth == outer else 0)
            named += part.terms if _is_variable(part) else ((self._name(part, depth), 1),)
        return Sym(tuple(named), 0)

    def _plain(self, position: Sym) -> Sym:
        """The same with names in the place of quotients and remainders."""
        terms: list[tuple[Atom, int]] = []
        for atom, factor in position.terms:
            single = Sym(((atom, 1),), 0)
            terms.append((atom if isinstance(atom, Var) else self._name(single, self._depth(single)), factor))
        return Sym(tuple(terms), position.const)

    def _depth(self, part: Sym) -> int:
        """Of the block for a part: the one that has its last variable, where it would be repeated else."""
        if not any(block.repeats for block in self._blocks):
            return len(self._blocks) - 1
        return max((self._depths.get(atom.name, 0) for atom in atoms(part)), default=0)

    def _name(self, part: Sym, depth: int) -> Var:
        for block in self._blocks:
            if part in block.named:
                return _variable(block.named[part])
        value = self._value(part)
        self._named += 1
        name = f"p{self._named}"
        self._blocks[depth].body.append(ir.Declare("let", ir.Var(ir.U32, name), value))
        self._depths[name] = depth
        self._blocks[depth].named[part] = name
        return _variable(name)

    def _value(self, part: Sym) -> Expr:
        atom = part.terms[0][0]
        if len(part.terms) > 1 or part.const or part.terms[0][1] != 1 or isinstance(atom, Var):
            return Index(self._plain(part))
        dividend = Index(self._plain(atom.of))
        if atom.by & (atom.by - 1) == 0:
            if isinstance(atom, Remainder):
                return dividend & (atom.by - 1)
            return ir.Call(_SHIFTED, ir.U32, dividend, ir.Const(ir.U32, atom.by.bit_length() - 1))
        if not 0 <= atom.of.low <= atom.of.high < EXACT:
            return dividend // atom.by if isinstance(atom, Quotient) else dividend % atom.by
        if isinstance(atom, Quotient):
            return ir.Call(_QUOTIENT, ir.U32, dividend, ir.Const(ir.F32, 1 / atom.by))
        quotient = Sym(((Quotient(atom.of, atom.by), 1),), 0)
        return dividend - Index(Sym(((self._name(quotient, self._depth(quotient)), atom.by),), 0))


def _is_variable(part: Sym) -> bool:
    return not part.const and len(part.terms) == 1 and part.terms[0][1] == 1 and isinstance(part.terms[0][0], Var)


def _variable(name: str) -> Var:
    return Var(name, 0, 2**31)
