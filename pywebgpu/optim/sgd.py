"""Stochastic gradient descent with momentum."""

from pywebgpu.optim import optimizer, update_rule
from pywebgpu.tensor import tensor


class SGD(update_rule.UpdateRule):
    """b = momentum * b + (1 - dampening) * g;  p = p - lr * b, or lr * (g + momentum * b) with Nesterov momentum.

    The first step of a parameter is not dampened. `foreach` and `fused` are accepted and change nothing.
    State: momentum_buffer, where momentum is not 0.
    Source: Sutskever et al. 2013 (Nesterov's form).  Against torch: the same.
    """

    sparse_gradients = "dense"

    def __init__(
        self,
        params: optimizer.Params,
        lr: optimizer.Rate = 1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: optimizer.Rate = 0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        defaults = update_rule.options(locals())
        update_rule.require_not_negative(lr=lr, momentum=momentum, weight_decay=weight_decay)
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        super().__init__(params, defaults)

    def _start(self, parameter: tensor.Tensor, group: optimizer.Group) -> optimizer.State:
        if group["momentum"] == 0 or group["dampening"] != 0:
            return {}
        return {"momentum_buffer": update_rule.zeros_like(parameter)}

    def _update(
        self, parameter: tensor.Tensor, gradient: tensor.Tensor, state: optimizer.State, group: optimizer.Group
    ) -> None:
        momentum = group["momentum"]
        gradient = update_rule.decayed(parameter, gradient, group["weight_decay"])
        if momentum != 0:
            share = 1 - group["dampening"]
            if state.get("momentum_buffer") is None:
                state["momentum_buffer"] = update_rule.zeros_like(parameter)
                share = 1.0
            buffer = state["momentum_buffer"]
            buffer.mul_(momentum).add_(gradient * share if group["dampening"] != 0 else gradient)
            gradient = gradient + buffer * momentum if group["nesterov"] else buffer
        parameter.sub_(gradient * group["lr"])
