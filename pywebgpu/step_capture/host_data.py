"""Host programs as data of JSON, for files and for JavaScript, and back again, where every index is checked."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, isfinite, nan
from typing import TYPE_CHECKING, Any

from pywebgpu.step_capture.host_program import (
    BITS,
    MOST,
    OPERATIONS,
    HostProgram,
    HostProgramError,
    Instruction,
    Kind,
    kind_of,
)

if TYPE_CHECKING:
    from pywebgpu.step_capture.free_number import Number

_KINDS: dict[str, Kind] = {"float": float, "int": int}
_SPECIAL = {"inf": inf, "-inf": -inf, "nan": nan}


def to_data(program: HostProgram, names: Sequence[str]) -> list[Any]:
    """The instructions as data of JSON. A guard has its own words for messages.

    Raises: HostProgramError for what is known to Python alone: actions, and cells that hold no float and no int.
    """
    return [_data_of(program, instruction, names) for instruction in program.instructions]


def _data_of(program: HostProgram, instruction: Instruction, names: Sequence[str]) -> list[Any]:
    op, operands = instruction
    if op == "const":
        return _number_data(operands[0])
    if op == "guard":
        return [op, operands[0], _number_data(operands[1])[-1], program.text(operands[0], names)]
    if op == "read" and operands[1] in (float, int):
        return [op, operands[0], operands[1].__name__]
    if op in ("read", "act"):
        raise HostProgramError(f"what it does on the host cannot leave Python: {op} {operands}")
    return [op, *operands]


def _number_data(value: object) -> list[Any]:
    if type(value) not in (float, int, bool):
        raise HostProgramError(f"a {type(value).__name__} cannot leave Python")
    if type(value) is float and not isfinite(value):
        return ["float", repr(value)]
    return [type(value).__name__, value]


def from_data(data: object, n_cells: int) -> HostProgram:
    """What `to_data` made. Raises HostProgramError for anything else, with where and why."""
    if not isinstance(data, list) or len(data) > MOST:
        raise HostProgramError(f"a host program is a list of at most {MOST} instructions")
    instructions: list[Instruction] = []
    kinds: list[Kind | None] = []
    for index, item in enumerate(data):
        try:
            instruction, kind = _instruction(item, n_cells, kinds)
        except (HostProgramError, TypeError, ValueError, LookupError) as error:
            raise HostProgramError(f"instruction {index}: {error}") from None
        instructions.append(instruction)
        kinds.append(kind)
    return HostProgram(tuple(instructions), tuple(kinds), n_cells)


def _instruction(item: Any, n_cells: int, kinds: list[Kind | None]) -> tuple[Instruction, Kind | None]:
    op, *operands = item
    match op, operands:
        case "read", [cell, kind]:
            return Instruction(op, (below(cell, n_cells), _KINDS[kind])), _KINDS[kind]
        case "float" | "int", [int() | float() | str() as number] if not (op == "float" and type(number) is int):
            value = _number(number, _KINDS[op])
            return Instruction("const", (value,)), type(value)
        case "write", [cell, index]:
            value_kind(index, kinds)
            return Instruction(op, (below(cell, n_cells), index)), None
        case "guard", [index, expected, str()]:
            return Instruction(op, (index, _number(expected, value_kind(index, kinds)))), None
    if len(operands) != OPERATIONS[op].n_operands:
        raise HostProgramError(f"{op} has {len(operands)} operands")
    for index in operands:
        value_kind(index, kinds)
    instruction = Instruction(op, tuple(operands))
    return instruction, kind_of(instruction, kinds)


def below(number: object, end: int) -> int:
    """A number from 0 up to `end`. Raises HostProgramError for anything else."""
    if type(number) is not int or not 0 <= number < end:
        raise HostProgramError(f"{number!r} is none of {end}")
    return number


def value_kind(index: object, kinds: Sequence[Kind | None]) -> Kind:
    """The type of an earlier instruction's value. Raises HostProgramError where there is none."""
    kind = kinds[below(index, len(kinds))]
    if kind is None:
        raise HostProgramError(f"instruction {index} has no value")
    return kind


def _number(data: object, kind: Kind) -> Number:
    value: Any = _SPECIAL.get(data, data) if kind is float and isinstance(data, str) else data
    if type(value) is not kind or (type(value) is int and value.bit_length() > BITS):
        raise HostProgramError(f"{value!r} is no {kind.__name__}")
    return value  # type: ignore[return-value]
