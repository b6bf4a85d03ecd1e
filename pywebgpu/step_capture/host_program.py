"""What the host does in a step, as data: a list of instructions in SSA form, which Python and JavaScript evaluate.

An instruction's value is known by its index in the list, and operands are indices of earlier instructions; equal
computations are there once. A program reads and writes numbered cells; what those are is known to who binds it.
docs/guides/export.md lists the instructions, tests/cases/host_programs.json what they give, here and in JavaScript.
"""

from __future__ import annotations

import operator
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from math import ceil, copysign, cos, exp, floor, log, sin, sqrt, trunc
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from pywebgpu.step_capture.free_number import Number

MOST = 1 << 16  # instructions of one program
BITS = 4096  # of a whole number

Kind = type  # of a value: float, int, bool, or of a guarded cell that holds something else


class HostProgramError(ValueError):
    """Instructions that are no program."""


class Instruction(NamedTuple):
    """read: cell, kind.  const: value.  write: cell, index.  act: number of an action.  guard: index, expected value.

    Any other op has the indices of its operands.
    """

    op: str
    operands: tuple[Any, ...]


# Operations


@dataclass(frozen=True, slots=True)
class Operation:
    """`kind` gives the type of the result from those of the operands, and None where it takes no such operands."""

    function: Callable[..., Any]
    kind: Callable[..., Kind | None]
    n_operands: int
    symbol: str = ""


def _wider(a: Kind, b: Kind) -> Kind:
    return float if float in (a, b) else int


def _alike(a: Kind, b: Kind) -> Kind | None:
    return a if a is b else None


def _binary(
    function: Callable[[Any, Any], Any], symbol: str = "", kind: Callable[..., Kind | None] = _wider
) -> Operation:
    return Operation(function, kind, 2, symbol)


def _unary(function: Callable[[Any], Any], kind: Kind | None = None) -> Operation:
    return Operation(function, lambda a: kind or a, 1)


def _power(a: Number, b: Number) -> Number:
    """Where the result is of another type than at other values, the host has to look at it again."""
    if type(a) is int and type(b) is int:
        if b < 0:
            raise ValueError("a whole number to a negative power is no whole number")
        if (a.bit_length() - 1) * b > BITS:
            raise OverflowError(f"a whole number of more than {BITS} bits")
    result = a**b
    if type(result) is complex:
        raise ValueError("a negative number to a fractional power is complex")
    return result


def _product(a: Number, b: Number) -> Number:
    result = a * b
    if type(result) is int and result.bit_length() > BITS:
        raise OverflowError(f"a whole number of more than {BITS} bits")
    return result


_truth, _real = lambda a, b: bool, lambda a, b: float
OPERATIONS: dict[str, Operation] = {
    "add": _binary(operator.add, "+"),
    "sub": _binary(operator.sub, "-"),
    "mul": _binary(_product, "*"),
    "div": _binary(operator.truediv, "/", _real),
    "floordiv": _binary(operator.floordiv, "//"),
    "mod": _binary(operator.mod, "%"),
    "pow": _binary(_power, "**"),
    "min": _binary(min, "", _alike),
    "max": _binary(max, "", _alike),
    "lt": _binary(operator.lt, "<", _truth),
    "le": _binary(operator.le, "<=", _truth),
    "gt": _binary(operator.gt, ">", _truth),
    "ge": _binary(operator.ge, ">=", _truth),
    "eq": _binary(operator.eq, "==", _truth),
    "ne": _binary(operator.ne, "!=", _truth),
    "neg": _unary(operator.neg),
    "abs": _unary(abs),
    "to_float": _unary(float, float),
    "trunc": _unary(trunc, int),
    "floor": _unary(floor, int),
    "ceil": _unary(ceil, int),
    "round": _unary(round, int),
    "sqrt": _unary(sqrt, float),
    "exp": _unary(exp, float),
    "log": _unary(log, float),
    "sin": _unary(sin, float),
    "cos": _unary(cos, float),
}


