"""Records one call, as a Program, and finds out what would have to be given and taken to run it again.

A call is recorded in one of two ways: captured, with free numbers, so that a step can be made of it; or as an ordinary
call, with plain numbers, against which a step is audited. Everything else is the same.
"""

from __future__ import annotations

import gc
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from importlib import import_module
from math import prod
from operator import is_
from typing import Any

from pywebgpu.autodiff import grad_mode
from pywebgpu.devices.base import Buffer, Device
from pywebgpu.errors import PACKAGE, CaptureError
from pywebgpu.ir import walk
from pywebgpu.ir.graph import Node, thread_state
from pywebgpu.ir.observer import shared
from pywebgpu.ops import indexing, movement
from pywebgpu.runtime import executor
from pywebgpu.runtime.executor import Run
from pywebgpu.runtime.storage import Storage, whole_of
from pywebgpu.step_capture import garbage, gradients, guards, kinds, names, signature, surroundings, survey
from pywebgpu.step_capture.bindings import Fresh, Given, GivenContainer, GradientOf, Made, Replays, Source, Taker
from pywebgpu.step_capture.capture import Capture
from pywebgpu.step_capture.captured_call import CapturedCall
from pywebgpu.step_capture.free_number import FREE, NotFreeError, plain
from pywebgpu.step_capture.gradients import GivenGradients
from pywebgpu.step_capture.signature import Call
from pywebgpu.step_capture.surroundings import Place, Surroundings, is_a
from pywebgpu.step_capture.watch import Watch
from pywebgpu.support import interrupts
from pywebgpu.tensor.base import TensorBase
from pywebgpu.tensor.history import History
from pywebgpu.tensor.tensor import Tensor


