"""Schedules made of schedules: one after the other, or all at once."""

from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

from pywebgpu.optim import optimizer
from pywebgpu.optim.lr_scheduler import annealing, schedule


class _Several(schedule.LRScheduler):
    """Keeps the states of its schedules in its own."""

    _schedulers: Sequence[schedule.LRScheduler]

    def state_dict(self) -> dict[str, Any]:
        state = super().state_dict()
        state["_schedulers"] = [scheduler.state_dict() for scheduler in self._schedulers]
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        schedulers = self._schedulers
        super().load_state_dict(state_dict)
        self._schedulers = schedulers
        for scheduler, state in zip(schedulers, state_dict["_schedulers"], strict=True):
            scheduler.load_state_dict(state)

    def _check(self, schedulers: Sequence[schedule.LRScheduler], optimizer: optimizer.Optimizer | None) -> None:
        name = type(self).__name__
        if len(schedulers) < 1:
            raise ValueError(f"{name} expects at least one scheduler, but got no scheduler.")
        for i, scheduler in enumerate(schedulers):
            if not hasattr(scheduler, "optimizer"):
                raise TypeError(f"{name} at index {i} should have `optimizer` as its attribute.")
            if isinstance(scheduler, annealing.ReduceLROnPlateau):
                raise ValueError(
                    f"{name} does not support `ReduceLROnPlateau`, whose `step` needs a measure: index {i}"
                )
            if scheduler.optimizer is not (optimizer or schedulers[0].optimizer):
                raise ValueError(f"{name} expects all schedulers to belong to the same optimizer; index {i} does not")


class SequentialLR(_Several):
    """The first schedule until step milestones[0], the second until milestones[1], ...; each begins at its step 0."""

    def __init__(
        self,
        optimizer: optimizer.Optimizer,
        schedulers: list[schedule.LRScheduler],
        milestones: list[int],
        last_epoch: int = -1,
    ) -> None:
        self._check(schedulers, optimizer)
        if len(milestones) != len(schedulers) - 1:
            raise ValueError(
                "Sequential Schedulers expects number of schedulers provided to be one more than the number of "
                f"milestone points, but got {len(schedulers)} schedulers and {len(milestones)} milestones"
            )
        self._schedulers = schedulers
        self._milestones = milestones
        self.last_epoch = last_epoch + 1
        self.optimizer = optimizer
        # Making the schedules took a step of each: undo all, then let the first one begin.
        for group in optimizer.param_groups:
            schedule.assign(group, "lr", group["initial_lr"])
        for scheduler in schedulers:
            _undo(scheduler)
        first = schedulers[bisect_right(milestones, 0)]
        first._initial_step()
        self._last_lr = first.get_last_lr()

    def step(self) -> None:  # type: ignore[override]
        self.last_epoch += 1
        i = bisect_right(self._milestones, self.last_epoch)
        current = self._schedulers[i]
        if i > 0 and self._milestones[i - 1] == self.last_epoch:
            current._update_lr(0)
        else:
            current.step()
        self._last_lr = current.get_last_lr()


class ChainedScheduler(_Several):
    """All schedules at each step, one on top of the other."""

    def __init__(
        self, schedulers: Sequence[schedule.LRScheduler], optimizer: optimizer.Optimizer | None = None
    ) -> None:
        self._check(schedulers, optimizer)
        self._schedulers = schedulers
        self.optimizer = optimizer or schedulers[0].optimizer
        self._last_lr = self._unchanged()

    def step(self) -> None:  # type: ignore[override]
        for scheduler in self._schedulers:
            scheduler.step()
        self._last_lr = self._unchanged()


def _undo(scheduler: schedule.LRScheduler) -> None:
    if isinstance(scheduler, _Several):
        for inner in scheduler._schedulers:
            _undo(inner)
    else:
        scheduler.last_epoch -= 1
