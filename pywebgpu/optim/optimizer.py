"""Base of all update rules: parameter groups, state by parameter, state dicts in PyTorch's format, hooks.

Two classes, as torch has one: `Optimizer` is what a program subclasses, `UpdateRule` is what the rules of this package
share, which is that every parameter is updated on its own and that step counts are numbers of the host.
"""

import copy
import functools
import itertools
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any

from pywebgpu import devices, realize
from pywebgpu.gradient import modes
from pywebgpu.tensor import anchor, tensor

Rate = float | tensor.Tensor
Loss = tensor.Tensor | float | None
Closure = Callable[[], Loss]
Group = dict[str, Any]  # "params" and the options, by PyTorch's names.
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

    def __init__(self, params: Params, defaults: Group) -> None:
        if isinstance(params, tensor.Tensor):
            raise TypeError(
                "params argument given to the optimizer should be an iterable of Tensors or dicts, but got one Tensor"
            )
        self.defaults = defaults
        self.state: defaultdict[Any, State] = defaultdict(dict)
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
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is None:
                    continue
                if set_to_none:
                    parameter.grad = None
                    continue
                if parameter.grad.grad_fn is not None:
                    parameter.grad = parameter.grad.detach()
                with modes.no_grad():
                    parameter.grad.zero_()

    def add_param_group(self, param_group: Group) -> None:
        """Adds one more group; options that it leaves out are the defaults."""
        if not isinstance(param_group, dict):
            raise TypeError(f"param_group must be a dict, but got {type(param_group)}")
        _unpack_names(param_group)
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
        self.param_groups.append(param_group)

    def state_dict(self) -> dict[str, Any]:
        """{"state": {index: state}, "param_groups": [options and indices]}, as torch's. Tensors are not copied."""
        for hook in list(self._hooks["state_dict_pre"].values()):
            hook(self)
        order = _indices(self.param_groups)
        groups = []
        for group in self.param_groups:
            packed = {name: value for name, value in group.items() if name != "params"}
            packed["params"] = [order[id(parameter)] for parameter in group["params"]]
            groups.append(packed)
        state = {order.get(id(key), key): value for key, value in self.state.items() if value}
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
        parameters = _match(self.param_groups, saved)
        state: defaultdict[Any, State] = defaultdict(dict)
        with modes.no_grad():
            for key, value in state_dict["state"].items():
                parameter = parameters.get(key)
                if parameter is None:
                    state[key] = value
                else:
                    state[parameter] = _restored(parameter, value, self.state.get(parameter, {}))
        for group, new in zip(self.param_groups, saved, strict=True):
            new["params"] = group["params"]
            if "param_names" in group:
                new.setdefault("param_names", group["param_names"])
        groups = [
            {name: value if name == "params" else copy.deepcopy(value) for name, value in new.items()} for new in saved
        ]
        self.__setstate__({"state": state, "param_groups": groups})
        for hook in list(self._hooks["load_state_dict_post"].values()):
            hook(self)

    def register_step_pre_hook(self, hook: Hook) -> anchor.RemovableHandle:
        """`hook(optimizer, args, kwargs)` before each step; it may return other (args, kwargs)."""
        return self._register("step_pre", hook)

    def register_step_post_hook(self, hook: Hook) -> anchor.RemovableHandle:
        """`hook(optimizer, args, kwargs)` after each step."""
        return self._register("step_post", hook)

    def register_state_dict_pre_hook(self, hook: Hook) -> anchor.RemovableHandle:
        return self._register("state_dict_pre", hook)

    def register_state_dict_post_hook(self, hook: Hook) -> anchor.RemovableHandle:
        return self._register("state_dict_post", hook)

    def register_load_state_dict_pre_hook(self, hook: Hook) -> anchor.RemovableHandle:
        return self._register("load_state_dict_pre", hook)

    def register_load_state_dict_post_hook(self, hook: Hook) -> anchor.RemovableHandle:
        return self._register("load_state_dict_post", hook)

    def __getstate__(self) -> dict[str, Any]:
        return {"defaults": self.defaults, "state": self.state, "param_groups": self.param_groups}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        if "_hooks" not in self.__dict__:
            self._make_hooks()

    def __repr__(self) -> str:
        lines = [f"{type(self).__name__} ("]
        for i, group in enumerate(self.param_groups):
            lines.append(f"Parameter Group {i}")
            lines += [f"    {name}: {group[name]}" for name in sorted(group) if name != "params"]
        return "\n".join([*lines, ")"])

    def _run_step(self, step: Callable[..., Loss], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Loss:
        for hook in list(self._hooks["step_pre"].values()):
            changed = hook(self, args, kwargs)
            if changed is not None:
                args, kwargs = changed
        out = step(self, *args, **kwargs)
        self._opt_called = True
        _submit(parameter for group in self.param_groups for parameter in group["params"])
        for hook in list(self._hooks["step_post"].values()):
            hook(self, args, kwargs)
        return out

    def _make_hooks(self) -> None:
        self._hooks: defaultdict[str, dict[int, Hook]] = defaultdict(dict)
        self._opt_called = False

    def _register(self, event: str, hook: Hook) -> anchor.RemovableHandle:
        return anchor.RemovableHandle(self._hooks[event], hook)

    def _check_parameter(self, parameter: object) -> None:
        if not isinstance(parameter, tensor.Tensor):
            raise TypeError(f"optimizer can only optimize Tensors, but one of the params is {type(parameter).__name__}")
        if not (parameter.is_leaf or parameter.retains_grad):
            raise ValueError("can't optimize a non-leaf Tensor")


class UpdateRule(Optimizer):
    """An optimizer that updates each parameter on its own, from its gradient and its state, by `_update`.

    Learning rates, betas and step counts stay numbers of the host, and what depends on them alone (bias corrections)
    is computed there in double precision, so that a step is the same program at every step.
    """

    def __init__(self, params: Params, defaults: Group) -> None:
        if defaults.get("differentiable"):
            raise ValueError(f"{type(self).__name__}: differentiable=True is not supported")
        super().__init__(params, defaults)

    def step(self, closure: Closure | None = None) -> Loss:
        loss: Loss = None
        if closure is not None:
            with modes.enable_grad():
                loss = closure()
        with modes.no_grad():
            for group in self.param_groups:
                for parameter in group["params"]:
                    gradient = parameter.grad
                    if gradient is not None:
                        gradient = -gradient if group["maximize"] else gradient
                        self._update(parameter, gradient, self.state[parameter], group)
        return loss

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Also takes states of torch, where a step count is a tensor, and of older versions, where options lack."""
        super().__setstate__(state)
        for group in self.param_groups:
            for name, default in self.defaults.items():
                group.setdefault(name, default)
        for values in self.state.values():
            if isinstance(values.get("step"), tensor.Tensor):
                values["step"] = int(values["step"].item())

    def _update(self, parameter: tensor.Tensor, gradient: tensor.Tensor, state: State, group: Group) -> None:
        raise NotImplementedError


def decayed(parameter: tensor.Tensor, gradient: tensor.Tensor, weight_decay: Rate) -> tensor.Tensor:
    """The gradient of the loss plus weight_decay / 2 * |parameter|^2."""
    if not isinstance(weight_decay, tensor.Tensor) and weight_decay == 0:
        return gradient
    found: tensor.Tensor = gradient + parameter * weight_decay
    return found


def require_not_negative(**options: Rate) -> None:
    """Raises ValueError for the first option below zero or NaN. A tensor is not read back, so it is not checked."""
    titles = {"lr": "learning rate", "eps": "epsilon value"}
    for name, value in options.items():
        if not isinstance(value, tensor.Tensor) and not value >= 0.0:
            raise ValueError(f"Invalid {titles.get(name, name + ' value')}: {value}")


def _submit(params: Iterable[tensor.Tensor]) -> None:
    """Starts the recorded work of the devices that hold `params`, without waiting for it."""
    for device in {parameter.device for parameter in params}:
        realize.submit(devices.open_device(device))


def _unpack_names(group: Group) -> None:
    """Makes group["params"] a list of tensors; names given as (name, tensor) go to group["param_names"]."""
    params = group["params"]
    if isinstance(params, set | frozenset):
        raise TypeError(
            "optimizer parameters need to be organized in ordered collections, but the ordering of tensors in sets "
            "will change between runs. Please use a list instead."
        )
    params = [params] if isinstance(params, tensor.Tensor) else list(params)
    names = [item[0] for item in params if isinstance(item, tuple)]
    if names and len(names) != len(params):
        raise ValueError("all optimizer params should be with/without names. Some param names are missing")
    if names:
        group["param_names"] = names
    group["params"] = [item[1] for item in params] if names else params


def _indices(groups: list[Group]) -> dict[int, int]:
    """The id of each parameter -> its position, counted through all groups."""
    order: dict[int, int] = {}
    for i, parameter in enumerate(itertools.chain.from_iterable(group["params"] for group in groups)):
        order.setdefault(id(parameter), i)
    return order


def _match(groups: list[Group], saved: list[Group]) -> dict[Any, tensor.Tensor]:
    """The saved indices -> the parameters at the same places."""
    if len(groups) != len(saved):
        raise ValueError("loaded state dict has a different number of parameter groups")
    out: dict[Any, tensor.Tensor] = {}
    for group, new in zip(groups, saved, strict=True):
        if len(group["params"]) != len(new["params"]):
            raise ValueError(
                "loaded state dict contains a parameter group that doesn't match the size of optimizer's group"
            )
        out.update(zip(new["params"], group["params"], strict=True))
    return out


def _restored(parameter: tensor.Tensor, value: Any, old: Any, key: str = "") -> Any:
    """A saved value with its tensors where and how `parameter` needs them."""
    if isinstance(value, tensor.Tensor):
        if key == "step":
            return value.clone()
        if isinstance(old, tensor.Tensor) and old.shape == value.shape:
            return old.copy_(value)
        dtype = parameter.dtype if parameter.is_floating_point() else value.dtype
        return value.to(device=parameter.device, dtype=dtype, copy=True)
    if isinstance(value, dict):
        known = old if isinstance(old, dict) else {}
        return {k: _restored(parameter, v, known.get(k), str(k)) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(_restored(parameter, v, None) for v in value)
    return value