def is_same(now: object, before: object) -> bool:
    """Whether Python cannot tell two numbers apart: it can 0.0 and -0.0, 1 and 1.0, and not NaN and NaN."""
    if type(now) is not type(before):
        return False
    if now == before and (type(now) is not float or now != 0):
        return True
    is_equal = now == before or (now != now and before != before)
    return bool(is_equal and copysign(1, now) == copysign(1, before))  # type: ignore[arg-type]


# Programs


@dataclass(frozen=True, slots=True)
class HostProgram:
    """`kinds`: the type of each instruction's value, None for those without one. `n_cells`, `n_actions`: how many."""

    instructions: tuple[Instruction, ...]
    kinds: tuple[Kind | None, ...]
    n_cells: int = 0
    n_actions: int = 0

    def text(self, number: int, names: Sequence[str] = (), depth: int = 6) -> str:
        """A value in words, by its index, for messages: `names` are those of the cells."""
        op, operands = self.instructions[number]
        if op == "read":
            return names[operands[0]] if operands[0] < len(names) else f"cell {operands[0]}"
        if op == "const":
            return repr(operands[0])
        if not depth:
            return "..."
        parts = [self.text(operand, names, depth - 1) for operand in operands]
        symbol = OPERATIONS[op].symbol
        return f"({parts[0]} {symbol} {parts[1]})" if symbol else f"{op}({', '.join(parts)})"

    def bound(
        self,
        names: Sequence[str],
        getters: Sequence[Callable[[], Any] | None],
        setters: Sequence[Callable[[Any], None] | None],
        actions: Sequence[Callable[[], Any]] = (),
    ) -> Bound:
        """The program with its cells: their names, what reads them, what writes them; and what it calls."""
        return Bound(self, names, getters, setters, actions)


class Builder:
    """Instructions as they come. Each method gives the index of a value; `is_full`: no more are taken."""

    def __init__(self) -> None:
        self.instructions: list[Instruction] = []
        self.kinds: list[Kind | None] = []
        self.is_full = False
        self._known: dict[Any, int] = {}

    def read(self, cell: int, kind: Kind) -> int:
        return self._append(Instruction("read", (cell, kind)), kind)

    def const(self, value: Number) -> int:
        """A number. True is 1, as it is to every operation."""
        value = int(value) if type(value) is bool else value
        key = type(value), value.hex() if type(value) is float else value
        return self._once(key, Instruction("const", (value,)), type(value))

    def apply(self, op: str, *operands: int) -> int:
        instruction = Instruction(op, operands)
        return self._once(instruction, instruction, kind_of(instruction, self.kinds))

    def write(self, cell: int, index: int) -> None:
        self._append(Instruction("write", (cell, index)), None)

    def act(self, action: int) -> None:
        self._append(Instruction("act", (action,)), None)

    def guard(self, index: int, expected: object) -> None:
        key = "guard", index  # A value does not change, so it is compared once.
        self._once(key, Instruction("guard", (index, expected)), None)

    def built(self, n_cells: int, n_actions: int = 0) -> HostProgram:
        return HostProgram(tuple(self.instructions), tuple(self.kinds), n_cells, n_actions)

    def _once(self, key: Hashable, instruction: Instruction, kind: Kind | None) -> int:
        number = self._known.get(key)
        if number is None:
            number = self._known[key] = self._append(instruction, kind)
        return number

    def _append(self, instruction: Instruction, kind: Kind | None) -> int:
        if len(self.instructions) >= MOST:
            self.is_full = True
            return 0
        self.instructions.append(instruction)
        self.kinds.append(kind)
        return len(self.kinds) - 1


