"""`compile`: a function whose calls become captured steps, kept by signature."""

from __future__ import annotations

import functools
import warnings
from collections import Counter, OrderedDict
from typing import Any

from pywebgpu.graph.ir import recording
from pywebgpu.step_capture import signature
from pywebgpu.step_capture.signature import Call
from pywebgpu.step_capture.step import Step
from pywebgpu.live import recorder
from pywebgpu.settings import settings
from pywebgpu.tensor.base import TensorBase

STEPS = 64  # captured steps of one function; the least recently used goes first
ALIKE = 8  # captured steps of one signature
PATIENCE = 4  # captures in a row that cannot be kept, before a warning
MISSES = 8  # captures in a row because a guard did not hold, before a warning


class Compiled:
    """A function and its captured steps.

    counters: "captures", "replays", and "recompiles", captures because a guard no longer held.
    reasons: for each recompile and each step that could not be kept, why.
    captures: what the last call registered by `capture(name, tensor)`.
    """

    def __init__(self, function: Any) -> None:
        self.function = function
        functools.update_wrapper(self, function, updated=())
        self.counters: Counter[str] = Counter(captures=0, replays=0, recompiles=0)
        self.reasons: list[str] = []
        self.captures: dict[str, TensorBase] = {}
        self._steps: OrderedDict[Any, list[Step]] = OrderedDict()
        self._open: set[Any] = set()
        self._lost = self._missed = 0

    def __get__(self, owner: Any, kind: Any = None) -> Any:
        return self if owner is None else functools.partial(self, owner)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if recorder.tape is not None or _is_checked():  # A step inside a step is a part of it.
            return self.function(*args, **kwargs)
        call = Call(args, kwargs)
        if call.has_history or call.key in self._open:
            return self.function(*args, **kwargs)
        reasons = []
        for step in self._steps.get(call.key, ()):
            reason = step.unfit() or step.replay(call)
            if reason is None:
                self._steps.move_to_end(call.key)
                self.counters["replays"] += 1
                self._missed = 0
                result, self.captures = step.taken()
                return result
            reasons.append(reason)
        return self._capture(call, reasons)

    def _capture(self, call: Call, reasons: list[str]) -> Any:
        if reasons:
            self.counters["recompiles"] += 1
            self._say(reasons[0])
            self._missed += 1
            if self._missed == MISSES:
                self._warn(f"is captured anew at each call: {reasons[0]}")
        step = Step(self.function, call)
        self.counters["captures"] += 1
        if step.is_open:
            self._open.add(call.key)
        elif step.reason:
            self._lose(step.reason)
        else:
            self._lost = 0
            self._keep(call, step)
        result, self.captures = step.taken()
        return result

    def _keep(self, call: Call, step: Step) -> None:
        kept = self._steps.setdefault(call.key, [])
        kept.insert(0, step)
        del kept[ALIKE:]
        self._steps.move_to_end(call.key)
        while sum(map(len, self._steps.values())) > STEPS:
            oldest = next(iter(self._steps))
            self._steps[oldest].pop()
            if not self._steps[oldest]:
                del self._steps[oldest]

    def _lose(self, reason: str) -> None:
        self._say(f"captured again at every call: {reason}")
        self._lost += 1
        if self._lost == PATIENCE:
            self._warn(f"cannot be replayed: {reason}")

    def _warn(self, what: str) -> None:
        name = getattr(self.function, "__qualname__", repr(self.function))
        warnings.warn(f"{name} {what}", UserWarning, stacklevel=5)

    def _say(self, reason: str) -> None:
        self.reasons.append(reason)
        del self.reasons[:-100]
        if settings.debug >= 1:
            print(f"compile: {getattr(self.function, '__qualname__', self.function)}: {reason}")

    def warmup(self, *args: Any, **kwargs: Any) -> None:
        """Captures the step for such arguments and makes its pipelines, without running it: nothing changes.

        A shape (tuple of ints) stands for float32 zeros of that shape on the default device.
        """
        if _is_checked():
            return
        call = Call(signature.rebuilt_shapes(args), signature.rebuilt_shapes(kwargs))
        step = Step(self.function, call, dry=True)
        if step.reason:
            self._say(f"cannot be replayed: {step.reason}")
        elif not step.is_open:
            self._keep(call, step)

    def clear(self) -> None:
        """Forgets all captured steps."""
        self._steps.clear()


def _is_checked() -> bool:
    """Whether somebody has to see every op, as a search for NaN does: each call is then ordinary code."""
    return getattr(recording.trace, "checks", False)


def compile(
    model: Any = None,
    *,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    backend: Any = "webgpu",
    mode: str | None = None,
    options: dict[str, Any] | None = None,
    disable: bool = False,
) -> Any:
    """Makes each call of a function one Program, which later calls with equal signatures replay without Python.

    The function may hold a whole training step: forward, backward, clipping, `optimizer.step()`, `scheduler.step()`.
    What it reads besides its arguments is state, and what it writes is written in place. Floats that it is given,
    rates, step counts and seeds are new in each run; any other number is part of the step, and a change captures it
    again.
    Returned tensors have no history. Where the caller may still ask for the gradient of what is returned, as with a
    model alone, the call is recorded like any other code and becomes part of the Program that the caller's step runs.
    Other arguments of torch.compile are accepted and change nothing.

    Raises: CaptureError, with the line, where the function reads a value on the host.
    """
    if model is None:
        return functools.partial(compile, disable=disable)
    if disable:
        return model
    wrap = getattr(model, "_compiled", None)
    return Compiled(model) if wrap is None else wrap()


def capture(name: str, tensor: TensorBase) -> TensorBase:
    """Registers a tensor of a compiled step by a name: `step.captures[name]` after each call. Else does nothing."""
    if recorder.tape is not None:
        recorder.tape.taps[name] = tensor.detach()
    return tensor
