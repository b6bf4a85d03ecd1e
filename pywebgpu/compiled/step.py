"""A captured step: the Program, where its inputs come from, where outputs go, and what the host does meanwhile."""

from __future__ import annotations

import gc
import traceback
from dataclasses import replace
from math import prod
from pathlib import Path
from typing import Any

from pywebgpu.compiled import guards, signature, winding
from pywebgpu.compiled.signature import Call
from pywebgpu.devices.base import Buffer
from pywebgpu.errors import CaptureError
from pywebgpu.gradient import modes
from pywebgpu.graph import walk
from pywebgpu.graph.ir import Node
from pywebgpu.live import Live, Tape, plain, recorder
from pywebgpu.ops import indexing, movement, packing
from pywebgpu.runtime import executor
from pywebgpu.runtime.executor import Run
from pywebgpu.runtime.storage import Storage, whole_of
from pywebgpu.tensor.base import Path as Views
from pywebgpu.tensor.base import TensorBase

PACKAGE = str(Path(__file__).parents[1])

NOTHING = Call((), {})


class Given(int):
    """The number of an argument."""


class Fresh(int):
    """The number of a storage that each run makes anew, for what it returns."""


Source = Given | Storage | Buffer  # where an input comes from; a buffer is a constant
Taker = Given | Fresh | Storage  # who takes an output


