"""Tensors and gradients in pure Python on WebGPU, under PyTorch's names: `import pywebgpu as torch`."""

from importlib import import_module as _import_module
from math import e, inf, nan, pi
from typing import Any as _Any

from pywebgpu import devices as _devices
from pywebgpu import dtypes as _dtypes
from pywebgpu import errors
from pywebgpu.devices import device, set_default_device
from pywebgpu.dtypes import DType as dtype
from pywebgpu.dtypes import bfloat16, float16, float32, float64, int8, int16, int32, int64, uint8, uint32
from pywebgpu.dtypes import default as get_default_dtype
from pywebgpu.gradient.modes import enable_grad, inference_mode, is_grad_enabled, no_grad, set_grad_enabled
from pywebgpu.tensor import create as _create
from pywebgpu.tensor import functions as _functions
from pywebgpu.tensor import limits as _limits
from pywebgpu.tensor.base import Size
from pywebgpu.tensor.limits import finfo, iinfo
from pywebgpu.tensor.show import get_printoptions, printoptions, set_printoptions
from pywebgpu.tensor.tensor import Tensor

from pywebgpu.version import __version__

newaxis = None
half = float16
short, long = int16, int64
strided, preserve_format, contiguous_format, channels_last = (
    "torch.strided", "torch.preserve_format", "torch.contiguous_format", "torch.channels_last"
)  # fmt: skip

# Parts that are imported when they are first asked for.
_PARTS = frozenset(
    "accelerator amp autograd backends cuda data io linalg memory nn optim random utils version webgpu".split()
)
_FROM = {"save": "pywebgpu.io.state", "load": "pywebgpu.io.state", "compile": "pywebgpu.capture"}


def __getattr__(name: str) -> _Any:
    if name in _PARTS:
        return _import_module(f"pywebgpu.{name}")
    if name in _FROM:
        return getattr(_import_module(_FROM[name]), name)
    raise AttributeError(f"module 'pywebgpu' has no attribute {name!r}")


def set_default_dtype(d: dtype) -> None:
    """The dtype of new tensors of Python floats. Raises TypeError for one that is not floating."""
    if not isinstance(d, dtype) or not d.is_floating_point:
        raise TypeError(f"only floating-point types are supported as the default type, got {d}")
    _dtypes.set_default(d)


def set_default_tensor_type(t: _Any) -> None:
    """As set_default_dtype, by the name of a legacy tensor type."""
    set_default_dtype(_limits.legacy_dtype(t))


def get_default_device() -> device:
    """Where new tensors are made."""
    return device(_devices.default_device())


def is_floating_point(input: Tensor) -> _Any:
    return input.dtype.is_floating_point


def is_complex(input: Tensor) -> _Any:
    return False


globals().update(_functions.generated())
globals().update(_functions.public(_functions))
globals().update(_functions.public(_create))
globals().update(_limits.legacy())
bool, int, float, double = _dtypes.bool_, int32, float32, float64
