"""Adam and its relatives: steps scaled by running means of the gradient and of its square."""

from pywebgpu.optim import optimizer, update_rule
from pywebgpu.tensor import tensor


class Adam(update_rule.UpdateRule):
    """m = lerp(m, g, 1 - beta1);  v = beta2 * v + (1 - beta2) * g^2;  p = p - lr * m' / (sqrt(v') + eps).

    m' and v' are m and v divided by 1 - beta^step. With `amsgrad`, v' comes from the largest v so far. Weight decay is
    added to the gradient, or taken off the parameter with `decoupled_weight_decay`. `foreach`, `capturable` and `fused`
    are accepted and change nothing.
    State: step, exp_avg, exp_avg_sq, and max_exp_avg_sq with amsgrad.
    Source: Kingma, Ba 2014 (arXiv 1412.6980); Reddi et al. 2018.  Against torch: the same.
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
        defaults = update_rule.options(locals())
        update_rule.require_not_negative(lr=lr, eps=eps, weight_decay=weight_decay)
        require_betas(betas)
        for title, value in (("lr", lr), ("betas[0]", betas[0]), ("betas[1]", betas[1])):
            if isinstance(value, tensor.Tensor) and foreach and not capturable:
                raise ValueError(f"{title} as a Tensor is not supported for capturable=False and foreach=True")
        super().__init__(params, defaults)

    def _start(self, parameter: tensor.Tensor, group: optimizer.Group) -> optimizer.State:
        state = first_moments(parameter)
        if group["amsgrad"]:
            state["max_exp_avg_sq"] = update_rule.zeros_like(parameter)
        return state

    def _update(
        self, parameter: tensor.Tensor, gradient: tensor.Tensor, state: optimizer.State, group: optimizer.Group
    ) -> None:
        beta1, beta2 = group["betas"]
        value, gradient = shrunk(parameter, gradient, group)
        step, mean, square = moments(gradient, state, group)
        if group["amsgrad"]:
            largest = state["max_exp_avg_sq"]
            before = largest.clone() if group["differentiable"] else largest  # The history reads what was there.
            square = largest.copy_(before.maximum(square))
        step_size = group["lr"] / update_rule.debiasing(beta1, step)
        divisor = square.sqrt() / update_rule.debiasing(beta2, step) ** 0.5 + group["eps"]
        parameter.copy_(value - mean * step_size / divisor)


class AdamW(Adam):
    """Adam whose weight decay is taken off the parameter: p = p * (1 - lr * weight_decay) before the step.

    Source: Loshchilov, Hutter 2017 (arXiv 1711.05101).  Against torch: the same.
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
        super().__init__(params, **update_rule.options(locals()), decoupled_weight_decay=True)


def require_betas(betas: tuple[float, float]) -> None:
    """Raises ValueError for a beta outside [0, 1), and for a tensor beside a float."""
    if isinstance(betas[0], tensor.Tensor) != isinstance(betas[1], tensor.Tensor):
        raise ValueError("betas must be either both floats or both Tensors")
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
    return parameter, update_rule.decayed(parameter, gradient, weight_decay)


def first_moments(parameter: tensor.Tensor) -> optimizer.State:
    """What `moments` counts on from."""
    return {"step": 0, "exp_avg": update_rule.zeros_like(parameter), "exp_avg_sq": update_rule.zeros_like(parameter)}


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
