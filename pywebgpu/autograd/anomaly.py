"""Finding the op that made the first NaN: PyTorch's switches for it, and what watches a program while one is on.

While it is watched, every value that a tensor gets and every gradient that a formula makes is computed, also those that
nothing needs any more, and how many NaNs each holds is counted in the Program that computes them.
"""

from __future__ import annotations

import traceback
import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar
from weakref import WeakKeyDictionary

from pywebgpu import devices
from pywebgpu.autograd.nonfinite import Candidate, Check
from pywebgpu.compiler.program import Program
from pywebgpu.devices.base import Buffer, Device
from pywebgpu.dtypes import Kind
from pywebgpu.errors import CaptureError
from pywebgpu.ir import origin
from pywebgpu.ir.graph import Generator, Movement, Node, thread_state
from pywebgpu.ir.origin import BACKWARD, Origin, Span
from pywebgpu.ops import pointwise
from pywebgpu.runtime import executor
from pywebgpu.runtime.storage import Storage
from pywebgpu.support.argument_types import typed
from pywebgpu.tensor import show

ENABLED = (
    "Anomaly Detection has been enabled. This mode will increase the runtime and should only be enabled for debugging."
)
DETECTED = "Error detected in {name}. Traceback of forward call that caused the error:\n{trace}"
UNKNOWN = (
    "Error detected in {name}. No forward pass information available. Enable detect anomaly during forward pass for "
    "more information."
)

T = TypeVar("T")


class Guard(origin.Watcher[Storage, Program, Device]):
    """What watches. anomaly, check_nan: PyTorch's modes.  nans: as `Settings.nans`."""

    lines = stacks = checks = True

    def __init__(self) -> None:
        self.anomaly, self.check_nan, self.nans = False, True, "0"
        self._candidates: dict[Node, Candidate] = {}  # in the order in which they were made
        self._devices: WeakKeyDictionary[Node, Device] = WeakKeyDictionary()
        self._check: Check | None = None
        self._busy = False
        self._watches = False

    def set(self, *, anomaly: bool | None = None, check_nan: bool | None = None, nans: str | None = None) -> None:
        """Changes what is given. Raises CaptureError inside a compiled step, whose values nobody can see yet."""
        if thread_state.observer is not None:
            raise CaptureError("anomaly detection cannot change inside a compiled step; put it around the call")
        self.anomaly = self.anomaly if anomaly is None else anomaly
        self.check_nan = self.check_nan if check_nan is None else check_nan
        self.nans = self.nans if nans is None else nans
        is_on = self.anomaly or self.nans != "0"
        if is_on and not self._watches:
            origin.watch(self)
        if self._watches and not is_on:
            origin.unwatch(self)
            self._candidates.clear()
        self._watches = is_on

    # What the program does

    def made(self, storage: Storage, origin: Origin) -> None:
        if not self._busy:
            self._devices[storage.node] = storage.device
            if self.nans != "0":
                self._note(Candidate(storage.node, origin))

    wrote = made

    def gradient(self, node: Node, part: Node, input_index: int) -> None:
        if not self._busy and (self.nans != "0" or (self.anomaly and self.check_nan)):
            self._note(Candidate(part, _of_gradient(node), show.gradient_name(node), input_index))

    def failed(self, node: Node) -> None:
        if self.anomaly:
            _tell(show.gradient_name(node), _of_gradient(node))

    def begins(self, kind: str, name: str) -> None:
        if kind != "run" or self._busy or not self._candidates:
            return
        (device,) = [device for device in devices.opened() if device.name == name]
        mine = [candidate for candidate in self._candidates.values() if self._device(candidate.node) is device]
        for candidate in mine:
            del self._candidates[candidate.node]
        if mine and device.computes:
            self._check = self._quietly(lambda: Check(device, mine, infinity=self.nans == "inf"))

    def span(self, span: Span) -> None:
        if self._busy:
            return
        if span.kind == "run" and self._check is not None:
            check, self._check = self._check, None
            check.close()
            first = None if span.failed else self._quietly(check.first)
            if first is not None:
                if self.anomaly and first.name:
                    _tell(first.name, first.origin)
                raise self._quietly(lambda: check.error(first))
        if span.kind == BACKWARD and self.anomaly and self.check_nan and not span.failed:
            for device in {self._device(candidate.node) for candidate in self._candidates.values()}:
                if device is not None:
                    executor.submit(device)

    def _note(self, candidate: Candidate) -> None:
        node = candidate.node
        if node.spec.dtype.kind is Kind.FLOAT and 0 not in node.spec.shape and not _is_given(node):
            self._candidates.setdefault(node, candidate)

    def _quietly(self, action: Callable[[], T]) -> T:
        """What the search itself computes is not searched."""
        self._busy = True
        try:
            return action()
        finally:
            self._busy = False

    def _device(self, node: Node) -> Device | None:
        """Where a node will be computed: the device of what it is made of."""
        stack, seen = [node], {node}
        while stack:
            current = stack.pop()
            device = self._devices.get(current)
            if device is None and isinstance(current.buffer, Buffer):
                device = current.buffer.device
            if device is not None:
                self._devices[node] = device
                return device
            fresh = [source for source in current.inputs[::-1] if source not in seen]
            seen.update(fresh)
            stack += fresh
        opened = devices.opened()
        return opened[0] if len(opened) == 1 else None


