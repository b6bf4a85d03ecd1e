"""Modules as functions: called with other parameters, stacked into ensembles."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from pywebgpu.nn import Module
from pywebgpu.tensor import functions

if TYPE_CHECKING:
    from pywebgpu.tensor.tensor import Tensor

Named = dict[str, Any]


def functional_call(
    module: Module,
    parameter_and_buffer_dicts: Mapping[str, Tensor] | Sequence[Mapping[str, Tensor]],
    args: object = None,
    kwargs: Named | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> object:
    """module(*args, **kwargs) with tensors in place of some parameters and buffers, by name."""
    dicts: Any = parameter_and_buffer_dicts
    replaced: Named = {}
    for values in [dicts] if isinstance(dicts, Mapping) else dicts:
        if repeated := [name for name in values if name in replaced]:
            raise ValueError(f"{repeated} appeared in multiple dictionaries; behavior of functional call is ambiguous")
        replaced.update(values)
    replaced = _known(module, replaced, strict=strict)
    with _swapped(module, replaced, tie_weights=tie_weights):
        return module(*(() if args is None else args if isinstance(args, tuple) else (args,)), **(kwargs or {}))


@contextmanager
def reparametrize_module(
    module: Module, parameters_and_buffers: Named, tie_weights: bool = False, strict: bool = False, **options: Any
) -> Iterator[None]:
    """Inside the block a module has other tensors in place of some parameters and buffers, by name."""
    with _swapped(module, _known(module, parameters_and_buffers, strict=strict), tie_weights=tie_weights):
        yield


def _known(module: Module, replaced: Named, *, strict: bool) -> Named:
    """What the module has of the given tensors; it has, and is given, all of them where that is strict."""
    known = {name for name, _ in _slots(module)}
    if strict and (unknown := sorted(set(replaced) - known)):
        raise RuntimeError(f"Unexpected key(s): {', '.join(unknown)}.")
    if strict and (missing := sorted(known - set(replaced))):
        raise RuntimeError(f"Missing key(s): {', '.join(missing)}.")
    modules = {name for name, _ in module.named_modules(remove_duplicate=False)}
    for name in replaced:
        parent = name.rpartition(".")[0]
        if parent not in modules:
            raise AttributeError(f"{type(module).__name__} has no attribute `{parent}`")
    return {name: value for name, value in replaced.items() if name in known}


def _slots(module: Module) -> Iterator[tuple[str, tuple[Named, str]]]:
    """The name of each parameter and buffer, shared ones by each name, and the dict and key where it lies."""
    for prefix, child in module.named_modules(remove_duplicate=False):
        for holder in (child._parameters, child._buffers):
            for key, value in holder.items():
                if value is not None:
                    yield f"{prefix}.{key}" if prefix else key, (holder, key)


@contextmanager
def _swapped(module: Module, replaced: Named, *, tie_weights: bool) -> Iterator[None]:
    slots = dict(_slots(module))
    before = {name: holder[key] for name, (holder, key) in slots.items()}
    by_name = dict(replaced)
    if tie_weights:
        of = {id(before[name]): value for name, value in replaced.items()}
        by_name |= {name: of[id(value)] for name, value in before.items() if id(value) in of and name not in replaced}
    try:
        for name, value in by_name.items():
            holder, key = slots[name]
            holder[key] = value
        yield
    finally:
        for name, (holder, key) in slots.items():
            if name in by_name and holder[key] is not by_name[name] and name in replaced and isinstance(replaced, dict):
                replaced[name] = holder[key]  # A buffer that the call replaced.
            holder[key] = before[name]


def stack_module_state(models: Sequence[Module]) -> tuple[Named, Named]:
    """The parameters, and the buffers, of modules that are alike, stacked by name."""
    if not models:
        raise RuntimeError("stack_module_state: Expected at least one model, got 0.")
    if len({model.training for model in models}) > 1:
        raise RuntimeError("stack_module_state: Expected all models to have the same training/eval mode.")
    if len({type(model) for model in models}) > 1:
        raise RuntimeError("stack_module_state: Expected all models to be of the same class.")
    return _stacked([dict(model.named_parameters()) for model in models]), _stacked(
        [dict(model.named_buffers()) for model in models]
    )


def _stacked(dicts: Sequence[Named]) -> Named:
    stacks: Named = {}
    for name, first in dicts[0].items():
        if any(values[name].requires_grad is not first.requires_grad for values in dicts):
            raise RuntimeError(f"Expected {name} from each model to have the same .requires_grad")
        stacked = functions.stack([words[name].detach() for words in dicts])
        stacks[name] = stacked.requires_grad_(first.requires_grad)
    return stacks


def replace_all_batch_norm_modules_(root: Module) -> Module:
    """Has batch norms keep no running statistics, which a function may not write."""
    for module in root.modules():
        if hasattr(module, "running_mean") and hasattr(module, "track_running_stats"):
            module.running_mean = module.running_var = module.num_batches_tracked = None
            module.track_running_stats = False
    return root


def functionalize(func: Callable[..., Any], *, remove: str = "mutations") -> Callable[..., Any]:
    """The function itself: a write in place is recorded as a new value here."""
    return func


def debug_unwrap(tensor: Tensor, *, recurse: bool = True) -> Tensor:
    """The tensor itself: there are no wrappers."""
    return tensor
