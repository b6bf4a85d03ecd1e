"""Steps whose directions are orthogonal matrices: Muon, by batched products of all parameters of one shape."""

from math import sqrt

from pywebgpu import dtypes
from pywebgpu.optim import optimizer, shaped, update_rule
from pywebgpu.tensor import tensor

ADJUSTMENTS = (None, "original", "match_rms_adamw")


class Muon(shaped.ShapedRule):
    """b = lerp(b, g, 1 - momentum);  p = p * (1 - lr * weight_decay) - lr' * O(lerp(g, b, momentum)).

    O makes all singular values of a matrix about 1, by `ns_steps` of Newton and Schulz: X = a X + (b G + c G^2) X where
    G = X X^T. Without `nesterov` it is O(b). lr' is lr * sqrt(max(1, rows / columns)), or 0.2 * lr * sqrt(max(rows,
    columns)) with adjust_lr_fn="match_rms_adamw". For matrices only: embeddings and vectors want another rule.
    State: momentum_buffer.
    Raises: ValueError for parameters of other than two dimensions.
    Source: Jordan et al. 2024 (kellerjordan.github.io/posts/muon); Liu et al. 2025 (arXiv 2502.16982).
    Against torch: the same, and rounded to bfloat16 where torch rounds.
    """

    def __init__(
        self,
        params: optimizer.Params,
        lr: optimizer.Rate = 1e-3,
        weight_decay: float = 0.1,
        momentum: float = 0.95,
        nesterov: bool = True,
        ns_coefficients: tuple[float, float, float] = (3.4445, -4.775, 2.0315),
        eps: float = 1e-7,
        ns_steps: int = 5,
        adjust_lr_fn: str | None = None,
    ) -> None:
        defaults = update_rule.options(locals())
        _check_options(lr, momentum, weight_decay, adjust_lr_fn, ns_steps, ns_coefficients)
        super().__init__(params, defaults)

    def _check_parameter(self, parameter: object) -> None:
        super()._check_parameter(parameter)
        if isinstance(parameter, tensor.Tensor) and parameter.dim() != 2:
            raise ValueError(
                f"Muon only supports 2D parameters whereas we found a parameter with size: {parameter.size()}"
            )

    def _start(self, parameter: tensor.Tensor, group: optimizer.Group) -> optimizer.State:
        return {"momentum_buffer": update_rule.zeros_like(parameter)}

    def _update(
        self, parameter: tensor.Tensor, gradient: tensor.Tensor, state: optimizer.State, group: optimizer.Group
    ) -> None:
        momentum, lr = group["momentum"], group["lr"]
        buffer = state["momentum_buffer"].lerp_(gradient, 1 - momentum)
        update = gradient.lerp(buffer, momentum) if group["nesterov"] else buffer
        orthogonalized = orthogonal(update, group["ns_coefficients"], group["ns_steps"], group["eps"])
        _, rows, columns = parameter.shape
        is_plain = group["adjust_lr_fn"] != "match_rms_adamw"
        ratio = sqrt(max(1, rows / columns)) if is_plain else 0.2 * sqrt(max(rows, columns))
        parameter.copy_(parameter * (1 - lr * group["weight_decay"]) - orthogonalized * (lr * ratio))


def _check_options(
    lr: optimizer.Rate,
    momentum: float,
    weight_decay: float,
    adjust_lr_fn: str | None,
    steps: int,
    coefficients: tuple[float, float, float],
) -> None:
    if isinstance(lr, tensor.Tensor):
        if lr.numel() != 1:
            raise ValueError("Tensor lr must be 1-element")
    elif not lr >= 0:
        raise ValueError(f"Learning rate should be >= 0 but is: {lr}")
    for name, value in (("momentum", momentum), ("weight decay", weight_decay)):
        if not value >= 0:
            raise ValueError(f"{name} should be >= 0 but is: {value}")
    if adjust_lr_fn not in ADJUSTMENTS:
        raise ValueError(f"Adjust learning rate function {adjust_lr_fn} is not supported")
    if steps >= 100:
        raise ValueError("Number of steps must be less than 100 for computational efficiency")
    if len(coefficients) != 3:
        raise ValueError("Coefficients must be a tuple of exactly 3 values")


def orthogonal(x: tensor.Tensor, coefficients: tuple[float, float, float], steps: int, eps: float) -> tensor.Tensor:
    """Matrices with the singular vectors of others, and singular values near 1. Shapes: (n, rows, columns).

    What bfloat16 would hold is rounded to it, and nothing else.
    """
    a, b, c = coefficients
    is_tall = x.shape[1] > x.shape[2]
    x = _rounded(x.mT if is_tall else x)
    x = _rounded(x / _rounded(x.square().sum((1, 2), keepdim=True).sqrt()).clamp(min=eps))
    for _ in range(steps):
        gram = _rounded(x @ x.mT)
        x = _rounded(x * a + _rounded(gram * b + (gram @ gram) * c) @ x)
    return x.mT if is_tall else x


def _rounded(x: tensor.Tensor) -> tensor.Tensor:
    rounded: tensor.Tensor = x.to(dtypes.bfloat16).to(x.dtype)
    return rounded
