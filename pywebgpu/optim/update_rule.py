"""Base of the rules of this package: parameters are updated as flat tensors, and counts are numbers of the host."""

from importlib import import_module
from math import log
from types import ModuleType
from typing import Any, Literal

from pywebgpu import dtypes
from pywebgpu.autodiff import grad_mode
from pywebgpu.ir import observer
from pywebgpu.optim import grouping, numbers, optimizer
from pywebgpu.support import interrupts
from pywebgpu.tensor import create, flat_parameters, from_data, tensor


class UpdateRule(optimizer.Optimizer):
    """An optimizer that updates each element on its own, from its gradient and its state, by `_update`.

    So all parameters of a group are updated as one flat tensor, where their dtypes, devices and step counts agree (see
    tensor/flat_parameters.py); parameters, gradients and states are parts of flat tensors from then on, which nobody
    can tell. Learning rates, betas and step counts stay numbers of the host, and what depends on them alone (bias
    corrections) is computed there in double precision, so that a step is the same program at every step.
    """

    _begins_states = _takes_complex = True
    _group = numbers.Options
    _state: type[numbers.Counts] = numbers.RuleCounts
    sparse_gradients: Literal["refused", "dense", "rows"] = "refused"  # or taken as dense ones, or by their rows
    _overflowed: tensor.Tensor | None = None

    def __init__(self, params: optimizer.Params, defaults: optimizer.Group) -> None:
        if defaults.get("fused") and (defaults.get("differentiable") or defaults.get("foreach")):
            raise RuntimeError(
                "`fused` does not support `differentiable`"
                if defaults.get("differentiable")
                else "`fused` and `foreach` cannot be `True` together."
            )
        super().__init__(params, defaults)
        self._seen: dict[int, tuple[list[int], int]] = {}
        if defaults.get("differentiable"):
            return
        moved = False
        # Now, and not at the first step, so that the first step is the program of all others.
        with grad_mode.no_grad():
            for group in self.param_groups:
                trained = [parameter for parameter in group["params"] if parameter.requires_grad]
                for bundle in flat_parameters.bundles(trained, [self._kind(parameter, {}) for parameter in trained]):
                    if len(bundle) > 1:
                        flat_parameters.gather([trained[index] for index in bundle])
                        moved = True
        if moved:
            optimizer.submit(parameter for group in self.param_groups for parameter in group["params"])

    def step(self, closure: optimizer.Closure | None = None) -> optimizer.Loss:
        loss: optimizer.Loss = None
        if closure is not None:
            with grad_mode.enable_grad():
                loss = closure()
        with interrupts.held(), grad_mode.set_grad_enabled(bool(self.defaults.get("differentiable"))):
            for number, group in enumerate(self.param_groups):
                with_grad = [parameter for parameter in group["params"] if parameter.grad is not None]
                if self.sparse_gradients == "refused" and any(parameter.grad.is_sparse for parameter in with_grad):
                    raise RuntimeError(f"{type(self).__name__} does not support sparse gradients: SparseAdam does")
                for params in self._bundles(number, with_grad):
                    if len(params) > 1:
                        self._update_together(params, group)
                    else:
                        self._update_alone(params[0], group)
        return loss

    def step_unless(self, overflowed: tensor.Tensor, *args: Any, **kwargs: Any) -> optimizer.Loss:
        """`step`, but where `overflowed`, of shape (), is not 0 the device leaves parameters and states as they are."""
        self._overflowed = overflowed
        try:
            return self.step(*args, **kwargs)
        finally:
            self._overflowed = None

    def _bundles(self, number: int, params: list[tensor.Tensor]) -> list[list[tensor.Tensor]]:
        """The parameters with a gradient of a group as those that are updated together.

        Where others have a gradient at each step, joining them anew would cost more than it gains.
        """
        if not params:
            return []
        ids = [id(parameter) for parameter in params]
        last, changes = self._seen.get(number, (ids, 0))
        changes = changes + 1 if ids != last else 0
        self._seen[number] = ids, changes
        if changes > 1 or self.defaults.get("differentiable"):
            return [[parameter] for parameter in params]
        states = [self.state.get(parameter, {}) for parameter in params]
        if _are_together(params, states):
            return [params]
        kinds = [self._kind(parameter, state) for parameter, state in zip(params, states, strict=True)]
        return [[params[index] for index in bundle] for bundle in flat_parameters.bundles(params, kinds)]

    def _kind(self, parameter: tensor.Tensor, state: optimizer.State) -> object:
        """What parameters that are updated together have in common."""
        return _kind(state, parameter)

    def _update_together(self, params: list[tensor.Tensor], group: optimizer.Group) -> None:
        grads: list[Any] = [parameter.grad for parameter in params]
        gradients = flat_parameters.gather(grads, move=flat_parameters.are_new(grads))
        states = self._states(params, group)
        before = {name: states[0][name] for name in states[0]}
        for name, value in before.items():
            if isinstance(value, tensor.Tensor) and name not in grouping.COUNTS:
                before[name] = flat_parameters.gather([state[name] for state in states])
        after = dict(before)
        self._updated(flat_parameters.gather(params), -gradients if group["maximize"] else gradients, after, group)
        for name, value in after.items():
            if value is not before.get(name) or not isinstance(value, tensor.Tensor):
                is_flat = isinstance(value, tensor.Tensor) and name not in grouping.COUNTS
                parts = flat_parameters.spread(value, params) if is_flat else [value] * len(params)
                for state, part in zip(states, parts, strict=True):
                    state[name] = part
        self._keep(params, states)

    def _update_alone(self, parameter: tensor.Tensor, group: optimizer.Group) -> None:
        gradient: Any = parameter.grad
        if gradient.is_sparse and self.sparse_gradients == "dense":
            gradient = gradient.to_dense()
        gradient = -gradient if group["maximize"] else gradient
        states = self._states([parameter], group)
        if parameter.is_complex():
            self._update_parts(parameter, gradient, states[0], group)
        else:
            self._updated(parameter, gradient, states[0], group)
        self._keep([parameter], states)

    def _update_parts(
        self, parameter: tensor.Tensor, gradient: tensor.Tensor, state: optimizer.State, group: optimizer.Group
    ) -> None:
        """Complex numbers are updated as pairs of real ones."""
        parts = _pairs(state)
        before = dict(parts)
        self._updated(as_pairs(parameter), as_pairs(gradient), parts, group)
        for name, value in parts.items():
            if value is not before.get(name):
                state[name] = value._view(_complex().as_complex) if _is_pair(value, parameter) else value

    def _updated(
        self, parameter: tensor.Tensor, gradient: tensor.Tensor, state: optimizer.State, group: optimizer.Group
    ) -> None:
        """`_update`, of which nothing is left where the device finds `_overflowed`."""
        if self._overflowed is None:
            if group.get("differentiable"):
                self._update_copies(parameter, gradient, state, group)
            else:
                self._update(parameter, gradient, state, group)
            return
        kept = {name: value.clone() for name, value in state.items() if isinstance(value, tensor.Tensor)}
        before = parameter.clone()
        self._update(parameter, gradient, state, group)
        skips = self._overflowed.to(parameter.device) != 0
        parameter.copy_(before.where(skips, parameter))
        for name, value in kept.items():
            state[name].copy_(value.where(skips, state[name]))

    def _update_copies(
        self, parameter: tensor.Tensor, gradient: tensor.Tensor, state: optimizer.State, group: optimizer.Group
    ) -> None:
        """`_update` that writes to nothing which the history of an earlier step, or of this one, still reads."""
        value = parameter.clone()
        new = {name: value.clone() if isinstance(value, tensor.Tensor) else value for name, value in state.items()}
        self._update(value, gradient, new, group)
        parameter.copy_(value)
        state.update(new)

    def _states(self, params: list[tensor.Tensor], group: optimizer.Group) -> list[optimizer.State]:
        """What is remembered of the parameters; a rule that remembers nothing leaves no trace in `state`."""
        states = [self.state.get(parameter, numbers.Counts()) for parameter in params]
        if not any(states):
            self._begin(params, states, group)
            self._keep(params, states)
        if self._overflowed is not None or isinstance(states[0].get("step"), tensor.Tensor):
            self._count_on_device(params, states)
        if len(states) > 1:
            numbers.keep_alike(states)
        return states

    def _count_on_device(self, params: list[tensor.Tensor], states: list[optimizer.State]) -> None:
        """Makes each count one tensor of exactly these parameters: a device counts the steps that it took."""
        for name in grouping.COUNTS & states[0].keys():
            count = dict.get(states[0], name)
            users = sum(dict.get(state, name) is count for state in self.state.values())
            if isinstance(count, tensor.Tensor) and users == len(params):
                continue
            with observer.unobserved():
                counter = create.tensor(float(count), dtype=dtypes.float32, device=params[0].device)  # type: ignore[arg-type]
                for state in states:
                    state[name] = counter

    def _keep(self, params: list[tensor.Tensor], states: list[optimizer.State]) -> None:
        for parameter, state in zip(params, states, strict=True):
            if state and parameter not in self.state:
                self.state[parameter] = state

    def _begin(self, params: list[tensor.Tensor], states: list[optimizer.State], group: optimizer.Group) -> None:
        """Gives the parameters the state before their first step: it was there before a step that is captured."""
        for state in states:  # A program may have asked for it before, and have it.
            state.__class__ = self._state
        with observer.unobserved():
            together = len(params) > 1
            if params[0].is_complex():
                pairs = self._start(as_pairs(params[0].detach()), group)
                started = {
                    name: value._view(_complex().as_complex) if _is_pair(value, params[0]) else value
                    for name, value in pairs.items()
                }
            else:
                started = self._start(flat_parameters.gather(params) if together else params[0], group)
            for name, value in started.items():
                is_flat = together and isinstance(value, tensor.Tensor)
                parts = flat_parameters.spread(value, params) if is_flat else [value] * len(params)
                for state, part in zip(states, parts, strict=True):
                    state[name] = part

    def _start(self, parameter: tensor.Tensor, group: optimizer.Group) -> optimizer.State:
        """The state before the first step, where the rule has one; its tensors have the shape of `parameter`."""
        return {}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Also takes states of torch, where a step count is a tensor, and of older versions, where options lack."""
        super().__setstate__(state)
        self._seen = {}
        for group in self.param_groups:
            for name, default in self.defaults.items():
                group.setdefault(name, default)
        for values in self.state.values():
            if not isinstance(values, numbers.Counts):
                continue
            values.__class__ = self._state
            for name in grouping.COUNTS & values.keys():
                if isinstance(values[name], tensor.Tensor):
                    count = values[name].item()
                    values[name] = int(count) if name == "step" else count

    def _update(
        self, parameter: tensor.Tensor, gradient: tensor.Tensor, state: optimizer.State, group: optimizer.Group
    ) -> None:
        raise NotImplementedError


def _are_together(params: list[tensor.Tensor], states: list[optimizer.State]) -> bool:
    """Whether parameters and states are the parts of flat tensors already, and all numbers agree: as after a step."""
    if len(params) < 2 or not flat_parameters.are_gathered(params):
        return False
    first, *others = states
    for name, value in dict.items(first):
        values: list[Any] = [dict.get(state, name) for state in others]
        if isinstance(value, tensor.Tensor):
            if not all(isinstance(item, tensor.Tensor) for item in values):
                return False
            if not flat_parameters.are_gathered([value, *values]) or not flat_parameters.are_alike(value, params[0]):
                return False
        elif not (type(value) in _NUMBERS and numbers.are_of_one(states, name)) or any(
            type(item) is not type(value) or item != value for item in values
        ):
            return False
    return all(len(state) == len(first) for state in others)


_NUMBERS = (int, float)


def _complex() -> ModuleType:
    return import_module("pywebgpu.ops.complex_parts")


def as_pairs(x: tensor.Tensor) -> tensor.Tensor:
    """Complex numbers as pairs of real ones in the same memory; real numbers as they are."""
    return x._view(_complex().as_real) if x.is_complex() else x


def _pairs(state: optimizer.State) -> optimizer.State:
    """A state with pairs of real numbers where it has complex ones."""
    return {name: as_pairs(value) if isinstance(value, tensor.Tensor) else value for name, value in dict.items(state)}


def _is_pair(value: object, parameter: tensor.Tensor) -> bool:
    """Whether a part of a state holds pairs, one for each complex number of a parameter."""
    return isinstance(value, tensor.Tensor) and tuple(value.shape) == (*parameter.shape, 2)


def _kind(state: optimizer.State, parameter: tensor.Tensor) -> object:
    """What a state has in common with those of others; something new for a parameter that must be alone."""
    if parameter.is_complex():
        return object()
    facts: list[Any] = []
    for name, value in dict.items(state):  # As they are: nothing is read anew here.
        if name in grouping.COUNTS and isinstance(value, tensor.Tensor):
            facts.append((name, id(value)))
        elif isinstance(value, tensor.Tensor):
            if not flat_parameters.are_alike(value, parameter):
                return object()
            facts.append((name, None))
        elif isinstance(value, int | float | None):
            facts.append((name, value, id(numbers.written(state, name))))
        else:
            return object()
    return tuple(facts)


def zeros_like(parameter: tensor.Tensor) -> tensor.Tensor:
    """Zeros that have their buffer at once, so that the step that makes them is the program of all later ones."""
    device = parameter._storage.device
    zeros: tensor.Tensor = tensor.Tensor._new(from_data.zeros(parameter.dtype, tuple(parameter.shape), device), device)
    return zeros


def filled(parameter: tensor.Tensor, value: optimizer.Rate) -> tensor.Tensor:
    """As zeros_like, with another number; one that is on a device is no number yet, and takes part in the step."""
    if isinstance(value, tensor.Tensor):
        return value.detach().expand(parameter.shape).clone()
    device, shape = parameter._storage.device, tuple(parameter.shape)
    data = from_data.pack([value], parameter.dtype) * parameter.numel()
    full: tensor.Tensor = tensor.Tensor._new(from_data.from_bytes(data, parameter.dtype, shape, device), device)
    return full


def decayed(parameter: tensor.Tensor, gradient: tensor.Tensor, weight_decay: optimizer.Rate) -> tensor.Tensor:
    """The gradient of the loss plus weight_decay / 2 * |parameter|^2."""
    if not isinstance(weight_decay, tensor.Tensor) and weight_decay == 0:
        return gradient
    total: tensor.Tensor = gradient + parameter * weight_decay
    return total


def debiasing(beta: float, step: int | tensor.Tensor) -> float | tensor.Tensor:
    """1 - beta^step, of a count on a device with the digits that float32 has."""
    if isinstance(step, tensor.Tensor):
        return -(step * log(beta)).expm1() if beta > 0 else 1.0
    return 1 - beta**step


def options(variables: dict[str, Any]) -> optimizer.Group:
    """The options of a rule, from the locals() of its __init__."""
    return {name: value for name, value in variables.items() if name not in ("self", "params", "__class__")}


def require_not_negative(**options: optimizer.Rate) -> None:
    """Raises ValueError for the first option below zero or NaN. A tensor is not read back: its size is checked."""
    titles = {"lr": "learning rate", "eps": "epsilon value"}
    for name, value in options.items():
        if isinstance(value, tensor.Tensor) and value.numel() != 1:
            raise ValueError(f"Tensor {name} must be 1-element")
        if not isinstance(value, tensor.Tensor) and not value >= 0.0:
            raise ValueError(f"Invalid {titles.get(name, name + ' value')}: {value}")