guard = Guard()


def start(nans: str) -> None:
    """PYWEBGPU_NANS: watches the whole process. Raises ValueError for another value than 0, 1 and inf."""
    if nans not in ("0", "1", "inf"):
        raise ValueError(f"PYWEBGPU_NANS={nans}: use 1, or inf to find infinities as well")
    guard.set(nans=nans)


@typed
def set_anomaly_enabled(mode: bool, check_nan: bool = True) -> None:
    """Turns anomaly detection on or off."""
    guard.set(anomaly=mode, check_nan=check_nan)


def is_anomaly_enabled() -> bool:
    """Whether anomaly detection is on."""
    return guard.anomaly


def is_anomaly_check_nan_enabled() -> bool:
    """Whether backward raises at the first NaN."""
    return guard.check_nan


class detect_anomaly:
    """Inside, backward raises NonFiniteError at the first function whose gradient is NaN, and tells its forward lines.

    check_nan: False tells the forward lines of a function whose backward raises an error, and looks for no NaN.
    Backward then waits for the device, and compiled steps are recorded at each call.
    """

    def __init__(self, check_nan: bool = True) -> None:
        self.check_nan = check_nan
        self._before = guard.anomaly, guard.check_nan
        warnings.warn(ENABLED, stacklevel=2)

    def __enter__(self) -> None:
        set_anomaly_enabled(True, self.check_nan)

    def __exit__(self, *error: object) -> None:
        set_anomaly_enabled(*self._before)


class set_detect_anomaly:
    """As detect_anomaly where `mode`, from now on; as a context manager up to the end of its block."""

    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        self._before = guard.anomaly, guard.check_nan
        set_anomaly_enabled(mode, check_nan)

    def __enter__(self) -> None: ...

    def __exit__(self, *error: object) -> None:
        set_anomaly_enabled(*self._before)


def _of_gradient(node: Node) -> Origin:
    """The origin of the op that a gradient goes through."""
    source: Origin = thread_state.origins.find(node)
    return replace(source, phase=BACKWARD)


def _is_given(node: Node) -> bool:
    """Whether the value is what somebody gave, perhaps seen through views: no op made it."""
    while node.buffer is None and node.inputs and (isinstance(node.op, Movement) or node.op is pointwise.copy):
        node = node.inputs[0]
    return node.is_source or isinstance(node.op, Generator)


def _tell(name: str, origin: Origin) -> None:
    """The forward call of a function whose backward went wrong, as a warning."""
    if not origin.stack:
        warnings.warn(UNKNOWN.format(name=name), stacklevel=2)
        return
    frames = [traceback.FrameSummary(file, line, function) for file, line, function in origin.stack]
    warnings.warn(DETECTED.format(name=name, trace="".join(traceback.format_list(frames))), stacklevel=2)
