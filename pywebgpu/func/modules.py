"""Modules as functions: called with other parameters, stacked into ensembles."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from pywebgpu.nn import Module
from pywebgpu.nn.utils._named_member_accessor import MISSING, swap_tensor
from pywebgpu.tensor import functions
from pywebgpu.tensor.base import TensorBase

if TYPE_CHECKING:
    from pywebgpu.tensor.tensor import Tensor

Named = dict[str, Any]


def functional_call(
    module: Module,
    parameter_and_buffer_dicts: Named | Sequence[Named],
    args: object = None,
    kwargs: Named | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> object:
    """module(*args, **kwargs) with tensors in place of some parameters, buffers and other tensors, by name.

    What the call assigns in their place is in the dict afterwards. tie_weights: a tensor that the module has under two
    names is replaced under both. strict: the names are those of all parameters and buffers.
    Raises ValueError for what is no dict, or two values of one tensor; RuntimeError for names where that is strict;
    AttributeError for a submodule that is not there; TypeError for what is no tensor.
    """
    replaced = _one_dict(parameter_and_buffer_dicts)
    if type(module).__name__ == "DataParallel":
        raise RuntimeError("The stateless API can't be used with nn.DataParallel module")
    arguments = args if isinstance(args, tuple) else () if args is None else (args,)
    with reparametrize_module(module, replaced, tie_weights=tie_weights, strict=strict):
        return module(*arguments, **(kwargs or {}))


def _one_dict(dicts: Any) -> Named:
    if isinstance(dicts, dict):
        return dicts
    if not isinstance(dicts, Sequence):
        raise ValueError(
            f"Expected parameter_and_buffer_dicts to be a dict, or a list/tuple of dicts, but got {type(dicts)}"
        )
    if not all(isinstance(values, dict) for values in dicts):
        raise ValueError("Expected all elements of parameter_and_buffer_dicts to be dictionaries")
    counts = Counter(name for values in dicts for name in values)
    repeated = [name for name, count in counts.items() if count > 1]
    if repeated:
        raise ValueError(f"{repeated} appeared in multiple dictionaries; behavior of functional call is ambiguous")
    return {name: value for values in dicts for name, value in values.items()}


@contextmanager
def reparametrize_module(
    module: Module,
    parameters_and_buffers: Named,
    tie_weights: bool = False,
    strict: bool = False,
    stack_weights: bool = False,
) -> Iterator[None]:
    """Inside the block a module has other tensors in place of some, by name. See functional_call."""
    by_name = _with_tied(module, parameters_and_buffers) if tie_weights else parameters_and_buffers
    if strict:
        _check_names(module, by_name)
    before: Named = {}
    try:
        for name, value in by_name.items():
            before[name] = _swap(module, name, value)
        yield
    finally:
        after = {name: _swap(module, name, value) for name, value in reversed(before.items())}
        changed = {name: after[name] for name in parameters_and_buffers if after.get(name, MISSING) is not MISSING}
        parameters_and_buffers.update(changed)


def _all_tensors(module: Module) -> Named:
    """Its parameters and buffers, shared ones by each of their names."""
    parameters = module.named_parameters(remove_duplicate=False)
    return dict(parameters) | dict(module.named_buffers(remove_duplicate=False))


def _with_tied(module: Module, replaced: Named) -> Named:
    """The values by all names of the tensors that they replace."""
    names_of: dict[int, list[str]] = {}
    for name, tensor in _all_tensors(module).items():
        names_of.setdefault(id(tensor), []).append(name)
    untied = dict(replaced)
    for names in names_of.values():
        replaced_names = [name for name in names if name in replaced]
        if len({id(replaced[name]) for name in replaced_names}) > 1:
            raise ValueError(
                f"functional_call got multiple values for keys {sorted(names)}, which are tied. Consider using "
                f"tie_weights=False"
            )
        if replaced_names:
            untied |= dict.fromkeys(names, replaced[replaced_names[0]])
    return untied


def _check_names(module: Module, replaced: Named) -> None:
    known, passed = set(_all_tensors(module)), set(replaced)
    texts = [
        f"{title} key(s): {', '.join(map(repr, sorted(names)))}."
        for title, names in (("Unexpected", passed - known), ("Missing", known - passed))
        if names
    ]
    if texts:
        raise RuntimeError(f"Error(s) in reparametrizing for {type(module).__name__}:\n\t" + "\n\t".join(texts))


def _swap(module: Module, name: str, tensor: Any) -> Any:
    """Gives a module, or one inside of it, a tensor under a name, or nothing for MISSING; returns what was there."""
    *path, key = name.split(".")
    for part in path:
        inner = getattr(module, part, None)
        if inner is None:
            raise AttributeError(f"{type(module).__name__} has no attribute `{part}`")
        if not isinstance(inner, Module):
            raise TypeError(f"submodule `{name.rpartition('.')[0]}`: {inner} is not an instance of torch.nn.Module")
        module = inner
    if tensor is not MISSING and tensor is not None and not isinstance(tensor, TensorBase):
        raise TypeError(f"{tensor} is not an instance of torch.Tensor")
    if key not in module._parameters and key not in module._buffers:
        value = getattr(module, key, MISSING)
        if value is MISSING is tensor:
            return MISSING
        if value is not MISSING and value is not None and not isinstance(value, TensorBase):
            raise TypeError(f"attribute `{key}`: {value} is not an instance of torch.Tensor")
    return swap_tensor(module, key, tensor, allow_missing=True)


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
        stacks[name] = stacked._require_grad(first.requires_grad)
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
