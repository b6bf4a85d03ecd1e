"""A captured step as data: what it is given, what it reads and writes, what it returns, and what the host does.

Steps that are exported together number their states and cells together: what one writes, another reads.
docs/guides/export.md describes the format.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from pywebgpu.compiler import wire
from pywebgpu.devices.base import Buffer
from pywebgpu.errors import CaptureError
from pywebgpu.exporter import host, names
from pywebgpu.ir.graph import Spec
from pywebgpu.ops import packing
from pywebgpu.runtime.storage import Storage
from pywebgpu.step_capture import capture
from pywebgpu.step_capture.bindings import Fresh, Given, GradientOf, Made
from pywebgpu.step_capture.free_number import FREE
from pywebgpu.step_capture.function import Compiled
from pywebgpu.step_capture.signature import Outline
from pywebgpu.step_capture.step import Step, changed
from pywebgpu.tensor.base import TensorBase

Data = dict[str, Any]


@dataclass(slots=True)
class State:
    """What Programs keep between runs: a tensor's storage, or a constant. `is_read`: its first value matters."""

    home: Storage | Buffer
    spec: Spec
    is_read: bool = False


@dataclass(slots=True)
class Cell:
    """A number of the host that runs read. `is_count`: a run also writes it."""

    name: str
    owner: Any
    value: float
    is_count: bool = False


@dataclass(slots=True)
class Shared:
    """What all steps of an export have together."""

    states: list[State] = field(default_factory=list)
    cells: list[Cell] = field(default_factory=list)
    _at: dict[int, int] = field(default_factory=dict)
    _cell_at: dict[tuple[int, str], int] = field(default_factory=dict)
    _read: dict[tuple[int, str], capture.Cell] = field(default_factory=dict)

    def state(self, home: Storage | Buffer, spec: Spec, *, is_read: bool) -> int:
        """The number of a state."""
        index = self._at.setdefault(id(home), len(self.states))
        if index == len(self.states):
            self.states.append(State(home, spec))
        self.states[index].is_read |= is_read
        return index

    def known(self, storage: Storage) -> int | None:
        return self._at.get(id(storage))

    def note_reads(self, step: Step) -> None:
        """Of the cells that a program writes, those are kept which some program reads."""
        program = step.host.program
        for index in host.read(program, host.needed(program, _outputs(step))):
            self._read.setdefault(_key(step.capture.cells[index]), step.capture.cells[index])

    def is_read(self, wanted: capture.Cell) -> bool:
        return _key(wanted) in self._read

    def cell(self, wanted: capture.Cell, *, is_written: bool) -> int:
        """The number of a cell."""
        index = self._cell_at.setdefault(_key(wanted), len(self.cells))
        if index == len(self.cells):
            get = self._read[_key(wanted)].get
            assert get is not None
            self.cells.append(Cell(wanted.name, wanted.owner, get()))
        self.cells[index].is_count |= is_written
        return index


def _key(wanted: capture.Cell) -> tuple[int, str]:
    return id(wanted if wanted.owner is None else wanted.owner), wanted.name


def step_of(name: str, compiled: Callable[..., Any]) -> Step:
    """The step that a compiled function captured or ran last. Raises CaptureError where it has none to keep."""
    compiled_step = getattr(compiled, "_step", None) or compiled  # A compiled module has it inside.
    if not isinstance(compiled_step, Compiled):
        raise CaptureError(f"{name} is a {type(compiled).__name__}; export takes what pywebgpu.compile made")
    step = compiled_step.latest()
    if step is None:
        why = (
            f": {compiled_step.reasons[-1]}"
            if compiled_step.reasons
            else "; call it with an example of what it will be given"
        )
        raise CaptureError(f"{name} has no captured step to export{why}")
    reason = changed(step)
    if reason is not None:
        raise CaptureError(f"{name} is no longer what was captured: {reason}; call it once more, then export")
    if not step.run.device.target.wgsl:
        raise CaptureError(f"{name} ran on device {step.run.device.name}, which has no kernels; export from webgpu")
    return step


