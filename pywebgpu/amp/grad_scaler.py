"""GradScaler: the loss times a scale, so that float16 holds small gradients; a step that overflows is skipped.

Whether they did is decided where they are: the scale, the count of good steps and the skipping are values of the
device, and no step waits for it. So a loop that scales is captured like any other.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from enum import Enum
from typing import Any

from pywebgpu import devices, dtypes
from pywebgpu.autodiff import grad_mode
from pywebgpu.ir import observer
from pywebgpu.optim.optimizer import Optimizer
from pywebgpu.optim.update_rule import UpdateRule
from pywebgpu.tensor import create, flat_parameters
from pywebgpu.tensor.pointwise import where
from pywebgpu.tensor.tensor import Tensor

EARLIER = "This may indicate your script did not use scaler.scale(loss or outputs) earlier in the iteration."


class OptState(Enum):
    """How far an optimizer has come since the last `update`."""

    READY = 0
    UNSCALED = 1
    STEPPED = 2


def _fresh() -> dict[str, Any]:
    return {"stage": OptState.READY, "found_inf_per_device": {}}


class GradScaler:
    """Scales the loss; `step` skips an update where a gradient is infinite or NaN; `update` moves the scale.

    The scale shrinks by `backoff_factor` where a step was skipped, and grows by `growth_factor` after `growth_interval`
    steps that were not. device: where outputs are, which is not looked at. enabled=False makes all of it pass through.
    Against torch: an optimizer of torch.optim never waits for the device; its `state["step"]` is on
    the device from the first scaled step on, and counts no skipped ones.
    """

    def __init__(
        self,
        device: str = "cuda",
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        self._device, self._enabled = device, enabled
        if not enabled:
            return
        if growth_factor <= 1.0:
            raise AssertionError("The growth factor must be > 1.0.")
        if backoff_factor >= 1.0:
            raise AssertionError("The backoff factor must be < 1.0.")
        self._init_scale, self._init_growth_tracker = init_scale, 0
        self._scale: Tensor | None = None  # Made by the first scale(), which knows the device.
        self._growth_tracker: Tensor | None = None
        self._growth_factor, self._backoff_factor = growth_factor, backoff_factor
        self._growth_interval = growth_interval
        self._per_optimizer_states: dict[int, dict[str, Any]] = defaultdict(_fresh)

    def scale(self, outputs: Any) -> Any:
        """The outputs, a tensor or several in lists and tuples, times the scale."""
        if not self._enabled:
            return outputs
        if isinstance(outputs, Tensor):
            if self._scale is None:
                self._begin(outputs.device)
            assert self._scale is not None
            return outputs * self._scale.to(device=outputs.device)
        if isinstance(outputs, Iterable):
            scaled = map(self.scale, outputs)
            return type(outputs)(scaled) if isinstance(outputs, list | tuple) else scaled
        raise ValueError("outputs must be a Tensor or an iterable of Tensors")

    def unscale_(self, optimizer: Optimizer) -> None:
        """Divides the gradients of an optimizer's parameters by the scale, in place: for clipping before `step`.

        Raises: RuntimeError where it was called since the last `update`; ValueError for gradients of float16.
        """
        if not self._enabled:
            return
        scale, _ = self._required("unscale_")
        state = self._per_optimizer_states[id(optimizer)]
        if state["stage"] is OptState.UNSCALED:
            raise RuntimeError("unscale_() has already been called on this optimizer since the last update().")
        if state["stage"] is OptState.STEPPED:
            raise RuntimeError("unscale_() is being called after step().")
        state["found_inf_per_device"] = _unscale(optimizer, scale)
        state["stage"] = OptState.UNSCALED

    def step(self, optimizer: Optimizer, *args: Any, **kwargs: Any) -> Any:
        """Unscales the gradients, if nobody did, and calls optimizer.step, which changes nothing where they overflowed.

        An optimizer of the program's own is called, or is not: that waits for the device.
        Raises: RuntimeError for a closure, and where it was called since the last `update`.
        """
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs:
            raise RuntimeError("Closure use is not currently supported if GradScaler is enabled.")
        scale, _ = self._required("step")
        state = self._per_optimizer_states[id(optimizer)]
        if state["stage"] is OptState.STEPPED:
            raise RuntimeError("step() has already been called since the last update().")
        if state["stage"] is OptState.READY:
            self.unscale_(optimizer)
        if not state["found_inf_per_device"]:
            raise AssertionError("No inf checks were recorded for this optimizer.")
        overflows = _together(state["found_inf_per_device"], scale.device)
        state["stage"] = OptState.STEPPED
        if isinstance(optimizer, UpdateRule):
            return optimizer.step_unless(overflows, *args, **kwargs)
        return None if overflows.item() else optimizer.step(*args, **kwargs)

    def update(self, new_scale: float | Tensor | None = None) -> None:
        """Moves the scale, or sets it to `new_scale`; ends the iteration."""
        if not self._enabled:
            return
        scale, tracker = self._required("update")
        with grad_mode.no_grad():
            if new_scale is not None:
                scale.copy_(new_scale) if isinstance(new_scale, Tensor) else scale.fill_(new_scale)
            else:
                self._move(scale, tracker)
        self._per_optimizer_states.clear()

    def _move(self, scale: Tensor, tracker: Tensor) -> None:
        states = [state["found_inf_per_device"] for state in self._per_optimizer_states.values()]
        overflows = [_together(by_device, scale.device) for by_device in states if by_device]
        if not overflows:
            raise AssertionError("No inf checks were recorded prior to update.")
        overflowed = sum(overflows[1:], overflows[0]) != 0
        good = tracker + 1
        is_time = good == self._growth_interval
        grown = scale * self._growth_factor
        grown = where(grown.isfinite(), grown, scale)
        after: Tensor = where(overflowed, scale * self._backoff_factor, where(is_time, grown, scale))
        tracker.copy_(where(overflowed.logical_or(is_time), tracker * 0, good))
        scale.copy_(after)

    # What is known

    def get_scale(self) -> float:
        """The scale now. Waits for the device."""
        if not self._enabled:
            return 1.0
        return self._init_scale if self._scale is None else float(self._scale.item())

    def get_growth_factor(self) -> float:
        return self._growth_factor

    def set_growth_factor(self, new_factor: float) -> None:
        self._growth_factor = new_factor

    def get_backoff_factor(self) -> float:
        return self._backoff_factor

    def set_backoff_factor(self, new_factor: float) -> None:
        self._backoff_factor = new_factor

    def get_growth_interval(self) -> int:
        return self._growth_interval

    def set_growth_interval(self, new_interval: int) -> None:
        self._growth_interval = new_interval

    def is_enabled(self) -> bool:
        return self._enabled

    def state_dict(self) -> dict[str, Any]:
        """What a checkpoint needs. Waits for the device."""
        if not self._enabled:
            return {}
        return {
            "scale": self.get_scale(),
            "growth_factor": self._growth_factor,
            "backoff_factor": self._backoff_factor,
            "growth_interval": self._growth_interval,
            "_growth_tracker": self._get_growth_tracker(),
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Goes on as `state_dict` says. Raises: RuntimeError where it is empty, as of a disabled scaler."""
        if not self._enabled:
            return
        if not state_dict:
            raise RuntimeError(
                "The source state dict is empty, possibly because it was saved from a disabled instance of GradScaler."
            )
        self._init_scale, self._init_growth_tracker = state_dict["scale"], state_dict["_growth_tracker"]
        if self._scale is not None and self._growth_tracker is not None:
            self._scale.fill_(self._init_scale)
            self._growth_tracker.fill_(self._init_growth_tracker)
        self._growth_factor, self._backoff_factor = state_dict["growth_factor"], state_dict["backoff_factor"]
        self._growth_interval = state_dict["growth_interval"]

    def __getstate__(self) -> dict[str, Any]:
        state = self.__dict__.copy()
        if self._enabled:
            if self._per_optimizer_states:
                raise AssertionError(
                    "A GradScaler instance may only be pickled at the beginning of an iteration, or at the end after "
                    "scaler.update()."
                )
            state["_init_scale"], state["_init_growth_tracker"] = self.get_scale(), self._get_growth_tracker()
            state["_scale"] = state["_growth_tracker"] = None
        return state

    def _get_growth_tracker(self) -> int:
        if not self._enabled:
            return 0
        return self._init_growth_tracker if self._growth_tracker is None else int(self._growth_tracker.item())

    def _begin(self, device: devices.device) -> None:
        """As it was before the step that begins, for one that is captured."""
        with observer.unobserved():
            self._scale = create.tensor(self._init_scale, dtype=dtypes.float32, device=device)
            self._growth_tracker = create.tensor(self._init_growth_tracker, dtype=dtypes.int32, device=device)

    def _required(self, name: str) -> tuple[Tensor, Tensor]:
        for field in ("_scale", "_growth_tracker"):
            if getattr(self, field) is None:
                raise AssertionError(f"Attempted {name} but {field} is None.  {EARLIER}")
        assert self._scale is not None
        assert self._growth_tracker is not None
        return self._scale, self._growth_tracker


