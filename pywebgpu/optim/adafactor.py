"""Adam's scaling in little memory: of a matrix of squares only the means of rows and columns are kept."""

from typing import Any

from pywebgpu.optim import optimizer, shaped, update_rule
from pywebgpu.tensor import limits, tensor


class Adafactor(shaped.ShapedRule):
    """p = p * (1 - lr * weight_decay) - a * u / max(1, rms(u) / d).

    u is g / sqrt(v), and a is max(eps2, rms(p)) * min(lr, 1 / sqrt(step)). v is the running mean of g^2, for matrices
    as the product of its means by rows and by columns.
    State: step, and row_var and col_var, or variance of parameters with fewer than two dimensions.
    Source: Shazeer, Stern 2018 (arXiv 1804.04235).  Against torch: the same.
    """

    def __init__(
        self,
        params: optimizer.Params,
        lr: optimizer.Rate = 1e-2,
        beta2_decay: float = -0.8,
        eps: tuple[float | None, float] = (None, 1e-3),
        d: float = 1.0,
        weight_decay: float = 0.0,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
    ) -> None:
        defaults = update_rule.options(locals())
        if isinstance(lr, tensor.Tensor) and lr.numel() != 1:
            raise ValueError("Tensor lr must be 1-element")
        least: tuple[tuple[str, Any, float], ...] = (
            ("Learning rate", lr, 0), ("epsilon1", eps[0] or 0, 0), ("epsilon2", eps[1], 0),
            ("Clipping threshold d", d, 1), ("weight_decay", weight_decay, 0),
        )  # fmt: skip
        for title, value, bound in least:
            if not value >= bound:
                raise ValueError(f"{title} should be >= {bound} but is: {value}")
        if not beta2_decay <= 0:
            raise ValueError(f"beta2_decay should be <= 0 but is: {beta2_decay}")
        super().__init__(params, defaults)

    def _start(self, parameter: tensor.Tensor, group: optimizer.Group) -> optimizer.State:
        zeros = update_rule.zeros_like
        if parameter.dim() < 2:
            return {"step": 0, "variance": zeros(parameter)}
        return {"step": 0, "row_var": zeros(parameter[..., :1]), "col_var": zeros(parameter[..., :1, :])}

    def _update(
        self, parameter: tensor.Tensor, gradient: tensor.Tensor, state: optimizer.State, group: optimizer.Group
    ) -> None:
        state["step"] += 1
        step, lr, (eps1, eps2) = state["step"], group["lr"], group["eps"]
        eps1 = limits.finfo(parameter.dtype).eps if eps1 is None else eps1
        share = step ** group["beta2_decay"]
        size = _rms(parameter).clamp(min=eps2) * _least(lr, 1 / step**0.5)
        square = gradient * gradient
        if "variance" in state:
            estimate = state["variance"].lerp_(square, share)
        else:
            rows = state["row_var"].lerp_(square.mean(-1, keepdim=True), share)
            columns = state["col_var"].lerp_(square.mean(-2, keepdim=True), share)
            estimate = rows * columns / rows.mean(-2, keepdim=True).clamp(min=eps1)
        update = gradient * estimate.clamp(min=eps1 * eps1).rsqrt()
        update = update * (size / (_rms(update) / group["d"]).clamp(min=1.0))
        parameter.copy_(parameter * (1 - lr * group["weight_decay"]) - update)


def _rms(batch: tensor.Tensor) -> tensor.Tensor:
    """The root of each one's mean square. Shapes: (n, ...) -> (n, 1, ...)."""
    dims = tuple(range(1, batch.dim()))
    return (batch * batch).mean(dims, keepdim=True).sqrt() if dims else batch.abs()


def _least(rate: optimizer.Rate, limit: optimizer.Rate) -> optimizer.Rate:
    """The smaller of two numbers; either may be on the device."""
    if isinstance(rate, tensor.Tensor):
        return rate.minimum(limit) if isinstance(limit, tensor.Tensor) else rate.clamp(max=limit)
    return limit.clamp(max=rate) if isinstance(limit, tensor.Tensor) else min(rate, limit)