def _takers(
    name: str, step: Step, outputs: list[Spec], tensors: list[Data], shared: Shared
) -> tuple[list[list[int]], dict[int, int]]:
    """By output, the states that take it over; by fresh tensor, its output."""
    takers: list[list[int]] = [[] for _ in outputs]
    program, fresh = step.run.program, dict[int, int]()
    indices: dict[int, int] = {}  # Equal values are in one buffer: the first of them stands for all.
    for index, (kinds, spec) in enumerate(zip(step.takers, outputs, strict=True)):
        first = indices.setdefault(program.slots[program.outputs[index]].buffer, index)
        for kind in kinds:
            if isinstance(kind, Given):
                raise CaptureError(f"{name} writes into its argument {tensors[kind]['name']}; give it a tensor to keep")
            home = step.home(kind)
            if home is None:
                assert isinstance(kind, Fresh)
                fresh[kind] = first
            else:
                takers[first].append(shared.state(home, spec, is_read=False))
    return takers, fresh


def step_data(name: str, compiled: Callable[..., Any], shared: Shared) -> Data:
    """One step as data of JSON. Raises CaptureError, with the reason, for what cannot leave Python."""
    step = step_of(name, compiled)
    program = step.run.program
    specs = [program.slots[slot].spec for slot in (*program.inputs, *program.outputs)]
    inputs, outputs = specs[: len(program.inputs)], specs[len(program.inputs) :]
    tensors, numbers = _arguments(name, compiled, step)
    sources = []
    for source, spec in zip(step.sources, inputs, strict=True):
        if isinstance(source, Given):
            sources.append(["argument", int(source)])
        else:
            home = step.home(source)
            assert home is not None
            sources.append(["state", shared.state(home, spec, is_read=True)])
    takers, fresh = _takers(name, step, outputs, tensors, shared)
    host_data, indices = _host(step, shared)
    template = _Template(step, shared, fresh, indices)
    return {
        "program": wire.as_data(program),
        "tensors": tensors,
        "numbers": numbers,
        "sources": sources,
        "takers": takers,
        "host": host_data,
        "result": template.of(step.result),
        "captures": {key: template.of(value) for key, value in step.taps.items()},
        "notes": _notes(step),
    }


def _arguments(name: str, compiled: Callable[..., Any], step: Step) -> tuple[list[Data], list[str]]:
    """The tensors and the numbers that a call gives, by the names of the function's parameters."""
    leaves = list(_leaves(compiled, step))
    titles = {leaf.at: (title, leaf) for title, leaf in reversed(leaves) if isinstance(leaf, Outline)}
    tensors: list[Data] = []
    for index in sorted(titles):
        title, leaf = titles[index]
        if not leaf.is_whole:
            raise CaptureError(f"{name}: {title} is a view of a larger tensor; call it with a clone(), then export")
        if leaf.spec.dtype.is_complex:
            raise CaptureError(f"{name}: {title} is complex, which no page can give; take view_as_real() of it")
        tensors.append({"name": title, "dtype": leaf.spec.dtype.name, "shape": list(leaf.spec.shape)})
    return tensors, [title for title, leaf in leaves if isinstance(leaf, float)]


def _leaves(compiled: Callable[..., Any], step: Step) -> Iterator[tuple[str, Any]]:
    """The arguments of the captured call, nested ones by their path, in the order in which they were taken apart."""
    args, kwargs = step.outline
    try:
        arguments = inspect.signature(compiled).bind_partial(*args).arguments
    except (TypeError, ValueError):
        arguments = {str(index): value for index, value in enumerate(args)}
    for title, value in arguments.items():
        yield from _nested(title, value)
    for title, value in kwargs.items():
        yield from _nested(title, value)


def _nested(title: str, value: object) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _nested(f"{title}.{key}", item)
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            yield from _nested(f"{title}.{index}", item)
    else:
        yield title, value


def _outputs(step: Step) -> list[int]:
    """Where the host program has what the Program takes and what is returned."""
    returned = [leaf for kept in (step.result, step.taps) for _, leaf in _nested("", kept)]
    return [*step.number_indices, *(leaf._index for leaf in returned if type(leaf) in FREE)]


