"""A captured step: a call that can run again without Python. The record is frozen; what runs change stands apart."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pywebgpu.devices.base import Buffer
from pywebgpu.ir import observer
from pywebgpu.runtime import executor
from pywebgpu.runtime.executor import Run
from pywebgpu.runtime.storage import Storage, whole_of
from pywebgpu.step_capture import guards, signature
from pywebgpu.step_capture.bindings import Given, GivenContainer, GradientOf, Made, Replays, Source, Taker
from pywebgpu.step_capture.capture import Capture, OwnReference
from pywebgpu.step_capture.captured_call import CapturedCall
from pywebgpu.step_capture.free_number import FREE
from pywebgpu.step_capture.gradients import UNCHANGED, GivenGradients, NewGradients
from pywebgpu.step_capture.host_program import Bound, Changed, is_same
from pywebgpu.step_capture.signature import Call
from pywebgpu.step_capture.surroundings import Surroundings
from pywebgpu.support import interrupts
from pywebgpu.tensor.base import TensorBase

if TYPE_CHECKING:
    from pywebgpu.ir.graph import Spec


@dataclass(frozen=True, slots=True)
class _Output:
    """Who takes an output, as storages where all of them outlive runs; the input that it is written over, if any."""

    takers: tuple[Taker, ...]
    kept: list[Storage] | None
    spec: Spec
    over: int | None


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """Data: the Program, where its inputs come from, where outputs go, what is returned, what the host computes.

    numbers: by argument, the floats that it is for; the others are free.
    number_indices: where in the host program the numbers of the Program are.
    known: what the signature tells apart by identity, so that it has to stay.
    modes: attributes of modules that it tells whether they train, and what they are told at last.
    identities: which values that are passed are the same object, also as something that its code sees, where that code
    asks for it. by_numbers: it reads such numbers as one.
    returns_one: what it returns is one value, no container of some.
    aliases: the containers among the arguments, by id and number, that its code also sees in another way.
    twins: for each tensor that is passed, its id if its code also sees it in another way, else 0.
    passed_gradients: by number, a tensor that is passed and may be a leaf's gradient, that leaf, and whether it is.
    """

    run: Run
    capture: Capture
    host: Bound
    number_indices: tuple[int, ...]
    numbers: dict[int, float]
    sources: tuple[Source, ...]
    takers: tuple[tuple[Taker, ...], ...]
    outputs: tuple[_Output, ...]
    n_fresh: int
    result: Any
    taps: Any
    fixed: tuple[Storage | None, ...]
    state: frozenset[int]  # ids of the storages that it reads or writes by itself
    given_gradients: GivenGradients
    gradients: NewGradients
    other_gradients: tuple[tuple[TensorBase, Any], ...]
    always: tuple[guards.Guard, ...]
    guards: tuple[guards.Guard, ...]
    known: tuple[Any, ...]
    aliases: list[tuple[int, int]]
    twins: list[int]
    passed_gradients: list[tuple[int, OwnReference | Given, bool]]
    outline: Any
    identities: Any
    by_numbers: bool
    modes: list[tuple[dict[str, Any], bool]]
    returns_one: bool
    now: Replays

    def home(self, kind: Source | Taker) -> Storage | Buffer | None:
        """The memory that outlives runs and that an input or an output is in now, if it is in one."""
        if isinstance(kind, GradientOf):
            return self.given_gradients.whole(kind)
        return self.gradients.wholes.get(int(kind)) if isinstance(kind, int) else kind


NOTHING = Call.nothing()


def made(captured: CapturedCall, current: list[Call], free: frozenset[int], *, dry: bool) -> Step:
    """The step of a call that was captured and can run again."""
    capture, run = captured.capture, captured.run
    assert run is not None
    assert captured.around is not None
    assert captured.given_gradients is not None
    number_indices = _number_indices(captured)
    by_numbers = _shares_numbers(captured.call, free)
    gradients = _new_gradients(captured, dry=dry)
    current[0] = NOTHING  # A step keeps none of its arguments.
    return Step(
        run=run,
        capture=capture,
        host=capture.bound(),
        number_indices=number_indices,
        numbers={index: number for index, number in enumerate(captured.call.numbers) if index not in free},
        sources=tuple(captured.sources),
        takers=tuple(map(tuple, captured.takers)),
        outputs=_outputs(run, captured.takers),
        n_fresh=captured.n_fresh,
        result=captured.result_template,
        taps=captured.taps_template,
        fixed=tuple(captured.fixed),
        state=_state(captured),
        gradients=gradients,
        other_gradients=tuple(captured.other_gradients),
        always=tuple(capture.always),
        guards=(*guards.all_of(capture, captured.seen, captured.given_gradients), guards.of_device(run.device)),
        given_gradients=captured.given_gradients,
        known=tuple(captured.call.kept),
        aliases=_aliases(captured.call, captured.around),
        twins=_twins(captured.call, captured.around),
        passed_gradients=_passed_gradients(captured.call, capture),
        outline=captured.call.outline(),
        identities=_identities(captured.call, captured.around, by_numbers=by_numbers),
        by_numbers=by_numbers,
        modes=[(home, home["training"]) for home in capture.modes.values()],
        returns_one=not signature.is_copied(captured.result_template),
        now=Replays(current, captured.around),
    )


def _number_indices(captured: CapturedCall) -> tuple[int, ...]:
    """Where the host program has the numbers of the Program; those that are given back have theirs as well."""
    returned: list[Any] = []
    signature.rebuilt((captured.result_template, captured.taps_template), returned.append)
    indices = tuple([captured.capture.index_of(number) for number in captured.numbers])
    for number in returned:
        if type(number) in FREE:
            captured.capture.index_of(number)
    return indices


def _shares_numbers(call: Call, free: frozenset[int]) -> bool:
    """Whether a free number was the very object of another one."""
    firsts = signature.firsts(call.numbers)
    return any(firsts[index] < index for index in free)


def _new_gradients(captured: CapturedCall, *, dry: bool) -> NewGradients:
    gradients = NewGradients(captured.new_gradients, are_shown=_are_shown(captured))
    if not dry:
        gradients.keep()
    return gradients


def _state(captured: CapturedCall) -> frozenset[int]:
    kinds = [*captured.sources, *(kind for kinds in captured.takers for kind in kinds), *captured.fixed]
    return frozenset(id(whole_of(kind)) for kind in kinds if isinstance(kind, Storage))


def _outputs(run: Run, takers: list[list[Taker]]) -> tuple[_Output, ...]:
    program, over, outputs = run.program, dict(run.program.written), []
    for number, kinds in enumerate(takers):
        kept = [kind for kind in kinds if isinstance(kind, Storage)]
        spec = program.slots[program.outputs[number]].spec
        outputs.append(_Output(tuple(kinds), kept if len(kept) == len(kinds) else None, spec, over.get(number)))
    return tuple(outputs)


def _aliases(call: Call, around: Surroundings) -> list[tuple[int, int]]:
    return [
        (id(container), number)
        for number, container in enumerate(call.containers)
        if id(container) in around.containers
    ]


def _twins(call: Call, around: Surroundings) -> list[int]:
    known = around.tensors
    return [identity if identity in known else 0 for identity in map(id, call.tensors)]


def _passed_gradients(call: Call, capture: Capture) -> list[tuple[int, OwnReference | Given, bool]]:
    """Only what has the shape of a leaf may be its gradient, and shapes are the same at each call."""
    number_of = {id(tensor): Given(number) for number, tensor in enumerate(call.tensors)}
    return [
        (number, number_of.get(id(leaf), OwnReference(leaf)), grad is tensor)
        for number, tensor in enumerate(call.tensors)
        for leaf, grad, is_read in capture.leaves()
        if is_read and leaf.shape == tensor.shape
    ]


def _is_gradient(call: Call, number: int, leaf: OwnReference | Given) -> bool:
    tensor = call.tensors[leaf] if isinstance(leaf, Given) else leaf()
    return tensor is not None and tensor._grad is call.tensors[number]


def _identities(call: Call, around: Surroundings, *, by_numbers: bool) -> object:
    if around.by_identity:
        values, known = signature.values_in(call), around.values()
        return signature.firsts(values), [id(value) if id(value) in known else 0 for value in values]
    return signature.firsts(call.numbers) if by_numbers else None


def _are_shown(captured: CapturedCall) -> bool:
    return any(template.storage in captured.shown for _, template in captured.new_gradients)


# Whether it fits


def changed(step: Step) -> str | None:
    """What the step takes for granted and is no longer so, or None."""
    now, changes = step.now, observer.change_count()
    n_looks = now.surroundings.n_looks
    reason = now.surroundings.changed()
    if reason is not None:
        return reason
    for guard in step.always if changes == now.checked else (*step.always, *step.guards):
        reason = guard()
        if reason is not None:
            return reason
    if n_looks != now.surroundings.n_looks:
        now.note_change()
    now.checked = changes
    return None


def unfit(step: Step, call: Call) -> str | None:
    """Why the step does not do what the function would do now, or None. Numbers are apart: see `other_numbers`.

    Modules are told whether they train, as the function tells them: `leave_modes` takes that back.
    """
    for home, mode in step.modes:
        if home["training"] is not mode:
            step.now.modes.append((home, home["training"]))
            home["training"] = mode
    reason = changed(step)
    if reason is not None:
        return reason
    for tensor, storage in zip(call.tensors, step.fixed, strict=True):
        if tensor._storage is not storage and (storage is not None or id(whole_of(tensor._storage)) in step.state):
            return "an argument is, or no longer is, a tensor that it also knows in another way"
    if _twins(call, step.now.surroundings) != step.twins:
        return "an argument is, or no longer is, a tensor that its code also sees in another way"
    if any(_is_gradient(call, number, leaf) is not before for number, leaf, before in step.passed_gradients):
        return "an argument is, or no longer is, the gradient of a tensor"
    if call.containers and _aliases(call, step.now.surroundings) != step.aliases:
        return "an argument is, or no longer is, a container that it also knows in another way"
    if _identities(call, step.now.surroundings, by_numbers=step.by_numbers) != step.identities:
        return "equal values are, or no longer are, the same object"
    if not step.given_gradients.are_apart(step.state):
        return "a gradient shares its memory with another tensor"
    return None


def leave_modes(step: Step) -> None:
    """The step does not run: modules are as they were."""
    for home, mode in step.now.modes:
        home["training"] = mode
    step.now.modes.clear()


def other_numbers(step: Step, call: Call) -> list[int]:
    """The float arguments that the step has as constants, and that are others now."""
    return [index for index, number in step.numbers.items() if not is_same(call.numbers[index], number)]


def free(step: Step, call: Call) -> frozenset[int]:
    """The float arguments that it reads anew in each run."""
    return frozenset(range(len(call.numbers))) - step.numbers.keys()


# Running it again


def replay(step: Step, call: Call) -> tuple[str | None, Any, Any]:
    """Runs the step with new arguments: a reason where it cannot, what it returns, and what it shows."""
    executor.submit(step.run.device)
    step.now.current[0] = call
    try:
        with interrupts.held():  # A run that is queued has its numbers, gradients and results.
            return _replay(step, call)
    finally:
        step.now.current[0] = NOTHING


def _replay(step: Step, call: Call) -> tuple[str | None, Any, Any]:
    restore = _nothing if step.host.is_deferred else step.capture.snapshot()
    try:
        outcome = _found(step, call)
        if isinstance(outcome, str):
            restore()
            return outcome, None, None
        values, memory = outcome
        numbers = [values[index] for index in step.number_indices]
        executor.run_again(step.run, memory.inputs, numbers, memory.outputs, memory.takers)
        step.host.commit(values)
    except BaseException:
        restore()
        raise
    return None, *_leave(step, call, values, memory)


def _found(step: Step, call: Call) -> tuple[list[Any], _Memory] | str:
    """What the host computes, and where the run reads and writes; a reason where Python would do something else."""
    try:
        values = step.host.run()
    except Changed as change:
        return f"a number of the host changed what Python does: {change}"
    except (ArithmeticError, ValueError, TypeError) as error:  # The function raises it, or goes another way.
        return f"{type(error).__name__}: {error}"
    memory = _memory(step, call)
    return memory if isinstance(memory, str) else (values, memory)


def _nothing() -> None:
    pass


@dataclass(slots=True)
class _Memory:
    """The inputs, the buffers that outputs go to that stay, and the storages that take them.

    new: the storages that the run makes, by number. renews: gradients go into new tensors.
    """

    inputs: list[Buffer]
    outputs: list[Buffer | None]
    takers: list[list[Storage]]
    new: dict[int, Storage]
    renews: bool


def _memory(step: Step, call: Call) -> _Memory | str:
    inputs = [
        # A model's weights are many: of those that are neither parts nor written on the host the value is at hand.
        source._node.buffer
        if type(source) is Storage and source.whole is None and source.elements is None
        else _input(step, source, call)
        for source in step.sources
    ]
    if None in inputs:
        return "memory that it reads was moved"
    read = set(map(id, inputs))
    renews = bool(step.gradients.ends) and not step.gradients.are_free()
    new = {} if renews else dict(step.gradients.wholes)
    outputs: list[Buffer | None] = []
    takers: list[list[Storage]] = []
    for output in step.outputs:
        over = output.over
        storages = output.kept or [_taker(step, kind, call, new, output.spec) for kind in output.takers]
        home: Buffer | None = None
        for storage in storages:
            own = storage.home
            if own is not None and (over is not None or id(own) not in read) and own.may_be_written:
                home = own
        if over is not None and home is not inputs[over]:
            return "a tensor that it writes in place shares its memory with another one"
        outputs.append(home)
        takers.append(storages)
    return _Memory(inputs, outputs, takers, new, renews)


def _input(step: Step, source: Source, call: Call) -> Buffer:
    if isinstance(source, Buffer):
        return source
    if isinstance(source, Given):
        storage = whole_of(call.tensors[source]._storage)
    else:
        storage = step.given_gradients.whole(source) if isinstance(source, GradientOf) else source
    buffer: Buffer = storage.node.buffer
    return buffer


def _taker(step: Step, kind: Taker, call: Call, new: dict[int, Storage], spec: Spec) -> Storage:
    if isinstance(kind, Storage):
        return kind
    if isinstance(kind, Given):
        return call.tensors[kind]._storage
    if isinstance(kind, GradientOf):
        return step.given_gradients.whole(kind)
    if kind not in new:
        new[kind] = Storage.empty(spec, step.run.device)
    return new[kind]


def _leave(step: Step, call: Call, values: list[Any], memory: _Memory) -> tuple[Any, Any]:
    """Leaves the world as Python would: gradients, and what is returned."""
    tensors: dict[int, Any] = {}
    own = [step.given_gradients.gradient(number) for number in range(len(step.given_gradients.leaves))]
    if memory.renews:
        step.gradients.renew(memory.new, tensors)
        are_new = True
    else:
        are_new = step.gradients.put_back()

    def make(template: Any) -> object:
        if isinstance(template, GivenContainer):
            return call.containers[template]
        if isinstance(template, Given | GradientOf | Made):
            return _tensor(template, call, memory.new, own, tensors)
        return values[template._index] if type(template) in FREE else template

    for leaf, template in step.other_gradients:
        end = leaf._grad if template is UNCHANGED else make(template)
        if leaf._grad is not end:
            leaf._grad, are_new = end, True
    if are_new:
        observer.changed()
    known = step.now.surroundings.containers
    result = make(step.result) if step.returns_one else signature.copied(step.result, make, known)
    return result, signature.copied(step.taps, make, known) if step.taps else {}


def _tensor(
    template: Any, call: Call, new: dict[int, Storage], gradients: list[TensorBase], tensors: dict[int, Any]
) -> Any:
    """The tensor of a template; a made one is made once. tensors: by id of their templates, those that are."""
    if isinstance(template, Given):
        return call.tensors[template]
    if isinstance(template, GradientOf):
        return gradients[template]
    if not isinstance(template, Made):
        return template
    if id(template) not in tensors:
        tensor = tensors[id(template)] = _made(template, call, new, gradients)
        if template.base is not None:
            tensor._base = _tensor(template.base, call, new, gradients, tensors)
    return tensors[id(template)]


def _made(template: Made, call: Call, new: dict[int, Storage], gradients: list[TensorBase]) -> TensorBase:
    if isinstance(template.storage, Given):
        tensor = call.tensors[template.storage]
        return template.tensor(tensor._storage, tensor._path)
    if isinstance(template.storage, Storage):
        return template.tensor(template.storage, ())
    if isinstance(template.storage, GradientOf):
        return template.tensor(gradients[template.storage]._storage, ())
    storage = new[template.storage]
    return template.tensor(storage if template.part is None else Storage.part_of(storage, template.part), ())
