"""Steps whose directions are orthogonal matrices: Muon, by batched products of all parameters of one shape."""

from math import prod, sqrt
from typing import Any

from pywebgpu.ops import packing
from pywebgpu.optim import optimizer
from pywebgpu.shapes import Shape
from pywebgpu.tensor import flat_parameters, functions, tensor

ADJUSTMENTS = (None, "original", "match_rms_adamw")


class Muon(optimizer.UpdateRule):
    """b = lerp(b, g, 1 - momentum);  p = p * (1 - lr * weight_decay) - lr' * O(lerp(g, b, momentum)).

    O makes all singular values of a matrix about 1, by `ns_steps` of Newton and Schulz: X = a X + (b G + c G^2) X where
    G = X X^T. Without `nesterov` it is O(b). lr' is lr * sqrt(max(1, rows / columns)), or 0.2 * lr * sqrt(max(rows,
    columns)) with adjust_lr_fn="match_rms_adamw". For matrices only: embeddings and vectors want another rule.
    State: momentum_buffer.
    Raises: ValueError for parameters of other than two dimensions.
    Source: Jordan et al. 2024 (kellerjordan.github.io/posts/muon); Liu et al. 2025 (arXiv 2502.16982).
    Against torch: the same, but in the dtype of the parameters, where torch rounds the matrices to bfloat16.
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
        _check_options(lr, momentum, weight_decay, adjust_lr_fn, ns_steps, ns_coefficients)
        super().__init__(
            params,
            {
                "lr": lr,
                "weight_decay": weight_decay,
                "momentum": momentum,
                "nesterov": nesterov,
                "ns_coefficients": ns_coefficients,
                "eps": eps,
                "ns_steps": ns_steps,
                "adjust_lr_fn": adjust_lr_fn,
            },
        )

    def _check_parameter(self, parameter: object) -> None:
        super()._check_parameter(parameter)
        if isinstance(parameter, tensor.Tensor) and parameter.dim() != 2:
            raise ValueError(
                f"Muon only supports 2D parameters whereas we found a parameter with size: {parameter.size()}"
            )

    def _kind(self, parameter: tensor.Tensor, state: optimizer.State) -> object:
        return tuple(parameter.shape), super()._kind(parameter, state)

    def _start(self, parameter: tensor.Tensor, group: optimizer.Group) -> optimizer.State:
        return {"momentum_buffer": optimizer.zeros_like(parameter)}

    def _update_together(self, params: list[tensor.Tensor], group: optimizer.Group) -> None:
        shapes = {tuple(parameter.shape) for parameter in params}
        if len(shapes) > 1:  # Another optimizer of the same parameters joined them.
            for shape in sorted(shapes):
                self._update_together([one for one in params if tuple(one.shape) == shape], group)
            return
        given: list[Any] = [parameter.grad for parameter in params]
        gradients = flat_parameters.gather(given, move=flat_parameters.are_new(given))
        states = self._states(params, group)
        buffer = flat_parameters.gather([state["momentum_buffer"] for state in states])
        _move(flat_parameters.gather(params), gradients, buffer, tuple(params[0].shape), group)

    def _update_alone(self, parameter: tensor.Tensor, group: optimizer.Group) -> None:
        gradient: Any = parameter.grad
        (state,) = self._states([parameter], group)
        _move(parameter, gradient, state["momentum_buffer"], tuple(parameter.shape), group)


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


def _move(
    parameter: tensor.Tensor, gradient: tensor.Tensor, buffer: tensor.Tensor, shape: Shape, group: optimizer.Group
) -> None:
    """Updates matrices of one shape: one, or several that are parts of flat tensors."""
    momentum, lr = group["momentum"], group["lr"]
    buffer.lerp_(gradient, 1 - momentum)
    update = gradient.lerp(buffer, momentum) if group["nesterov"] else buffer
    found = orthogonal(_matrices(update, shape), group["ns_coefficients"], group["ns_steps"], group["eps"])
    rows, columns = shape
    ratio = sqrt(max(1, rows / columns)) if group["adjust_lr_fn"] != "match_rms_adamw" else 0.2 * sqrt(max(shape))
    parameter.copy_(parameter * (1 - lr * group["weight_decay"]) - _flat(found, parameter) * (lr * ratio))


def orthogonal(x: tensor.Tensor, coefficients: tuple[float, float, float], steps: int, eps: float) -> tensor.Tensor:
    """Matrices with the singular vectors of others, and singular values near 1. Shapes: (n, rows, columns)."""
    a, b, c = coefficients
    is_tall = x.shape[1] > x.shape[2]
    x = x.mT if is_tall else x
    x = x / x.square().sum((1, 2), keepdim=True).sqrt().clamp(min=eps)
    for _ in range(steps):
        gram = x @ x.mT
        x = x * a + (gram * b + (gram @ gram) * c) @ x
    return x.mT if is_tall else x


def _matrices(flat: tensor.Tensor, shape: Shape) -> tensor.Tensor:
    """A matrix, or the parts of a flat tensor, as (n, rows, columns)."""
    if flat.dim() == 2:
        return flat.unsqueeze(0)
    step = packing.layout((shape,), flat.dtype).size
    return flat.view(-1, step)[:, : prod(shape)].reshape(-1, *shape)


def _flat(matrices: tensor.Tensor, like: tensor.Tensor) -> tensor.Tensor:
    """The other way."""
    if like.dim() == 2:
        return matrices[0]
    count, size = matrices.shape[0], prod(matrices.shape[1:])
    rest = like.numel() // count - size
    rows = matrices.reshape(count, size)
    return (functions.cat([rows, rows.new_zeros(count, rest)], 1) if rest else rows).reshape(-1)
