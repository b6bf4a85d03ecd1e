"""Adam and its relatives: steps scaled by running means of the gradient and of its square."""

from typing import Any

from pywebgpu.optim import optimizer
from pywebgpu.tensor import tensor


class Adam(optimizer.UpdateRule):
    """m = lerp(m, g, 1 - beta1);  v = beta2 * v + (1 - beta2) * g^2;  p = p - lr * m' / (sqrt(v') + eps).

    m' and v' are m and v divided by 1 - beta^step. With `amsgrad`, v' comes from the largest v so far. Weight decay is
    added to the gradient, or taken off the parameter with `decoupled_weight_decay`. `foreach`, `capturable` and `fused`
    are accepted and change nothing.
    State: step, exp_avg, exp_avg_sq, and max_exp_avg_sq with amsgrad.
    Source: Kingma, Ba 2014 (arXiv 1412.6980); Reddi et al. 2018.  Against torch: the same; `step` is an int.
    """

    def __init__(
        self,
        params: optimizer.Params,
        lr: optimizer.Rate = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        amsgrad: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
        decoupled_weight_decay: bool = False,
    ) -> None:
        require_betas(betas)
        optimizer.require_not_negative(lr=lr, eps=eps, weight_decay=weight_decay)
        super().__init__(
            params,
            {
                "lr": lr,
                "betas": betas,
                "eps": eps,
                "weight_decay": weight_decay,
                "amsgrad": amsgrad,
                "maximize": maximize,
                "foreach": foreach,
                "capturable": capturable,
                "differentiable": differentiable,
                "fused": fused,
                "decoupled_weight_decay": decoupled_weight_decay,
            },
        )

    def _start(self, parameter: tensor.Tensor, group: optimizer.Group) -> optimizer.State:
        state = first_moments(parameter)
        if group["amsgrad"]:
            state["max_exp_avg_sq"] = optimizer.zeros_like(parameter)
        return state

    def _update(
        self, parameter: tensor.Tensor, gradient: tensor.Tensor, state: optimizer.State, group: optimizer.Group
    ) -> None:
        beta1, beta2 = group["betas"]
        value, gradient = shrunk(parameter, gradient, group)
        step, mean, square = moments(gradient, state, group)
        if group["amsgrad"]:
            largest = state["max_exp_avg_sq"]
            square = largest.copy_(largest.maximum(square))
        step_size = group["lr"] / optimizer.debiasing(beta1, step)
        divisor = square.sqrt() / optimizer.debiasing(beta2, step) ** 0.5 + group["eps"]
        parameter.copy_(value - mean * step_size / divisor)


class AdamW(Adam):
    """Adam whose weight decay is taken off the parameter: p = p * (1 - lr * weight_decay) before the step.

    Source: Loshchilov, Hutter 2017 (arXiv 1711.05101).  Against torch: the same; `step` is an int.
    """

    def __init__(
        self,
        params: optimizer.Params,
        lr: optimizer.Rate = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        super().__init__(
            params,
            lr,
            betas,
            eps,
            weight_decay,
            amsgrad,
            foreach=foreach,
            maximize=maximize,
            capturable=capturable,
            differentiable=differentiable,
            fused=fused,
            decoupled_weight_decay=True,
        )


class RAdam(optimizer.UpdateRule):
    """Adam whose scaling starts when its variance can be known, and is rectified until then.

    Source: Liu et al. 2019 (arXiv 1908.03265).  Against torch: the same; `step` is an int.
    """

    def __init__(
        self,
        params: optimizer.Params,
        lr: optimizer.Rate = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        require_betas(betas)
        optimizer.require_not_negative(lr=lr, eps=eps, weight_decay=weight_decay)
        super().__init__(
            params,
            {
                "lr": lr,
                "betas": betas,
                "eps": eps,
                "weight_decay": weight_decay,
                "maximize": maximize,
                "foreach": foreach,
                "capturable": capturable,
                "decoupled_weight_decay": decoupled_weight_decay,
                "differentiable": differentiable,
            },
        )

    def _start(self, parameter: tensor.Tensor, group: optimizer.Group) -> optimizer.State:
        return first_moments(parameter)

    def _update(
        self, parameter: tensor.Tensor, gradient: tensor.Tensor, state: optimizer.State, group: optimizer.Group
    ) -> None:
        beta1, beta2 = group["betas"]
        value, gradient = shrunk(parameter, gradient, group)
        step, mean, square = moments(gradient, state, group)
        correction = optimizer.debiasing(beta2, step)
        update = mean * (group["lr"] / optimizer.debiasing(beta1, step))
        longest = 2 / (1 - beta2) - 1

        def rectified(length: Any) -> tensor.Tensor:
            ratio = (length - 4) * (length - 2) * longest / ((longest - 4) * (longest - 2) * length)
            found: tensor.Tensor = update * (ratio * correction) ** 0.5 / (square.sqrt() + group["eps"])
            return found

        length = longest - 2 * step * beta2**step / correction
        if isinstance(length, tensor.Tensor):  # of a count on the device
            update = rectified(length).where(length > 5.0, update)
        elif length > 5.0:
            update = rectified(length)
        parameter.copy_(value - update)


def require_betas(betas: tuple[float, float]) -> None:
    """Raises ValueError for a beta outside [0, 1)."""
    for i, beta in enumerate(betas):
        if not 0.0 <= beta < 1.0:
            raise ValueError(f"Invalid beta parameter at index {i}: {beta}")


def shrunk(
    parameter: tensor.Tensor, gradient: tensor.Tensor, group: optimizer.Group
) -> tuple[tensor.Tensor, tensor.Tensor]:
    """The parameter and the gradient after weight decay, which acts on one of the two."""
    weight_decay = group["weight_decay"]
    if weight_decay != 0 and group["decoupled_weight_decay"]:
        return parameter * (1 - group["lr"] * weight_decay), gradient
    return parameter, optimizer.decayed(parameter, gradient, weight_decay)


def first_moments(parameter: tensor.Tensor) -> optimizer.State:
    """What `moments` counts on from."""
    return {"step": 0, "exp_avg": optimizer.zeros_like(parameter), "exp_avg_sq": optimizer.zeros_like(parameter)}


def moments(
    gradient: tensor.Tensor, state: optimizer.State, group: optimizer.Group
) -> tuple[int, tensor.Tensor, tensor.Tensor]:
    """Counts the step and takes the gradient into its running means: step, mean, mean of squares."""
    beta1, beta2 = group["betas"]
    state["step"] += 1
    mean, square = state["exp_avg"], state["exp_avg_sq"]
    mean.lerp_(gradient, 1 - beta1)
    square.copy_(square * beta2 + gradient * gradient * (1 - beta2))
    return state["step"], mean, square
