"""A Program as NumPy calls: which function reads and writes what, and which memory is used again.

Apart from the device, which knows buffers and counts: here are values alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from math import prod
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from pywebgpu import dtypes
from pywebgpu.compiler.program import HostCall, Program
from pywebgpu.devices import cpu_functions, cpu_views
from pywebgpu.devices.cpu_memory import LARGE, Memory
from pywebgpu.ir.graph import Composite, Custom, Fused, Generator, Leaf, Movement, Op, Output, Pointwise, Spec, is_view
from pywebgpu.ops import indexing, movement, pointwise, reduction, special
from pywebgpu.support.shapes import Shape

if TYPE_CHECKING:
    from numpy.typing import NDArray

SMALL_PART = 4  # An input is overwritten where less than one of so many elements changes: that part is copied first.
HOT = 6  # runs after which a Program becomes one Python function: to make that takes as long as dozens of runs

Function = Callable[..., Any]
POSITIONS = (indexing.argsort, reduction.argmax, reduction.argmin)


@dataclass(frozen=True, slots=True)
class Call:
    """function, slots read, slot written, slot whose memory it may take (-1: none), slots dead afterwards.

    kept: those of the dead whose memory is worth being used again.
    """

    function: Function
    reads: tuple[int, ...]
    write: int
    into: int
    dead: tuple[int, ...]
    kept: frozenset[int]


class Overwritten:
    """What stood in inputs that a run writes to, until it is over: a run that fails is repeated from its inputs."""

    __slots__ = ("parts",)

    def __init__(self) -> None:
        self.parts: list[tuple[NDArray[Any], NDArray[Any]]] = []

    def restore(self) -> None:
        """Writes it back, the last first."""
        while self.parts:
            part, before = self.parts.pop()
            part[...] = before

    def write(self, base: NDArray[Any], value: NDArray[Any], part: tuple[slice, ...]) -> NDArray[Any]:
        """Writes a part of an input in place."""
        shown = base[part]
        self.parts.append((shown, shown.copy()))
        shown[...] = value
        return base


class Calls:
    """All calls of a Program, and what never changes among what they read."""

    def __init__(self, program: Program, memory: Memory) -> None:
        self._program, self._memory = program, memory
        self._overwritten = Overwritten()
        self._steps = [step for step in program.steps if isinstance(step, HostCall)]
        self.kinds = _kinds(program, self._steps)  # of the numbers
        self._constants = _constants(program, self._steps)
        self._calls = _calls(program, self._steps, self._constants, memory, self._overwritten)
        self._plain: list[Call] | None = None
        self._runs = 0
        self._written: Function | None = None

    def undo(self) -> None:
        """After a run that failed: its inputs are what they were."""
        self._overwritten.restore()

    def done(self) -> None:
        """After a run that is over: what it wrote stays."""
        self._overwritten.parts.clear()

    def run(self, leaves: list[Any]) -> Sequence[Any]:
        """The outputs. leaves: the inputs, then the numbers; the list is emptied. Calls of `undo` or `done` follow."""
        if self._written is not None:
            values: Sequence[Any] = self._written(leaves)
            return values
        self._runs += 1
        if self._runs > HOT:
            self._written = _written(self._program, self._calls, self._constants, self._memory)
        return self._run(self._calls, self._constants, leaves)

    def timed(self, leaves: list[Any], clock: Callable[[], None]) -> Sequence[Any]:
        """The same, a call for each step of the Program, and of `clock` after each."""
        if self._plain is None:
            self._plain = _calls(self._program, self._steps, None, self._memory, self._overwritten)
        return self._run(self._plain, {}, leaves, clock)

    def _run(
        self, calls: list[Call], constants: dict[int, Any], leaves: list[Any], clock: Callable[[], None] | None = None
    ) -> Sequence[Any]:
        values: list[Any] = [None] * len(self._program.slots)
        first = self._program.inputs
        for slot, value in zip((*first, *range(len(first), len(leaves))), leaves, strict=True):
            values[slot] = value
        leaves.clear()
        for slot, value in constants.items():
            values[slot] = value
        give = self._memory.give
        for call in calls:
            args = [values[slot] for slot in call.reads]
            values[call.write] = call.function(*args) if call.into < 0 else call.function(*args, out=values[call.into])
            del args
            for slot in call.dead:
                if slot in call.kept:
                    give(values, slot)
                else:
                    values[slot] = None
            if clock is not None:
                clock()
        return [values[slot] for slot in self._program.outputs]


def _kinds(program: Program, steps: list[HostCall]) -> list[np.dtype[Any] | None]:
    """NumPy's dtypes of the numbers; None for one that every reader looks at in Python."""
    first = len(program.inputs)
    arrays = set(program.outputs)
    for step in steps:
        if step.op not in cpu_functions.AS_NUMBERS:
            arrays.update(step.slots)
    names = [special.numpy_dtype(dtype) for dtype in program.numbers]
    return [np.dtype(name) if first + index in arrays else None for index, name in enumerate(names)]


