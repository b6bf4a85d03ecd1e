"""`compile`: a function whose calls become captured steps, kept by signature.

A replay gives what running Python again would give, or the call is recorded again, with a reason that can be read.
"""

from __future__ import annotations

import functools
import sys
import threading
import types
import warnings
from collections import Counter, OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from pywebgpu.errors import CaptureWarning
from pywebgpu.ir.graph import thread_state
from pywebgpu.settings import settings
from pywebgpu.step_capture import audit, names, signature, step
from pywebgpu.step_capture.bindings import Replays
from pywebgpu.step_capture.builder import Builder
from pywebgpu.step_capture.captured_call import CapturedCall
from pywebgpu.step_capture.signature import Call
from pywebgpu.step_capture.step import Step
from pywebgpu.step_capture.surroundings import Place
from pywebgpu.tensor.base import TensorBase

ALIKE = 8  # captured steps of one signature
PATIENCE = 4  # captures in a row that cannot be kept, before a warning
MISSES = 8  # captures in a row because a guard did not hold, before a warning
COUNTED = 64  # numbers that a function keeps and changes
TRUST = 3  # audits of one signature that may find a difference, before its calls are recorded each time


@dataclass(slots=True)
class _Variants:
    """The steps of one signature, the latest first.

    each_call: why calls are recorded each time, where they are.
    last: the one that was captured or ran last.
    told: code ran that can tell a number which stands for several values from Python's own; None before any ran.
    """

    steps: list[Step] = field(default_factory=list)
    each_call: str = ""
    told: bool | None = None
    last: Step | None = None
    n_differences: int = 0


