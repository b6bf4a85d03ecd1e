"""Averages of a model's parameters over its training: of equal weight, or that forget."""

import copy
import itertools
from collections.abc import Callable, Iterable
from typing import Any

from pywebgpu import dtypes
from pywebgpu.autodiff import grad_mode
from pywebgpu.ir import observer
from pywebgpu.nn import channel_norm, module
from pywebgpu.optim.lr_scheduler.cyclic import SWALR as SWALR
from pywebgpu.tensor import create, flat_parameters, tensor
from pywebgpu.tensor.factory_options import DeviceLike

Average = Callable[[tensor.Tensor, tensor.Tensor, Any], tensor.Tensor]
MultiAverage = Callable[[list[tensor.Tensor], list[tensor.Tensor], Any], None]


def get_ema_avg_fn(decay: float = 0.999) -> Average:
    """average * decay + value * (1 - decay)."""
    if not 0.0 <= decay <= 1.0:
        raise ValueError(f"Invalid decay value {decay} provided. Please provide a value in [0,1] range.")
    return grad_mode.no_grad()(lambda average, value, n_averaged: average * decay + value * (1 - decay))


def get_swa_avg_fn() -> Average:
    """The mean of n_averaged values and one more."""
    return grad_mode.no_grad()(lambda average, value, n_averaged: average + (value - average) / (n_averaged + 1))


def get_ema_multi_avg_fn(decay: float = 0.999) -> MultiAverage:
    """As get_ema_avg_fn, of many tensors at once, in place."""
    return _many(get_ema_avg_fn(decay))


def get_swa_multi_avg_fn() -> MultiAverage:
    """As get_swa_avg_fn, of many tensors at once, in place."""
    return _many(get_swa_avg_fn())


def _many(average: Average) -> MultiAverage:
    @grad_mode.no_grad()
    def update(averages: list[tensor.Tensor], values: list[tensor.Tensor], n_averaged: tensor.Tensor) -> None:
        alike = [(str(value.device), value.dtype) for value in values]
        for bundle in flat_parameters.bundles(averages, alike):
            ours, theirs = ([tensors[index] for index in bundle] for tensors in (averages, values))
            running, other = ours[0], theirs[0]
            if len(bundle) > 1:
                running, other = flat_parameters.gather(ours), flat_parameters.gather(theirs, move=False)
            running.copy_(average(running, other.to(running.device), n_averaged))

    return update


class AveragedModel(module.Module):
    """A copy of a model whose parameters are the average of those that `update_parameters` was shown.

    `avg_fn(average, value, n_averaged)` gives a new average, `multi_avg_fn` updates lists; without both the average is
    the mean. Buffers are averaged as well with `use_buffers`, and are otherwise those of the model shown last.
    Source: Izmailov et al. 2018 (arXiv 1803.05407).
    """

    n_averaged: tensor.Tensor

    def __init__(
        self,
        model: module.Module,
        device: DeviceLike = None,
        avg_fn: Average | None = None,
        multi_avg_fn: MultiAverage | None = None,
        use_buffers: bool = False,
    ) -> None:
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise AssertionError("Only one of avg_fn and multi_avg_fn should be provided")
        self.module = copy.deepcopy(model)
        if device is not None:
            self.module = self.module.to(device)
        self.register_buffer("n_averaged", create.tensor(0, dtype=dtypes.int64, device=device))
        self.avg_fn, self.multi_avg_fn, self.use_buffers = avg_fn, multi_avg_fn, use_buffers

    def forward(self, *args: Any, **kwargs: Any) -> object:
        return self.module(*args, **kwargs)

    @grad_mode.no_grad()
    def update_parameters(self, model: module.Module) -> None:
        """Takes the parameters of a model into the average; the first time they are the average."""
        observer.leave("AveragedModel.update_parameters reads how many models it was shown")
        ours, theirs = ([value.detach() for value in _tensors(of, self.use_buffers)] for of in (self.module, model))
        if int(self.n_averaged) == 0:
            for own, other in zip(ours, theirs, strict=True):
                own.copy_(other)
        elif self.avg_fn is not None:
            for own, other in zip(ours, theirs, strict=True):
                own.copy_(self.avg_fn(own, other.to(own.device), self.n_averaged.to(own.device)))
        else:
            update = self.multi_avg_fn or get_swa_multi_avg_fn()
            for kind in {(str(own.device), own.dtype): None for own in ours}:
                pairs = [
                    pair for pair in zip(ours, theirs, strict=True) if (str(pair[0].device), pair[0].dtype) == kind
                ]
                averages, values = [own for own, _ in pairs], [other.to(own.device) for own, other in pairs]
                update(averages, values, self.n_averaged.to(averages[0].device))
        if not self.use_buffers:
            for own, other in zip(self.module.buffers(), model.buffers(), strict=True):
                own.copy_(other)
        self.n_averaged += 1


def _tensors(model: module.Module, use_buffers: bool) -> Iterable[tensor.Tensor]:
    return itertools.chain(model.parameters(), model.buffers()) if use_buffers else model.parameters()


@grad_mode.no_grad()
def update_bn(loader: Iterable[Any], model: module.Module, device: DeviceLike = None) -> None:
    """Computes the statistics of all batch normalizations anew, from one pass over the batches of `loader`.

    Of a batch that is a list or tuple, the first element goes through the model.
    """
    momenta = {}
    for layer in model.modules():
        if isinstance(layer, channel_norm._BatchNorm):
            layer.reset_running_stats()
            momenta[layer] = layer.momentum
    if not momenta:
        return
    was_training = model.training
    model.train()
    for layer in momenta:
        layer.momentum = None
    for batch in loader:
        first = batch[0] if isinstance(batch, list | tuple) else batch
        model(first if device is None else first.to(device))
    for layer, momentum in momenta.items():
        layer.momentum = momentum
    model.train(was_training)
