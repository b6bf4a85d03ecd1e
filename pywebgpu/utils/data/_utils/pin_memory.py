"""Memory that a device reads fast: here all is as it is."""

from typing import Any


def pin_memory(data: Any, device: object = None) -> Any:
    """The data."""
    return data