class Builder:
    """Records one call of a function: see `record`.

    free: the numbers of the float arguments that are read anew in each run.
    ordinary: all numbers are plain. guarded: all are, and a run needs them to be what they are.
    dry: the Program is made ready and does not run, and all is as it was before.
    known: what is known of the step that is audited. watched: what the call runs and can see is found out.
    counted: where the program keeps numbers that it changes.
    """

    def __init__(
        self,
        call: Call,
        free: frozenset[int] = frozenset(),
        *,
        ordinary: bool = False,
        guarded: bool = False,
        dry: bool = False,
        known: Replays | None = None,
        watched: bool = True,
        counted: Sequence[Place] = (),
    ) -> None:
        self.call, self.free, self._dry = call, free, dry
        self.capture = Capture(free=not ordinary, guarded=guarded, dry=dry)
        self.current = [call]  # the present call, where what the capture reads finds its numbers
        self.reason = ""
        self.is_open = self.has_moved = False
        self.told = False  # code ran that can tell a free number from Python's own
        self._known, self._counted = known, counted
        self._watch = Watch(self._is_paused, self._is_told) if watched else None
        if self._watch is not None:
            self.capture.has_named = self._watch.has_named
        self._born: dict[int, Storage] = {}  # by id: storages that the captured call made
        self._parts: list[TensorBase] = []  # arguments that are parts of larger tensors, while they are captured
        self._fresh: dict[int, Fresh] = {}
        self._made: dict[int, Any] = {}  # by id of a tensor: how each run makes it anew
        self._by_name: set[int] = set()  # ids of tensors that were there before
        self._known_before: frozenset[int] = frozenset()  # ids of what else was
        self._given: dict[int, int] = {}  # by id: the number of a container that was passed
        self._gradients: dict[int, GradientOf] = {}  # by id: gradients that it found
        self._memory: dict[int, GradientOf] = {}  # by id: their own storages, which may be parts
        self._roles: dict[int, GradientOf] = {}  # by id: their storages

    def _is_paused(self) -> bool:
        return thread_state.observer is not self.capture

    def _is_told(self) -> None:
        self.told = self.capture.is_guarded = True
        if self.free or self.capture.has_handed:
            raise NotFreeError("code that tells types apart was given a number that changes from run to run")

    def record(self, function: Callable[..., object]) -> CapturedCall:
        executor.flush()
        try:
            with interrupts.held(), garbage.kept, executor.held():
                result = self._call(function)
                if self.capture.left:
                    return CapturedCall(self.call, self.capture, None, self.capture.left, result=result)
                around = self._surroundings(function)
                if around is not None and around.tells and self.capture.is_free and not self.told:
                    self.told = True
                    if self.free or self.capture.has_handed:
                        reason = "it can tell types apart, and was given numbers that change from run to run"
                        self.capture.reason = reason
                captured = CapturedCall(self.call, self.capture, around)
                self._finish(captured, result)
        finally:
            self._watch = None  # It calls this object, and a cycle would keep what was passed.
        return captured

    def _surroundings(self, function: Callable[..., object]) -> Surroundings | None:
        if self._watch is None:
            return None if self._known is None else self._known.surroundings
        if self._known is not None:  # This call may have run other code than the captured one: guards are for both.
            self._watch.codes |= self._known.surroundings.codes
            self._watch.library |= self._known.surroundings.library
            self._watch.library_codes |= self._known.surroundings.library_codes
        modules = [(type(module).__name__, module) for module in self.capture.modules.values()]
        arguments = [(type(value).__name__, value) for value in self.call.kept]
        arguments += [(kind.__name__, kind) for kind in (Tensor, *self.call.kinds)]
        arguments += shared.items()
        roots = [(names.title(function), function), *arguments, *modules]
        return survey.survey(roots, self._watch, self.capture, self.call)

    # The call

    def _call(self, function: Callable[..., object]) -> object:
        capture, call = self.capture, self.call
        numbers = self._numbers()
        try:
            with capture.active():
                capture.given = {id(whole_of(tensor._storage)) for tensor in call.tensors}
                for tensor in call.tensors:
                    capture.see(tensor)
                for position, tensor in enumerate(call.tensors):
                    self._free_starts(position, tensor)
                args, kwargs = call.mapped(numbers)
                with self._counting():
                    try:
                        result = self._watched(function, args, kwargs)
                        capture.leave_with_shared()
                    except Exception as error:
                        error.args = signature.rebuilt(error.args, plain)
                        raise
                if capture.failed is not None:  # The program caught it, and went another way than without a capture.
                    raise capture.failed
                after = Call(args, kwargs, counts=call.counts)
                self._given = {id(container): number for number, container in enumerate(after.containers)}
                is_as_before = (
                    after.key == call.key
                    and surroundings.are_same(after.numbers, numbers)
                    and all(map(is_, after.tensors, call.tensors))
                )
                if not is_as_before:
                    capture.reason = "it changes what it is given (a list, a dict, requires_grad)"
                    unlike = import_module("pywebgpu.step_capture.unlike")
                    unlike.give_back((call.args, call.kwargs), (args, kwargs))
                return result if capture.left else signature.rebuilt(result, self._own)
        except CaptureError as error:
            raise CaptureError(f"{_users_line(error)}{error}") from None
        finally:
            for tensor in call.tensors:
                tensor._cached = None
            for tensor in self._parts:
                tensor._history = None
            self._parts = []

    def _numbers(self) -> list[Any]:
        """The numbers that are passed, of which each run reads the free ones anew."""
        current = self.current
        numbers: list[Any] = list(self.call.numbers)
        firsts = signature.firsts(self.call.numbers)
        for position in sorted(self.free):
            first = firsts[position]
            read = lambda position=position: current[0].numbers[position]  # noqa: E731
            numbers[position] = (
                numbers[first] if first != position and first in self.free else self.capture.read("argument", read)
            )
        return numbers

    @contextmanager
    def _counting(self) -> Iterator[None]:
        """Numbers that the program keeps and changes in each call are read, and written, by each run."""
        capture, numbers = self.capture, []
        places = [place for place in self._counted if type(_content(place)) in (int, float)]
        for place in places:
            number = capture.read(place.name, place.get, place.owner, handed=True)
            numbers.append(number)
            place.set(number)
        try:
            yield
            for place, number in zip(places, numbers, strict=True):
                value = _content(place)
                if type(value) not in (*FREE, int, float):
                    capture.reason = "it puts something else where it kept a number"
                elif value is not number and not capture.left:
                    capture.write(place.name, value, place.set, place.owner)
        finally:
            for place in places:
                value = _content(place)
                if type(value) in FREE:
                    place.set(plain(value))

    def _watched(self, function: Callable[..., object], args: tuple[Any, ...], kwargs: dict[str, Any]) -> object:
        if self._watch is None:
            with interrupts.allowed():
                return function(*args, **kwargs)
        with self._watch, interrupts.allowed():
            return function(*args, **kwargs)

    def _own(self, value: object) -> object:
        """A returned tensor; a copy of one that was uploaded, since its memory is a constant of the step."""
        if not is_a(value, TensorBase):
            return value
        whole_storage = whole_of(value._storage)
        is_made = any(ref() is whole_storage for ref in self.capture.storages)
        if not is_made or whole_storage.node.buffer is None:
            return value
        with grad_mode.no_grad():
            return value.detach().clone()

    def _free_starts(self, number: int, tensor: TensorBase) -> None:
        """Where a slice of an argument starts is read in each run, and where a part of a larger tensor does."""
        storage = tensor._storage
        is_part = storage.whole is not None
        if tensor._flag or not (is_part or any(op is movement.slice_ for op, _ in tensor._path)):
            return
        current, starts = self.current, []
        node = storage.node
        if storage.whole is not None:
            starts.append(self.capture.read("start", lambda: current[0].tensors[number]._storage.location["start"]))
            shape = storage.location["shape"]
            node = indexing.slice_of_data(storage.whole.node, starts=tuple(starts), sizes=(prod(shape),), steps=(1,))
            node = movement.reshape(node, shape=shape)
        for depth, (op, attrs) in enumerate(tensor._path):
            if op is movement.slice_:
                positions = tuple([self._start(number, depth, axis) for axis in range(len(attrs["starts"]))])
                starts.extend(positions)
                node = indexing.slice_of_data(node, starts=positions, sizes=attrs["sizes"], steps=attrs["steps"])
            else:
                node = op(node, **attrs)
        if is_part and not tensor._path and tensor._history is None:
            self._parts.append(tensor)
            tensor._history = History(())  # So that its node is the one that is noted here.
            tensor._history.cached = (storage.version, node)
        tensor._cached = (storage.version, node)
        self.capture.starts.setdefault(id(storage), []).extend(starts)

    def _start(self, number: int, depth: int, axis: int) -> int:
        current = self.current
        start: Callable[[], int] = lambda: current[0].tensors[number]._path[depth][1]["starts"][axis]  # noqa: E731
        return self.capture.read("start", start)

    # What it did

    def _finish(self, captured: CapturedCall, result: object) -> None:
        """Runs the Program and finds out what would have to be given and taken the next time."""
        capture = self.capture
        self.reason = capture.reason
        self._find_born()
        self._find_gradients(captured)
        around = captured.around
        known = (around.containers if around is not None else frozenset()) | frozenset(self._given)
        self._find_known(around)
        if any(map(signature.has_more, signature.containers_in(result))):
            self.reason = self.reason or "it returns a container with attributes of its own"
        captured.result_template = signature.copied(result, self._kept, known)
        captured.taps_template = signature.copied(capture.taps, self._kept, known)
        captured.shown = frozenset(map(int, self._fresh.values()))
        ends = [(leaf, leaf._grad) for leaf, _, _ in capture.leaves()]
        captured.new_gradients, captured.other_gradients = gradients.ends_of(self._kept_gradients(ends))
        self._refuse_kept()
        if not self._dry:
            capture.forget_gradients()
        for check in capture.checks:
            self._fresh.setdefault(id(whole_of(check._storage)), Fresh(len(self._fresh)))
        captured.n_fresh = len(self._fresh)
        captured.seen = self._find_seen(captured, result)
        self._require_settled()
        if not self.is_open:
            self._run(captured)
        for _, grad in ends:
            if grad is not None:
                grad._storage.claim()
        captured.reason, captured.is_open, captured.has_moved = self.reason, self.is_open, self.has_moved
        captured.result = signature.rebuilt(result, plain)
        captured.taps = dict(capture.taps)
        if self._dry:
            self._undo()
        self._born, capture.storages, capture.begun, capture.undos, capture.taps = {}, [], {}, [], {}
        capture.checks = []
        capture.tensors, self._made = {}, {}

    def _kept_gradients(self, ends: list[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
        before = {id(leaf): grad for leaf, grad, _ in self.capture.leaves()}
        return [
            (leaf, gradients.UNCHANGED if grad is not None and grad is before[id(leaf)] else self._kept(grad))
            for leaf, grad in ends
        ]

    def _find_known(self, around: Surroundings | None) -> None:
        """What was there before the call."""
        self._known_before = (around.met if around is not None else frozenset()) | set(map(id, self.call.kept))
        self._by_name = set(around.tensors) if around is not None else set()
        self._by_name |= {id(tensor) for module in self.capture.modules.values() for tensor in guards.owned(module)}
        self._by_name |= {id(leaf) for leaf, _, _ in self.capture.leaves()}
        self._by_name |= {id(grad) for _, grad, _ in self.capture.leaves() if grad is not None}

    def _refuse_kept(self) -> None:
        """What each run makes anew may not be kept by the program as well."""
        for ref, storage_ref, _ in self.capture.tensors.values():
            tensor, storage = ref(), storage_ref()
            if tensor is not None and storage is not None and id(tensor) in self._by_name:
                whole_storage = whole_of(storage)
                if id(whole_storage) in self._fresh:
                    self._refuse(whole_storage)

    def _find_gradients(self, captured: CapturedCall) -> None:
        """The gradients that it found and knows only as such: by no name, and not as arguments."""
        around = captured.around.tensors if captured.around is not None else set()
        by_name = around | set(map(id, self.call.tensors))
        own = {id(whole_of(tensor._storage)) for tensor in self.call.tensors}
        leaves = [
            (leaf, grad)
            for leaf, grad, read in self.capture.leaves()
            if read and grad is not None and id(grad) not in by_name and id(whole_of(grad._storage)) not in own
        ]
        self._gradients = {id(grad): GradientOf(number) for number, (_, grad) in enumerate(leaves)}
        self._memory = {id(grad._storage): GradientOf(number) for number, (_, grad) in enumerate(leaves)}
        now = [leaf._grad for leaf, _ in leaves]
        for leaf, grad in leaves:  # As when the step began.
            leaf._grad = grad
        captured.given_gradients = GivenGradients([leaf for leaf, _ in leaves])
        self._roles = captured.given_gradients.wholes()
        for (leaf, _), grad in zip(leaves, now, strict=True):
            leaf._grad = grad

    def _require_settled(self) -> None:
        """Memory that was there before must be where it was; else the next call captures the step as it is then."""
        moved = {id(s) for ref in self.capture.moved if (s := ref()) is not None}
        unmade = {id(s) for s, node in self.capture.begun.values() if node.buffer is None and s.whole is None}
        if (moved | unmade) - self._born.keys():
            self._must_settle()
        if any(s.node.requires for s, _ in self.capture.begun.values() if id(s) not in self._born):
            self.reason = "it writes a value with a history into a tensor that stays"

    def _must_settle(self) -> None:
        self.has_moved = True
        self.reason = "it made or moved memory that stays; the next call finds it there"

    def _find_seen(self, captured: CapturedCall, result: object) -> list[guards.Held]:
        """The tensors that the step found and did not make, but for arguments. Those that are both fix the argument."""
        passed: set[int] = set(map(id, self.call.tensors))
        passed |= {id(base) for tensor in self.call.tensors if (base := tensor._base) is not None and not base._flag}
        signature.rebuilt((result, self.capture.taps), lambda value: passed.add(id(value)))
        known = {id(leaf) for leaf, _, _ in self.capture.leaves()}
        known |= captured.around.tensors if captured.around is not None else set()
        known |= {id(tensor) for module in self.capture.modules.values() for tensor in guards.owned(module)}
        seen = []
        for tensor_ref, storage_ref, traits in self.capture.tensors.values():
            tensor, storage = tensor_ref(), storage_ref()
            if tensor is None or id(tensor) in self._gradients:
                continue
            stays = id(tensor) in known or id(tensor) not in passed
            is_another = tensor._storage is not storage or tensor._path != traits[2]
            if stays and is_another and id(tensor._storage) not in self._born:
                self._must_settle()
            if storage is None or id(storage) in self._born:
                continue
            if tensor._traits()[:2] != traits[:2]:
                self.reason = self.reason or "it changes requires_grad or the hooks of a tensor that stays"
            if stays:
                seen.append((tensor_ref, storage, whole_of(storage), traits))
        reached = {id(whole_storage) for _, _, whole_storage, _ in seen}
        wholes = [whole_of(tensor._storage) for tensor in self.call.tensors]
        captured.fixed = [
            tensor._storage
            if id(whole_storage) in reached or (tensor._flag and whole_storage is not tensor._storage)
            else None
            for tensor, whole_storage in zip(self.call.tensors, wholes, strict=True)
        ]
        return seen

    def _find_born(self) -> None:
        """The storages that were made in the step and are still there, by more than a cycle or the backward graph."""
        for ref in self.capture.storages:
            self.capture.begun.pop(id(ref()), None)
        gc.collect(0)  # All that the call made is young: see `record`.
        self._born = {id(storage): storage for ref in self.capture.storages if (storage := ref()) is not None}
        for storage in self._born.values():
            if storage.home is not None:  # It was uploaded: a constant of the step, which no run may overwrite.
                storage.home.kept += 1

    def _run(self, captured: CapturedCall) -> None:
        devices = executor.waiting()
        if len(devices) > 1:
            names = " and ".join(device.name for device in devices)
            raise CaptureError(f"a compiled step runs on one device, but it computed on {names}")
        self._hold_numbers(devices)
        with interrupts.allowed():
            run = executor.submit_now(devices[0], dry=self._dry) if devices else None
        if run is None:
            self.reason = self.reason or "it computes nothing"
            return
        self._connect(captured, run)
        captured.numbers = [node.buffer for node in run.numbers]
        # The leaves are not held: memory that the step no longer needs goes back.
        captured.run = replace(run, data=[], numbers=[], outputs=[])

    def _hold_numbers(self, devices: list[Device]) -> None:
        """A shape or an attribute of an op is part of the Program, whatever computed it."""
        if not self.capture.is_free:
            return
        for node in walk.toposort([storage.node for device in devices for storage in executor.pending(device)]):
            if node.attrs:
                for value in node.attrs.values():
                    for item in value if type(value) is tuple else (value,):
                        self.capture.hold(item)
            for size in node.spec.shape:
                self.capture.hold(size)

    def _undo(self) -> None:
        for restore in self.capture.undos:
            restore()
        for identity, (storage, node) in self.capture.begun.items():
            if identity not in self._born and storage.whole is None:
                storage.replace(node)
                node.stale = False
        for leaf, grad, _ in self.capture.leaves():
            leaf._grad = grad

    def _connect(self, captured: CapturedCall, run: Run) -> None:
        free = [(index, tensor) for index, tensor in enumerate(self.call.tensors) if captured.fixed[index] is None]
        argument_of = {id(whole_of(tensor._storage)): Given(index) for index, tensor in reversed(free)}
        captured.sources = [self._source(captured, index, node, argument_of) for index, node in enumerate(run.data)]
        for storages in run.outputs:
            takers: list[Taker] = []
            for storage in storages:
                identity = id(storage)
                if identity in self._born and identity not in self._fresh:
                    self._refuse(storage)
                role = self._fresh.get(identity, self._roles.get(identity, storage))
                takers.append(argument_of.get(identity, role))
            captured.takers.append(takers)

    def _source(self, captured: CapturedCall, index: int, node: Node, argument_of: dict[int, Given]) -> Source:
        """A leaf that was a storage's value when the step began is read from there; any other is a constant."""
        owner = getattr(node, "storage", None)
        storage: Storage | None = owner() if owner is not None else None
        if storage is not None and id(storage) not in self._born:
            _, before = self.capture.begun.get(id(storage), (storage, node))
            if before is node:
                return argument_of.get(id(storage), self._roles.get(id(storage), storage))
        buffer: Buffer = node.buffer
        buffer.kept += 1
        return buffer

    def _refuse(self, storage: Storage) -> None:
        node = storage.node
        self.reason = self.reason or (
            f"a new tensor of shape {list(node.spec.shape)} and dtype {node.spec.dtype.name} is kept by something "
            "outside the function; return it instead"
        )

    # What it returns

    def _kept(self, value: object) -> object:
        """A returned value as it is made again in each run; what was there before is itself."""
        if id(value) in self._given:
            return GivenContainer(self._given[id(value)])
        if not is_a(value, TensorBase):
            if not (kinds.is_constant(value) or id(value) in self._known_before):
                self.reason = (
                    self.reason
                    or f"it returns an object of class {type(value).__name__}, which each run would have to make"
                )
            return value
        if id(value) in self._made:
            return self._made[id(value)]
        for number, tensor in enumerate(self.call.tensors):
            if tensor is value:
                return Given(number)
        whole_storage = whole_of(value._storage)
        if id(whole_storage) not in self._born:
            return self._view_of_argument(value)
        if _wants_gradient(value):
            self.is_open = True
            return value
        fresh = self._fresh.setdefault(id(whole_storage), Fresh(len(self._fresh)))
        part = value._storage.location if whole_storage is not value._storage else None
        return self._view(value, Made(fresh, part, value._path, value))

    def _view(self, value: TensorBase, template: Made) -> Made:
        """A tensor that each run makes anew is a view of what it is a view of now."""
        if value.__dict__:
            self.reason = self.reason or "it returns a new tensor with attributes of its own"
        if value._history is not None and value._history.unrecorded:
            self.reason = self.reason or "it returns a view that was taken without gradients of what wants one"
        self._made[id(value)] = template
        if any(signature.holds_free(attr) for _, attrs in template.views for attr in attrs.values()):
            self.reason = self.reason or "it returns a view whose place is a number that changes"
            without_free = import_module("pywebgpu.step_capture.kept_numbers").without_free
            value._path = tuple(
                [(op, {name: without_free(attr) for name, attr in attrs.items()}) for op, attrs in value._path]
            )
        if value._flag:
            self.reason = self.reason or "it returns a new leaf that wants a gradient"
        elif not (kinds.is_constant(template.kind) or id(template.kind) in self._known_before):
            self.reason = self.reason or f"it returns a tensor of a class {template.kind.__name__} that it makes"
        if value._base is not None:
            template.base = self._kept(value._base)
        return template

    def _view_of_argument(self, value: TensorBase) -> object:
        """A tensor that was there before is itself, or shows an argument of the call."""
        for number, tensor in enumerate(self.call.tensors):
            if tensor._storage is value._storage:
                if value._node.requires:
                    self.is_open = True
                n_views = len(tensor._path)
                if value._path[:n_views] == tensor._path:
                    return self._view(value, Made(Given(number), None, value._path[n_views:], value))
                self.reason = self.reason or "it returns another view of what an argument is a view of"
        if id(value) in self._gradients:
            return self._gradients[id(value)]
        if id(value) in self._by_name:
            return value
        if _wants_gradient(value):  # Of a parameter, for one.
            self.is_open = True
            return value
        memory = self._memory.get(id(value._storage), value._storage)
        return self._view(value, Made(memory, None, value._path, value))


def _content(place: Place) -> object:
    try:
        return place.get()
    except (KeyError, ValueError):  # The program took it away.
        return None


def _wants_gradient(tensor: TensorBase) -> bool:
    """Whether somebody could still call backward on it."""
    node = tensor._node
    return node.requires and not any(inner.freed for inner in walk.history([node]))


def _users_line(error: BaseException) -> str:
    """The innermost line outside this package that led to the error."""
    frames = traceback.extract_tb(error.__traceback__)
    users = [frame for frame in frames if not frame.filename.startswith(PACKAGE)]
    if not users:
        return ""
    return f"{users[-1].filename}:{users[-1].lineno}: {users[-1].line}\n  "
