"""Relatives of Adam that few programs name: RAdam, NAdam, Adamax, and SparseAdam for the rows that a batch touched."""

from typing import Any

from pywebgpu import dtypes
from pywebgpu.optim import adam, numbers, optimizer, update_rule
from pywebgpu.tensor import create, tensor


class RAdam(update_rule.UpdateRule):
    """Adam whose scaling starts when its variance can be known, and is rectified until then.

    Source: Liu et al. 2019 (arXiv 1908.03265).  Against torch: the same.
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
        defaults = update_rule.options(locals())
        adam.require_betas(betas)
        update_rule.require_not_negative(lr=lr, eps=eps, weight_decay=weight_decay)
        super().__init__(params, defaults)

    def _start(self, parameter: tensor.Tensor, group: optimizer.Group) -> optimizer.State:
        return adam.first_moments(parameter)

    def _update(
        self, parameter: tensor.Tensor, gradient: tensor.Tensor, state: optimizer.State, group: optimizer.Group
    ) -> None:
        beta1, beta2 = group["betas"]
        value, gradient = adam.shrunk(parameter, gradient, group)
        step, mean, square = adam.moments(gradient, state, group)
        correction = update_rule.debiasing(beta2, step)
        update = mean * (group["lr"] / update_rule.debiasing(beta1, step))
        longest = 2 / (1 - beta2) - 1

        def rectified(length: optimizer.Rate) -> tensor.Tensor:
            ratio = (length - 4) * (length - 2) * longest / ((longest - 4) * (longest - 2) * length)
            rectified_update: tensor.Tensor = update * (ratio * correction) ** 0.5 / (square.sqrt() + group["eps"])
            return rectified_update

        length = longest - 2 * step * beta2**step / correction
        if isinstance(length, tensor.Tensor):  # of a count on the device
            update = rectified(length).where(length > 5.0, update)
        elif length > 5.0:
            update = rectified(length)
        parameter.copy_(value - update)


class NAdam(update_rule.UpdateRule):
    """Adam with Nesterov's momentum: the step mixes the gradient with the mean that the next step will use.

    State: step, mu_product, exp_avg, exp_avg_sq.
    Source: Dozat 2016.  Against torch: the same.
    """

    def __init__(
        self,
        params: optimizer.Params,
        lr: optimizer.Rate = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum_decay: float = 4e-3,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        defaults = update_rule.options(locals())
        update_rule.require_not_negative(lr=lr, eps=eps, weight_decay=weight_decay, momentum_decay=momentum_decay)
        adam.require_betas(betas)
        super().__init__(params, defaults)

    def _start(self, parameter: tensor.Tensor, group: optimizer.Group) -> optimizer.State:
        return {"step": 0, "mu_product": 1.0} | adam.first_moments(parameter)

    def _update(
        self, parameter: tensor.Tensor, gradient: tensor.Tensor, state: optimizer.State, group: optimizer.Group
    ) -> None:
        (beta1, beta2), decay, lr = group["betas"], group["momentum_decay"], group["lr"]
        value, gradient = adam.shrunk(parameter, gradient, group)
        step, mean, square = adam.moments(gradient, state, group)
        now, later = (beta1 * (1 - 0.5 * 0.96 ** (number * decay)) for number in (step, step + 1))
        state["mu_product"] *= now
        product = state["mu_product"]
        direction = gradient * (lr * (1 - now) / (1 - product)) + mean * (lr * later / (1 - product * later))
        parameter.copy_(value - direction / ((square / update_rule.debiasing(beta2, step)).sqrt() + group["eps"]))


class Adamax(update_rule.UpdateRule):
    """m = lerp(m, g, 1 - beta1);  u = max(beta2 * u, |g| + eps);  p = p - lr / (1 - beta1^step) * m / u.

    State: step, exp_avg (m), exp_inf (u).
    Source: Kingma, Ba 2014 (arXiv 1412.6980), section 7.  Against torch: the same.
    """

    def __init__(
        self,
        params: optimizer.Params,
        lr: optimizer.Rate = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        defaults = update_rule.options(locals())
        update_rule.require_not_negative(lr=lr, eps=eps, weight_decay=weight_decay)
        adam.require_betas(betas)
        super().__init__(params, defaults)

    def _start(self, parameter: tensor.Tensor, group: optimizer.Group) -> optimizer.State:
        zeros = update_rule.zeros_like
        return {"step": 0, "exp_avg": zeros(parameter), "exp_inf": zeros(parameter)}

    def _update(
        self, parameter: tensor.Tensor, gradient: tensor.Tensor, state: optimizer.State, group: optimizer.Group
    ) -> None:
        beta1, beta2 = group["betas"]
        state["step"] += 1
        gradient = update_rule.decayed(parameter, gradient, group["weight_decay"])
        mean = state["exp_avg"].lerp_(gradient, 1 - beta1)
        largest = state["exp_inf"]
        largest.copy_((largest * beta2).maximum(gradient.abs() + group["eps"]))
        parameter.sub_(mean * (group["lr"] / update_rule.debiasing(beta1, state["step"])) / largest)


class SparseAdam(update_rule.UpdateRule):
    """Adam of the elements that a sparse gradient holds; the means and the values of all others stay.

    Of a dense gradient it takes the rows that are not all 0, as an embedding has them.
    State: step, exp_avg, exp_avg_sq.
    Against torch: dense gradients are taken too; `step` is an int there as well.
    """

    sparse_gradients = "rows"
    _state = numbers.Counts

    def __init__(
        self,
        params: optimizer.Params,
        lr: optimizer.Rate = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        maximize: bool = False,
    ) -> None:
        defaults = update_rule.options(locals())
        update_rule.require_not_negative(lr=lr, eps=eps)
        for title, value in (("learning rate", lr), ("epsilon value", eps)):
            if not isinstance(value, tensor.Tensor) and value == 0:
                raise ValueError(f"Invalid {title}: {value}")
        adam.require_betas(betas)
        super().__init__(params, defaults)

    def _kind(self, parameter: tensor.Tensor, state: optimizer.State) -> object:
        return object()  # Which rows were touched is asked of each parameter alone.

    def _start(self, parameter: tensor.Tensor, group: optimizer.Group) -> optimizer.State:
        return adam.first_moments(parameter)

    def _update(
        self, parameter: tensor.Tensor, gradient: tensor.Tensor, state: optimizer.State, group: optimizer.Group
    ) -> None:
        (beta1, beta2), gradient, touched = group["betas"], *_touched(gradient)
        state["step"] += 1
        mean, square, step = state["exp_avg"], state["exp_avg_sq"], state["step"]
        mean.copy_(mean.lerp(gradient, 1 - beta1).where(touched, mean))
        square.copy_(square.lerp(gradient * gradient, 1 - beta2).where(touched, square))
        size = group["lr"] * update_rule.debiasing(beta2, step) ** 0.5 / update_rule.debiasing(beta1, step)
        parameter.copy_((parameter - mean * size / (square.sqrt() + group["eps"])).where(touched, parameter))


def _touched(grad: tensor.Tensor) -> tuple[tensor.Tensor, tensor.Tensor]:
    """A gradient as a dense tensor, and which of its elements it holds."""
    gradient: Any = grad
    if getattr(gradient, "is_sparse", False):
        indices = gradient._indices()
        shape = tuple(gradient.shape)[: len(indices)]
        touched = create.zeros(shape, dtype=dtypes.bool_, device=gradient.device)
        touched[tuple(indices)] = True
        return gradient.to_dense(), touched.reshape(*shape, *[1] * (gradient.dim() - len(shape)))
    touched = gradient != 0
    return gradient, touched.flatten(1).any(1).reshape(
        -1, *[1] * (gradient.dim() - 1)
    ) if gradient.dim() > 1 else touched
