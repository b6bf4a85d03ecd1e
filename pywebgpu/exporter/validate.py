"""Whether data is an export: states, names, programs and what they share, held against each other before any is made.

js_bridge/validate.mjs holds the same rules in the same words, and tests/cases/broken_exports.json holds both to them.
"""

from collections.abc import Mapping, Sequence
from math import prod
from sys import float_info
from typing import Any, NamedTuple

from pywebgpu.compiler import serialization
from pywebgpu.compiler.program import Program
from pywebgpu.compiler.validate import Data, is_dtype
from pywebgpu.step_capture import host_data
from pywebgpu.step_capture.host_program import HostProgram, HostProgramError
from pywebgpu.support.documents import MAX_DEPTH, Malformed, is_shape, is_size, require

TENSOR_KINDS = ("parameter", "buffer", "optimizer", "gradient")
CELL_KINDS = ("option", "count", "draws")


class Checked(NamedTuple):
    """What one program of an export runs on the device, and on the host."""

    program: Program
    host: HostProgram


def checked(data: Any, weights: Mapping[str, Sequence[int]]) -> dict[str, Checked]:
    """The programs of an export, all of which fits together. weights: shapes by name.

    Raises: Malformed, which names the rule and where it is broken; CompileError for a Program of another version.
    """
    require(isinstance(data, dict), "an export", "it is an object")
    for name in ("states", "tensors", "cells"):
        require(isinstance(data.get(name), list), name, "it is a list")
    require(isinstance(data.get("programs"), dict), "programs", "it is an object")
    states, cells = data["states"], data["cells"]
    for index, state in enumerate(states):
        _check_state(f"states[{index}]", state, weights)
    for index, tensor in enumerate(data["tensors"]):
        fits = _is_spec(tensor, "name") and tensor.get("kind") in TENSOR_KINDS and _is_at(tensor.get("state"), states)
        fits = fits and is_size(tensor.get("offset"))
        fits = fits and tensor["offset"] + prod(tensor["shape"]) <= prod(states[tensor["state"]]["shape"])
        require(fits, f"tensors[{index}]", "a name, a kind, and elements of a state")
    for index, cell in enumerate(cells):
        fits = isinstance(cell, dict) and isinstance(cell.get("name"), str) and cell.get("kind") in CELL_KINDS
        require(fits and _is_number(cell.get("value")), f"cells[{index}]", "a name, a kind and a number")
    return {name: _Step(name, step, states, cells).checked() for name, step in data["programs"].items()}


def _check_state(where: str, state: Any, weights: Mapping[str, Sequence[int]]) -> None:
    fits = _is_spec(state, "dtype") and isinstance(state.get("parts"), list)
    require(fits, where, "a dtype of webgpu, a shape and parts")
    for part in state["parts"]:
        fits = isinstance(part, list) and len(part) == 2 and isinstance(part[0], str) and is_size(part[1])
        fits = fits and part[0] in weights and part[1] + prod(weights[part[0]]) <= prod(state["shape"])
        require(fits, where, "a part is a tensor of the weights, and where it begins inside the state")