class Compiled:
    """A function and its captured steps.

    counters: "captures"; "replays", runs without Python; "audits", ordinary calls that were compared with what a replay
    would have done; "differences" that audits found; "recompiles", captures because a guard no longer held.
    reasons: for each recompile, each difference, and each step that is recorded at each call, why.
    captures: what the last call registered by `capture(name, tensor)`.
    """

    def __init__(self, function: Callable[..., object]) -> None:
        functools.update_wrapper(self, function, updated=("__dict__",) * isinstance(function, types.FunctionType))
        self.function = function
        self.counters: Counter[str] = Counter(captures=0, replays=0, recompiles=0, audits=0, differences=0)
        self.reasons: list[str] = []
        self.captures: dict[str, TensorBase] = {}
        self._variants: OrderedDict[Any, _Variants] = OrderedDict()
        self._open: set[Any] = set()
        self._lost = self._missed = self._unlike = 0
        self._counts: bool | None = None  # whole numbers that are passed are read in each run; None: not known yet
        self._counted: list[Place] = []  # where the program keeps numbers that it changes in each call
        self._lock = threading.RLock()

    def __get__(self, owner: object, kind: object = None) -> Any:
        return self if owner is None else functools.partial(self, owner)

    def __deepcopy__(self, memo: dict[int, Any]) -> object:
        """A function is its own copy; that of a compiled module is a module that is not compiled."""
        return None if hasattr(self.function, "__self__") else self

    def __reduce__(self) -> str | tuple[Any, ...]:
        if hasattr(self.function, "__self__"):
            return type(None), ()
        return str(self.function.__qualname__)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if thread_state.observer is not None or _is_checked():  # A step inside a step is a part of it.
            return self.function(*args, **kwargs)
        call = Call(args, kwargs, counts=bool(self._counts))
        if call.has_history or call.key in self._open:
            return self.function(*args, **kwargs)
        with self._lock:
            caller = sys._getframe(1)
            line = id(caller.f_code), caller.f_lasti
            variants = self._variants.get(call.key)
            if variants is None:
                if self._counts is None and self._variants:
                    self._counts = _unlike().are_counted(next(reversed(self._variants)), call.key) or None
                    if self._counts:  # A step number, say: it is read in each run, as floats are.
                        call = Call(args, kwargs, counts=True)
                if self._variants:
                    others = _unlike().replaced(next(reversed(self._variants)), call.key, call)
                    noted = [*map(_unlike().note_content, others)]
                    if any(noted):  # A batch, say: each call has a new one.
                        return self(*args, **kwargs)
                self._meet(call)
                return self._capture(call, _Variants(), [], line=line)
            self._variants.move_to_end(call.key)
            return self._run(call, variants, line)

    def _meet(self, call: Call) -> None:
        """Arguments of a new kind. What has new ones each time is not captured for ever without a word."""
        self._unlike += 1
        if self._unlike > 1 and self._variants:
            self._say(f"captured for other arguments: {_unlike().difference(next(reversed(self._variants)), call.key)}")

    def _run(self, call: Call, variants: _Variants, line: tuple[int, int]) -> object:
        if variants.each_call:
            return self._given(Builder(call, ordinary=True, watched=False).record(self.function))
        reasons: list[str] = []
        others: list[set[int]] = []
        for variant in variants.steps:
            reason = step.unfit(variant, call)
            if reason is None:
                numbers = step.other_numbers(variant, call)
                if numbers and not variant.aliases:  # A copy with free numbers would not be the container itself.
                    others.append({*numbers, *step.free(variant, call)})
                if numbers:
                    reason = _words(variant, call, numbers)
            if reason is None:
                if reasons and variant is not variants.last:  # Another step was the right one before.
                    variant.now.note_change()
                variants.last = variant
                is_new = audit.is_new(variant.now, line, settings.audit)
                if is_new or audit.is_due(variant.now.n_calls + 1, settings.audit):
                    step.leave_modes(variant)
                    return self._audit(call, variants, variant)
                reason, result, observers = step.replay(variant, call)
                if reason is None:
                    variant.now.modes.clear()
                    variant.now.n_calls += 1
                    self.counters["replays"] += 1
                    self._missed = self._unlike = 0
                    self._show(observers)
                    return result
            step.leave_modes(variant)
            reasons.append(reason)
        return self._capture(call, variants, reasons, frozenset(min(others, key=len, default=())), line=line)

    def again(self) -> bool:
        """Runs the last step of a function without arguments once more. Returns whether there is one that fits.

        What it takes for granted is not looked at: the caller knows that nothing of it changed since the last call,
        which takes most of a step's time on the host where a model has many modules.
        """
        if thread_state.observer is not None or _is_checked():
            return False
        with self._lock:
            variants = next(reversed(self._variants.values()), None)
            last = None if variants is None or variants.each_call else variants.last
            if last is None or audit.is_due(last.now.n_calls + 1, settings.audit):
                return False
            reason, _, observers = step.replay(last, Call((), {}))
            if reason is not None:
                return False
            last.now.n_calls += 1
            self.counters["replays"] += 1
            self._show(observers)
            return True

    # Recording

    def _given(self, captured: CapturedCall) -> object:
        self._show(captured.taps)
        result = captured.result
        captured.result, captured.taps = None, {}
        return result

    def _show(self, captures: dict[str, TensorBase]) -> None:
        """Sets `captures`; an empty dict stays the same one, since a step may guard this function as an attribute."""
        if captures or self.captures:
            self.captures = captures

    def _capture(
        self,
        call: Call,
        variants: _Variants,
        reasons: list[str],
        free: frozenset[int] | None = frozenset(),
        *,
        line: tuple[int, int] = (0, 0),
        dry: bool = False,
    ) -> object:
        """free: the float arguments that each run reads anew; None for all. line: where the program calls it."""
        builder = self._builder(call, variants, free, dry=dry)
        if reasons:
            self._miss(reasons[0], is_freed=bool(builder.free))
        captured = self._record(builder, variants)
        self.counters["captures"] += not dry
        if captured.is_open:
            self._open.add(call.key)
            self._say("recorded at each call: a gradient may still be asked of what it returns")
            return self._given(captured)
        unseen = _unseen(captured)
        places = captured.around.kept if captured.around is not None else []
        if places and not (unseen or captured.reason):
            if self._note_counted(places):
                self._say(f"captured again, as it keeps a number in {places[0].name}")
                return self._given(captured)
            unseen = f"it keeps a number in {places[0].name}"
        if unseen:
            variants.each_call = unseen
            self._variants[call.key] = variants
        if unseen or captured.reason:
            self._lose(unseen or captured.reason)
        else:
            self._lost = 0
            variants.last = step.made(captured, builder.current, builder.free, dry=dry)
            variants.last.now.lines.add(line)
            self._keep(call, variants, variants.last)
        return self._given(captured)

    def _builder(self, call: Call, variants: _Variants, free: frozenset[int] | None, *, dry: bool) -> Builder:
        telling = bool(variants.told) or names.tells_numbers_apart(self.function, call.kept)
        free = frozenset(range(len(call.numbers))) if free is None else free
        return Builder(
            call,
            frozenset() if telling else free,
            guarded=telling or (variants.told is None and not dry),
            dry=dry,
            counted=() if dry or variants.told else self._counted,
        )

    def _record(self, builder: Builder, variants: _Variants) -> CapturedCall:
        try:
            return builder.record(self.function)
        except TypeError:  # What stands for several values may be no float to a function: it is one from now on.
            builder.told |= bool(builder.free)
            raise
        finally:
            variants.told = bool(variants.told) or builder.told

    def _miss(self, reason: str, *, is_freed: bool) -> None:
        """Counts a call that no step fits. is_freed: what changed is a number, and free from now on."""
        self.counters["recompiles"] += 1
        self._say(f"{reason}, and is free from now on" if is_freed else reason)
        self._missed += 1
        if self._missed == PATIENCE and self._counts:  # They decide what the function does.
            self._counts = False
        if self._missed == MISSES:
            self._warn(f"is captured anew at each call: {reason}")

    def _audit(self, call: Call, variants: _Variants, variant: Step) -> object:
        self.counters["audits"] += 1
        now, begun = variant.now, audit.begin(variant, call)
        builder = Builder(
            call, step.free(variant, call), ordinary=True, known=now, watched=now.n_audits == 0, counted=self._counted
        )
        variant.gradients.forget()
        captured = builder.record(self.function)
        now.n_calls += 1
        now.n_audits += 1
        written = now.surroundings.changed()
        text = None if captured.capture.left else audit.difference(variant, captured, begun)
        if captured.is_open:
            text = "a gradient may now be asked of what it returns"
        if written is not None and not (variants.told or _unseen(captured)) and self._count(now, written):
            variants.steps.remove(variant)
            return self._given(captured)
        unseen = f"it changes what outlives the call: {written}" if written is not None else _unseen(captured)
        if unseen:
            variants.each_call = unseen
            variants.steps.clear()
            self._lose(unseen)
        elif captured.has_moved:
            variants.steps.remove(variant)
            self._lose(captured.reason)
        elif text:
            self._differs(variants, variant, text)
        elif captured.around is not None:
            now.surroundings = captured.around
            if text is None:
                variant.gradients.keep()
        return self._given(captured)

    def _count(self, now: Replays, written: str) -> bool:
        """Whether all that the function changed are numbers that it keeps: each run can do that, too."""
        places = now.surroundings.counted()
        if not places or not self._note_counted(places):
            return False
        self._say(f"captured again, as it counts: {written}")
        return True

    def _note_counted(self, places: list[Place]) -> bool:
        """Whether each run can read and write the numbers there: they are not too many, and some are new."""
        known = {(id(place.owner), place.name) for place in self._counted}
        new = [place for place in places if (id(place.owner), place.name) not in known]
        self._counted = [*self._counted, *new][-COUNTED:]
        return bool(new) and len(places) <= COUNTED

    def _differs(self, variants: _Variants, step: Step, text: str) -> None:
        reason = f"call {step.now.n_calls} did something else than a replay would have done: {text}"
        self.counters["differences"] += 1
        variants.n_differences += 1
        variants.steps.remove(step)
        self._say(reason)
        self._warn(reason)
        if variants.n_differences >= TRUST:
            variants.each_call = reason
            variants.steps.clear()

    def _keep(self, call: Call, variants: _Variants, step: Step) -> None:
        latest = next((kept.steps[0] for kept in reversed(self._variants.values()) if kept.steps), None)
        if latest is not None:
            step.now.surroundings.share(latest.now.surroundings)
        variants.steps.insert(0, step)
        del variants.steps[ALIKE:]
        self._variants[call.key] = variants
        self._variants.move_to_end(call.key)
        while sum(len(kept.steps) for kept in self._variants.values()) > settings.steps:
            oldest = next(iter(self._variants))
            if self._variants[oldest].steps:
                self._variants[oldest].steps.pop()
            if not self._variants[oldest].steps:
                del self._variants[oldest]

    def _lose(self, reason: str) -> None:
        self._say(f"recorded at each call: {reason}")
        self._lost += 1
        if self._lost == PATIENCE:
            self._warn(f"cannot be replayed: {reason}")

    def _warn(self, what: str) -> None:
        warnings.warn(f"{names.title(self.function)} {what}", CaptureWarning, stacklevel=5)

    def _say(self, reason: str) -> None:
        self.reasons.append(reason)
        del self.reasons[:-100]
        if settings.debug >= 1:
            print(f"compile: {names.title(self.function)}: {reason}")

    def warmup(self, *args: Any, **kwargs: Any) -> None:
        """Captures the step for such arguments and makes its pipelines, without running it: nothing changes.

        A shape (tuple of ints) stands for float32 zeros of that shape on the default device.
        """
        if _is_checked():
            return
        call = Call(_unlike().rebuilt_shapes(args), _unlike().rebuilt_shapes(kwargs))
        with self._lock:
            self._capture(call, self._variants.get(call.key) or _Variants(), [], None, dry=True)

    def latest(self) -> Step | None:
        """The step that was captured or ran last, with all floats that it is given free: for an export."""
        kept = next((recent for recent in reversed(self._variants.values()) if recent.steps), None)
        if kept is None or not (kept.steps[0].numbers or self._counts):
            return None if kept is None else kept.steps[0]
        args, kwargs = signature.rebuilt(kept.steps[0].outline, _unlike().example)
        variants = _Variants()
        self._capture(Call(args, kwargs), variants, [], None, dry=True)
        return variants.steps[0] if variants.steps else None

    def clear(self) -> None:
        """Forgets all captured steps."""
        self._variants.clear()


