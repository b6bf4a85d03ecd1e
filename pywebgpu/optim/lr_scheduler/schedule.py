"""Learning rates that change from step to step: the base class, and rates by functions of the step.

Rates are numbers of the host, so a schedule changes no compiled program. Names of attributes are torch's, because they
are the keys of the state dict.
"""

from __future__ import annotations

import functools
import types
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pywebgpu.errors import CaptureError
from pywebgpu.ir.graph import thread_state
from pywebgpu.ir.observer import unobserved
from pywebgpu.optim import optimizer
from pywebgpu.tensor import tensor

if TYPE_CHECKING:
    from pywebgpu.optim.optimizer import Rate

Factor = Callable[[int], float]

EPOCH_DEPRECATION_WARNING = (
    "The epoch parameter in `scheduler.step()` is deprecated: step(epoch) uses the closed form of the schedule "
    "where it has one. Use `scheduler.step()`."
)
ORDER_WARNING = (
    "Detected call of `lr_scheduler.step()` before `optimizer.step()`. Call `optimizer.step()` first: in this order "
    "the first value of the learning rate schedule is skipped. See more details at "
    "https://pytorch.org/docs/stable/optim.html#how-to-adjust-learning-rate"
)
OVERRIDDEN_WARNING = (
    "Seems like `optimizer.step()` has been overridden after learning rate scheduler initialization. Please, make sure "
    "to call `optimizer.step()` before `lr_scheduler.step()`. See more details at "
    "https://pytorch.org/docs/stable/optim.html#how-to-adjust-learning-rate"
)


class LRScheduler:
    """Sets the "lr" of each parameter group of `optimizer` at each `step()`, the first time when it is made.

    A subclass gives `get_lr`, the rates at step `last_epoch`, and may give `_get_closed_form_lr`, the same without
    reading the rates before. `last_epoch` other than -1 goes on with one; the groups must then have "initial_lr".
    """

    _get_lr_called_within_step = False
    _is_initial = False
    _last_lr: list[Any]

    def __init__(self, optimizer: optimizer.Optimizer, last_epoch: int = -1) -> None:
        require_optimizer(optimizer)
        self.optimizer = optimizer
        for i, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", copied(group["lr"]))
            elif "initial_lr" not in group:
                raise KeyError(
                    f"param 'initial_lr' is not specified in param_groups[{i}] when resuming scheduler with "
                    "last_epoch >= 0: load the optimizer's state first"
                )
        own = vars(optimizer).get("step")
        if own is not None:  # Overridden before this schedule, which warns of what comes later.
            getattr(own, "__func__", own)._wrapped_by_lr_sched = True
        self.base_lrs = values(optimizer, "initial_lr")
        self.last_epoch = last_epoch
        self._initial_step()

    def __init_subclass__(cls, **options: Any) -> None:
        """A captured step notes every `step`, a subclass's own too, and takes it again in each run."""
        super().__init_subclass__(**options)
        if "step" in cls.__dict__:
            cls.step = _noted(cls.__dict__["step"])  # type: ignore[method-assign]

    def get_last_lr(self) -> list[Any]:
        """The rates that the last `step()` set, one a group."""
        capture = thread_state.observer
        if capture is None:
            return self._last_lr
        return [
            capture.read("lr", lambda index=index: self._last_lr[index], handed=True)  # type: ignore[misc]
            if isinstance(rate, float)
            else rate
            for index, rate in enumerate(self._last_lr)
        ]

    def get_lr(self) -> list[Any]:
        """The rates at step `last_epoch`, one a group. For `step()` to call: a reader wants `get_last_lr()`."""
        self._warn_outside_step()
        return self._next_lr()

    def _next_lr(self) -> list[Any]:
        raise NotImplementedError(f"{type(self).__name__} has no get_lr()")

    def step(self, epoch: int | None = None) -> None:
        """Goes to the next step, or to step `epoch`, and sets the rates."""
        if self._step_count == 1:
            if not getattr(self.optimizer.step, "_wrapped_by_lr_sched", "step" not in vars(self.optimizer)):
                warnings.warn(OVERRIDDEN_WARNING, UserWarning, stacklevel=2)
            elif not self.optimizer._opt_called:
                warnings.warn(ORDER_WARNING, UserWarning, stacklevel=2)
        if epoch is not None:
            warnings.warn(EPOCH_DEPRECATION_WARNING, UserWarning, stacklevel=2)
        self._step_count += 1
        self._update_lr(epoch)

    def state_dict(self) -> dict[str, Any]:
        """All attributes but the optimizer."""
        if thread_state.observer is not None:
            thread_state.observer.refuse("it takes the state of a schedule")
        return {name: value for name, value in self.__dict__.items() if name != "optimizer"}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        if thread_state.observer is not None:
            thread_state.observer.refuse("it loads the state of a schedule")
        self.__dict__.update(state_dict)

    def _initial_step(self) -> None:
        self._step_count = 0
        self._is_initial = True
        try:
            self.step()
        finally:
            self._is_initial = False

    def _update_lr(self, epoch: int | None = None) -> None:
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        closed = getattr(self, "_get_closed_form_lr", None)
        self._set_lr(self.get_lr if epoch is None or closed is None else closed)

    def _set_lr(self, rates: Callable[[], list[Any]]) -> None:
        self._get_lr_called_within_step = True
        try:
            new = rates()
        finally:
            self._get_lr_called_within_step = False
        for group, rate in zip(self.optimizer.param_groups, new, strict=True):
            assign(group, "lr", rate)
        self._last_lr = values(self.optimizer, "lr")

    def _warn_outside_step(self) -> None:
        if not self._get_lr_called_within_step:
            warnings.warn(
                "To get the last learning rate computed by the scheduler, please use `get_last_lr()`.",
                UserWarning,
                stacklevel=3,
            )

    def _unchanged(self) -> list[Any]:
        return values(self.optimizer, "lr")

    def _times(self, factor: float) -> list[Any]:
        return [group["lr"] * factor for group in self.optimizer.param_groups]

    def _base_times(self, factor: float) -> list[Any]:
        return [rate * factor for rate in self.base_lrs]


