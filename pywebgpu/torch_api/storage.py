"""torch.storage: the memory of tensors."""

from pywebgpu.dtypes import DType
from pywebgpu.tensor.storages import LEGACY
from pywebgpu.tensor.storages import TypedStorage as TypedStorage
from pywebgpu.tensor.storages import UntypedStorage as UntypedStorage

_always_warns = [False]


def _dtype_to_storage_type_map() -> dict[DType, str]:
    """The names of the older classes of typed storages."""
    return {dtype: storage.name for dtype, storage in LEGACY.items()}


def _warn_typed_storage_removal(stacklevel: int = 2) -> None:
    """Typed storages stay: nothing is warned of."""


def _get_always_warn_typed_storage_removal() -> bool:
    return _always_warns[0]


def _set_always_warn_typed_storage_removal(always_warn: bool) -> None:
    _always_warns[0] = always_warn
