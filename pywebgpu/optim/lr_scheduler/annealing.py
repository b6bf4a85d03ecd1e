"""Learning rates that fall or cycle along a cosine, and the one that falls when a measure stops improving."""

from __future__ import annotations

import math
import warnings
from typing import TYPE_CHECKING, Any, Literal, SupportsFloat

from pywebgpu.optim import optimizer
from pywebgpu.optim.lr_scheduler import schedule

if TYPE_CHECKING:
    from pywebgpu.optim.optimizer import Rate


class CosineAnnealingLR(schedule.LRScheduler):
    """lr goes from initial_lr to eta_min on half a cosine of T_max steps, and back on the next.

    Source: Loshchilov, Hutter 2016 (arXiv 1608.03983), without restarts.
    """

    def __init__(self, optimizer: optimizer.Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1) -> None:
        self.T_max = T_max
        self.eta_min = eta_min
        super().__init__(optimizer, last_epoch)

    def _next_lr(self) -> list[Any]:
        step, period, low = self.last_epoch, self.T_max, self.eta_min
        if self._is_initial:
            return self._unchanged()
        if self._step_count == 1 and step > 0:
            return self._get_closed_form_lr()
        if (step - 1 - period) % (2 * period) == 0:
            rise = (1 - math.cos(math.pi / period)) / 2
            pairs = zip(self.base_lrs, self.optimizer.param_groups, strict=True)
            return [group["lr"] + (rate - low) * rise for rate, group in pairs]
        factor = (1 + math.cos(math.pi * step / period)) / (1 + math.cos(math.pi * (step - 1) / period))
        return [factor * (group["lr"] - low) + low for group in self.optimizer.param_groups]

    def _get_closed_form_lr(self) -> list[Any]:
        height = 1 + math.cos(math.pi * self.last_epoch / self.T_max)
        return [self.eta_min + (rate - self.eta_min) * height / 2 for rate in self.base_lrs]


class CosineAnnealingWarmRestarts(schedule.LRScheduler):
    """lr falls from initial_lr to eta_min on half a cosine of T_0 steps; each next fall is T_mult times longer.

    `step(epoch)` takes fractions too. Source: Loshchilov, Hutter 2016 (arXiv 1608.03983).
    """

    def __init__(
        self, optimizer: optimizer.Optimizer, T_0: int, T_mult: int = 1, eta_min: float = 0.0, last_epoch: int = -1
    ) -> None:
        if not isinstance(T_0, int) or T_0 <= 0:
            raise ValueError(f"Expected positive integer T_0, but got {T_0}")
        if not isinstance(T_mult, int) or T_mult < 1:
            raise ValueError(f"Expected integer T_mult >= 1, but got {T_mult}")
        if not isinstance(eta_min, float | int):
            raise ValueError(f"Expected float or int eta_min, but got {eta_min} of type {type(eta_min)}")
        self.T_0 = T_0
        self.T_i = T_0
        self.T_mult = T_mult
        self.eta_min = eta_min
        self.T_cur: float = last_epoch
        super().__init__(optimizer, last_epoch)

    def _next_lr(self) -> list[Any]:
        height = 1 + math.cos(math.pi * self.T_cur / self.T_i)
        return [self.eta_min + (rate - self.eta_min) * height / 2 for rate in self.base_lrs]

    def step(self, epoch: float | None = None) -> None:
        if epoch is None and self.last_epoch >= 0:
            epoch = self.last_epoch + 1
            self.T_cur += 1
            if self.T_cur >= self.T_i:
                self.T_cur %= self.T_i
                self.T_i *= self.T_mult
        else:
            epoch = 0 if epoch is None else epoch
            self._go_to(epoch)
        self.last_epoch = math.floor(epoch)
        self._set_lr(self.get_lr)

    def _go_to(self, epoch: float) -> None:
        if epoch < 0:
            raise ValueError(f"Expected non-negative epoch, but got {epoch}")
        if epoch < self.T_0:
            self.T_i = self.T_0
            self.T_cur = epoch
        elif self.T_mult == 1:
            self.T_cur = epoch % self.T_0
        else:
            n_falls = int(math.log(epoch / self.T_0 * (self.T_mult - 1) + 1, self.T_mult))
            self.T_cur = epoch - self.T_0 * (self.T_mult**n_falls - 1) / (self.T_mult - 1)
            self.T_i = self.T_0 * self.T_mult**n_falls


