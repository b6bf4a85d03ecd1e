"""Calls of modules that have hooks, and hooks of every module; imported when the first one is registered."""

from __future__ import annotations

import warnings
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
    return [*owner.everywhere.get(kind, {}).values(), *module._hooks_of_kind(f"_{kind}")]


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
            ran.add(id(entry))
            changed = _after(entry, module, args, kwargs, result)
            result = result if changed is None else changed
        if watch is not None:
            result = watch.outputs(result)
    except Exception:
        for entry in all_of(module, "forward_hooks"):
            if entry[2] and id(entry) not in ran:
                _after(entry, module, args, kwargs, None)
        raise
    _older(module, result)
    return result


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


def _older(module: Module, result: object) -> None:
    """Hooks of older programs see the gradients of the last function of the call."""
    hooks = [hook for hook, full in all_of(module, "backward_hooks") if not full]
    found: Any = result
    while hooks and not isinstance(found, Tensor):
        parts = found.values() if isinstance(found, dict) else found[:1]
        found = next(part for part in parts if isinstance(part, Tensor) or not isinstance(found, dict))
    if not hooks or found.grad_fn is None:
        return
    for hook in hooks:
        found.grad_fn.register_hook(lambda grad_input, grad_output, hook=hook: hook(module, grad_input, grad_output))


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
        given = result if isinstance(result, tuple) else (result,)
        passed = _Passage.through(given, self._left)
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
            found = hook(self._module, (None,) * self._n_inputs, self._given)
            if found is not None and not (isinstance(found, tuple) and all(one is None for one in found)):
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
        self._places = [at for at, value in enumerate(values) if isinstance(value, Tensor) and value.requires_grad]
        self._specs = [values[at]._node.spec for at in self._places]
        self._wrap = [values[at]._wrap() for at in self._places]

    @classmethod
    def through(cls, values: Sequence[Any], seen: Callable[[tuple[Any, ...]], tuple[Any, ...]]) -> list[Any] | None:
        """The values with the function behind those that want a gradient; None where none does."""
        made = cls(values, seen)
        if not made._places or not grad_mode.is_grad_enabled():
            return None
        sources = [values[at]._node for at in made._places]
        passed = list(values)
        for number, (at, source) in enumerate(zip(made._places, sources, strict=True)):
            node = _op(history.cut(source), *sources, call=made, index=number, outputs=len(sources))
            passed[at] = Tensor._new(node, values[at]._storage.device)
        return passed

    def backward(self, grads: list[Node | None]) -> Sequence[Node | None]:
        given: list[Any] = [None] * self._count
        for at, grad, wrap in zip(self._places, grads, self._wrap, strict=True):
            given[at] = None if grad is None else wrap(grad)
        found = self._seen(tuple(given))
        parts = [found[at] for at in self._places]
        return [
            pointwise.full(0, spec) if part is None else part._node
            for part, spec in zip(parts, self._specs, strict=True)
        ]

    def release(self) -> None:
        """Nothing was saved."""


# Hooks of every module


def _everywhere(kind: str, entry: object) -> RemovableHandle:
    return RemovableHandle(owner.everywhere.setdefault(kind, {}), entry)  # type: ignore[arg-type]  # It only keeps it.


def register_module_forward_pre_hook(hook: Hook) -> RemovableHandle:
    """hook(module, args) before each call of any module; what it returns, if not None, replaces the arguments."""
    return _everywhere("forward_pre_hooks", (hook, False))


def register_module_forward_hook(
    hook: Hook, *, with_kwargs: bool = False, always_call: bool = False
) -> RemovableHandle:
    """hook(module, args, output) after each call of any module; what it returns, if not None, replaces the output."""
    return _everywhere("forward_hooks", (hook, with_kwargs, always_call))


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
    require_one_kind(owner.everywhere.get("backward_hooks", {}), full=full)
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