def _unscale(optimizer: Optimizer, scale: Tensor) -> dict[devices.device, Tensor]:
    """Divides all gradients by the scale; by device, how many vectors of them had something not finite."""
    overflows: dict[devices.device, Tensor] = {}
    with grad_mode.no_grad():
        for gradients in _vectors(optimizer):
            device = gradients.device
            bad: Tensor = gradients.isfinite().logical_not().to(dtype=dtypes.float32).sum()
            overflows[device] = overflows[device] + bad if device in overflows else bad
            gradients.mul_(scale.to(device=device).reciprocal())
    return overflows


def _vectors(optimizer: Optimizer) -> Iterable[Tensor]:
    """All gradients, those that an optimizer will update together as one: with nothing but zeros between them."""
    for group in optimizer.param_groups:
        gradients = [parameter.grad for parameter in group["params"] if parameter.grad is not None]
        for gradient in gradients:
            if gradient.dtype is dtypes.float16:
                raise ValueError("Attempting to unscale FP16 gradients.")
        for bundle in flat_parameters.bundles(gradients):
            parts = [gradients[index] for index in bundle]
            if len(parts) > 1 and flat_parameters.are_new(parts):
                yield flat_parameters.gather(parts, clean=True)
            else:
                yield from parts


def _together(overflows: dict[devices.device, Tensor], device: devices.device) -> Tensor:
    values = [value.to(device=device) for value in overflows.values()]
    return sum(values[1:], values[0])