def _noted(own: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(own)
    def step(self: LRScheduler, *args: Any, **kwargs: Any) -> None:
        capture = thread_state.observer
        if capture is None:
            own(self, *args, **kwargs)
            return
        if args or kwargs:
            raise CaptureError("scheduler.step() of a metric or an epoch belongs outside of a compiled step")
        if any(isinstance(group["lr"], tensor.Tensor) for group in self.optimizer.param_groups):
            capture.refuse("a schedule writes a learning rate that is a tensor; give the optimizer a float")
            with unobserved():
                own(self)
            return
        for home in (*_homes(self), *self.optimizer.param_groups):
            capture.save_dict(home)
        capture.act("schedule", lambda: own(self))

    return step


def _homes(scheduler: LRScheduler) -> list[dict[str, Any]]:
    """The attributes of a schedule and of those that it is made of."""
    inner = getattr(scheduler, "_schedulers", ())
    return [scheduler.__dict__, *(home for scheduled in inner for home in _homes(scheduled))]


LRScheduler.step = _noted(LRScheduler.step)  # type: ignore[method-assign]


class _LRScheduler(LRScheduler):
    """The base class by its name of older programs."""


class _FactorScheduler(LRScheduler):
    """A schedule given as functions of the step. Of these the state dict holds the attributes, not the code."""

    def __init__(
        self,
        optimizer: optimizer.Optimizer,
        lr_lambda: Factor | list[Factor] | tuple[Factor, ...],
        last_epoch: int = -1,
    ) -> None:
        n_groups = len(optimizer.param_groups)
        self.lr_lambdas = list(lr_lambda) if isinstance(lr_lambda, list | tuple) else [lr_lambda] * n_groups
        if len(self.lr_lambdas) != n_groups:
            raise ValueError(f"Expected {n_groups} lr_lambdas, but got {len(self.lr_lambdas)}")
        for factor in self.lr_lambdas:
            if not callable(factor):
                raise TypeError(f"lr_lambda should be a function, but got {type(factor).__name__}")
        super().__init__(optimizer, last_epoch)

    def state_dict(self) -> dict[str, Any]:
        state = super().state_dict()
        state["lr_lambdas"] = [
            None if isinstance(factor, types.FunctionType) else dict(vars(factor)) for factor in self.lr_lambdas
        ]
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        factors = self.lr_lambdas
        super().load_state_dict(state_dict)
        self.lr_lambdas = factors
        for factor, attributes in zip(factors, state_dict["lr_lambdas"], strict=True):
            if attributes is not None:
                vars(factor).update(attributes)


class LambdaLR(_FactorScheduler):
    """lr = initial_lr * lr_lambda(step); one function for all groups or one a group."""

    def _next_lr(self) -> list[Any]:
        pairs = zip(self.base_lrs, self.lr_lambdas, strict=True)
        return [rate * factor(self.last_epoch) for rate, factor in pairs]


class MultiplicativeLR(_FactorScheduler):
    """lr = lr * lr_lambda(step); one function for all groups or one a group."""

    def _next_lr(self) -> list[Any]:
        if self._is_initial:
            return self._unchanged()
        pairs = zip(self.optimizer.param_groups, self.lr_lambdas, strict=True)
        return [group["lr"] * factor(self.last_epoch) for group, factor in pairs]


def require_optimizer(candidate: object) -> None:
    if not isinstance(candidate, optimizer.Optimizer):
        raise TypeError(f"{type(candidate).__name__} is not an Optimizer")


def copied(value: Rate) -> Rate:
    """A rate that later writes to the group do not change."""
    return value.clone() if isinstance(value, tensor.Tensor) else value


def values(source: optimizer.Optimizer, name: str) -> list[Any]:
    """One option of all groups."""
    return [copied(group[name]) for group in source.param_groups]


def assign(group: optimizer.Group, name: str, value: Rate) -> None:
    """Sets an option; one that is a tensor is written in place, so that programs which read it see the new value."""
    old = group[name]
    if not isinstance(old, tensor.Tensor):
        group[name] = value
    elif isinstance(value, tensor.Tensor):
        old.copy_(value)
    else:
        old.fill_(value)
