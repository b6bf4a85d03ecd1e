"""All gradients clipped at once: by their norm, or each by its value."""

import math
import types
import warnings
from collections.abc import Iterable

from pywebgpu.autodiff import grad_mode
from pywebgpu.tensor import create, flat_parameters, functions, tensor

Tensors = tensor.Tensor | Iterable[tensor.Tensor]


def clip_grad_norm_(
    parameters: Tensors,
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> tensor.Tensor:
    """Scales all gradients, in place, so that together they have at most the norm `max_norm`. Returns the norm before.

    The norm stays on the device; only `error_if_nonfinite` reads it. `foreach` is accepted and changes nothing.
    Raises: RuntimeError when `error_if_nonfinite` and the norm is NaN or infinite.
    """
    if isinstance(parameters, types.GeneratorType):
        parameters = list(parameters)
        if not parameters:
            warnings.warn(
                "`parameters` is an empty generator, no gradient clipping will occur.", UserWarning, stacklevel=2
            )
    parameters = _listed(parameters)
    total = get_total_norm(_gradients(parameters), norm_type, error_if_nonfinite)
    clip_grads_with_norm_(parameters, max_norm, total)
    return total


def get_total_norm(
    tensors: Tensors, norm_type: float = 2.0, error_if_nonfinite: bool = False, foreach: bool | None = None
) -> tensor.Tensor:
    """The norm of all tensors as if they were one vector: the largest size for `norm_type` inf.

    Shapes: any -> ().
    """
    tensors = _listed(tensors)
    norm_type = float(norm_type)
    if not tensors:
        return create.tensor(0.0)
    with grad_mode.no_grad():
        device = tensors[0].device
        norms = [vector.norm(norm_type).to(device) for vector in _vectors(tensors, norm_type)]
        total: tensor.Tensor = functions.stack(norms).norm(norm_type) if len(norms) > 1 else norms[0]
    if error_if_nonfinite and not math.isfinite(total.item()):
        raise RuntimeError(
            f"The total norm of order {norm_type} for gradients from `parameters` is non-finite, so it cannot be "
            "clipped. To disable this error and scale the gradients by the non-finite norm anyway, set "
            "`error_if_nonfinite=False`"
        )
    return total


def clip_grads_with_norm_(
    parameters: Tensors, max_norm: float, total_norm: tensor.Tensor, foreach: bool | None = None
) -> None:
    """Multiplies all gradients, in place, by max_norm / total_norm where that is below 1."""
    with grad_mode.no_grad():
        scale = (float(max_norm) / (total_norm + 1e-6)).clamp(max=1.0)
        for gradient in _together(_gradients(_listed(parameters))):
            gradient.mul_(scale.to(gradient.device))


def clip_grad_norm(
    parameters: Tensors,
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> tensor.Tensor:
    """clip_grad_norm_ by its name of older programs."""
    text = "`torch.nn.utils.clip_grad_norm` is now deprecated in favor of `torch.nn.utils.clip_grad_norm_`."
    warnings.warn(text, FutureWarning, stacklevel=2)
    return clip_grad_norm_(parameters, max_norm, norm_type, error_if_nonfinite, foreach)


def clip_grad_value_(parameters: Tensors, clip_value: float, foreach: bool | None = None) -> None:
    """Brings every element of all gradients, in place, between -clip_value and clip_value."""
    clip_value = float(clip_value)
    with grad_mode.no_grad():
        for gradient in _together(_gradients(_listed(parameters))):
            gradient.clamp_(min=-clip_value, max=clip_value)


def _listed(tensors: Tensors) -> list[tensor.Tensor]:
    return [tensors] if isinstance(tensors, tensor.Tensor) else list(tensors)


def _gradients(parameters: list[tensor.Tensor]) -> list[tensor.Tensor]:
    return [parameter.grad for parameter in parameters if parameter.grad is not None]


def _together(tensors: list[tensor.Tensor]) -> list[tensor.Tensor]:
    """Fewer tensors, which share their elements with `tensors`."""
    bundles = [[tensors[index] for index in bundle] for bundle in flat_parameters.bundles(tensors)]
    return [flat_parameters.gather(alike) if len(alike) > 1 else alike[0] for alike in bundles]


def _vectors(tensors: list[tensor.Tensor], norm_type: float) -> list[tensor.Tensor]:
    """Fewer tensors with the same norm. What is trained stays where its optimizer put it; anything else may move."""
    if norm_type <= 0:  # The zeros between the parts would count, or the norm of norms is none of them all.
        return tensors
    bundles = [[tensors[index] for index in bundle] for bundle in flat_parameters.bundles(tensors)]
    moves = [not any(vector.requires_grad for vector in alike) for alike in bundles]
    return [
        flat_parameters.gather(alike, clean=True, move=move) if len(alike) > 1 else alike[0]
        for alike, move in zip(bundles, moves, strict=True)
    ]
