"""torch.utils.hooks: what takes a hook back."""

from collections.abc import Callable
from typing import Any

from pywebgpu.support.lazy import absent
from pywebgpu.tensor.grad_accumulator import RemovableHandle as RemovableHandle

__getattr__ = absent(__name__)


def unserializable_hook(f: Callable[..., Any]) -> Callable[..., Any]:
    """Decorates a hook that files leave out; here they leave out all."""
    f.__torch_unserializable__ = True  # type: ignore[attr-defined]
    return f


def warn_if_has_hooks(tensor: object) -> None:
    """A file has no hooks."""
