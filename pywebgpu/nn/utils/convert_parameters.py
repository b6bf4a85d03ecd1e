"""All parameters as one vector, and back."""

from collections.abc import Iterable

from pywebgpu.autodiff import grad_mode
from pywebgpu.tensor import functions, tensor


def parameters_to_vector(parameters: Iterable[tensor.Tensor]) -> tensor.Tensor:
    """All elements of all parameters in one dimension.

    Raises: TypeError when the parameters lie on several devices.
    """
    parameters = _on_one_device(parameters)
    vector: tensor.Tensor = functions.cat([parameter.reshape(-1) for parameter in parameters])
    return vector


def vector_to_parameters(vec: tensor.Tensor, parameters: Iterable[tensor.Tensor]) -> None:
    """Copies consecutive pieces of `vec` into the parameters; the other way of `parameters_to_vector`.

    Raises: TypeError when `vec` is no tensor, or the parameters lie on several devices; ValueError when it is short.
    """
    if not isinstance(vec, tensor.Tensor):
        raise TypeError(f"expected a Tensor, but got: {type(vec).__name__}")
    parameters = _on_one_device(parameters)
    if sum(parameter.numel() for parameter in parameters) > vec.numel():
        raise ValueError(f"vec has {vec.numel()} elements, fewer than the parameters")
    start = 0
    with grad_mode.no_grad():
        for parameter in parameters:
            end = start + parameter.numel()
            parameter.copy_(vec[start:end].reshape(parameter.shape))
            start = end


def _on_one_device(parameters: Iterable[tensor.Tensor]) -> list[tensor.Tensor]:
    parameters = list(parameters)
    devices = {str(parameter.device) for parameter in parameters}
    if len(devices) > 1:
        raise TypeError(f"Found two parameters on different devices, {' and '.join(sorted(devices))}")
    return parameters
