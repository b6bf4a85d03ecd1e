"""What one recorded call did, as data: of it a step is made, or one is audited."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from pywebgpu.runtime.executor import Run
from pywebgpu.runtime.storage import Storage
from pywebgpu.step_capture import guards
from pywebgpu.step_capture.bindings import Made, Source, Taker
from pywebgpu.step_capture.capture import Capture
from pywebgpu.step_capture.gradients import GivenGradients
from pywebgpu.step_capture.signature import Call
from pywebgpu.step_capture.surroundings import Surroundings
from pywebgpu.tensor.base import TensorBase


@dataclass(slots=True, eq=False)
class CapturedCall:
    """What one call did. `result` and `taps` are the values of this very call.

    reason: why it cannot run again; empty where it can.
    has_moved: because memory that stays is no longer where it was.
    is_open: a gradient may still be asked of what it returns; it did not run, and is like any recorded code.
    """

    call: Call
    capture: Capture
    around: Surroundings | None
    reason: str = ""
    has_moved: bool = False
    is_open: bool = False
    run: Run | None = None
    sources: list[Source] = field(default_factory=list)
    takers: list[list[Taker]] = field(default_factory=list)
    numbers: list[Any] = field(default_factory=list)  # free or plain ones, in the order of the Program
    fixed: list[Storage | None] = field(default_factory=list)  # arguments that it knows in another way, too
    seen: list[guards.Held] = field(default_factory=list)
    n_fresh: int = 0
    shown: frozenset[int] = frozenset()  # the numbers of new storages that are returned
    result_template: Any = None
    taps_template: Any = None
    given_gradients: GivenGradients | None = None
    new_gradients: list[tuple[TensorBase, Made]] = field(default_factory=list)
    other_gradients: list[tuple[TensorBase, Any]] = field(default_factory=list)
    constants: dict[int, bytes] = field(default_factory=dict)  # by index among the sources: what was uploaded
    result: Any = None
    taps: dict[str, Any] = field(default_factory=dict)
