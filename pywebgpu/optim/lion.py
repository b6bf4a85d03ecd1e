"""Steps of one size for all elements: the sign of a running mean."""

from pywebgpu.optim import adam, optimizer, update_rule
from pywebgpu.tensor import tensor


class Lion(update_rule.UpdateRule):
    """p = p * (1 - lr * weight_decay) - lr * sign(beta1 * m + (1 - beta1) * g);  m = beta2 * m + (1 - beta2) * g.

    State: exp_avg (m).
    Source: Chen et al. 2023 (arXiv 2302.06675), algorithm 2.  Against torch: it has none.
    """

    def __init__(
        self,
        params: optimizer.Params,
        lr: optimizer.Rate = 1e-4,
        betas: tuple[float, float] = (0.9, 0.99),
        weight_decay: float = 0,
        *,
        maximize: bool = False,
    ) -> None:
        defaults = update_rule.options(locals())
        adam.require_betas(betas)
        update_rule.require_not_negative(lr=lr, weight_decay=weight_decay)
        super().__init__(params, defaults)

    def _start(self, parameter: tensor.Tensor, group: optimizer.Group) -> optimizer.State:
        return {"exp_avg": update_rule.zeros_like(parameter)}

    def _update(
        self, parameter: tensor.Tensor, gradient: tensor.Tensor, state: optimizer.State, group: optimizer.Group
    ) -> None:
        beta1, beta2 = group["betas"]
        mean = state["exp_avg"]
        direction = (mean * beta1 + gradient * (1 - beta1)).sign()
        parameter.copy_(parameter * (1 - group["lr"] * group["weight_decay"]) - direction * group["lr"])
        mean.copy_(mean * beta2 + gradient * (1 - beta2))
