"""Calls of modules that have hooks, and hooks of every module; imported when the first one is registered."""

from __future__ import annotations

import warnings
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from pywebgpu.autodiff import grad_mode
from pywebgpu.ir.graph import Custom, Node
from pywebgpu.nn import module as owner
from pywebgpu.nn import tree
from pywebgpu.ops import pointwise
from pywebgpu.tensor import history
from pywebgpu.tensor.grad_accumulator import RemovableHandle
from pywebgpu.tensor.tensor import Tensor

if TYPE_CHECKING:
    from pywebgpu.nn.module import Module

Hook = Callable[..., Any]
BOTH = "Cannot use both regular backward hooks and full backward hooks on a single Module. Please use only one of them."


def all_of(module: Module, kind: str) -> list[Any]:
    """The hooks of one kind: those of every module, then the module's own."""
    hooks = [*owner.hooks_everywhere().get(kind, {}).values(), *module._hooks_of_kind(f"_{kind}")]
    return [_entry(hook, PLAIN[kind]) for hook in hooks] if kind in PLAIN else hooks


# What is known of a hook that was registered alone, as most are: it takes no keywords, and does not run after errors.
PLAIN = {"forward_pre_hooks": (False,), "forward_hooks": (False, False)}


def _entry(hook: Any, marks: tuple[bool, ...]) -> tuple[Any, ...]:
    return hook if type(hook) is tuple else (hook, *marks)


