"""Learning rates that go up and down along straight lines, and the one that goes to a constant rate for averaging."""

from __future__ import annotations

import math
import types
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

from pywebgpu.optim import optimizer
from pywebgpu.optim.lr_scheduler import annealing, schedule

if TYPE_CHECKING:
    from pywebgpu.optim.optimizer import Rate

SCALES: dict[str, Callable[[float, float], float]] = {
    "triangular": lambda gamma, cycle: 1.0,
    "triangular2": lambda gamma, cycle: 1 / 2.0 ** (cycle - 1),
    "exp_range": lambda gamma, step: gamma**step,
}


class CyclicLR(schedule.LRScheduler):
    """lr rises from base_lr to max_lr in `step_size_up` steps, falls back in `step_size_down`, and again.

    The height of a cycle is scaled by `mode`, or by `scale_fn` of the cycle's number or of the step (`scale_mode`).
    The momentum (or beta1), with `cycle_momentum`, moves the other way. Source: Smith 2017 (arXiv 1506.01186).
    """

    def __init__(
        self,
        optimizer: optimizer.Optimizer,
        base_lr: float | list[float],
        max_lr: float | list[float],
        step_size_up: int = 2000,
        step_size_down: int | None = None,
        mode: Literal["triangular", "triangular2", "exp_range"] = "triangular",
        gamma: float = 1.0,
        scale_fn: Callable[[float], float] | None = None,
        scale_mode: Literal["cycle", "iterations"] = "cycle",
        cycle_momentum: bool = True,
        base_momentum: float = 0.8,
        max_momentum: float = 0.9,
        last_epoch: int = -1,
    ) -> None:
        schedule.require_optimizer(optimizer)
        lows = annealing.for_groups("base_lr", optimizer, base_lr)
        self.max_lrs = annealing.for_groups("max_lr", optimizer, max_lr)
        self.total_size = float(step_size_up) + float(step_size_up if step_size_down is None else step_size_down)
        self.step_ratio = float(step_size_up) / self.total_size
        if mode not in SCALES and scale_fn is None:
            raise ValueError("mode is invalid and scale_fn is None")
        self.mode, self.gamma, self._scale_fn_custom = mode, gamma, scale_fn
        self.scale_mode = scale_mode if scale_fn else "iterations" if mode == "exp_range" else "cycle"
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self.use_beta1 = annealing.has_beta1(optimizer)
            self.base_momentums = annealing.for_groups("base_momentum", optimizer, base_momentum)
            self.max_momentums = annealing.for_groups("max_momentum", optimizer, max_momentum)
        for i, group in enumerate(optimizer.param_groups if last_epoch == -1 else []):
            schedule.assign(group, "lr", lows[i])
            if cycle_momentum:
                annealing.set_momentum(group, self.max_momentums[i], beta1=self.use_beta1)
                group.update(max_momentum=self.max_momentums[i], base_momentum=self.base_momentums[i])
        super().__init__(optimizer, last_epoch)
        self.base_lrs = lows

    @property
    def _scale_fn_ref(self) -> Callable[[float, float], float]:
        return SCALES[self.mode]

    def scale_fn(self, x: float) -> float:
        """The height of a cycle, or at a step."""
        return self._scale_fn_custom(x) if self._scale_fn_custom else SCALES[self.mode](self.gamma, x)

    def _next_lr(self) -> list[Any]:
        position = 1 + self.last_epoch / self.total_size
        cycle = math.floor(position)
        x = position - cycle
        part = x / self.step_ratio if x <= self.step_ratio else (x - 1) / (self.step_ratio - 1)
        part *= self.scale_fn(cycle if self.scale_mode == "cycle" else self.last_epoch)
        if self.cycle_momentum:
            rows = zip(self.optimizer.param_groups, self.base_momentums, self.max_momentums, strict=True)
            for group, low, high in rows:
                annealing.set_momentum(group, high - (high - low) * part, beta1=self.use_beta1)
        return [low + (high - low) * part for low, high in zip(self.base_lrs, self.max_lrs, strict=True)]

    def state_dict(self) -> dict[str, Any]:
        """All attributes but the optimizer; of a `scale_fn` that is an object its attributes, of a function nothing."""
        scale = self._scale_fn_custom
        is_object = scale is not None and not isinstance(scale, types.FunctionType)
        return super().state_dict() | {"_scale_fn_custom": dict(vars(scale)) if is_object else None}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        scale = self._scale_fn_custom
        super().load_state_dict(state_dict)
        if state_dict["_scale_fn_custom"] is not None:
            vars(scale).update(state_dict["_scale_fn_custom"])
        self._scale_fn_custom = scale


class SWALR(schedule.LRScheduler):
    """lr goes to swa_lr in `anneal_epochs` steps, along half a cosine or a line, and stays: what is averaged there.

    Source: Izmailov et al. 2018 (arXiv 1803.05407).
    """

    def __init__(
        self,
        optimizer: optimizer.Optimizer,
        swa_lr: float | list[float],
        anneal_epochs: int = 10,
        anneal_strategy: Literal["cos", "linear"] = "cos",
        last_epoch: int = -1,
    ) -> None:
        schedule.require_optimizer(optimizer)
        rates = annealing.for_groups("swa_lr", optimizer, swa_lr)
        for rate, group in zip(rates, optimizer.param_groups, strict=True):
            group["swa_lr"] = rate
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}")
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise ValueError(f"anneal_epochs must be equal or greater than 0, got {anneal_epochs}")
        self._anneal_strategy, self.anneal_epochs = anneal_strategy, anneal_epochs
        super().__init__(optimizer, last_epoch)

    def _part(self, step: int) -> float:
        """How far it went by a step, in 0..1."""
        part = max(0.0, min(1.0, step / max(1, self.anneal_epochs)))
        return part if self._anneal_strategy == "linear" else (1 - math.cos(math.pi * part)) / 2

    def _next_lr(self) -> list[Any]:
        step = self._step_count - 1
        step = max(1, step) if self.anneal_epochs == 0 else step
        before, now = self._part(step - 1), self._part(step)

        def rate(lr: Rate, end: Rate) -> Rate:
            start = end if before == 1 else (lr - before * end) / (1 - before)
            return end * now + start * (1 - now)

        return [rate(group["lr"], group["swa_lr"]) for group in self.optimizer.param_groups]