class Step:
    """A call that was captured, and ran. `reason` says why it cannot run again; where it is empty, `replay` does.

    is_open: a gradient may still be asked of what it returns; it did not run, and is like any recorded code.
    dry: the Program is made ready and does not run, and all is as it was before.
    """

    def __init__(self, function: Any, call: Call, *, dry: bool = False) -> None:
        self.call = call  # the present one: the tape reads its numbers
        self.outline = call.outline()
        self._known = call.kept  # what the signature tells apart by identity, so that it has to stay
        self.reason = ""
        self.is_open = False
        self._dry = dry
        self.tape = Tape()
        self._born: dict[int, Storage] = {}  # by id: storages that the captured call made
        self._parts: list[TensorBase] = []  # arguments that are parts of larger tensors, while they are captured
        self._fresh: list[Any] = []  # storages by their number, while a run hands them out
        self._values: list[Any] = []  # what the tape read for the present run
        self._checked = -1  # the number of changes up to which all guards held
        executor.flush()
        self._around = guards.tensors_around(function)
        names = guards.of_names(function, call.kept)
        result = self._record(function)
        self._finish(names, result)

    # The first time

    def _record(self, function: Any) -> Any:
        tape, call = self.tape, self.call
        numbers = [tape.read("argument", lambda at=at: self.call.numbers[at]) for at in range(len(call.numbers))]  # type: ignore[misc]
        recorder.tape = tape
        try:
            tape.given = {id(whole_of(tensor._storage)) for tensor in call.tensors}
            for tensor in call.tensors:
                tape.see(tensor)
            for at, tensor in enumerate(call.tensors):
                self._free_starts(at, tensor)
            args, kwargs = call.mapped(numbers)
            result = function(*args, **kwargs)
            if Call(args, kwargs).key != call.key:
                tape.reason = "it changes what it is given (a list, a dict, requires_grad)"
                signature.give_back((call.args, call.kwargs), (args, kwargs))
            return signature.rebuilt(result, self._own)
        except CaptureError as error:
            raise CaptureError(f"{_users_line(error)}{error}") from None
        finally:
            for ending in tape.endings:
                ending()
            recorder.tape = None
            for tensor in call.tensors:
                tensor._cached = None
            for tensor in self._parts:
                tensor._detached = False
            self._parts = []

    def _own(self, value: Any) -> Any:
        """A returned tensor; a copy of one that was uploaded, or has the memory of a gradient that the step makes."""
        if not isinstance(value, TensorBase):
            return value
        made = {id(s) for ref in self.tape.storages if (s := ref()) is not None}
        kept = {id(whole_of(leaf._grad._storage)) for leaf, _, _ in self.tape.leaves() if leaf._grad is not None}
        whole = whole_of(value._storage)
        if id(whole) not in made or (id(whole) not in kept and whole.node.buffer is None):
            return value
        with modes.no_grad():
            return value.detach().clone()

    def _free_starts(self, at: int, tensor: TensorBase) -> None:
        """Where a slice of an argument starts is read in each run, and where a part of a larger tensor does."""
        storage = tensor._storage
        is_part = storage.whole is not None
        if tensor._flag or not (is_part or any(op is movement.slice_ for op, _ in tensor._path)):
            return
        starts: list[Live] = []
        node = storage.node
        if storage.whole is not None:
            starts.append(self.tape.read("start", lambda: self.call.tensors[at]._storage.place["start"]))
            shape = storage.place["shape"]
            node = indexing.slice_of_data(storage.whole.node, starts=tuple(starts), sizes=(prod(shape),), steps=(1,))  # type: ignore[arg-type]
            node = movement.reshape(node, shape=shape)
        for depth, (op, attrs) in enumerate(tensor._path):
            if op is movement.slice_:
                found = tuple([self._start(at, depth, axis) for axis in range(len(attrs["starts"]))])
                starts.extend(found)
                node = indexing.slice_of_data(node, starts=found, sizes=attrs["sizes"], steps=attrs["steps"])  # type: ignore[arg-type]
            else:
                node = op(node, **attrs)
        if is_part and not tensor._path and not tensor._detached:
            self._parts.append(tensor)
            tensor._detached = True  # So that its node is the one that is noted here.
        tensor._cached = (storage.version, node)
        self.tape.starts.setdefault(id(storage), []).extend(starts)

    def _start(self, at: int, depth: int, axis: int) -> Live:
        return self.tape.read("start", lambda: self.call.tensors[at]._path[depth][1]["starts"][axis])

    def _finish(self, names: list[guards.Guard], result: Any) -> None:
        """Runs the Program and finds out what would have to be given and taken the next time."""
        tape = self.tape
        self.reason = tape.reason
        self._find_born()
        ends = [(leaf, leaf._grad) for leaf, _, _ in tape.leaves()]
        self._stay = {id(whole_of(grad._storage)) for _, grad in ends if grad is not None}
        kept_ends = [(leaf, self._kept(grad)) for leaf, grad in ends]
        self._ends = [(leaf, grad) for leaf, grad in kept_ends if not isinstance(grad, Given | _New)]
        self._new_ends = [(leaf, grad) for leaf, grad in kept_ends if isinstance(grad, Given | _New)]
        self._places: dict[int, Fresh] = {}
        self._kept_result = signature.rebuilt(result, self._kept)
        self._kept_taps = signature.rebuilt(tape.taps, self._kept)
        self._fresh = [self._born[at] for at in self._places]
        self._n_fresh = len(self._fresh)
        seen = self._find_seen(result)
        self._require_settled()
        if not self.is_open:
            self._run_first(result)
        for _, grad in ends:
            if grad is not None:
                grad._storage.claim()
        is_kept = not (self.reason or self.is_open)
        self._always = [*names, *tape.always]
        self._guards = [*guards.all_of(tape, seen), guards.of_device(self.run.device)] if is_kept else []
        self.result = self._given_back(self._kept_result) if is_kept else signature.rebuilt(result, plain)
        self.taps = self._given_back(self._kept_taps)
        if self._dry:
            self._undo()
        self._born, self._fresh, tape.storages, tape.begun, tape.undos, tape.taps = {}, [], [], {}, [], {}
        tape.tensors = {}

    def _require_settled(self) -> None:
        """Memory that was there before must be where it was; else the next call captures the step as it is then."""
        moved = {id(s) for ref in self.tape.moved if (s := ref()) is not None}
        unmade = {id(s) for s, node in self.tape.begun.values() if node.buffer is None and s.whole is None}
        if (moved | unmade) - self._born.keys():
            self.reason = "it made or moved memory that stays; the next call finds it there"

    def _find_seen(self, result: Any) -> list[guards.Held]:
        """The tensors that the step found and did not make, but for arguments. Those that are both fix the argument."""
        passed: set[int] = set(map(id, self.call.tensors))
        signature.rebuilt((result, self.tape.taps), lambda value: passed.add(id(value)))
        known = {id(leaf) for leaf, _, _ in self.tape.leaves()} | self._around
        known |= {id(tensor) for module, _ in self.tape.modules.values() for tensor in guards.owned(module)}
        seen = []
        for tensor_ref, storage_ref, traits in self.tape.tensors.values():
            tensor, storage = tensor_ref(), storage_ref()
            if tensor is None or storage is None or id(storage) in self._born:
                continue
            if id(tensor) in known or id(tensor) not in passed:
                seen.append((tensor_ref, storage, whole_of(storage), traits))
        found = {id(whole) for _, _, whole, _ in seen}
        wholes = [whole_of(tensor._storage) for tensor in self.call.tensors]
        self._fixed = [
            tensor._storage if id(whole) in found or (tensor._flag and whole is not tensor._storage) else None
            for tensor, whole in zip(self.call.tensors, wholes, strict=True)
        ]
        return seen

    def _find_born(self) -> None:
        """The storages that were made in the step and are still there. What only a cycle or the tape holds is not."""
        for ref in self.tape.storages:
            self.tape.begun.pop(id(ref()), None)
        gc.collect()
        self._born = {id(storage): storage for ref in self.tape.storages if (storage := ref()) is not None}
        for storage in self._born.values():
            if storage.home is not None:  # It was uploaded: a constant of the step, which no run may overwrite.
                storage.home.holders += 1

    def _run_first(self, result: Any) -> None:
        devices = executor.waiting()
        if len(devices) > 1:
            names = " and ".join(device.name for device in devices)
            raise CaptureError(f"a compiled step runs on one device, but it computed on {names}")
        run = executor.submit_now(devices[0], dry=self._dry) if devices else None
        if run is None:
            self.reason = self.reason or "it computes nothing"
            return
        self._connect(run)
        self._compile_tape(run.numbers)
        # The leaves are not held: memory that the step no longer needs goes back.
        self.run = replace(run, data=[], numbers=[], outputs=[])

    def _undo(self) -> None:
        for restore in self.tape.undos:
            restore()
        for at, (storage, node) in self.tape.begun.items():
            if at not in self._born and storage.whole is None:
                storage.replace(node)
                node.stale = False
        for leaf, grad, _ in self.tape.leaves():
            leaf._grad = grad

    def _connect(self, run: Run) -> None:
        free = [(at, tensor) for at, tensor in enumerate(self.call.tensors) if self._fixed[at] is None]
        given = {id(whole_of(tensor._storage)): Given(at) for at, tensor in reversed(free)}
        self._sources: list[Source] = [self._source(node, given) for node in run.data]
        self._takers: list[list[Taker]] = []
        for storages in run.outputs:
            takers: list[Taker] = []
            for storage in storages:
                at = id(storage)
                if at in self._born and at not in self._places and at not in self._stay:
                    self._refuse(storage)
                takers.append(given.get(at, self._places.get(at, storage)))
            self._takers.append(takers)
        kinds: list[Any] = [*self._sources, *(kind for kinds in self._takers for kind in kinds)]
        held = [storage for storage in self._fixed if storage is not None]
        self._state = {id(whole_of(kind)) for kind in (*kinds, *held) if isinstance(kind, Storage)}

    def _source(self, node: Node, given: dict[int, Given]) -> Source:
        """A leaf that was a storage's value when the step began is read from there; any other is a constant."""
        found = getattr(node, "storage", None)
        storage: Storage | None = found() if found is not None else None
        if storage is not None and id(storage) not in self._born:
            _, before = self.tape.begun.get(id(storage), (storage, node))
            if before is node:
                return given.get(id(storage), storage)
        buffer: Buffer = node.buffer
        buffer.holders += 1
        return buffer

    def _refuse(self, storage: Storage) -> None:
        node = storage.node
        self.reason = self.reason or (
            f"a new tensor of shape {list(node.spec.shape)} and dtype {node.spec.dtype.name} is kept by something "
            "outside the function; return it instead"
        )

    # What is returned

    def _kept(self, value: Any) -> Any:
        """A returned value as it is made again in each run; what was there before is itself."""
        if not isinstance(value, TensorBase):
            return value
        for at, tensor in enumerate(self.call.tensors):
            if tensor is value:
                return Given(at)
        whole = whole_of(value._storage)
        at = id(whole)
        if at in self._stay:
            return value
        if at not in self._born:
            return self._view_of_argument(value)
        if _wants_gradient(value):
            self.is_open = True
            return value
        views = value._path
        if whole is not value._storage:
            views = ((packing.piece, value._storage.place), *views)
        return _New(self._places.setdefault(at, Fresh(len(self._places))), views, value)

    def _view_of_argument(self, value: TensorBase) -> Any:
        """A tensor that was there before is itself, or shows an argument of the call."""
        for at, tensor in enumerate(self.call.tensors):
            if tensor._storage is value._storage:
                if value._node.requires:
                    self.is_open = True
                n_views = len(tensor._path)
                if value._path[:n_views] == tensor._path:
                    return _New(Given(at), value._path[n_views:], value)
                self.reason = self.reason or "it returns another view of what an argument is a view of"
        return value

    def _given_back(self, kept: Any) -> Any:
        return signature.rebuilt(kept, self._made)

    def _made(self, value: Any) -> Any:
        if isinstance(value, Given):
            return self.call.tensors[value]
        if isinstance(value, _New) and isinstance(value.place, Given):
            tensor = self.call.tensors[value.place]
            return value.made(tensor._storage, tensor._path)
        if isinstance(value, _New):
            return value.made(self._fresh[value.place], ())
        if isinstance(value, Live):
            return winding.function_of(value.text)(self._values) if self._values else value.value
        return value

    def taken(self) -> tuple[Any, dict[str, Any]]:
        """What the last call returns and shows, once: the step holds neither that nor what it was given."""
        result, taps = self.result, self.taps
        self.result, self.taps, self.call, self._fresh = None, {}, NOTHING, []
        return result, taps

    # The other times

    def unfit(self) -> str | None:
        """Why this step does not do what the function would do now, or None."""
        changes = recorder.changes
        for guard in self._always if changes == self._checked else (*self._always, *self._guards):
            reason = guard()
            if reason is not None:
                return reason
        self._checked = changes
        return None

    def replay(self, call: Call) -> str | None:
        """Runs the step with new arguments; `result` then holds what it returns. A reason where it cannot."""
        for tensor, fixed in zip(call.tensors, self._fixed, strict=True):
            if tensor._storage is not fixed and (fixed is not None or id(whole_of(tensor._storage)) in self._state):
                return "an argument is, or no longer is, a tensor that it also knows in another way"
        self.call = call
        run = self.run
        executor.submit(run.device)
        restore = self.tape.snapshot()
        try:
            reason = self._wind()
            if reason is None:
                inputs = [self._buffer(source) for source in self._sources]
                if None in inputs:
                    reason = "memory that it reads was moved"
                else:
                    outputs, takers, reason = self._outputs(inputs)
            if reason is None:
                executor.run_again(run, inputs, self._given_numbers, outputs, takers)
        except BaseException:
            restore()
            raise
        if reason is not None:
            restore()
            return reason
        for leaf, grad in self._ends:
            if leaf._grad is not grad:
                leaf._grad = grad
                recorder.changes += 1
        for leaf, grad in self._new_ends:
            leaf._grad = self._made(grad)
            recorder.changes += 1
        self.result = self._given_back(self._kept_result)
        self.taps = self._given_back(self._kept_taps)
        return None

    def _buffer(self, source: Source) -> Buffer:
        if isinstance(source, Buffer):
            return source
        storage = source if isinstance(source, Storage) else whole_of(self.call.tensors[source]._storage)
        buffer: Buffer = storage.node.buffer
        return buffer

    def _outputs(self, inputs: list[Buffer]) -> tuple[list[Buffer | None], list[list[Storage]], str | None]:
        """The buffers that outputs go to, where they stay in one place, and the storages that take them."""
        run = self.run
        leaf_of = dict(run.program.written)
        read = {id(buffer) for buffer in inputs}
        self._fresh = [None] * self._n_fresh
        outputs: list[Buffer | None] = []
        takers: list[list[Storage]] = []
        for at, kinds in enumerate(self._takers):
            slot = run.program.slots[run.program.outputs[at]]
            home: Buffer | None = None
            storages = [self._taker(kind, slot.spec) for kind in kinds]
            for storage in storages:
                own = storage.home
                if own is not None and own.holders == 1 and (id(own) not in read or at in leaf_of):
                    home = own
            if at in leaf_of and home is not inputs[leaf_of[at]]:
                return [], [], "a tensor that it writes in place shares its memory with another one"
            outputs.append(home)
            takers.append(storages)
        return outputs, takers, None

    def _taker(self, kind: Taker, spec: Any) -> Storage:
        if isinstance(kind, Storage):
            return kind
        if isinstance(kind, Given):
            return self.call.tensors[kind]._storage
        made = self._fresh[kind] = Storage.empty(spec, self.run.device)
        return made

    # The tape

    def _compile_tape(self, numbers: list[Node]) -> None:
        """The tape's expressions as functions of the list of values read."""
        texts = [node.buffer.text if self._is_live(node.buffer) else repr(plain(node.buffer)) for node in numbers]
        self._numbers = winding.function_of(f"({''.join(text + ',' for text in texts)})")
        self._texts = texts
        self._wound = winding.program_of(self.tape.entries)

    def _is_live(self, number: Any) -> bool:
        return isinstance(number, Live) and number.tape is self.tape

    def _wind(self) -> str | None:
        """Does what the host did in the captured call. A reason where it would have gone another way."""
        values: list[Any] = []
        self._values = values
        try:
            reason: str | None = self._wound(values)
            if reason is None:
                self._given_numbers = self._numbers(values)
            return reason
        except Exception as error:  # As in the function itself, which then raises it, or goes another way.
            return f"{type(error).__name__}: {error}"


class _New:
    """A returned tensor that each run makes anew: a storage, new or of an argument, and the views into it."""

    __slots__ = ("_class", "_inference", "place", "views")

    def __init__(self, place: Fresh | Given, views: Views, like: TensorBase) -> None:
        self.place, self.views = place, views
        self._class, self._inference = like._class(), like._inference

    def made(self, storage: Storage, path: Views) -> Any:
        made = self._class._of(storage, (*path, *self.views))
        if self._inference:
            made._inference = True
        return made


def _wants_gradient(tensor: TensorBase) -> bool:
    """Whether somebody could still call backward on it."""
    node = tensor._node
    return node.requires and not any(inner.freed for inner in walk.history([node]))


def _users_line(error: BaseException) -> str:
    """The innermost line outside this package that led to the error."""
    frames = traceback.extract_tb(error.__traceback__)
    found = [frame for frame in frames if not frame.filename.startswith(PACKAGE)]
    if not found:
        return ""
    return f"{found[-1].filename}:{found[-1].lineno}: {found[-1].line}\n  "
