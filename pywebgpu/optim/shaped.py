"""Base of rules that look at whole parameters: those of one shape are updated together, as one batch."""

from math import prod
from typing import Any

from pywebgpu.ops import packing
from pywebgpu.optim import grouping, numbers, optimizer, update_rule
from pywebgpu.support.shapes import Shape
from pywebgpu.tensor import flat_parameters, tensor


class ShapedRule(update_rule.UpdateRule):
    """A rule whose `_update` gets the parameters of one shape as (n, *shape), with gradients and states likewise."""

    _takes_complex = False

    def _kind(self, parameter: tensor.Tensor, state: optimizer.State) -> object:
        shapes: list[Any] = [tuple(parameter.shape)]
        for name, value in dict.items(state):
            if isinstance(value, tensor.Tensor):
                if not flat_parameters.may_move(value):
                    return object()
                shapes.append((name, id(value) if name in grouping.COUNTS else tuple(value.shape), value.dtype))
            else:
                shapes.append((name, value, id(numbers.written(state, name))))
        return tuple(shapes)

    def _update_together(self, params: list[tensor.Tensor], group: optimizer.Group) -> None:
        shapes = {tuple(parameter.shape) for parameter in params}
        if len(shapes) > 1:  # Another optimizer of the same parameters joined them.
            for shape in sorted(shapes):
                self._update_together([parameter for parameter in params if tuple(parameter.shape) == shape], group)
            return
        grads: list[Any] = [parameter.grad for parameter in params]
        gradients = _batch(grads, move=flat_parameters.are_new(grads))
        self._update_batch(_batch(params), gradients, self._states(params, group), group)

    def _update_alone(self, parameter: tensor.Tensor, group: optimizer.Group) -> None:
        gradient: Any = parameter.grad
        states = self._states([parameter], group)
        self._update_batch(parameter.unsqueeze(0), gradient.unsqueeze(0), states, group)

    def _update_batch(
        self,
        params: tensor.Tensor,
        gradients: tensor.Tensor,
        states: list[optimizer.State],
        group: optimizer.Group,
    ) -> None:
        batch = dict(states[0])
        for name, value in states[0].items():
            if isinstance(value, tensor.Tensor) and name not in grouping.COUNTS:
                batch[name] = _batch([state[name] for state in states])
        self._updated(params, -gradients if group.get("maximize") else gradients, batch, group)
        for name, value in batch.items():
            if not isinstance(value, tensor.Tensor):
                for state in states:
                    state[name] = value

    def _begin(self, params: list[tensor.Tensor], states: list[optimizer.State], group: optimizer.Group) -> None:
        for parameter, state in zip(params, states, strict=True):
            super()._begin([parameter], [state], group)


def _batch(alike: list[tensor.Tensor], *, move: bool = True) -> tensor.Tensor:
    """Tensors of one shape as (n, *shape), which shares their elements where they may move."""
    if len(alike) == 1:
        return alike[0].unsqueeze(0)
    shape: Shape = tuple(alike[0].shape)
    flat = flat_parameters.gather(alike, move=move)
    step = packing.layout((shape,), flat.dtype).size
    return flat.view(-1, step)[:, : prod(shape)].view(-1, *shape)