class OneCycleLR(schedule.LRScheduler):
    """lr rises from max_lr / div_factor to max_lr in the first `pct_start` of all steps, and falls far below its start.

    The momentum (or beta1), with `cycle_momentum`, moves the other way. `three_phase` falls back to the start first.
    Give `total_steps`, or `epochs` and `steps_per_epoch`. Source: Smith, Topin 2017 (arXiv 1708.07120).
    """

    def __init__(
        self,
        optimizer: optimizer.Optimizer,
        max_lr: float | list[float],
        total_steps: int | None = None,
        epochs: int | None = None,
        steps_per_epoch: int | None = None,
        pct_start: float = 0.3,
        anneal_strategy: Literal["cos", "linear"] = "cos",
        cycle_momentum: bool = True,
        base_momentum: float | list[float] = 0.85,
        max_momentum: float | list[float] = 0.95,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        three_phase: bool = False,
        last_epoch: int = -1,
    ) -> None:
        schedule.require_optimizer(optimizer)
        self.total_steps = _total_steps(total_steps, epochs, steps_per_epoch)
        if not isinstance(pct_start, float) or not 0 <= pct_start <= 1:
            raise ValueError(f"Expected float between 0 and 1 pct_start, but got {pct_start}")
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}")
        self._schedule_phases = _phases(self.total_steps, pct_start, three_phase=three_phase)
        self._anneal_func_type = anneal_strategy
        self.cycle_momentum = cycle_momentum
        rates = for_groups("max_lr", optimizer, max_lr)
        if cycle_momentum:
            self.use_beta1 = has_beta1(optimizer)
            lows = for_groups("base_momentum", optimizer, base_momentum)
            highs = for_groups("max_momentum", optimizer, max_momentum)
        for i, group in enumerate(optimizer.param_groups if last_epoch == -1 else []):
            low = rates[i] / div_factor
            group.update(initial_lr=low, max_lr=rates[i], min_lr=low / final_div_factor)
            if cycle_momentum:
                group.update(max_momentum=highs[i], base_momentum=lows[i])
                set_momentum(group, highs[i], beta1=self.use_beta1)
        super().__init__(optimizer, last_epoch)

    def _next_lr(self) -> list[Any]:
        step = self.last_epoch
        if step > self.total_steps:
            raise ValueError(f"Tried to step {step} times. The specified number of total steps is {self.total_steps}")
        start = 0.0
        for phase in self._schedule_phases[:-1]:
            if step <= phase["end_step"]:
                break
            start = phase["end_step"]
        else:
            phase = self._schedule_phases[-1]
        part = (step - start) / (phase["end_step"] - start)
        rates = []
        for group in self.optimizer.param_groups:
            rates.append(self._between(group[phase["start_lr"]], group[phase["end_lr"]], part))
            if self.cycle_momentum:
                ends = group[phase["start_momentum"]], group[phase["end_momentum"]]
                set_momentum(group, self._between(*ends, part), beta1=self.use_beta1)
        return rates

    def _between(self, start: Rate, end: Rate, part: float) -> Rate:
        kinds = {"linear": self._annealing_linear, "cos": self._annealing_cos}
        known = getattr(self, "_anneal_func_type", None)
        anneal: Any = getattr(self, "anneal_func", None) if known is None else kinds[known]  # As older states have it.
        return anneal(start, end, part)  # type: ignore[no-any-return]

    @staticmethod
    def _annealing_linear(start: Rate, end: Rate, part: float) -> Rate:
        return (end - start) * part + start

    @staticmethod
    def _annealing_cos(start: Rate, end: Rate, part: float) -> Rate:
        return end + (start - end) / 2.0 * (math.cos(math.pi * part) + 1)


