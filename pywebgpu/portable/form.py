"""A captured step as data: what it is given, what it reads and writes, what it returns, and what the host does.

Steps that are exported together number their states and cells together: what one writes, another reads. docs/export.md
describes the format.
"""

import inspect
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from pywebgpu.step_capture.function import Compiled
from pywebgpu.step_capture.signature import Outline
from pywebgpu.step_capture.step import Fresh, Given, Step
from pywebgpu.devices.base import Buffer
from pywebgpu.errors import CaptureError
from pywebgpu.graph.ir import Spec
from pywebgpu.live import Entry, Live
from pywebgpu.portable import expressions, names
from pywebgpu.program import wire
from pywebgpu.runtime.storage import Storage
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

    def state(self, home: Storage | Buffer, spec: Spec, *, is_read: bool) -> int:
        """The number of a state."""
        at = self._at.setdefault(id(home), len(self.states))
        if at == len(self.states):
            self.states.append(State(home, spec))
        self.states[at].is_read |= is_read
        return at

    def known(self, storage: Storage) -> int | None:
        return self._at.get(id(storage))

    def cell(self, entry: Entry) -> int:
        """The number of the cell that an entry reads."""
        assert entry.action is not None
        owner, name = entry.cell or (entry, entry.name)
        at = self._cell_at.setdefault((id(owner), name), len(self.cells))
        if at == len(self.cells):
            self.cells.append(Cell(name, owner, entry.action()))
        return at

    def written(self, entry: Entry) -> int | None:
        """The number of the cell that an entry writes, if anybody reads it."""
        at = self._cell_at.get((id(entry.cell[0]), entry.cell[1])) if entry.cell else None
        if at is not None:
            self.cells[at].is_count = True
        return at


def step_of(name: str, compiled: Any) -> Step:
    """The step that a compiled function captured or ran last. Raises CaptureError where it has none to keep."""
    found = getattr(compiled, "_step", None) or compiled  # A compiled module has it inside.
    if not isinstance(found, Compiled):
        raise CaptureError(f"{name} is a {type(compiled).__name__}; export takes what pywebgpu.compile made")
    kept = next(reversed(found._steps.values()), None)
    if not kept:
        why = f": {found.reasons[-1]}" if found.reasons else "; call it with an example of what it will be given"
        raise CaptureError(f"{name} has no captured step to export{why}")
    step = kept[0]
    reason = step.unfit()
    if reason is not None:
        raise CaptureError(f"{name} is no longer what was captured: {reason}; call it once more, then export")
    if not step.run.device.target.wgsl:
        raise CaptureError(f"{name} ran on device {step.run.device.name}, which has no kernels; export from webgpu")
    return step


def step_data(name: str, compiled: Any, shared: Shared) -> Data:
    """One step as data of JSON. Raises CaptureError, with the reason, for what cannot leave Python."""
    step = step_of(name, compiled)
    program = step.run.program
    specs = [program.slots[slot].spec for slot in (*program.inputs, *program.outputs)]
    inputs, outputs = specs[: len(program.inputs)], specs[len(program.inputs) :]
    tensors, numbers = _arguments(name, compiled, step)
    fresh: dict[int, int] = {}
    sources = []
    for source, spec in zip(step._sources, inputs, strict=True):
        if isinstance(source, Given):
            sources.append(["argument", int(source)])
        else:
            sources.append(["state", shared.state(source, spec, is_read=True)])
    takers: list[list[int]] = [[] for _ in outputs]
    places: dict[int, int] = {}  # Equal values are in one buffer: the first of them stands for all.
    for at, (kinds, spec) in enumerate(zip(step._takers, outputs, strict=True)):
        first = places.setdefault(program.slots[program.outputs[at]].buffer, at)
        for kind in kinds:
            if isinstance(kind, Given):
                raise CaptureError(f"{name} writes into its argument {tensors[kind]['name']}; give it a tensor to keep")
            if isinstance(kind, Fresh):
                fresh[kind] = first
            else:
                takers[first].append(shared.state(kind, spec, is_read=False))
    returned = [leaf for kept in (step._kept_result, step._kept_taps) for _, leaf in _nested("", kept)]
    texts = [*step._texts, *(leaf.text for leaf in returned if isinstance(leaf, Live))]
    reads = expressions.reads([*texts, *(entry.text for entry in step.tape.entries)])
    tape, notes = _tape(step, shared, reads)
    template = _Template(step, shared, fresh, reads)
    return {
        "program": wire.as_data(program),
        "tensors": tensors,
        "numbers": numbers,
        "sources": sources,
        "takers": takers,
        "tape": tape,
        "words": [expressions.parsed(text, reads) for text in step._texts],
        "result": template.of(step._kept_result),
        "captures": {key: template.of(value) for key, value in step._kept_taps.items()},
        "notes": notes,
    }