def _constants(program: Program, steps: list[HostCall]) -> dict[int, Any]:
    """Values by slot that are alike in all runs, and small: none is ever written to."""
    constants = {}
    for step in steps:
        spec = program.slots[step.slots[-1]].spec
        is_axis = step.op in (pointwise.const, pointwise.iota)  # Of these one axis is kept, at most.
        is_small = is_axis or _bytes(spec) < LARGE
        if isinstance(step.op, Generator) and len(step.slots) == 1 and is_small:
            constants[step.slots[-1]] = _function(step, (), spec, None)()
    return constants


def _shortened(
    steps: list[HostCall], specs: list[Spec], outputs: Sequence[int], constants: dict[int, Any]
) -> list[HostCall]:
    """The steps that must run, with views of views as one."""
    steps = _without_growth([step for step in steps if step.slots[-1] not in constants], specs, outputs)
    steps = _with_one_copy(steps, specs, outputs)
    steps = _without_reshapes(steps, specs, outputs)
    return cpu_views.merged(steps, specs, outputs, constants)


def _takes_out(step: HostCall, spec: Spec) -> bool:
    """Whether NumPy can write its result over another array."""
    is_ufunc = isinstance(step.op, Pointwise) and isinstance(step.op.reference, str)
    return is_ufunc and bool(spec.shape) and spec.dtype not in special.ROUNDED


def _view_of_views(step: HostCall, specs: list[Spec]) -> Callable[..., Any]:
    view = step.attrs["view"]
    chain = [_function(inner, [specs[inner.slots[0]]], specs[inner.slots[-1]], None) for inner in view.steps]
    return cpu_views.function(view, specs[step.slots[-1]], chain)


def _calls(
    program: Program,
    steps: list[HostCall],
    constants: dict[int, Any] | None,
    memory: Memory,
    overwritten: Overwritten,
) -> list[Call]:
    """The steps with their functions bound. constants: what needs no call; None: every step has one."""
    specs = [slot.spec for slot in program.slots]
    if constants is not None:
        steps = _shortened(steps, specs, program.outputs, constants)
    owner, last, shown = _lifetimes(steps, len(specs))
    kept = {owner[slot] for slot in program.outputs} | (constants or {}).keys()
    fresh: set[int] = set()  # Never an input: where a step fails, or is interrupted, all is computed again from them.
    inputs = _overwritable(program, steps, specs)  # These keep what stood there until the run is over.
    calls: list[Call] = []
    for index, step in enumerate(steps):
        *reads, write = step.slots
        spec, into = specs[write], -1
        if _takes_out(step, spec):
            over = (slot for slot in reads if slot in fresh and owner[slot] == slot and last[slot] == index)
            into = next((slot for slot in over if specs[slot] == spec and slot not in kept), -1)
        if not _is_view(step) and not isinstance(step.op, Generator):
            fresh.add(write)
        ended = {owner[slot] for slot in step.slots if last[owner[slot]] == index and owner[slot] not in kept}
        dead = [slot for base in sorted(ended) for slot in reversed(shown[base])]  # Views first: they hold theirs.
        room = None if into >= 0 else _room(spec, memory)
        if step.op is cpu_views.strided:
            function = _view_of_views(step, specs)
        elif step.op is indexing.write_slice and last.get(reads[0]) == index and reads[0] in (fresh | inputs) - kept:
            write_over = overwritten.write if reads[0] in inputs else _write_over
            function = partial(write_over, part=_part(step, specs))
            if reads[0] in inputs:
                fresh.discard(write)
        else:
            function = _function(step, [specs[slot] for slot in reads], spec, room)
        large = frozenset(slot for slot in ended & fresh if _bytes(specs[slot]) >= LARGE)
        calls.append(Call(function, tuple(reads), write, into, tuple(dead), large))
    return calls


def _lifetimes(steps: list[HostCall], count: int) -> tuple[list[int], dict[int, int], dict[int, list[int]]]:
    """By slot the owner of its memory, a view's being its input's; by owner its last step, and it with its views."""
    owner = list(range(count))
    for step in steps:
        if _is_view(step):
            owner[step.slots[-1]] = owner[step.slots[0]]
    last: dict[int, int] = {}
    shown: dict[int, list[int]] = {}
    for index, step in enumerate(steps):
        for slot in step.slots:
            last[owner[slot]] = index
            aliases = shown.setdefault(owner[slot], [])
            if slot not in aliases:
                aliases.append(slot)
    return owner, last, shown


