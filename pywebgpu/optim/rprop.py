"""Rules older than Adam: steps by the signs of gradients, and descent whose values are averaged."""

from pywebgpu.optim import optimizer, update_rule
from pywebgpu.tensor import tensor


class Rprop(update_rule.UpdateRule):
    """p = p - s * sign(g), where s grows while the sign of g stays, and shrinks, without a step, when it turns.

    State: step, prev (the last g), step_size (s).
    Source: Riedmiller, Braun 1993.  Against torch: the same.
    """

    def __init__(
        self,
        params: optimizer.Params,
        lr: optimizer.Rate = 1e-2,
        etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50),
        *,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        defaults = update_rule.options(locals())
        update_rule.require_not_negative(lr=lr)
        if not 0.0 < etas[0] < 1.0 < etas[1]:
            raise ValueError(f"Invalid eta values: {etas[0]}, {etas[1]}")
        super().__init__(params, defaults)

    def _start(self, parameter: tensor.Tensor, group: optimizer.Group) -> optimizer.State:
        size = update_rule.filled(parameter, group["lr"])
        return {"step": 0, "prev": update_rule.zeros_like(parameter), "step_size": size}

    def _update(
        self, parameter: tensor.Tensor, gradient: tensor.Tensor, state: optimizer.State, group: optimizer.Group
    ) -> None:
        state["step"] += 1
        (less, more), (low, high) = group["etas"], group["step_sizes"]
        before, size = state["prev"], state["step_size"]
        turn = gradient * before
        size.copy_((size * more).where(turn > 0, (size * less).where(turn < 0, size)).clamp(low, high))
        gradient = gradient.masked_fill(turn < 0, 0)
        parameter.sub_(gradient.sign() * size)
        before.copy_(gradient)


class ASGD(update_rule.UpdateRule):
    """Gradient descent at rate eta = lr / (1 + lambd * lr * step)^alpha, and the average of p from step t0 on.

    State: step, eta, mu (the weight of the newest p in the average), ax (the average).
    Source: Polyak, Juditsky 1992.  Against torch: the same.
    """

    def __init__(
        self,
        params: optimizer.Params,
        lr: optimizer.Rate = 1e-2,
        lambd: float = 1e-4,
        alpha: float = 0.75,
        t0: float = 1e6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        defaults = update_rule.options(locals())
        update_rule.require_not_negative(lr=lr, weight_decay=weight_decay)
        super().__init__(params, defaults)

    def _start(self, parameter: tensor.Tensor, group: optimizer.Group) -> optimizer.State:
        lr = group["lr"]
        eta = lr.item() if isinstance(lr, tensor.Tensor) else float(lr)
        return {"step": 0, "eta": eta, "mu": 1.0, "ax": update_rule.zeros_like(parameter)}

    def _update(
        self, parameter: tensor.Tensor, gradient: tensor.Tensor, state: optimizer.State, group: optimizer.Group
    ) -> None:
        state["step"] += 1
        step, eta, mu, lr = state["step"], state["eta"], state["mu"], group["lr"]
        gradient = update_rule.decayed(parameter, gradient, group["weight_decay"])
        parameter.copy_(parameter * (1 - group["lambd"] * eta) - gradient * eta)
        average = state["ax"]
        average.copy_(parameter if _is_one(mu) else average + (parameter - average) * mu)
        new = {"eta": lr / (1 + group["lambd"] * lr * step) ** group["alpha"], "mu": _share(step - group["t0"])}
        for name, value in new.items():
            if isinstance(state[name], tensor.Tensor):
                state[name].copy_(value)
            else:
                state[name] = value.item() if isinstance(value, tensor.Tensor) else value


def _is_one(mu: object) -> bool:
    return not isinstance(mu, tensor.Tensor) and mu == 1


def _share(steps: optimizer.Rate) -> optimizer.Rate:
    return 1 / (steps.clamp(min=1.0) if isinstance(steps, tensor.Tensor) else max(1.0, steps))
