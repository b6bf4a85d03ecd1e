"""What torch.asarray and from_dlpack take memory from: other libraries' tensors, capsules, buffers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pywebgpu import devices, dtypes
from pywebgpu.tensor import create, dispatch, from_data, host_memory
from pywebgpu.tensor.tensor import Tensor

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from typing_extensions import Buffer

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


def asarray(
    obj: Any,
    *,
    dtype: DType | None = None,
    device: DeviceLike = None,
    copy: bool | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """A tensor of the memory of a tensor, an array, a buffer, or what has DLPack's protocol; of data, one with a copy.

    copy: True: always a copy; False: never, or ValueError. Against torch: the same.
    """
    source = shown(obj, dtype, device)
    if copy is False and source is None:
        raise ValueError("can't alias arbitrary sequence into a tensor.")
    tensor = (
        create.tensor(obj, dtype=dtype, device=device) if source is None else create.as_tensor(source, dtype, device)
    )
    if copy is False and tensor is not source and source is not None:
        what, pair = ("dtype", (source.dtype, tensor.dtype)) if source.dtype is not tensor.dtype else ("device", ())
        if what == "device":
            raise ValueError(f"can't alias tensor from device '{source.device}' to '{tensor.device}'.")
        titles = [kind.title for kind in pair]
        raise ValueError(f"can't alias tensor with dtype '{titles[0]}' into dtype '{titles[1]}'.")
    if copy and source is not None and tensor is source:
        tensor = tensor.clone()
    if not (requires_grad or tensor.is_leaf):
        return tensor.detach()
    return tensor._require_grad(requires_grad)


def frombuffer(
    buffer: Buffer, *, dtype: DType, count: int = -1, offset: int = 0, requires_grad: bool = False
) -> Tensor:
    """A vector of `count` elements (-1: all) that lie in a buffer from byte `offset` on.

    On device cpu it has the buffer's own memory, but for dtypes that NumPy lacks; elsewhere the bytes are copied.
    """
    try:
        view = memoryview(buffer)
    except TypeError:
        raise ValueError("object does not implement Python buffer protocol.") from None
    view = view.cast("B") if view.nbytes else memoryview(b"")  # One of no elements cannot be cast.
    size, n_bytes = view.nbytes, dtype.itemsize
    if size == 0 or count == 0:
        raise ValueError(f"both buffer length ({size}) and count ({count}) must not be 0")
    if not 0 <= offset < size:
        raise ValueError(
            f"offset ({offset} bytes) must be non-negative and no greater than buffer length ({size} bytes) minus 1"
        )
    rest = size - offset
    if count < 0 and rest % n_bytes:
        raise ValueError(
            f"buffer length ({rest} bytes) after offset ({offset} bytes) must be a multiple of element size ({n_bytes})"
        )
    n = rest // n_bytes if count < 0 else count
    if n * n_bytes > rest:
        raise ValueError(
            f"requested buffer length ({n} * {n_bytes} bytes) after offset ({offset} bytes) must not be greater than "
            f"actual buffer length ({size} bytes)"
        )
    part = view[offset : offset + n * dtype.itemsize]
    device = devices.open_device(create.for_values())
    if hasattr(device, "is_native") and device.is_native(dtype):
        tensor: Tensor = host_memory.of_buffer(part, dtype, device)
    else:
        tensor = create.frombytes(part, dtype, (n,), device.name)
    return tensor._require_grad() if requires_grad else tensor


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
        return of_dlpack(obj)
    try:
        memoryview(obj)
    except TypeError:
        return None
    return frombuffer(obj, dtype=dtype or dtypes.default())


def is_capsule(obj: object) -> bool:
    return type(obj).__name__ == "PyCapsule"


def of_dlpack(obj: Any) -> Tensor:
    """A tensor of the memory of another library's, where that is the host's and may be written; else with a copy."""
    import numpy as np

    if isinstance(obj, Tensor):
        return obj.detach()
    giver: Any = _Held(obj) if is_capsule(obj) else obj
    if giver.__dlpack_device__()[0] != 1:
        return create.tensor(np.from_dlpack(obj.detach().cpu()))
    array = np.from_dlpack(giver.detach() if hasattr(giver, "detach") else giver)
    return create.from_numpy(np.asarray(_Writable(array)))


for _function in (asarray, frombuffer):
    globals()[_function.__name__] = dispatch.public(_function, __name__)
