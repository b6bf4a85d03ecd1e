"""Steps scaled by the size of the gradients so far, without a mean of the gradient: RMSprop, Adagrad, Adadelta."""

from pywebgpu.optim import optimizer, update_rule
from pywebgpu.tensor import create, tensor


class RMSprop(update_rule.UpdateRule):
    """v = alpha * v + (1 - alpha) * g^2;  p = p - lr * g / (sqrt(v) + eps), with momentum on what is subtracted.

    `centered` takes the square of the mean gradient off v. `foreach` and `capturable` are accepted and change nothing.
    State: step, square_avg, momentum_buffer with momentum, grad_avg when centered.
    Source: Hinton, lecture 6e of "Neural Networks for Machine Learning"; Graves 2013 (arXiv 1308.0850), centered.
    Against torch: the same.
    """

    def __init__(
        self,
        params: optimizer.Params,
        lr: optimizer.Rate = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum: float = 0,
        centered: bool = False,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        defaults = update_rule.options(locals())
        update_rule.require_not_negative(lr=lr, eps=eps, momentum=momentum, weight_decay=weight_decay, alpha=alpha)
        super().__init__(params, defaults)

    def _start(self, parameter: tensor.Tensor, group: optimizer.Group) -> optimizer.State:
        state = {"step": 0, "square_avg": update_rule.zeros_like(parameter)}
        if group["momentum"] > 0:
            state["momentum_buffer"] = update_rule.zeros_like(parameter)
        if group["centered"]:
            state["grad_avg"] = update_rule.zeros_like(parameter)
        return state

    def _update(
        self, parameter: tensor.Tensor, gradient: tensor.Tensor, state: optimizer.State, group: optimizer.Group
    ) -> None:
        state["step"] += 1
        alpha = group["alpha"]
        gradient = update_rule.decayed(parameter, gradient, group["weight_decay"])
        square = state["square_avg"]
        square.copy_(square * alpha + gradient * gradient * (1 - alpha))
        spread = square
        if group["centered"]:
            mean = state["grad_avg"]
            mean.lerp_(gradient, 1 - alpha)
            spread = square - mean * mean
        update = gradient / (spread.sqrt() + group["eps"])
        if group["momentum"] > 0:
            buffer = state["momentum_buffer"]
            update = buffer.copy_(buffer * group["momentum"] + update)
        parameter.sub_(update * group["lr"])


class Adagrad(update_rule.UpdateRule):
    """s = s + g^2;  p = p - lr / (1 + (step - 1) * lr_decay) * g / (sqrt(s) + eps).

    `foreach` and `fused` are accepted and change nothing. State: step, sum.
    Source: Duchi, Hazan, Singer 2011.  Against torch: the same, but the state exists from the first step
    on.
    """

    sparse_gradients = "dense"

    def __init__(
        self,
        params: optimizer.Params,
        lr: optimizer.Rate = 1e-2,
        lr_decay: float = 0,
        weight_decay: float = 0,
        initial_accumulator_value: float = 0,
        eps: float = 1e-10,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        defaults = update_rule.options(locals())
        update_rule.require_not_negative(
            lr=lr,
            lr_decay=lr_decay,
            weight_decay=weight_decay,
            initial_accumulator_value=initial_accumulator_value,
            eps=eps,
        )
        super().__init__(params, defaults)

    def _start(self, parameter: tensor.Tensor, group: optimizer.Group) -> optimizer.State:
        value = group["initial_accumulator_value"]
        total = create.full_like(parameter, value) if value else update_rule.zeros_like(parameter)
        return {"step": 0, "sum": total}

    def _update(
        self, parameter: tensor.Tensor, gradient: tensor.Tensor, state: optimizer.State, group: optimizer.Group
    ) -> None:
        state["step"] += 1
        rate = group["lr"] / (1 + (state["step"] - 1) * group["lr_decay"])
        gradient = update_rule.decayed(parameter, gradient, group["weight_decay"])
        total = state["sum"]
        total.add_(gradient * gradient)
        parameter.sub_(gradient * rate / (total.sqrt() + group["eps"]))


class Adadelta(update_rule.UpdateRule):
    """v = rho * v + (1 - rho) * g^2;  d = sqrt(u + eps) / sqrt(v + eps) * g;  p = p - lr * d.

    u is the running mean of d^2, as v is of g^2. `foreach` and `capturable` are accepted and change nothing.
    State: step, square_avg (v), acc_delta (u).
    Source: Zeiler 2012 (arXiv 1212.5701).  Against torch: the same.
    """

    def __init__(
        self,
        params: optimizer.Params,
        lr: optimizer.Rate = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        capturable: bool = False,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        defaults = update_rule.options(locals())
        update_rule.require_not_negative(lr=lr, eps=eps, weight_decay=weight_decay)
        if not 0.0 <= rho <= 1.0:
            raise ValueError(f"Invalid rho value: {rho}")
        super().__init__(params, defaults)

    def _start(self, parameter: tensor.Tensor, group: optimizer.Group) -> optimizer.State:
        return {
            "step": 0,
            "square_avg": update_rule.zeros_like(parameter),
            "acc_delta": update_rule.zeros_like(parameter),
        }

    def _update(
        self, parameter: tensor.Tensor, gradient: tensor.Tensor, state: optimizer.State, group: optimizer.Group
    ) -> None:
        state["step"] += 1
        rho, eps = group["rho"], group["eps"]
        gradient = update_rule.decayed(parameter, gradient, group["weight_decay"])
        square, moved = state["square_avg"], state["acc_delta"]
        square.copy_(square * rho + gradient * gradient * (1 - rho))
        delta = (moved + eps).sqrt() / (square + eps).sqrt() * gradient
        moved.copy_(moved * rho + delta * delta * (1 - rho))
        parameter.sub_(delta * group["lr"])
