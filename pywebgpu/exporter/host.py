"""The host programs of an export: with cells that all of its programs share, and played."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from pywebgpu.errors import CaptureError, PywebgpuError
from pywebgpu.step_capture import host_data
from pywebgpu.step_capture.capture import Cell
from pywebgpu.step_capture.host_program import Bound, Builder, Changed, HostProgram, HostProgramError

Data = dict[str, Any]


class PlayError(PywebgpuError, ValueError):
    """An export is damaged, or what a program was given does not fit it."""


# Writing


def needed(program: HostProgram, outputs: Iterable[int], kept: Callable[[int], bool] = lambda cell: True) -> set[int]:
    """The indices of what leads to an output, to a guard, or to a write of a cell that is `kept`."""
    indices = set(outputs)
    for index in reversed(range(len(program.instructions))):
        op, operands = program.instructions[index]
        if op == "guard":
            indices |= {index, operands[0]}
        elif op == "write" and kept(operands[0]):
            indices |= {index, operands[1]}
        elif index in indices and op not in ("read", "const"):
            indices.update(operands)
    return indices


def read(program: HostProgram, indices: Iterable[int]) -> set[int]:
    """The cells that the reads among these indices read."""
    chosen = (program.instructions[index] for index in indices)
    return {operands[0] for op, operands in chosen if op == "read"}


def reduced(program: HostProgram, indices: set[int], cells: Mapping[int, int]) -> tuple[HostProgram, dict[int, int]]:
    """These instructions alone, with other numbers of the cells; and where each is now."""
    builder, now = Builder(), {}
    for index in sorted(indices):
        op, operands = program.instructions[index]
        if op == "read":
            now[index] = builder.read(cells[operands[0]], operands[1])
        elif op == "const":
            now[index] = builder.const(operands[0])
        elif op == "write":
            builder.write(cells[operands[0]], now[operands[1]])
        elif op == "guard":
            builder.guard(now[operands[0]], operands[1])
        else:
            now[index] = builder.apply(op, *[now[operand] for operand in operands])
    return builder.built(len(cells)), now


def as_data(program: HostProgram, names: list[str]) -> list[Any]:
    """The instructions for a file. Raises CaptureError for what cannot leave Python."""
    try:
        return host_data.to_data(program, names)
    except HostProgramError as error:
        raise CaptureError(str(error)) from None


def is_argument(cell: Cell) -> bool:
    """Whether it is a number that a call gives."""
    return cell.owner is None and cell.name == "argument"


# Playing


class Host:
    """What the host does for a run of one program of an export."""

    def __init__(self, data: Data, program: HostProgram, names: list[str]) -> None:
        """data: what was checked, with its program. names: those of the cells of the export."""
        self.words: list[int] = data["words"]
        self._cells: list[Any] = []
        self._numbers: list[float] = []
        titles, getters, setters = [], [], []
        for index, (kind, number) in enumerate(data["cells"]):
            is_cell = kind == "cell"
            titles.append(names[number] if is_cell else f"argument {number}")
            getters.append(self._getter(_kind_of(program, index), number, is_cell=is_cell))
            setters.append(self._setter(number))
        self._bound = Bound(program, titles, getters, setters)

    def _getter(self, kind: type, number: int, *, is_cell: bool) -> Callable[[], Any]:
        taken: Any = float if kind is float else operator.index
        if is_cell:
            return lambda: taken(self._cells[number])
        return lambda: taken(self._numbers[number])

    def _setter(self, number: int) -> Callable[[Any], None]:
        return lambda value: self._cells.__setitem__(number, value)

    def run(self, name: str, cells: list[Any], numbers: list[float]) -> tuple[list[Any], list[Any]]:
        """The cells after the run, and the values of all instructions. Raises PlayError where they do not fit."""
        self._cells, self._numbers = list(cells), numbers
        try:
            values = self._bound.run()
        except Changed as change:
            raise PlayError(f"{name} was made for other numbers: {change}; export it again with these") from None
        except (ArithmeticError, ValueError, TypeError) as error:
            raise PlayError(f"{name} cannot compute with these numbers: {error}") from None
        self._bound.commit(values)
        return self._cells, values


def _kind_of(program: HostProgram, cell: int) -> type:
    """The type of what is read from a cell."""
    return next((i.operands[1] for i in program.instructions if i.op == "read" and i.operands[0] == cell), float)
