"""torch.utils._device: the default device as a context and as a decorator."""

import functools
from collections.abc import Callable
from typing import Any, TypeVar

from pywebgpu import devices

F = TypeVar("F", bound=Callable[..., Any])


def device_decorator(device: str | int | devices.device, func: F) -> F:
    """The function, whose new tensors lie on a device."""

    @functools.wraps(func)
    def wrapped(*args: Any, **options: Any) -> object:
        with devices.device(device):
            return func(*args, **options)

    return wrapped  # type: ignore[return-value]  # The wrapper has the function's signature.


def set_device(device: str | int | devices.device) -> Callable[[F], F]:
    """As a decorator: device_decorator."""
    return lambda func: device_decorator(device, func)
