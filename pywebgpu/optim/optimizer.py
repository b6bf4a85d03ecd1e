"""Base of all optimizers: parameter groups, state by parameter, state dicts in PyTorch's format, hooks.

It is what a program subclasses. What the rules of this package share besides stands in update_rule.py.
"""

import copy
import functools
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any

from pywebgpu.autodiff import grad_mode
from pywebgpu.ir.graph import thread_state
from pywebgpu.ir.observer import changed, share
from pywebgpu.optim import grouping, numbers
from pywebgpu.runtime import executor
from pywebgpu.tensor import grad_accumulator, methods, tensor

Rate = float | tensor.Tensor
Loss = tensor.Tensor | float | None
Closure = Callable[[], Loss]
Group = grouping.Group
State = dict[str, Any]  # Tensors and numbers of the host, by PyTorch's names.
Params = Iterable[tensor.Tensor] | Iterable[tuple[str, tensor.Tensor]] | Iterable[Group]
Hook = Callable[..., Any]
ParamsT = Params
everywhere: dict[str, dict[int, Hook]] = share("hooks of every optimizer", {"step_pre": {}, "step_post": {}})


class _RequiredParameter:
    """Stands in `defaults` for an option that every group says itself."""

    def __repr__(self) -> str:
        return "<required parameter>"


required = _RequiredParameter()


def register_optimizer_step_pre_hook(hook: Hook) -> grad_accumulator.RemovableHandle:
    """`hook(optimizer, args, kwargs)` before each step of every optimizer."""
    return grad_accumulator.RemovableHandle(everywhere["step_pre"], hook)


def register_optimizer_step_post_hook(hook: Hook) -> grad_accumulator.RemovableHandle:
    """`hook(optimizer, args, kwargs)` after each step of every optimizer."""
    return grad_accumulator.RemovableHandle(everywhere["step_post"], hook)