def kind_of(instruction: Instruction, kinds: Sequence[Kind | None]) -> Kind:
    """The type of an operation's value. Raises HostProgramError for operands that it does not take."""
    op, operands = instruction
    operand_kinds = [kinds[operand] for operand in operands]
    are_numbers = all(operand_kind in (int, float) for operand_kind in operand_kinds)
    kind = OPERATIONS[op].kind(*operand_kinds) if are_numbers else None
    if kind is None:
        names = [getattr(operand_kind, "__name__", "nothing") for operand_kind in operand_kinds]
        raise HostProgramError(f"{op} takes no {' and '.join(names)}")
    return kind


# Evaluation


class Changed(Exception):
    """A number is not what a guard expects: Python would now do something else than the program does."""


_OPERATION, _UNARY, _READ, _GUARD, _WRITE, _ACT = range(6)


class Bound:
    """A host program that can run.

    is_deferred: `run` changes nothing, and `commit` does all that it writes. False where it acts, or reads what it
    wrote: then `run` does all in its order.
    """

    __slots__ = ("_code", "_names", "_setters", "_start", "_written", "is_deferred", "program")

    def __init__(
        self,
        program: HostProgram,
        names: Sequence[str],
        getters: Sequence[Callable[[], Any] | None],
        setters: Sequence[Callable[[Any], None] | None],
        actions: Sequence[Any] = (),
    ) -> None:
        self.program, self._names = program, names
        self.is_deferred = _is_deferred(program)
        self._start: list[Any] = [None] * len(program.instructions)
        self._code: list[tuple[int, int, Any, Any, Any]] = []
        self._setters: list[Any] = []
        self._written: list[int] = []  # the instructions whose values they write
        for number, (op, operands) in enumerate(program.instructions):
            if op == "const":
                self._start[number] = operands[0]
            elif op == "read":
                self._code.append((_READ, number, getters[operands[0]], operands[1], None))
            elif op == "guard":
                self._code.append((_GUARD, number, None, *operands))
            elif op == "write" and self.is_deferred:
                self._setters.append(setters[operands[0]])
                self._written.append(operands[1])
            elif op == "write":
                self._code.append((_WRITE, number, setters[operands[0]], operands[1], None))
            elif op == "act":
                self._code.append((_ACT, number, actions[operands[0]], None, None))
            else:
                kind = _UNARY if len(operands) == 1 else _OPERATION
                function = _function(op, program.kinds, operands)
                self._code.append((kind, number, function, operands[0], operands[-1]))

    def run(self) -> list[Any]:
        """The values of all instructions. Raises Changed, and what the operations of Python raise."""
        v = self._start[:]
        for code, number, function, a, b in self._code:
            if code == _OPERATION:
                v[number] = function(v[a], v[b])
            elif code == _READ:
                value = v[number] = function()
                if type(value) is not a:
                    raise Changed(self._now(number, f"of type {a.__name__}", f"of type {type(value).__name__}"))
            elif code == _GUARD:
                if v[a] is not b and not is_same(v[a], b):
                    raise Changed(self._now(a, repr(b), repr(v[a])))
            elif code == _UNARY:
                v[number] = function(v[a])
            elif code == _WRITE:
                function(v[a])
            else:
                function()
        return v

    def commit(self, values: list[Any]) -> None:
        """Writes what `run` computed, where it did not itself."""
        deque(map(operator.call, self._setters, map(values.__getitem__, self._written)), 0)

    def _now(self, number: int, before: str, now: str) -> str:
        text = self.program.text(number, self._names)
        return f"{text} was {before} and is {now}"


def _is_deferred(program: HostProgram) -> bool:
    written: set[int] = set()
    for op, operands in program.instructions:
        if op == "act" or (op == "read" and operands[0] in written):
            return False
        if op == "write":
            written.add(operands[0])
    return True


def _function(op: str, kinds: Sequence[Kind | None], operands: Sequence[int]) -> Callable[..., Any]:
    """An operation, without the checks that its operands do not need."""
    is_float = any(kinds[operand] is float for operand in operands)
    return operator.mul if op == "mul" and is_float else OPERATIONS[op].function