class ReduceLROnPlateau(schedule.LRScheduler):
    """lr = max(lr * factor, min_lr) after more than `patience` calls of `step(metrics)` without progress.

    Progress is below best * (1 - threshold) for mode "min" and threshold_mode "rel"; "max" turns the sign, "abs" takes
    the threshold as it is. After a fall, `cooldown` measures do not count.
    """

    def __init__(
        self,
        optimizer: optimizer.Optimizer,
        mode: Literal["min", "max"] = "min",
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        threshold_mode: Literal["rel", "abs"] = "rel",
        cooldown: int = 0,
        min_lr: float | list[float] = 0,
        eps: float = 1e-8,
    ) -> None:
        if factor >= 1.0:
            raise ValueError("Factor should be < 1.0.")
        schedule.require_optimizer(optimizer)
        if mode not in ("min", "max"):
            raise ValueError(f"mode {mode} is unknown!")
        if threshold_mode not in ("rel", "abs"):
            raise ValueError(f"threshold mode {threshold_mode} is unknown!")
        self.factor = factor
        self.optimizer = optimizer
        self.default_min_lr = None if isinstance(min_lr, list | tuple) else min_lr
        self.min_lrs = for_groups("min_lr", optimizer, min_lr)
        self.best: float
        self.cooldown_counter: int
        self.num_bad_epochs: int
        self.patience = patience
        self.cooldown = cooldown
        self.eps = eps
        self.last_epoch = 0
        self.mode, self.threshold, self.threshold_mode = mode, threshold, threshold_mode
        self.mode_worse = math.inf if mode == "min" else -math.inf
        self._last_lr = schedule.values(optimizer, "lr")
        self._reset()

    @property
    def in_cooldown(self) -> bool:
        return self.cooldown_counter > 0

    def step(self, metrics: SupportsFloat, epoch: int | None = None) -> None:  # type: ignore[override]
        """Takes one more measure and lowers the rates when there was no progress for too long."""
        current = float(metrics)
        if epoch is not None:
            warnings.warn(schedule.EPOCH_DEPRECATION_WARNING, UserWarning, stacklevel=2)
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        if self._is_better(current, self.best):
            self.best = current
            self.num_bad_epochs = 0
        else:
            self.num_bad_epochs += 1
        if self.in_cooldown:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            self._reduce_lr()
            self.cooldown_counter = self.cooldown
            self.num_bad_epochs = 0
        self._last_lr = schedule.values(self.optimizer, "lr")

    def _reset(self) -> None:
        self.best = self.mode_worse
        self.cooldown_counter = 0
        self.num_bad_epochs = 0

    def _reduce_lr(self) -> None:
        groups = self.optimizer.param_groups
        if len(groups) != len(self.min_lrs):
            if self.default_min_lr is None:
                raise RuntimeError(
                    f"The number of param groups in the `optimizer` ({len(groups)}) differs from the number of min_lrs "
                    f"({len(self.min_lrs)}): give min_lrs one for each group that was added"
                )
            self.min_lrs = [self.default_min_lr] * len(groups)
        for group, low in zip(groups, self.min_lrs, strict=True):
            old = float(group["lr"])
            new = max(old * self.factor, low)
            if old - new > self.eps:
                schedule.assign(group, "lr", new)

    def _is_better(self, new: float, best: float) -> bool:
        change = -self.threshold if self.mode == "min" else self.threshold
        bound = best * (1.0 + change) if self.threshold_mode == "rel" else best + change
        return new < bound if self.mode == "min" else new > bound


def has_beta1(optimizer: optimizer.Optimizer) -> bool:
    """Whether what is cycled is the first of its betas. Raises: ValueError where it has no momentum either."""
    if "momentum" not in optimizer.defaults and "betas" not in optimizer.defaults:
        raise ValueError("optimizer must support momentum or beta1 with `cycle_momentum` option enabled")
    return "betas" in optimizer.defaults


def set_momentum(group: optimizer.Group, value: Rate, *, beta1: bool) -> None:
    if beta1:
        group["betas"] = (value, *group["betas"][1:])
    else:
        group["momentum"] = value


def for_groups(name: str, optimizer: optimizer.Optimizer, value: Rate | list[float] | tuple[Rate, ...]) -> list[Any]:
    """One value for all groups, or as many as groups."""
    n_groups = len(optimizer.param_groups)
    if not isinstance(value, list | tuple):
        return [schedule.copied(value) for _ in range(n_groups)]
    if len(value) != n_groups:
        raise ValueError(
            f"{name} must have the same length as optimizer.param_groups. "
            f"{name} has {len(value)} values, param_groups has {n_groups}."
        )
    return [schedule.copied(item) for item in value]


def _total_steps(total_steps: int | None, epochs: int | None, steps_per_epoch: int | None) -> int:
    if total_steps is None and (epochs is None or steps_per_epoch is None):
        raise ValueError("You must define either total_steps OR (epochs AND steps_per_epoch)")
    counts = {"epochs": epochs, "steps_per_epoch": steps_per_epoch}
    if total_steps is not None:
        counts = {"total_steps": total_steps}
    for name, value in counts.items():
        if not isinstance(value, int) or value <= 0:
            raise ValueError(f"Expected positive integer {name}, but got {value}")
    return math.prod(value for value in counts.values() if value is not None)


def _phases(total_steps: int, pct_start: float, *, three_phase: bool) -> list[dict[str, Any]]:
    """The pieces of the cycle: where each ends, and which options of the groups it goes from and to."""
    names = ("end_step", "start_lr", "end_lr", "start_momentum", "end_momentum")
    peak = float(pct_start * total_steps) - 1
    rows: list[tuple[float, str, str, str, str]] = [(peak, "initial_lr", "max_lr", "max_momentum", "base_momentum")]
    if three_phase:
        back = float(2 * pct_start * total_steps) - 2
        rows.append((back, "max_lr", "initial_lr", "base_momentum", "max_momentum"))
        rows.append((total_steps - 1, "initial_lr", "min_lr", "max_momentum", "max_momentum"))
    else:
        rows.append((total_steps - 1, "max_lr", "min_lr", "base_momentum", "max_momentum"))
    return [dict(zip(names, row, strict=True)) for row in rows]