def call(module: Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> object:
    """The module's forward between its hooks."""
    ran: set[int] = set()
    try:
        args, kwargs = _before(module, args, kwargs)
        watch = _Watch.of(module)
        if watch is not None:
            args = watch.inputs(args)
        result = module._slow_forward(args, kwargs)
        for entry in all_of(module, "forward_hooks"):
            ran.add(id(entry[0]))
            changed = _after(entry, module, args, kwargs, result)
            result = result if changed is None else changed
        if watch is not None:
            result = watch.outputs(result)
    except Exception:
        for entry in all_of(module, "forward_hooks"):
            if entry[2] and id(entry[0]) not in ran:
                try:
                    _after(entry, module, args, kwargs, None)
                except Exception as error:
                    warnings.warn(SILENCED.format(error), stacklevel=2)
        raise
    _older(module, args, result)
    return result


SILENCED = (
    "module forward hook with ``always_call=True`` raised an exception that was silenced as another error was raised "
    "in forward: {}"
)


def _before(module: Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    for hook, with_kwargs in all_of(module, "forward_pre_hooks"):
        changed = hook(module, args, kwargs) if with_kwargs else hook(module, args)
        if changed is None:
            continue
        if not with_kwargs:
            args = changed if isinstance(changed, tuple) else (changed,)
        elif isinstance(changed, tuple) and len(changed) == 2:
            args, kwargs = changed
        else:
            raise RuntimeError(
                f"forward pre-hook must return None or a tuple of (new_args, new_kwargs), but got {changed}."
            )
    return args, kwargs


def _after(
    entry: tuple[Hook, bool, bool], module: Module, args: tuple[Any, ...], kwargs: dict[str, Any], result: object
) -> object:
    hook, with_kwargs, _ = entry
    return hook(module, args, kwargs, result) if with_kwargs else hook(module, args, result)


def _older(module: Module, args: tuple[Any, ...], result: object) -> None:
    """Hooks of older programs see the gradients of the last function of the call."""
    hooks = [hook for hook, full in all_of(module, "backward_hooks") if not full]
    if hooks and (fault := _misread(args, result)):
        warnings.warn(
            f"Using {fault} is deprecated and will be removed in future versions. This hook will be missing some "
            "grad_input or grad_output. Please use register_full_backward_hook to get the documented behavior.",
            FutureWarning,
            stacklevel=2,
        )
    output: Any = result
    while hooks and not isinstance(output, Tensor):
        parts = output.values() if isinstance(output, dict) else output[:1]
        output = next(part for part in parts if isinstance(part, Tensor) or not isinstance(output, dict))
    if not hooks or output.grad_fn is None:
        return
    for hook in hooks:
        output.grad_fn.register_hook(lambda grad_input, grad_output, hook=hook: hook(module, grad_input, grad_output))


def _misread(args: tuple[Any, ...], result: object) -> str:
    """Why the last function does not see all gradients of a call; "" where it does."""
    start = "non-full backward hooks on a Module that does not"
    outputs: Any = result if isinstance(result, tuple) else (result,)
    if not all(isinstance(output, Tensor) for output in outputs):
        return f"{start} return a single Tensor or a tuple of Tensors"
    if not all(isinstance(value, Tensor) for value in args):
        return f"{start} take as input a single Tensor or a tuple of Tensors"
    functions = {output.grad_fn for output in outputs} - {None}
    if len(functions) > 1:
        return "a non-full backward hook when outputs are generated by different autograd Nodes"
    sources = {value.grad_fn for value in args} - {None}
    if any({source for source, _ in function.next_functions} != sources for function in functions):
        return "a non-full backward hook when the forward contains multiple autograd Nodes"
    return ""


MARKS = {  # PyTorch's names for which of a module's hooks have a mark: the hooks, and where their entries have it
    "_forward_pre_hooks_with_kwargs": ("_forward_pre_hooks", 1),
    "_forward_hooks_with_kwargs": ("_forward_hooks", 1),
    "_forward_hooks_always_called": ("_forward_hooks", 2),
}


def marked(module: Any, name: str) -> OrderedDict[int, bool]:
    """The numbers of a module's hooks that have a mark."""
    kind, place = MARKS[name]
    hooks = module.__dict__.get(kind, {})
    return OrderedDict((number, True) for number, entry in hooks.items() if type(entry) is tuple and entry[place])


# Gradients


class _Watch:
    """One call's inputs and outputs: each pass through one function, whose gradients backward hooks see together."""

    def __init__(self, module: Module, hooks: Sequence[Hook], before: Sequence[Hook]) -> None:
        self._module, self._hooks, self._before = module, hooks, before
        self._given: tuple[Any, ...] | None = None  # the gradients of the outputs, until those of the inputs are there
        self._n_inputs = 0
        self._reaches_inputs = False

    @classmethod
    def of(cls, module: Module) -> _Watch | None:
        hooks = [hook for hook, full in all_of(module, "backward_hooks") if full]
        before = all_of(module, "backward_pre_hooks")
        return cls(module, hooks, before) if hooks or before else None

    def inputs(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        self._n_inputs = len(args)
        passed = _Passage.through(args, self._arrived)
        self._reaches_inputs = passed is not None
        return args if passed is None else tuple(passed)

    def outputs(self, result: object) -> object:
        if not isinstance(result, Tensor | tuple):
            warnings.warn(
                "For backward hooks to be called, module output should be a Tensor or a tuple of Tensors but received "
                f"{type(result)}",
                stacklevel=2,
            )
        outputs_ = result if isinstance(result, tuple) else (result,)
        passed = _Passage.through(outputs_, self._left)
        if passed is None:
            return result
        if not isinstance(result, tuple):
            return passed[0]
        return type(result)(*passed) if hasattr(result, "_fields") else tuple(passed)

    def _left(self, grads: tuple[Any, ...]) -> tuple[Any, ...]:
        for hook in self._before:
            changed = hook(self._module, grads)
            if changed is None:
                continue
            changed = (changed,) if isinstance(changed, Tensor) else changed
            if len(changed) != len(grads):
                raise RuntimeError(
                    "Backward pre hook returned an invalid number of grad_output, got "
                    f"{len(changed)}, but expected {len(grads)}"
                )
            grads = changed
        self._given = grads
        if not self._reaches_inputs:
            self._without_inputs()
        return grads

    def _without_inputs(self) -> None:
        """No input wants a gradient: hooks run when those of the outputs are there, and can change nothing."""
        for hook in self._hooks:
            replaced = hook(self._module, (None,) * self._n_inputs, self._given)
            if replaced is not None and not (isinstance(replaced, tuple) and all(grad is None for grad in replaced)):
                raise RuntimeError(
                    "Backward hook for Modules where no input requires gradient should always return None or None for "
                    "all gradients."
                )
        self._given = None

    def _arrived(self, grads: tuple[Any, ...]) -> tuple[Any, ...]:
        if self._given is None:
            return grads  # It came past the outputs, as a second derivative does.
        for hook in self._hooks:
            changed = hook(self._module, grads, self._given)
            if changed is None:
                continue
            changed = (changed,) if isinstance(changed, Tensor) else changed
            if len(changed) != len(grads):
                raise RuntimeError(
                    f"Backward hook returned an invalid number of grad_input, got {len(changed)}, but expected "
                    f"{len(grads)}"
                )
            grads = changed
        self._given = None
        return grads


_op = Custom("BackwardHookFunctionBackward")


class _Passage:
    """A function that passes values on, and whose gradients somebody sees, and may change."""

    def __init__(self, values: Sequence[Any], seen: Callable[[tuple[Any, ...]], tuple[Any, ...]]) -> None:
        self._seen, self._count = seen, len(values)
        self._places = [
            index for index, value in enumerate(values) if isinstance(value, Tensor) and value.requires_grad
        ]
        self._specs = [values[index]._node.spec for index in self._places]
        self._wrap = [values[index]._wrap() for index in self._places]

    @classmethod
    def through(cls, values: Sequence[Any], seen: Callable[[tuple[Any, ...]], tuple[Any, ...]]) -> list[Any] | None:
        """The values with the function behind those that want a gradient; None where none does."""
        passage = cls(values, seen)
        if not passage._places or not grad_mode.is_grad_enabled():
            return None
        sources = [values[index]._node for index in passage._places]
        passed = list(values)
        for number, (index, source) in enumerate(zip(passage._places, sources, strict=True)):
            node = _op(history.cut(source), *sources, call=passage, index=number, outputs=len(sources))
            passed[index] = Tensor._new(node, values[index]._storage.device)
        return passed

    def backward(self, grads: list[Node | None]) -> Sequence[Node | None]:
        grads_of_inputs: list[Any] = [None] * self._count
        for index, grad, wrap in zip(self._places, grads, self._wrap, strict=True):
            grads_of_inputs[index] = None if grad is None else wrap(grad)
        replaced = self._seen(tuple(grads_of_inputs))
        parts = [replaced[index] for index in self._places]
        return [
            pointwise.full(0, spec) if part is None else part._node
            for part, spec in zip(parts, self._specs, strict=True)
        ]

    def release(self) -> None:
        """Nothing was saved."""


# Hooks of every module


def _everywhere(kind: str, entry: object) -> RemovableHandle:
    return RemovableHandle(owner.hooks_everywhere().setdefault(kind, OrderedDict()), entry)  # type: ignore[arg-type]  # It only keeps it.


def register_module_forward_pre_hook(hook: Hook) -> RemovableHandle:
    """hook(module, args) before each call of any module; what it returns, if not None, replaces the arguments."""
    return _everywhere("forward_pre_hooks", hook)


def register_module_forward_hook(
    hook: Hook, *, with_kwargs: bool = False, always_call: bool = False
) -> RemovableHandle:
    """hook(module, args, output) after each call of any module; what it returns, if not None, replaces the output."""
    return _everywhere("forward_hooks", (hook, with_kwargs, always_call) if with_kwargs or always_call else hook)


def register_module_full_backward_pre_hook(hook: Hook) -> RemovableHandle:
    """hook(module, grad_output) of any module; see Module.register_full_backward_pre_hook."""
    return _everywhere("backward_pre_hooks", hook)


def register_module_full_backward_hook(hook: Hook) -> RemovableHandle:
    """hook(module, grad_input, grad_output) of any module; see Module.register_full_backward_hook."""
    return _backward(hook, full=True)


def register_module_backward_hook(hook: Hook) -> RemovableHandle:
    """As older programs have it: the gradients of the last function of the call."""
    return _backward(hook, full=False)


def _backward(hook: Hook, *, full: bool) -> RemovableHandle:
    require_one_kind(owner.hooks_everywhere().get("backward_hooks", {}), full=full)
    return _everywhere("backward_hooks", (hook, full))


def require_one_kind(known: dict[int, Any], *, full: bool) -> None:
    """Raises RuntimeError where backward hooks of the other kind are there."""
    if any(other is not full for _, other in known.values()):
        raise RuntimeError(BOTH)


def register_module_module_registration_hook(hook: Hook) -> RemovableHandle:
    """hook(module, name, child) when any module gets a child; what it returns, if not None, replaces it."""
    return RemovableHandle(tree.registering.setdefault("module", {}), hook)


def register_module_parameter_registration_hook(hook: Hook) -> RemovableHandle:
    """As register_module_module_registration_hook, of parameters."""
    return RemovableHandle(tree.registering.setdefault("parameter", {}), hook)


def register_module_buffer_registration_hook(hook: Hook) -> RemovableHandle:
    """As register_module_module_registration_hook, of buffers."""
    return RemovableHandle(tree.registering.setdefault("buffer", {}), hook)