def _host(step: Step, shared: Shared) -> tuple[Data, dict[int, int]]:
    """What the host does but for what stays in Python, and where its values are now."""
    program, cells = step.host.program, step.capture.cells
    chosen = host.needed(program, _outputs(step), lambda index: shared.is_read(cells[index]))
    written = {
        operands[0] for index, (op, operands) in enumerate(program.instructions) if op == "write" and index in chosen
    }
    used = sorted(host.read(program, chosen) | written)
    given_cells = [index for index, cell in enumerate(cells) if host.is_argument(cell)]
    data: list[Any] = []
    for index in used:
        is_given = host.is_argument(cells[index])
        number = given_cells.index(index) if is_given else shared.cell(cells[index], is_written=index in written)
        data.append(["argument" if is_given else "cell", number])
    builder, indices = host.reduced(program, chosen, {index: number for number, index in enumerate(used)})
    instructions = host.as_data(builder, [cells[index].name for index in used])
    return {"cells": data, "program": instructions, "words": [indices[index] for index in step.number_indices]}, indices


def _notes(step: Step) -> list[str]:
    """What of the host stays behind."""
    acts = dict.fromkeys(name for name, _ in step.capture.acts)
    return [f"Python code that stays in Python: {', '.join(acts)}; set the options that it would set"] if acts else []


class _Template:
    """What is returned: the same lists and dicts, with the numbers of tensors and the expressions of numbers."""

    def __init__(self, step: Step, shared: Shared, fresh: Mapping[int, int], indices: Mapping[int, int]) -> None:
        self.step, self.shared, self.fresh, self.indices = step, shared, fresh, indices
        leaves = [leaf for part in step.outline for _, leaf in _nested("", part)]
        self.specs = {leaf.at: leaf.spec for leaf in leaves if isinstance(leaf, Outline)}

    def of(self, value: Any) -> Data:
        if isinstance(value, dict):
            return {"dict": {str(key): self.of(item) for key, item in value.items()}}
        if isinstance(value, list | tuple):
            return {"list": [self.of(item) for item in value]}
        if type(value) in FREE:
            return {"number": self.indices[value._index]}
        if isinstance(value, Given):
            spec = self.specs[value]
            return _shown(["argument", int(value)], spec, names.shown(spec.shape, ()))
        if isinstance(value, GradientOf):
            value = self.step.given_gradients.gradient(value)
        if isinstance(value, Made) and isinstance(value.storage, GradientOf):
            value = value.tensor(self.step.given_gradients.gradient(value.storage)._storage, ())
        if isinstance(value, Made) and isinstance(value.storage, Storage):
            value = value.tensor(value.storage, ())
        if isinstance(value, TensorBase):
            storage, view = names.home(value)
            known = self.shared.known(storage)
            if known is None:
                raise CaptureError("it returns a tensor that it neither reads nor writes")
            return _shown(["state", known], storage.node.spec, view)
        if isinstance(value, Made) and isinstance(value.storage, Given):
            spec = self.specs[value.storage]
            return _shown(["argument", int(value.storage)], spec, names.shown(spec.shape, value.views))
        if isinstance(value, Made):
            assert isinstance(value.storage, Fresh)
            program = self.step.run.program
            index = self.fresh[value.storage]
            spec = program.slots[program.outputs[index]].spec
            views = value.views if value.part is None else ((packing.piece, value.part), *value.views)
            return _shown(["output", index], spec, names.shown(spec.shape, views))
        if value is None or isinstance(value, bool | int | float | str):
            return {"plain": value}
        raise CaptureError(f"it returns a {type(value).__name__}, which cannot leave Python")


def _shown(where: list[Any], spec: Spec, view: names.View | None) -> Data:
    if view is None:
        raise CaptureError("it returns a view that strides cannot describe; return its clone()")
    if spec.dtype.is_complex:
        raise CaptureError("it returns complex numbers, which no page can read; return view_as_real() of them")
    shape, strides = list(view.shape), list(view.strides)
    return {"tensor": where, "dtype": spec.dtype.name, "shape": shape, "strides": strides, "offset": view.offset}