def _unlike() -> types.ModuleType:
    return import_module("pywebgpu.step_capture.unlike")


def _unseen(captured: CapturedCall) -> str:
    """Why guards cannot speak for all that a call did."""
    if captured.capture.left:
        return captured.capture.left
    return "; ".join(captured.around.reasons[:3]) if captured.around is not None else ""


def _words(step: Step, call: Call, numbers: list[int]) -> str:
    number = numbers[0]
    return f"argument {step.numbers[number]!r} is {call.numbers[number]!r}"


def _is_checked() -> bool:
    """Whether somebody has to see every op, as a search for NaN does: each call is then ordinary code."""
    return thread_state.n_ordinary > 0 or getattr(thread_state.origins, "checks", False)


def compile(
    model: Callable[..., Any] | None = None,
    *,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    backend: object = "webgpu",
    mode: str | None = None,
    options: dict[str, Any] | None = None,
    disable: bool = False,
) -> Any:
    """Makes each call of a function one Program, which later calls with equal signatures replay without Python.

    The function may hold a whole training step: forward, backward, clipping, `optimizer.step()`, `scheduler.step()`.
    What it reads besides its arguments is state, and what it writes is written in place. Rates, step counts and seeds
    are new in each run, and so are floats that were passed with different values; any other number is part of the
    step, and a change captures it again. Where a replay could give something else than Python, the call is recorded
    each time, and `reasons` says why.
    Returned tensors have no history. Where the caller may still ask for the gradient of what is returned, as with a
    model alone, the call is recorded like any other code and becomes part of the Program that the caller's step runs.
    Other arguments of torch.compile are accepted and change nothing.

    Raises: CaptureError, with the line, where the function reads a value on the host.
    """
    if model is None:
        return functools.partial(compile, disable=disable)
    if disable:
        return model
    wrap = getattr(model, "_compiled_in_place", None)
    return Compiled(model) if wrap is None else wrap()


def capture(name: str, tensor: TensorBase) -> TensorBase:
    """Registers a tensor of a compiled step by a name: `step.captures[name]` after each call. Else does nothing."""
    if thread_state.observer is not None:
        thread_state.observer.tap(name, tensor.detach())
    return tensor
