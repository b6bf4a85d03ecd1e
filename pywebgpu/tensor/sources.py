"""What torch.asarray and from_dlpack take memory from: other libraries' tensors, capsules, buffers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pywebgpu import dtypes
from pywebgpu.tensor import create, from_data
from pywebgpu.tensor.tensor import Tensor

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pywebgpu.dtypes import DType
    from pywebgpu.tensor.factory_options import DeviceLike


class _Held:
    """A capsule of DLPack's as something that gives it, once."""

    def __init__(self, capsule: object) -> None:
        self.capsule = capsule

    def __dlpack__(self, **options: object) -> object:
        return self.capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0


class _Writable:
    """The memory of an array that NumPy takes for one that may only be read, as capsules do not say."""

    def __init__(self, array: NDArray[Any]) -> None:
        self.array = array
        facts = array.__array_interface__
        self.__array_interface__ = facts | {"data": (facts["data"][0], False)}


def shown(obj: Any, dtype: DType | None, device: DeviceLike) -> Tensor | None:
    """A tensor that shows the memory of an object, or is it; None of what has no memory to show."""
    if isinstance(obj, Tensor):
        return obj
    if hasattr(obj, "_as_tensor"):  # A storage.
        return obj._as_tensor(dtype)  # type: ignore[no-any-return]
    if from_data.is_array(obj):
        array: Any = obj
        return create.from_numpy(array) if array.shape else None
    if is_capsule(obj) or hasattr(obj, "__dlpack__"):
        return from_dlpack(obj)
    try:
        memoryview(obj)
    except TypeError:
        return None
    return create.frombuffer(obj, dtype=dtype or dtypes.default())


def is_capsule(obj: object) -> bool:
    return type(obj).__name__ == "PyCapsule"


def from_dlpack(obj: Any) -> Tensor:
    """A tensor of the memory of another library's, where that is the host's and may be written; else with a copy."""
    import numpy as np

    if isinstance(obj, Tensor):
        return obj.detach()
    giver: Any = _Held(obj) if is_capsule(obj) else obj
    if giver.__dlpack_device__()[0] != 1:
        return create.tensor(np.from_dlpack(obj.detach().cpu()))
    array = np.from_dlpack(giver.detach() if hasattr(giver, "detach") else giver)
    return create.from_numpy(np.asarray(_Writable(array)))
