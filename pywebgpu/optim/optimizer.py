"""Base of all update rules: parameter groups, state by parameter, state dicts in PyTorch's format, hooks.

Two classes, as torch has one: `Optimizer` is what a program subclasses, `UpdateRule` is what the rules of this package
share, which is that every parameter is updated on its own and that step counts are numbers of the host.
"""

import copy
import functools
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable
from math import log
from typing import Any

from pywebgpu import dtypes
from pywebgpu.autodiff import grad_mode
from pywebgpu.ir.graph import thread_state
from pywebgpu.optim import grouping, numbers
from pywebgpu.runtime import executor
from pywebgpu.step_capture import capture
from pywebgpu.step_capture.capture import capture_state
from pywebgpu.tensor import create, flat_parameters, from_data, grad_accumulator, tensor

Rate = float | tensor.Tensor
Loss = tensor.Tensor | float | None
Closure = Callable[[], Loss]
Group = grouping.Group
State = dict[str, Any]  # Tensors and numbers of the host, by PyTorch's names.
Params = Iterable[tensor.Tensor] | Iterable[tuple[str, tensor.Tensor]] | Iterable[Group]
Hook = Callable[..., Any]


class Optimizer:
    """Parameters in groups, each with its options, and what a rule remembers of each parameter.

    `state` maps a parameter to a dict; `param_groups` holds one dict a group: "params" and the options. A subclass
    calls `super().__init__(params, defaults)` and gives `step`; whatever `step` recorded is submitted when it returns.

    Raises: TypeError when `params` is one tensor or holds something else than tensors; ValueError when it is empty,
    when a parameter is not a leaf or stands in two groups.
    """

    _begins_states = False  # a step makes the states as they are before the first one
    _group: type[numbers.Options] = numbers.Counts  # a program's own rule may count in its groups

    def __init__(self, params: Params, defaults: Group) -> None:
        if isinstance(params, tensor.Tensor):
            raise TypeError(
                "params argument given to the optimizer should be an iterable of Tensors or dicts, but got one Tensor"
            )
        self.defaults = defaults
        self.state: defaultdict[Any, State] = numbers.States()
        self.param_groups: list[Group] = []
        self._make_hooks()
        given: list[Any] = list(params)
        if not given:
            raise ValueError("optimizer got an empty parameter list")
        groups: list[Group] = given if isinstance(given[0], dict) else [{"params": given}]
        for group in groups:
            self.add_param_group(group)

    def __init_subclass__(cls, **options: Any) -> None:
        """Every `step`, a program's own too, runs the hooks and submits its work."""
        super().__init_subclass__(**options)
        own = cls.__dict__.get("step")
        if own is not None:

            @functools.wraps(own)
            def step(self: Optimizer, *args: Any, **kwargs: Any) -> Loss:
                return self._run_step(own, args, kwargs)

            cls.step = step  # type: ignore[method-assign]

    def step(self, closure: Closure | None = None) -> Loss:
        """Updates all parameters from their gradients. Returns what `closure` returned, if one was given."""
        raise NotImplementedError(f"{type(self).__name__} has no step()")

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Drops all gradients, or fills them with zeros when `set_to_none` is False."""
        numbers.watch(self)
        for group in self.param_groups:
            for parameter in group["params"]:
                if set_to_none:
                    if parameter._grad is not None or capture_state.capture is not None:
                        parameter.grad = None
                    continue
                if parameter.grad is None:
                    continue
                if parameter.grad.grad_fn is not None:
                    parameter.grad = parameter.grad.detach()
                with grad_mode.no_grad():
                    parameter.grad.zero_()

    def add_param_group(self, param_group: Group) -> None:
        """Adds one more group; options that it leaves out are the defaults."""
        if not isinstance(param_group, dict):
            raise TypeError(f"param_group must be a dict, but got {type(param_group)}")
        grouping.unpack_names(param_group)
        for parameter in param_group["params"]:
            self._check_parameter(parameter)
        for name, default in self.defaults.items():
            param_group.setdefault(name, default)
        known = {id(parameter) for parameter in param_group["params"]}
        if len(known) != len(param_group["params"]):
            warnings.warn("optimizer contains a parameter group with duplicate parameters", stacklevel=3)
        for group in self.param_groups:
            if ("param_names" in group) != ("param_names" in param_group):
                raise ValueError("all optimizer param groups should be with/without names")
            if any(id(parameter) in known for parameter in group["params"]):
                raise ValueError("some parameters appear in more than one parameter group")
        self.param_groups.append(self._group(param_group))
        capture_state.changes += 1

    def state_dict(self) -> dict[str, Any]:
        """{"state": {index: state}, "param_groups": [options and indices]}, as torch's. Tensors are not copied.

        Raises: KeyError where `state` knows a tensor that is in no group.
        """
        for hook in list(self._hooks["state_dict_pre"].values()):
            hook(self)
        order = grouping.indices(self.param_groups)
        groups = []
        for group in self.param_groups:
            packed = {name: value for name, value in group.items() if name != "params"}
            packed["params"] = [order[id(parameter)] for parameter in group["params"]]
            groups.append(packed)
        state = {
            order[id(key)] if isinstance(key, tensor.Tensor) else key: _plain(value)
            for key, value in self.state.items()
            if value
        }
        out: dict[str, Any] = {"state": state, "param_groups": groups}
        for hook in list(self._hooks["state_dict_post"].values()):
            changed = hook(self, out)
            out = out if changed is None else changed
        return out

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes over the options and states of `state_dict`, whose tensors are copied.

        A state tensor that exists already keeps its identity and is written in place; others are made on the device
        and, where they are floating, in the dtype of their parameter.

        Raises: ValueError when the groups or their sizes differ.
        """
        state_dict = dict(state_dict)
        for hook in list(self._hooks["load_state_dict_pre"].values()):
            changed = hook(self, state_dict)
            state_dict = state_dict if changed is None else changed
        saved = [dict(group) for group in state_dict["param_groups"]]
        parameters = grouping.match(self.param_groups, saved)
        state: defaultdict[Any, State] = defaultdict(dict)
        with grad_mode.no_grad():
            for key, value in state_dict["state"].items():
                parameter = parameters.get(key)
                if parameter is None:
                    state[key] = value
                else:
                    state[parameter] = grouping.restored(parameter, value, self.state.get(parameter, {}))  # type: ignore[assignment]
        for group, new in zip(self.param_groups, saved, strict=True):
            new["params"] = group["params"]
            if "param_names" in group:
                new.setdefault("param_names", group["param_names"])
        groups = [
            {name: value if name == "params" else _copied(value, old.get(name)) for name, value in new.items()}
            for old, new in zip(self.param_groups, saved, strict=True)
        ]
        self.__setstate__({"state": state, "param_groups": groups})
        for hook in list(self._hooks["load_state_dict_post"].values()):
            hook(self)

    def register_step_pre_hook(self, hook: Hook) -> grad_accumulator.RemovableHandle:
        """`hook(optimizer, args, kwargs)` before each step; it may return other (args, kwargs)."""
        return self._register("step_pre", hook)

    def register_step_post_hook(self, hook: Hook) -> grad_accumulator.RemovableHandle:
        """`hook(optimizer, args, kwargs)` after each step."""
        return self._register("step_post", hook)

    def register_state_dict_pre_hook(self, hook: Hook) -> grad_accumulator.RemovableHandle:
        return self._register("state_dict_pre", hook)

    def register_state_dict_post_hook(self, hook: Hook) -> grad_accumulator.RemovableHandle:
        return self._register("state_dict_post", hook)

    def register_load_state_dict_pre_hook(self, hook: Hook) -> grad_accumulator.RemovableHandle:
        return self._register("load_state_dict_pre", hook)

    def register_load_state_dict_post_hook(self, hook: Hook) -> grad_accumulator.RemovableHandle:
        return self._register("load_state_dict_post", hook)

    def __getstate__(self) -> dict[str, Any]:
        return {"defaults": self.defaults, "state": self.state, "param_groups": self.param_groups}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.param_groups = [self._group(group) for group in self.param_groups]
        kept = {key: numbers.Counts(value) if type(value) is dict else value for key, value in self.state.items()}
        self.state = numbers.States(kept)
        capture_state.changes += 1
        if "_hooks" not in self.__dict__:
            self._make_hooks()

    def __repr__(self) -> str:
        lines = [f"{type(self).__name__} ("]
        for i, group in enumerate(self.param_groups):
            lines.append(f"Parameter Group {i}")
            lines += [f"    {name}: {group[name]}" for name in sorted(group) if name != "params"]
        return "\n".join([*lines, ")"])

    def _run_step(self, step: Callable[..., Loss], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Loss:
        numbers.watch(self)
        if not self._begins_states:
            numbers.watch_states(self)
        for hook in list(self._hooks["step_pre"].values()):
            changed = hook(self, args, kwargs)
            if changed is not None:
                args, kwargs = changed
        with thread_state.span("optimizer", type(self).__name__):
            out = step(self, *args, **kwargs)
        numbers.watch_states(self)
        self._opt_called = True
        _submit(parameter for group in self.param_groups for parameter in group["params"])
        for hook in list(self._hooks["step_post"].values()):
            hook(self, args, kwargs)
        return out

    def _make_hooks(self) -> None:
        self._hooks: defaultdict[str, dict[int, Hook]] = defaultdict(dict)
        self._opt_called = False

    def _register(self, event: str, hook: Hook) -> grad_accumulator.RemovableHandle:
        return grad_accumulator.RemovableHandle(self._hooks[event], hook)

    def _check_parameter(self, parameter: object) -> None:
        if not isinstance(parameter, tensor.Tensor):
            raise TypeError(f"optimizer can only optimize Tensors, but one of the params is {type(parameter).__name__}")
        if not (parameter.is_leaf or parameter.retains_grad):
            raise ValueError("can't optimize a non-leaf Tensor")


class UpdateRule(Optimizer):
    """An optimizer that updates each element on its own, from its gradient and its state, by `_update`.

    So all parameters of a group are updated as one flat tensor, where their dtypes, devices and step counts agree (see
    tensor/flat_parameters.py); parameters, gradients and states are parts of flat tensors from then on, which nobody
    can tell. Learning rates, betas and step counts stay numbers of the host, and what depends on them alone (bias
    corrections) is computed there in double precision, so that a step is the same program at every step.
    """

    _begins_states = True
    _group = numbers.Options
    _overflowed: tensor.Tensor | None = None

    def __init__(self, params: Params, defaults: Group) -> None:
        if defaults.get("differentiable"):
            raise ValueError(f"{type(self).__name__}: differentiable=True is not supported")
        super().__init__(params, defaults)
        self._seen: dict[int, tuple[list[int], int]] = {}
        moved = False
        # Now, and not at the first step, so that the first step is the program of all others.
        with grad_mode.no_grad():
            for group in self.param_groups:
                trained = [parameter for parameter in group["params"] if parameter.requires_grad]
                for bundle in flat_parameters.bundles(trained, [self._kind(parameter, {}) for parameter in trained]):
                    if len(bundle) > 1:
                        flat_parameters.gather([trained[at] for at in bundle])
                        moved = True
        if moved:
            _submit(parameter for group in self.param_groups for parameter in group["params"])

    def step(self, closure: Closure | None = None) -> Loss:
        loss: Loss = None
        if closure is not None:
            with grad_mode.enable_grad():
                loss = closure()
        with grad_mode.no_grad():
            for number, group in enumerate(self.param_groups):
                given = [parameter for parameter in group["params"] if parameter.grad is not None]
                for params in self._bundles(number, given):
                    if len(params) > 1:
                        self._update_together(params, group)
                    else:
                        self._update_alone(params[0], group)
        return loss

    def step_unless(self, overflowed: tensor.Tensor, *args: Any, **kwargs: Any) -> Loss:
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
        if changes > 1:
            return [[parameter] for parameter in params]
        states = [self.state.get(parameter, {}) for parameter in params]
        if _are_together(params, states):
            return [params]
        kinds = [self._kind(parameter, state) for parameter, state in zip(params, states, strict=True)]
        return [[params[at] for at in bundle] for bundle in flat_parameters.bundles(params, kinds)]

    def _kind(self, parameter: tensor.Tensor, state: State) -> object:
        """What parameters that are updated together have in common."""
        return _kind(state, parameter)

    def _update_together(self, params: list[tensor.Tensor], group: Group) -> None:
        given: list[Any] = [parameter.grad for parameter in params]
        gradients = flat_parameters.gather(given, move=flat_parameters.are_new(given))
        states = self._states(params, group)
        before = {name: states[0][name] for name in states[0]}
        for name, value in before.items():
            if isinstance(value, tensor.Tensor) and name != "step":
                before[name] = flat_parameters.gather([state[name] for state in states])
        after = dict(before)
        self._updated(flat_parameters.gather(params), -gradients if group["maximize"] else gradients, after, group)
        for name, value in after.items():
            if value is not before.get(name) or not isinstance(value, tensor.Tensor):
                parts = (
                    flat_parameters.spread(value, params) if isinstance(value, tensor.Tensor) else [value] * len(params)
                )
                for state, part in zip(states, parts, strict=True):
                    state[name] = part
        self._keep(params, states)

    def _update_alone(self, parameter: tensor.Tensor, group: Group) -> None:
        gradient: Any = parameter.grad
        gradient = -gradient if group["maximize"] else gradient
        states = self._states([parameter], group)
        self._updated(parameter, gradient, states[0], group)
        self._keep([parameter], states)

    def _updated(self, parameter: tensor.Tensor, gradient: tensor.Tensor, state: State, group: Group) -> None:
        """`_update`, of which nothing is left where the device finds `_overflowed`."""
        if self._overflowed is None:
            self._update(parameter, gradient, state, group)
            return
        kept = {name: value.clone() for name, value in state.items() if isinstance(value, tensor.Tensor)}
        before = parameter.clone()
        self._update(parameter, gradient, state, group)
        skips = self._overflowed.to(parameter.device) != 0
        parameter.copy_(before.where(skips, parameter))
        for name, value in kept.items():
            state[name].copy_(value.where(skips, state[name]))

    def _states(self, params: list[tensor.Tensor], group: Group) -> list[State]:
        """What is remembered of the parameters; a rule that remembers nothing leaves no trace in `state`."""
        states = [self.state.get(parameter, numbers.Counts()) for parameter in params]
        if not any(states):
            self._begin(params, states, group)
            self._keep(params, states)
        if self._overflowed is not None or isinstance(states[0].get("step"), tensor.Tensor):
            self._count_on_device(params, states)
        return states

    def _count_on_device(self, params: list[tensor.Tensor], states: list[State]) -> None:
        """Makes the step count one tensor of exactly these parameters: a device counts the steps that it took."""
        step = dict.get(states[0], "step")
        if step is None:
            return
        users = sum(dict.get(state, "step") is step for state in self.state.values())
        if isinstance(step, tensor.Tensor) and users == len(params):
            return
        with capture.paused():
            made = create.tensor(float(step), dtype=dtypes.float32, device=params[0].device)
            for state in states:
                state["step"] = made

    def _keep(self, params: list[tensor.Tensor], states: list[State]) -> None:
        for parameter, state in zip(params, states, strict=True):
            if state and parameter not in self.state:
                self.state[parameter] = state

    def _begin(self, params: list[tensor.Tensor], states: list[State], group: Group) -> None:
        """Gives the parameters the state before their first step: it was there before a step that is captured."""
        with capture.paused():
            together = len(params) > 1
            started = self._start(flat_parameters.gather(params) if together else params[0], group)
            for name, value in started.items():
                is_flat = together and isinstance(value, tensor.Tensor)
                parts = flat_parameters.spread(value, params) if is_flat else [value] * len(params)
                for state, part in zip(states, parts, strict=True):
                    state[name] = part

    def _start(self, parameter: tensor.Tensor, group: Group) -> State:
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
            if isinstance(values.get("step"), tensor.Tensor):
                values["step"] = int(values["step"].item())

    def _update(self, parameter: tensor.Tensor, gradient: tensor.Tensor, state: State, group: Group) -> None:
        raise NotImplementedError


def _copied(value: Any, old: object) -> Any:
    """An option, on the device where it is now."""
    copied = copy.deepcopy(value)
    if isinstance(copied, tensor.Tensor) and isinstance(old, tensor.Tensor):
        return copied.to(old.device)
    return copied


def _plain(state: State) -> State:
    return dict(state) if isinstance(state, numbers.Options) else state


def _are_together(params: list[tensor.Tensor], states: list[State]) -> bool:
    """Whether parameters and states are the parts of flat tensors already, and all numbers agree: as after a step."""
    if len(params) < 2 or not flat_parameters.are_gathered(params):
        return False
    first, *others = states
    for name, value in dict.items(first):
        found: list[Any] = [dict.get(state, name) for state in others]
        if isinstance(value, tensor.Tensor):
            if not all(isinstance(one, tensor.Tensor) for one in found):
                return False
            if not flat_parameters.are_gathered([value, *found]) or not flat_parameters.are_alike(value, params[0]):
                return False
        elif type(value) not in _NUMBERS or any(type(one) is not type(value) or one != value for one in found):
            return False
    return all(len(state) == len(first) for state in others)


_NUMBERS = (int, float)


def _kind(state: State, parameter: tensor.Tensor) -> object:
    """What a state has in common with those of others; something new for a parameter that must be alone."""
    found: list[Any] = []
    for name, value in dict.items(state):  # As they are: nothing is read anew here.
        if name == "step" and isinstance(value, tensor.Tensor):
            found.append((name, id(value)))
        elif isinstance(value, tensor.Tensor):
            if not flat_parameters.are_alike(value, parameter):
                return object()
            found.append((name, None))
        elif isinstance(value, int | float | None):
            found.append((name, value))
        else:
            return object()
    return tuple(found)


def zeros_like(parameter: tensor.Tensor) -> tensor.Tensor:
    """Zeros that have their buffer at once, so that the step that makes them is the program of all later ones."""
    device = parameter._storage.device
    made: tensor.Tensor = tensor.Tensor._new(from_data.zeros(parameter.dtype, tuple(parameter.shape), device), device)
    return made


def decayed(parameter: tensor.Tensor, gradient: tensor.Tensor, weight_decay: Rate) -> tensor.Tensor:
    """The gradient of the loss plus weight_decay / 2 * |parameter|^2."""
    if not isinstance(weight_decay, tensor.Tensor) and weight_decay == 0:
        return gradient
    found: tensor.Tensor = gradient + parameter * weight_decay
    return found


def debiasing(beta: float, step: int | tensor.Tensor) -> Any:
    """1 - beta^step, of a count on a device with the digits that float32 has."""
    if isinstance(step, tensor.Tensor):
        return -(step * log(beta)).expm1() if beta > 0 else 1.0
    return 1 - beta**step


def require_not_negative(**options: Rate) -> None:
    """Raises ValueError for the first option below zero or NaN. A tensor is not read back, so it is not checked."""
    titles = {"lr": "learning rate", "eps": "epsilon value"}
    for name, value in options.items():
        if not isinstance(value, tensor.Tensor) and not value >= 0.0:
            raise ValueError(f"Invalid {titles.get(name, name + ' value')}: {value}")


def _submit(params: Iterable[tensor.Tensor]) -> None:
    """Starts the recorded work of the devices that hold `params`, without waiting for it."""
    for device in {parameter._storage.device: None for parameter in params}:
        executor.submit(device)