def _overwritable(program: Program, steps: list[HostCall], specs: list[Spec]) -> set[int]:
    """Inputs that an output takes over and differs from in small parts alone, with the values between the two."""
    producers = {step.slots[-1]: step for step in steps}
    chains: set[int] = set()
    for output, leaf in program.written:
        slot, chain = program.outputs[output], set[int]()
        while (step := producers.get(slot)) is not None and step.op is indexing.write_slice:
            base, value, slot = step.slots[0], step.slots[1], step.slots[0]
            if _bytes(specs[base]) < LARGE or SMALL_PART * _bytes(specs[value]) > _bytes(specs[base]):
                break
            chain.add(base)
        if slot == program.inputs[leaf]:
            chains |= chain
    return chains


def _part(step: HostCall, specs: list[Spec]) -> tuple[slice, ...]:
    """What a write_slice writes to."""
    return movement.slices(step.attrs["starts"], specs[step.slots[1]].shape, step.attrs["steps"])


def _write_over(base: NDArray[Any], value: NDArray[Any], part: tuple[slice, ...]) -> NDArray[Any]:
    """Writes a part of a value that nobody else reads."""
    base[part] = value
    return base


def _bytes(spec: Spec) -> int:
    return prod(spec.shape) * spec.dtype.itemsize


def _without_growth(steps: list[HostCall], specs: list[Spec], outputs: Sequence[int]) -> list[HostCall]:
    """Without steps that grow axes of what is only read beside values of the full shape: NumPy does that by itself."""
    grown = {step.slots[1]: step.slots[0] for step in steps if step.op is reduction.expand}
    for slot in outputs:
        grown.pop(slot, None)
    for step in steps:
        *reads, write = step.slots
        broadcasts = isinstance(step.op, Pointwise) and isinstance(step.op.reference, str)
        if broadcasts and any(slot not in grown and specs[slot].shape == specs[write].shape for slot in reads):
            continue
        for slot in reads:
            grown.pop(slot, None)
    return [
        HostCall(step.op, step.attrs, tuple([grown.get(slot, slot) for slot in step.slots]))
        for step in steps
        if step.slots[-1] not in grown
    ]


def _without_reshapes(steps: list[HostCall], specs: list[Spec], outputs: Sequence[int]) -> list[HostCall]:
    """Folded axes go with the fold itself, where a reshape is all that reads it."""
    readers = _readers(steps, len(specs), outputs)
    into = {step.slots[0]: step.slots[-1] for step in steps if step.op is movement.reshape}
    folds = {}
    for step in steps:
        slot = step.slots[-1]
        if slot in into and readers[slot] == 1 and cpu_functions.drops(step.op, specs[step.slots[0]]):
            folds[slot] = into[slot]
    gone = set(folds.values())
    return [
        HostCall(step.op, step.attrs, (*step.slots[:-1], folds.get(step.slots[-1], step.slots[-1])))
        for step in steps
        if step.slots[-1] not in gone
    ]


def _readers(steps: list[HostCall], count: int, outputs: Sequence[int]) -> list[int]:
    """How many read each slot."""
    readers = [0] * count
    for slot in (*outputs, *(slot for step in steps for slot in step.slots[:-1])):
        readers[slot] += 1
    return readers


def _with_one_copy(steps: list[HostCall], specs: list[Spec], outputs: Sequence[int]) -> list[HostCall]:
    """Where axes are merged, turned and merged again, and each time copied: turned first, then copied once.

    specs: those of values that are turned are replaced.
    """
    producers = {step.slots[-1]: step for step in steps}
    readers = _readers(steps, len(specs), outputs)
    dropped, turned = set(), {}
    for last in steps:
        turn = producers.get(last.slots[0]) if last.op is movement.reshape else None
        first = producers.get(turn.slots[0]) if turn is not None and turn.op is movement.permute else None
        if turn is None or first is None or first.op is not movement.reshape:
            continue
        if readers[first.slots[-1]] != 1 or readers[turn.slots[-1]] != 1 or first.slots[-1] in dropped:
            continue
        before = specs[first.slots[0]].shape
        groups = _merged(before, specs[first.slots[-1]].shape)
        if groups is not None:
            order = tuple([axis for group in turn.attrs["order"] for axis in groups[group]])
            dropped.add(first.slots[-1])
            slot = turn.slots[-1]
            turned[slot] = HostCall(movement.permute, {"order": order}, (first.slots[0], slot))
            specs[slot] = Spec(tuple([before[axis] for axis in order]), specs[slot].dtype)
    return [turned.get(step.slots[-1], step) for step in steps if step.slots[-1] not in dropped]


