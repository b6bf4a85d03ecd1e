"""torch.storage: the memory of tensors."""

from pywebgpu.tensor.storages import TypedStorage as TypedStorage
from pywebgpu.tensor.storages import UntypedStorage as UntypedStorage


def _warn_typed_storage_removal(stacklevel: int = 2) -> None:
    """Typed storages stay."""