class _Step:
    """One program of an export, with what its runs are given and do."""

    def __init__(self, name: str, step: Any, states: list[Data], cells: list[Data]) -> None:
        self.name, self.step, self.states, self.cells = name, step, states, cells

    def checked(self) -> Checked:
        step, name = self.step, self.name
        require(isinstance(step, dict), name, "it is an object")
        for key in ("tensors", "numbers", "sources", "takers", "notes"):
            require(isinstance(step.get(key), list), f"{name}.{key}", "it is a list")
        try:
            program = serialization.from_data(step.get("program"))
        except Malformed as error:
            raise Malformed(f"{name}.{error}") from None
        named = all(_is_spec(tensor, "name") and _is_spec(tensor, "dtype") for tensor in step["tensors"])
        require(named, f"{name}.tensors", "each has a name, a dtype of webgpu and a shape")
        wanted = [*(tensor["name"] for tensor in step["tensors"]), *step["numbers"]]
        fits = all(isinstance(title, str) for title in wanted) and len(set(wanted)) == len(wanted)
        require(fits, f"{name}.numbers", "names that are there once")
        require(all(isinstance(note, str) for note in step["notes"]), f"{name}.notes", "they are text")
        self._check_sources()
        self._check_takers()
        self.host = self._checked_host()
        self._check_template(f"{name}.result", step.get("result"), 0)
        require(isinstance(step.get("captures"), dict), f"{name}.captures", "it is an object")
        for title, template in step["captures"].items():
            self._check_template(f"{name}.captures.{title}", template, 0)
        return Checked(program, self.host)

    def _checked_host(self) -> HostProgram:
        """Its instructions look for their operands themselves."""
        host, where = self.step.get("host"), f"{self.name}.host"
        require(isinstance(host, dict), where, "it is an object")
        for key in ("cells", "program", "words"):
            require(isinstance(host.get(key), list), f"{where}.{key}", "it is a list")
        lists = {"cell": self.cells, "argument": self.step["numbers"]}
        fits = all(self._found(pair, lists) is not None for pair in host["cells"])
        require(fits, f"{where}.cells", "cells of the export and numbers that a run is given")
        try:
            program = host_data.from_data(host["program"], len(host["cells"]))
        except HostProgramError as error:
            raise Malformed(f"{where}.program: {error}") from None
        written = [operands[0] for op, operands in program.instructions if op == "write"]
        fits = all(host["cells"][cell][0] == "cell" for cell in written)
        require(fits, f"{where}.program", "a number that a run is given stays what it is")
        fits = len(host["words"]) == len(self.step["program"]["numbers"])
        fits = fits and all(_is_value(index, program) for index in host["words"])
        require(fits, f"{where}.words", "an index of a value for each number of the program")
        return program

    def _check_sources(self) -> None:
        sources, inputs = self.step["sources"], self.step["program"]["inputs"]
        where = f"{self.name}.sources"
        require(len(sources) == len(inputs), where, "one for each input of the program")
        for source, value in zip(sources, inputs, strict=True):
            source_data = self._found(source, {"argument": self.step["tensors"], "state": self.states})
            require(_is_like(source_data, value), where, "an argument or a state with the input's dtype and elements")

    def _check_takers(self) -> None:
        """A state has one value after a run, and what is written in place is the memory of one state."""
        takers, sources, program = self.step["takers"], self.step["sources"], self.step["program"]
        where = f"{self.name}.takers"
        require(len(takers) == len(program["outputs"]), where, "one for each output of the program")
        for taken, value in zip(takers, program["outputs"], strict=True):
            fits = isinstance(taken, list) and all(_is_at(index, self.states) for index in taken)
            fits = fits and all(_is_like(self.states[index], value) for index in taken)
            require(fits, where, "states with the output's dtype and elements")
        every = [index for taken in takers for index in taken]
        require(len(set(every)) == len(every), where, "a state takes one output")
        for output, input_index in program["written"]:
            fits = sources.count(sources[input_index]) == 1 and takers[output] == [sources[input_index][1]]
            fits = fits and sources[input_index][0] == "state"
            require(fits, where, "what overwrites a state is taken by it alone")

    def _check_template(self, where: str, template: Any, depth: int) -> None:
        require(isinstance(template, dict) and depth <= MAX_DEPTH, where, "an object, in few others")
        if "tensor" in template:
            outputs = self.step["program"]["outputs"]
            lists = {"argument": self.step["tensors"], "state": self.states, "output": outputs}
            source_data = self._found(template["tensor"], lists)
            require(_is_view(template, source_data), where, "elements of an argument, a state or an output")
        elif "list" in template:
            require(isinstance(template["list"], list), where, "it is a list")
            for item in template["list"]:
                self._check_template(where, item, depth + 1)
        elif "dict" in template:
            require(isinstance(template["dict"], dict), where, "it is an object")
            for item in template["dict"].values():
                self._check_template(where, item, depth + 1)
        elif "number" in template:
            require(_is_value(template["number"], self.host), where, "an index of a value of the host program")
        else:
            plain = template.get("plain", [])
            fits = plain is None or isinstance(plain, str | bool) or _is_number(plain)
            require(fits, where, "a tensor, a list, a dict, a number or what is plain")

    def _found(self, pair: Any, lists: Mapping[str, list[Any]]) -> Any:
        """What ["state", 3] and the like name; None where it is nothing."""
        fits = isinstance(pair, list) and len(pair) == 2 and isinstance(pair[0], str) and pair[0] in lists
        return lists[pair[0]][pair[1]] if fits and _is_at(pair[1], lists[pair[0]]) else None


def _is_at(index: object, things: list[Any]) -> bool:
    return is_size(index) and index < len(things)


def _is_value(index: object, host: HostProgram) -> bool:
    return is_size(index) and index < len(host.kinds) and host.kinds[index] is not None


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= float_info.max


def _is_spec(value: Any, key: str) -> bool:
    """Whether it has a shape, and beside it a dtype or a name."""
    named = isinstance(value, dict) and (
        is_dtype(value.get(key)) if key == "dtype" else isinstance(value.get(key), str)
    )
    return named and is_shape(value.get("shape"))


def _is_like(source: Data | None, value: Data) -> bool:
    return (
        source is not None
        and bool(source)
        and source["dtype"] == value["dtype"]
        and prod(source["shape"]) == prod(value["shape"])
    )


def _is_view(view: Data, source: Data | None) -> bool:
    """Whether strides and an offset pick elements that are there."""
    shape, strides, offset = view.get("shape"), view.get("strides"), view.get("offset")
    if not source or view.get("dtype") != source["dtype"] or not is_shape(shape) or not is_size(offset):
        return False
    if not isinstance(strides, list) or len(strides) != len(shape) or not all(map(is_size, strides)):
        return False
    last = offset + sum((n - 1) * step for n, step in zip(shape, strides, strict=True))
    return 0 in shape or last < prod(source["shape"])