def _arguments(name: str, compiled: Any, step: Step) -> tuple[list[Data], list[str]]:
    """The tensors and the numbers that a call gives, by the names of the function's parameters."""
    leaves = list(_leaves(compiled, step))
    given = {leaf.at: (title, leaf) for title, leaf in reversed(leaves) if isinstance(leaf, Outline)}
    tensors: list[Data] = []
    for at in sorted(given):
        title, leaf = given[at]
        if not leaf.is_whole:
            raise CaptureError(f"{name}: {title} is a view of a larger tensor; call it with a clone(), then export")
        tensors.append({"name": title, "dtype": leaf.spec.dtype.name, "shape": list(leaf.spec.shape)})
    return tensors, [title for title, leaf in leaves if isinstance(leaf, float)]


def _leaves(compiled: Any, step: Step) -> Iterator[tuple[str, Any]]:
    """The arguments of the captured call, nested ones by their path, in the order in which they were taken apart."""
    args, kwargs = step.outline
    try:
        given = inspect.signature(compiled).bind_partial(*args).arguments
    except (TypeError, ValueError):
        given = {str(at): value for at, value in enumerate(args)}
    for title, value in given.items():
        yield from _nested(title, value)
    for title, value in kwargs.items():
        yield from _nested(title, value)


def _nested(title: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _nested(f"{title}.{key}", item)
    elif isinstance(value, list | tuple):
        for at, item in enumerate(value):
            yield from _nested(f"{title}.{at}", item)
    else:
        yield title, value


def _tape(step: Step, shared: Shared, reads: Mapping[int, int]) -> tuple[list[Any], list[str]]:
    """What the host does, in its order, and what of it stays behind."""
    entries: list[Any] = []
    acts: dict[str, None] = {}
    n_given = n_read = 0
    for entry in step.tape.entries:
        if entry.kind == "act":
            acts[entry.name] = None
        elif entry.kind == "guard":
            entries.append(["guard", expressions.parsed(entry.text, reads), entry.expected, entry.text])
        elif entry.kind == "write":
            cell = shared.written(entry)
            if cell is not None:
                entries.append(["write", cell, expressions.parsed(entry.text, reads)])
        else:
            if n_read in reads:
                entries.append(["argument", n_given] if entry.name == "argument" else ["read", shared.cell(entry)])
            n_given += entry.name == "argument"
            n_read += 1
    left = f"Python code that stays in Python: {', '.join(acts)}; set the options that it would set" if acts else ""
    return entries, [left] if left else []


class _Template:
    """What is returned: the same lists and dicts, with the places of tensors and the expressions of numbers."""

    def __init__(self, step: Step, shared: Shared, fresh: Mapping[int, int], reads: Mapping[int, int]) -> None:
        self.step, self.shared, self.fresh, self.reads = step, shared, fresh, reads
        leaves = [leaf for part in step.outline for _, leaf in _nested("", part)]
        self.specs = {leaf.at: leaf.spec for leaf in leaves if isinstance(leaf, Outline)}

    def of(self, value: Any) -> Data:
        if isinstance(value, dict):
            return {"dict": {str(key): self.of(item) for key, item in value.items()}}
        if isinstance(value, list | tuple):
            return {"list": [self.of(item) for item in value]}
        if isinstance(value, Live):
            return {"number": expressions.parsed(value.text, self.reads)}
        if isinstance(value, Given):
            spec = self.specs[value]
            return _shown(["argument", int(value)], spec, names.shown(spec.shape, ()))
        if isinstance(value, TensorBase):
            storage, view = names.home(value)
            known = self.shared.known(storage)
            if known is None:
                raise CaptureError("it returns a tensor that it neither reads nor writes")
            return _shown(["state", known], storage.node.spec, view)
        if hasattr(value, "views") and isinstance(value.place, Given):
            spec = self.specs[value.place]
            return _shown(["argument", int(value.place)], spec, names.shown(spec.shape, value.views))
        if hasattr(value, "views"):
            program = self.step.run.program
            at = self.fresh[value.place]
            spec = program.slots[program.outputs[at]].spec
            return _shown(["output", at], spec, names.shown(spec.shape, value.views))
        if value is None or isinstance(value, bool | int | float | str):
            return {"plain": value}
        raise CaptureError(f"it returns a {type(value).__name__}, which cannot leave Python")


def _shown(where: list[Any], spec: Spec, view: names.View | None) -> Data:
    if view is None:
        raise CaptureError("it returns a view that strides cannot describe; return its clone()")
    shape, strides = list(view.shape), list(view.strides)
    return {"tensor": where, "dtype": spec.dtype.name, "shape": shape, "strides": strides, "offset": view.offset}
