"""What all functions that make tensors take: a size, and by keyword a dtype, a device and more."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from math import prod
from operator import index
from typing import TYPE_CHECKING, Any

from pywebgpu import devices, dtypes
from pywebgpu.devices.base import Device, check_room, check_supported
from pywebgpu.dtypes import DType
from pywebgpu.errors import ShapeError
from pywebgpu.ir.graph import Node
from pywebgpu.support.closed_types import strided
from pywebgpu.support.shapes import Shape
from pywebgpu.tensor import output_rules
from pywebgpu.tensor.base import TensorBase
from pywebgpu.tensor.memory_format import formatted
from pywebgpu.tensor.tensor import Tensor

if TYPE_CHECKING:
    from pywebgpu.tensor.types import Made, Sized

DeviceLike = str | int | devices.device | None
LARGE = 2**15  # Axes below it, as many as there are in practice, have fewer elements than anyone can count.
MOST = 2**60 - 1  # elements, whose bytes are counted in 64 bits
IGNORED = {"pin_memory", "names"}
WITHOUT_OUT = ("_like", "_indices", "scalar_tensor")  # ends of names
RANGES = {"arange", "linspace", "logspace", "range"}  # They fill an `out` of as many elements in any shape.


class FactoryOptions:
    """What all functions here take by keyword: dtype, device, requires_grad, out; some more are accepted and unused."""

    __slots__ = ("device", "dtype", "layout", "memory_format", "name", "out", "requires_grad", "source")

    def __init__(self, name: str, options: Made, dtype: DType | None = None, device: Device | None = None):
        dtype_option = options.pop("dtype", None)
        self.name, self.out = name, options.pop("out", None)
        self.memory_format: object = options.pop("memory_format", None)
        self.source: TensorBase | None = None  # what the result is like
        if self.out is not None:
            if name.endswith(WITHOUT_OUT):
                raise TypeError(f"{name}() got an unexpected keyword argument 'out'")
            dtype, device = self.out.dtype, self.out._storage.device
        self.dtype: DType = dtypes.PYTHONS.get(dtype_option) or dtype_option or dtype or dtypes.default()
        self.layout: object = options.pop("layout", None)
        wanted = options.pop("device", None)
        self.requires_grad: bool = options.pop("requires_grad", False)
        if not isinstance(self.dtype, DType):
            raise TypeError(f"{name}(): argument 'dtype' must be torch.dtype, not {type(self.dtype).__name__}")
        dtypes.check_held(self.dtype)
        for unknown in set(options) - IGNORED:
            raise TypeError(f"{name}() got an unexpected keyword argument '{unknown}'")
        self.device: Device = device if device is not None and wanted is None else devices.open_for(self.dtype, wanted)
        if self.out is not None and (self.dtype, self.device) != (dtype, device):
            kinds = (self.dtype.title, self.out.dtype.title), (self.device.name, self.out.device)
            what, pair = ("dtype", kinds[0]) if self.dtype is not dtype else ("device", kinds[1])
            raise RuntimeError(f"{what} {pair[0]} does not match {what} of out parameter ({pair[1]})")
        check_supported(self.dtype, self.device)

    def tensor(self, node: Node) -> Tensor:
        """The tensor of a node, as the options want it. Raises DeviceError for what the device could not hold."""
        check_room(node.spec, self.device)
        result: Tensor = Tensor._new(node, self.device)
        if self.layout not in (None, strided):
            sparse = import_module("pywebgpu.sparse.compressed").made_as(result, self.layout, self.name)
            return sparse.requires_grad_(self.requires_grad)  # type: ignore[no-any-return]
        if self.source is not None:
            result = formatted(result, self.source, self.memory_format)
        elif self.memory_format is not None:
            result = formatted(result, result, self.memory_format)
        if self.out is not None:
            if self.name in RANGES and self.out.numel() == result.numel():
                result = result.view(self.out.shape)
            result = output_rules.into(self.out, result, self.name, is_quiet=True)
        return result._require_grad() if self.requires_grad else result


def like(name: str, other: Tensor, options: Made) -> FactoryOptions:
    if not isinstance(other, TensorBase):
        raise TypeError(f"{name}(): argument 'input' (position 1) must be Tensor, not {type(other).__name__}")
    factory = FactoryOptions(name, options, other.dtype, other._storage.device)
    factory.source = other
    return factory


def sizes(args: Sequence[Any], name: str = "size") -> Shape:
    """f(2, 3), f((2, 3)) and f([2, 3]) -> (2, 3). Raises TypeError for what is no whole number."""
    raw = args[0] if len(args) == 1 and not hasattr(args[0], "__index__") else args
    if not isinstance(raw, list | tuple):
        raise TypeError(f"{name}(): argument 'size' (position 1) must be tuple of ints, not {type(raw).__name__}")
    try:
        out = tuple(index(n) for n in raw)
    except TypeError:
        kinds = ", ".join(type(n).__name__ for n in raw)
        raise TypeError(f"{name}(): argument 'size' must be tuple of ints, but found ({kinds})") from None
    if any(not 0 <= n < LARGE for n in out):
        _check_sizes(out)
    return out


def _check_sizes(shape: Shape) -> None:
    if min(shape) < 0:
        raise ShapeError(f"Trying to create tensor with negative dimension {min(shape)}: {list(shape)}")
    if prod(max(n, 1) for n in shape) > MOST:
        what = "Stride calculation" if 0 in shape else "Storage size calculation"
        raise ShapeError(f"{what} overflowed with sizes={list(shape)}")


def size(name: str, args: Sequence[Any], options: Sized) -> Shape:
    """The size given by position or as `size`."""
    if "size" in options:
        args = (*args, options.pop("size"))
    if not args:
        raise TypeError(f'{name}() missing 1 required positional arguments: "size"')
    return sizes(args, name)


def check_dtype(dtype: DType, device: DeviceLike) -> None:
    check_supported(dtype, devices.open_device(device))
