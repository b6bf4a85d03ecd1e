"""Places in memory as text for a device that a CPU plays: each part of an index is computed once, outside of loops.

A GPU's own compiler does all of this. There, every operation of an index is one of several machine instructions, and a
division of whole numbers is dozens.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Protocol

from pywebgpu.symbolic import Atom, Quotient, Remainder, Sym, Var, atoms, text

EXACT = 1 << 21  # Below it a quotient is right by float32: (x + 1/2) / n is further from a whole number than it errs.
_DECLARED = re.compile(r"(?:for \()?(?:let|var) (\w+)")


class Writer(Protocol):
    lines: list[str]

    def fresh(self, letter: str = "v") -> str: ...


@dataclass(slots=True)
class _Block:
    """first: the line that opens it.  named: parts of indices that have a name in it."""

    first: int
    repeats: bool
    named: dict[Sym, str] = field(default_factory=dict)


class Places:
    """Follows a kernel as it is written. A part of an index stands in the block that declares its last variable."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self._blocks = [_Block(0, repeats=False)]
        self._closed = self._blocks[0]  # the block that ended last
        self._depths: dict[str, int] = {}  # how deep the block is in which a variable was declared

    def open(self, opening: str) -> None:
        # Nothing may stand between a block and its "else".
        first = self._closed.first if opening.startswith("else") else len(self._writer.lines)
        self._blocks.append(_Block(first, opening.startswith(("for", "while"))))

    def close(self) -> None:
        self._closed = self._blocks.pop()

    def declare(self, line: str) -> None:
        if found := _DECLARED.match(line):
            self._depths[found[1]] = len(self._blocks) - 1

    def text(self, at: Sym) -> str:
        here = len(self._blocks) - 1
        parts: dict[int, list[tuple[Atom, int]]] = {}
        for atom, factor in at.terms:
            parts.setdefault(self._depth(atoms(Sym(((atom, 1),), 0))), []).append((atom, factor))
        if len(parts) < 2 and (not parts or here in parts):
            return text(self._plain(at), "u")
        outer = min(parts)
        named: list[tuple[Atom, int]] = []
        for depth, terms in sorted(parts.items()):
            part = Sym(tuple(terms), at.const if depth == outer else 0)
            if _is_variable(part):
                named += part.terms
            else:
                named.append((_variable(self._name(part, depth)), 1))
        return text(Sym(tuple(named), 0), "u")

    def _plain(self, at: Sym) -> Sym:
        """The same with names in the place of quotients and remainders."""
        terms: list[tuple[Atom, int]] = []
        for atom, factor in at.terms:
            if not isinstance(atom, Var):
                whole = Sym(((atom, 1),), 0)
                atom = _variable(self._name(whole, self._depth(atoms(whole))))
            terms.append((atom, factor))
        return Sym(tuple(terms), at.const)

    def _depth(self, variables: list[Var]) -> int:
        """Of the block for what is made of variables: the one that has the last, where it would be repeated else."""
        here = len(self._blocks) - 1
        if not any(block.repeats for block in self._blocks):
            return here
        return max((self._depths.get(atom.name, 0) for atom in variables), default=0)

    def _name(self, part: Sym, depth: int) -> str:
        for block in self._blocks:
            if part in block.named:
                return block.named[part]
        name = self._writer.fresh("p")
        self._put(f"let {name} = {self._expression(part)};", depth)
        self._depths[name] = depth
        self._blocks[depth].named[part] = name
        return name

    def _expression(self, part: Sym) -> str:
        atom = part.terms[0][0]
        if len(part.terms) > 1 or part.const or part.terms[0][1] != 1 or isinstance(atom, Var):
            return text(self._plain(part), "u")
        whole = text(self._plain(atom.of), "u")
        if atom.by & (atom.by - 1) == 0 and isinstance(atom, Remainder):
            return f"({whole}) & {atom.by - 1}u"
        if not 0 <= atom.of.low <= atom.of.high < EXACT:
            return f"({whole}) {'/' if isinstance(atom, Quotient) else '%'} {atom.by}u"
        if isinstance(atom, Quotient):
            return f"u32(i32((f32(i32({whole})) + 0.5) * {1 / atom.by!r}))"
        quotient = Sym(((Quotient(atom.of, atom.by), 1),), 0)
        name = self._name(quotient, self._depth(atoms(quotient)))
        return f"{whole} - {name} * {atom.by}u"

    def _put(self, line: str, depth: int) -> None:
        lines, inner = self._writer.lines, self._blocks[depth + 1 :]
        at = inner[0].first if inner else len(lines)
        lines.insert(at, "  " * (depth + 1) + line)
        for block in inner:
            block.first += 1


def _is_variable(part: Sym) -> bool:
    return not part.const and len(part.terms) == 1 and part.terms[0][1] == 1 and isinstance(part.terms[0][0], Var)


def _variable(name: str) -> Var:
    return Var(name, 0, 2**31)