def _merged(before: Shape, after: Shape) -> list[list[int]] | None:
    """By axis of `after`, the axes of `before` that it is made of, where a reshape only merges neighbours."""
    groups: list[list[int]] = []
    axis = 0
    for n in after:
        group: list[int] = []
        size = 1
        while axis < len(before) and (size < n or (not group and before[axis] == n)):
            group.append(axis)
            size *= before[axis]
            axis += 1
        if size != n:
            return None
        groups.append(group)
    return groups if axis == len(before) else None


def _is_view(step: HostCall) -> bool:
    """The result is, or may be, a view of the first input's memory."""
    return isinstance(step.op, Custom | Output) or is_view(step.op)


def _room(spec: Spec, memory: Memory) -> Function | None:
    """What gives memory for a value, where that is worth it."""
    if _bytes(spec) < LARGE or spec.dtype in special.ROUNDED:
        return None
    return partial(memory.take, special.numpy_dtype(spec.dtype), spec.shape)


def _function(step: HostCall, reads: Sequence[Spec], spec: Spec, room: Function | None) -> Function:
    op, attrs = step.op, dict(step.attrs)
    if isinstance(op, Custom):
        return lambda value, *sources: value
    if isinstance(op, Output):
        return itemgetter(attrs["index"])
    if isinstance(op, Fused):
        assert op.host is not None
        return partial(op.host, np, **attrs)
    assert not isinstance(op, Leaf | Composite), "what has no meaning of its own was replaced"
    round_, reference = special.ROUNDED.get(spec.dtype), op.reference
    if round_ is None and any(read.dtype is dtypes.complex32 for read in reads):
        round_ = _halved if spec.dtype is dtypes.float16 else None
    if op in POSITIONS:
        round_ = _counted
    if isinstance(reference, str):
        function = _ufunc(op, reference, spec)
        if room is not None:
            return lambda *arrays: function(*arrays, out=room())
        return function if round_ is None else _rounded(function, round_)
    direct = cpu_functions.chosen(op, attrs, reads, spec, room)
    if direct is not None:
        return _rounded(direct, round_) if round_ is _counted else direct
    if isinstance(op, Generator):
        attrs["spec"] = spec
    bound = partial(reference, np, **attrs)
    is_moved = isinstance(op, Movement) and round_ is not _halved
    return bound if round_ is None or is_moved else _rounded(bound, round_)


def _ufunc(op: Op, name: str, spec: Spec) -> Function:
    if spec.dtype is dtypes.bool_:
        if op is pointwise.neg:
            return np.logical_not
        if op is pointwise.copy:
            return lambda a, out=None: np.logical_or(a, a, out=out)  # NumPy has no positive of bools.
    function: Function = getattr(np, name)
    return function


def _rounded(function: Function, round_: Function) -> Function:
    return lambda *arrays, out=None: round_(np, function(*arrays))


def _counted(xp: object, x: NDArray[Any]) -> NDArray[Any]:
    """Positions, which NumPy counts in 32 bits where memory has no more, as in WebAssembly."""
    return x.astype("int64", copy=False)


def _halved(xp: object, x: NDArray[Any]) -> NDArray[Any]:
    """The parts of complex32, which are held as float32."""
    return x.astype("float16")


def _written(program: Program, calls: list[Call], constants: dict[int, Any], memory: Memory) -> Function:
    """One function of the leaves that makes all calls: values are its variables, so nothing is looked up."""
    names: dict[str, Any] = {f"v{slot}": value for slot, value in constants.items()}
    names |= {f"f{index}": call.function for index, call in enumerate(calls)} | {"give": memory.give}
    count = len(program.inputs) + len(program.numbers)
    leaves = [f"v{slot}" for slot in (*program.inputs, *range(len(program.inputs), count))]
    lines = ["def run(leaves):", f"[{', '.join(leaves)}] = leaves" if leaves else "pass", "leaves.clear()"]
    lines.append("over = [None]")
    for index, call in enumerate(calls):
        arguments = [f"v{slot}" for slot in call.reads]
        if call.into >= 0:  # NumPy refuses these two by position.
            arguments.append(f"{'out=' if call.function in (np.maximum, np.minimum) else ''}v{call.into}")
        lines.append(f"v{call.write} = f{index}({', '.join(arguments)})")
        for slot in call.dead:
            last = slot in call.kept
            lines += [f"over[0] = v{slot}", f"v{slot} = None", "give(over, 0)"] if last else [f"v{slot} = None"]
    lines.append(f"return [{', '.join(f'v{slot}' for slot in program.outputs)}]")
    exec("\n ".join(lines), names)
    function: Function = names["run"]
    return function