class Optimizer:
    """Parameters in groups, each with its options, and what a rule remembers of each parameter.

    `state` maps a parameter to a dict; `param_groups` holds one dict a group: "params" and the options. A subclass
    calls `super().__init__(params, defaults)` and gives `step`; whatever `step` recorded is submitted when it returns.

    Raises: TypeError when `params` is one tensor or holds something else than tensors; ValueError when it is empty,
    when a parameter is not a leaf or stands in two groups, or a group lacks an option that is `required`.
    """

    _begins_states = False  # a step makes the states as they are before the first one
    _takes_complex = False
    _opt_called = False  # whether a step was taken, which schedules ask
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
        listed: list[Any] = list(params)
        if not listed:
            raise ValueError("optimizer got an empty parameter list")
        groups: list[Group] = listed if isinstance(listed[0], dict) else [{"params": listed}]
        for group in groups:
            self.add_param_group(group)

    def __init_subclass__(cls, **options: Any) -> None:
        """Every `step`, a program's own too, runs the hooks and submits its work."""
        super().__init_subclass__(**options)
        own = cls.__dict__.get("step")
        if own is not None:

            @functools.wraps(own)
            def step(self: Optimizer, *args: Any, **kwargs: Any) -> Loss:
                if "_hooks" not in self.__dict__:  # One around another optimizer, which never called this __init__.
                    self._opt_called = True
                    return own(self, *args, **kwargs)  # type: ignore[no-any-return]
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
                    if parameter._grad is not None or thread_state.observer is not None:
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
            if default is required and name not in param_group:
                raise ValueError(f"parameter group didn't specify a value of required optimization parameter {name}")
            param_group.setdefault(name, default)
        known = {id(parameter) for parameter in param_group["params"]}
        if len(known) != len(param_group["params"]):
            warnings.warn("optimizer contains a parameter group with duplicate parameters", stacklevel=3)
        for group in self.param_groups:
            if ("param_names" in group) != ("param_names" in param_group):
                raise ValueError(
                    "all optimizer param groups should be with/without names. cannot add param group "
                    f"{'with' if 'param_names' in param_group else 'without'} names to the optimizer"
                )
            if any(id(parameter) in known for parameter in group["params"]):
                raise ValueError("some parameters appear in more than one parameter group")
        self.param_groups.append(self._group(param_group))
        changed()

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

    def register_state_dict_pre_hook(self, hook: Hook, prepend: bool = False) -> grad_accumulator.RemovableHandle:
        return self._register("state_dict_pre", hook, prepend=prepend)

    def register_state_dict_post_hook(self, hook: Hook, prepend: bool = False) -> grad_accumulator.RemovableHandle:
        return self._register("state_dict_post", hook, prepend=prepend)

    def register_load_state_dict_pre_hook(self, hook: Hook, prepend: bool = False) -> grad_accumulator.RemovableHandle:
        return self._register("load_state_dict_pre", hook, prepend=prepend)

    def register_load_state_dict_post_hook(self, hook: Hook, prepend: bool = False) -> grad_accumulator.RemovableHandle:
        return self._register("load_state_dict_post", hook, prepend=prepend)

    def __getstate__(self) -> dict[str, Any]:
        return {"defaults": self.defaults, "state": self.state, "param_groups": self.param_groups}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.param_groups = [self._group(group) for group in self.param_groups]
        kept = {key: numbers.Counts(value) if type(value) is dict else value for key, value in self.state.items()}
        self.state = numbers.States(kept)
        changed()
        if "_hooks" not in self.__dict__:
            self._make_hooks()

    def __repr__(self) -> str:
        lines = [f"{type(self).__name__} ("]
        for i, group in enumerate(self.param_groups):
            lines.append(f"Parameter Group {i}")
            lines += [f"    {name}: {group[name]}" for name in sorted(group) if name != "params"]
        return "\n".join([*lines, ")"])

    _repr_html_ = methods.later("pywebgpu.display.modules", "optimizer_html")

    def _run_step(self, step: Callable[..., Loss], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Loss:
        numbers.watch(self)
        if not self._begins_states:
            numbers.watch_states(self)
        for hook in self._hooks_of("step_pre"):
            changed = hook(self, args, kwargs)
            if changed is not None:
                args, kwargs = changed
        with thread_state.span("optimizer", type(self).__name__):
            out = step(self, *args, **kwargs)
        numbers.watch_states(self)
        self._opt_called = True
        submit(parameter for group in self.param_groups for parameter in group["params"])
        for hook in self._hooks_of("step_post"):
            hook(self, args, kwargs)
        return out

    def _hooks_of(self, event: str) -> list[Hook]:
        """The hooks of a step: its own lie between those before and after all steps."""
        own, shared = self._hooks[event].values(), everywhere[event].values()
        return [*shared, *own] if event == "step_pre" else [*own, *shared]

    def _patch_step_function(self) -> None:
        """What makes steps run hooks in PyTorch, which libraries call where they skip `__init__`."""
        if "_hooks" not in self.__dict__:
            self._make_hooks()

    def _make_hooks(self) -> None:
        self._hooks: defaultdict[str, dict[int, Hook]] = defaultdict(dict)

    def _register(self, event: str, hook: Hook, *, prepend: bool = False) -> grad_accumulator.RemovableHandle:
        hooks = self._hooks[event]
        handle = grad_accumulator.RemovableHandle(hooks, hook)
        for key in [*hooks][: -1 if prepend else 0]:
            hooks[key] = hooks.pop(key)
        return handle

    def _check_parameter(self, parameter: object) -> None:
        if not isinstance(parameter, tensor.Tensor):
            raise TypeError(f"optimizer can only optimize Tensors, but one of the params is {type(parameter).__name__}")
        if not (self.defaults.get("differentiable") or parameter.is_leaf or parameter.retains_grad):
            raise ValueError("can't optimize a non-leaf Tensor")
        if parameter.is_complex() and not self._takes_complex:
            raise NotImplementedError(
                f"{type(self).__name__} does not support complex parameters: keep view_as_real of them"
            )


def _copied(value: Any, old: object) -> Any:
    """An option, on the device where it is now."""
    copied = copy.deepcopy(value)
    if isinstance(copied, tensor.Tensor) and isinstance(old, tensor.Tensor):
        return copied.to(old.device)
    return copied


def _plain(state: State) -> State:
    """A state as a program gets it: its counts are tensors."""
    if isinstance(state, numbers.RuleCounts):
        return {name: state.shown(name, value) for name, value in state.items()}
    return dict(state) if isinstance(state, numbers.Options) else state


def submit(params: Iterable[tensor.Tensor]) -> None:
    """Starts the recorded work of the devices that hold `params`, without waiting for it."""
    for device in {parameter._storage.device: None for parameter in params}:
        executor.submit(device)
