"""Modules as functions of their parameters, as functorch had them before torch.func.functional_call."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

from pywebgpu.nn.module import Module
from pywebgpu.support.lazy import absent
from pywebgpu.tensor import functions
from pywebgpu.tensor.tensor import Tensor

__getattr__ = absent(__name__)
Tensors = tuple[Tensor, ...]


class FunctionalModuleWithBuffers(Module):
    """A module as a function of (parameters, buffers, *arguments)."""

    def __init__(self, stateless_model: Module, param_names: Sequence[str], buffer_names: Sequence[str]) -> None:
        super().__init__()
        self.stateless_model = stateless_model
        self.param_names, self.buffer_names = tuple(param_names), tuple(buffer_names)

    @classmethod
    def _create_from(
        cls, model: Module, disable_autograd_tracking: bool = False
    ) -> tuple[FunctionalModuleWithBuffers, Tensors, Tensors]:
        stateless = copy.deepcopy(model)
        params, buffers = dict(stateless.named_parameters()), dict(stateless.named_buffers())
        if disable_autograd_tracking:
            for tensor in params.values():
                tensor.requires_grad_(False)
        return cls(stateless, tuple(params), tuple(buffers)), tuple(params.values()), tuple(buffers.values())

    def forward(self, params: Sequence[Tensor], buffers: Sequence[Tensor], *args: Any, **kwargs: Any) -> Any:
        """The module's result."""
        named = dict(zip(self.param_names, params, strict=True)) | dict(zip(self.buffer_names, buffers, strict=True))
        return import_module("pywebgpu.func").functional_call(self.stateless_model, named, args, kwargs)


class FunctionalModule(Module):
    """A module as a function of (parameters, *arguments)."""

    def __init__(self, stateless_model: Module, param_names: Sequence[str]) -> None:
        super().__init__()
        self.stateless_model, self.param_names = stateless_model, tuple(param_names)

    @classmethod
    def _create_from(cls, model: Module, disable_autograd_tracking: bool = False) -> tuple[FunctionalModule, Tensors]:
        module, params, _ = FunctionalModuleWithBuffers._create_from(model, disable_autograd_tracking)
        return cls(module.stateless_model, module.param_names), params

    def forward(self, params: Sequence[Tensor], *args: Any, **kwargs: Any) -> Any:
        """The module's result."""
        named = dict(zip(self.param_names, params, strict=True))
        return import_module("pywebgpu.func").functional_call(self.stateless_model, named, args, kwargs)


def make_functional(model: Module, disable_autograd_tracking: bool = False) -> tuple[FunctionalModule, Tensors]:
    """The module as a function, and copies of its parameters. Raises RuntimeError for a module with buffers."""
    if any(True for _ in model.buffers()):
        raise RuntimeError(
            "make_functional(model): `model` has buffers. Please use make_functional_with_buffers(model) instead."
        )
    return FunctionalModule._create_from(model, disable_autograd_tracking)


def make_functional_with_buffers(
    model: Module, disable_autograd_tracking: bool = False
) -> tuple[FunctionalModuleWithBuffers, Tensors, Tensors]:
    """The module as a function, and copies of its parameters and buffers."""
    return FunctionalModuleWithBuffers._create_from(model, disable_autograd_tracking)


def combine_state_for_ensemble(models: Sequence[Module]) -> tuple[FunctionalModuleWithBuffers, Tensors, Tensors]:
    """The first module as a function, and the parameters and buffers of all, stacked."""
    if not models:
        raise RuntimeError("combine_state_for_ensemble: Expected at least one model, got 0.")
    if len({model.training for model in models}) > 1:
        raise RuntimeError("combine_state_for_ensemble: Expected all models to have the same training/eval mode.")
    if len({type(model) for model in models}) > 1:
        raise RuntimeError("combine_state_for_ensemble: Expected all models to be of the same class.")
    parts = [make_functional_with_buffers(model) for model in models]
    modules, params, buffers = zip(*parts, strict=True)
    return modules[0], _stacked(params), _stacked(buffers)


def _stacked(states: Sequence[Tensors]) -> Tensors:
    return tuple(functions.stack(column).detach() for column in zip(*states, strict=True))


def functional_init(
    model_class: type[Module], ensemble_shape: Sequence[int] = (), device: Any = "cpu"
) -> Callable[..., tuple[Tensors, Callable[..., Any], tuple[str, ...]]]:
    """A function of the class's arguments: (weights of an ensemble, function of weights and data, their names)."""
    initialize = functional_init_with_buffers(model_class, ensemble_shape, device)

    def wrapped(*args: Any, **kwargs: Any) -> tuple[Tensors, Callable[..., Any], tuple[str, ...]]:
        weights, _, function, names, _ = initialize(*args, **kwargs)
        return weights, lambda weights, data: function(weights, (), data), names

    return wrapped


def functional_init_with_buffers(
    model_class: type[Module], ensemble_shape: Sequence[int] = (), device: Any = "cpu"
) -> Callable[..., tuple[Tensors, Tensors, Callable[..., Any], tuple[str, ...], tuple[str, ...]]]:
    """As functional_init, with buffers behind the weights, and their names behind the names."""
    if len(ensemble_shape) > 1:
        raise ValueError("NYI: ensemble_shape with more than 1 element")

    def wrapped(
        *args: Any, **kwargs: Any
    ) -> tuple[Tensors, Tensors, Callable[..., Any], tuple[str, ...], tuple[str, ...]]:
        count = ensemble_shape[0] if ensemble_shape else 1
        if count <= 0:
            raise ValueError(f"num_models {count} should be > 0")
        models = [model_class(*args, **kwargs).to(device) for _ in range(count)]
        module, weights, buffers = make_functional_with_buffers(models[0])
        if ensemble_shape:
            module, weights, buffers = combine_state_for_ensemble(models)

        def function(weights: Tensors, buffers: Tensors, data: Sequence[Any]) -> Any:
            return module(weights, buffers, *data)

        return weights, buffers, function, module.param_names, module.buffer_names

    return wrapped
