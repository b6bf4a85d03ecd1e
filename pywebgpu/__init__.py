"""Tensors and gradients in pure Python on WebGPU, under PyTorch's names: `import pywebgpu as torch`.

The functions of the namespace are the methods of Tensor and the public functions of tensor/; see _surface below.
"""

import sys as _sys
from importlib import import_module as _import_module
from importlib.machinery import PathFinder as _PathFinder
from inspect import isfunction as _is_function
from math import e as e
from math import inf as inf
from math import nan as nan
from math import pi as pi
from typing import Any as _Any

from pywebgpu import devices as _devices
from pywebgpu import dtypes as _dtypes
from pywebgpu import errors as errors
from pywebgpu.autodiff.grad_mode import enable_grad as enable_grad
from pywebgpu.autodiff.grad_mode import inference_mode as inference_mode
from pywebgpu.autodiff.grad_mode import is_grad_enabled as is_grad_enabled
from pywebgpu.autodiff.grad_mode import no_grad as no_grad
from pywebgpu.autodiff.grad_mode import set_grad_enabled as set_grad_enabled
from pywebgpu.devices import device as device
from pywebgpu.devices import set_default_device as set_default_device
from pywebgpu.dtypes import DType as dtype
from pywebgpu.dtypes import default as get_default_dtype  # noqa: F401
from pywebgpu.ir.graph import thread_state as _recording
from pywebgpu.settings import settings as _settings
from pywebgpu.support import closed_types as _closed_types
from pywebgpu.support import lazy as _lazy
from pywebgpu.support.closed_types import Layout as layout  # noqa: F401
from pywebgpu.support.closed_types import MemoryFormat as memory_format  # noqa: F401
from pywebgpu.tensor import create as _create
from pywebgpu.tensor import dispatch as _dispatch
from pywebgpu.tensor import functions as _functions
from pywebgpu.tensor import limits as _limits
from pywebgpu.tensor import random as _random
from pywebgpu.tensor import sorting as _ordered
from pywebgpu.tensor.limits import finfo as finfo
from pywebgpu.tensor.limits import iinfo as iinfo
from pywebgpu.tensor.size import Size as Size
from pywebgpu.tensor.tensor import Tensor as Tensor
from pywebgpu.version import __version__ as __version__

newaxis = None
default_generator = _random.default_generator
legacy_contiguous_format = _closed_types.contiguous_format

# Parts that are imported when they are first asked for.
_PARTS = {
    "__future__",
    "__config__", "_C", "_custom_ops", "_jit_internal", "_ops",
    "accelerator", "amp", "autograd", "backends", "cpu", "cuda", "data", "display", "distributions", "fft", "func",
    "fx", "hub", "io", "jit", "library", "linalg", "masked", "memory", "mps", "nn", "optim", "overrides", "profiler",
    "random", "serialization", "signal", "sparse", "special", "testing", "utils", "version", "webgpu",
}  # fmt: skip
_ELSEWHERE = {"save": "pywebgpu.io.state", "load": "pywebgpu.io.state", "compile": "pywebgpu.step_capture.function"}
_ELSEWHERE["capture"] = _ELSEWHERE["compile"]
_ELSEWHERE |= dict.fromkeys(("export", "save_program"), "pywebgpu.exporter.export")
_ELSEWHERE["load_program"] = "pywebgpu.exporter.player"
_ELSEWHERE["autocast"] = "pywebgpu.amp.autocast_mode"


def __getattr__(name: str) -> _Any:
    if name in _PARTS:
        found = f"pywebgpu.{name}"
    elif name in _limits.FUNCTIONAL:
        found = "pywebgpu.nn.functional"
    else:
        found = _ELSEWHERE.get(name) or _rare(name)
    try:
        module = _import_module(found) if found else None
    except ModuleNotFoundError as error:
        if error.name != found:
            raise
        module = None
    if module is not None:
        return module if name in _PARTS else getattr(module, name)
    is_own = name.startswith("__") or _PathFinder.find_spec(f"pywebgpu.{name}", __path__) is not None
    if found or is_own:  # `import` asks for each file of this folder as well.
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return _import_module("pywebgpu.torch_api.stand_ins").module(name) or _lazy.absent("pywebgpu")(name)


def _rare(name: str) -> str:
    """The module of a name that few programs use; "" of none. `import` asks for each file of this folder as well."""
    if name.startswith("__") or _PathFinder.find_spec(f"pywebgpu.{name}", __path__) is not None:
        return ""
    found: str = _import_module("pywebgpu.torch_api.rare_names").home(name)
    return found


def __dir__() -> list[str]:
    rare = _import_module("pywebgpu.torch_api.rare_names").NAMES
    return sorted({*globals(), *_PARTS, *_ELSEWHERE, *rare, *_limits.FUNCTIONAL})


def set_default_dtype(d: dtype) -> None:
    """The dtype of new tensors of Python floats. Raises TypeError for one that is not floating."""
    if not isinstance(d, dtype) or not d.is_floating_point:
        raise TypeError(f"only floating-point types are supported as the default type, got {d}")
    _dtypes.set_default(d)


def set_default_tensor_type(t: object) -> None:
    """As set_default_dtype, by a legacy tensor type or its name."""
    set_default_dtype(_limits.legacy_dtype(t))
    if ".cuda." in str(t):
        _devices.set_default_device("cuda")


def get_default_device() -> device:
    """Where new tensors are made."""
    return _devices.named(_devices.default_device())


def is_floating_point(input: Tensor) -> bool:
    """Whether its dtype is one of floats."""
    return input.dtype.is_floating_point


def is_inference_mode_enabled() -> bool:
    """Whether inference_mode is on."""
    return _recording.inference


def is_complex(input: Tensor) -> bool:
    return input.dtype.is_complex


def typename(obj: object) -> str:
    """The name of a tensor's type, as "torch.FloatTensor", of a function or class, or of an object's class."""
    if isinstance(obj, Tensor):
        return str(obj.type())
    name = getattr(obj, "__qualname__", getattr(obj, "__name__", None))
    if name is not None:
        return str(name)
    home = type(obj).__module__
    return f"{'' if home == 'builtins' else home + '.'}{type(obj).__qualname__}"


def _surface() -> dict[str, _Any]:
    """What is collected and not written by hand."""
    aliases = {"bool": "bool", "half": "float16", "float": "float32", "double": "float64", "short": "int16"}
    aliases |= {"int": "int32", "long": "int64", "chalf": "complex32", "cfloat": "complex64", "cdouble": "complex128"}
    functions = (
        _functions.generated()
        | _functions.public(_functions)
        | _functions.public(_ordered)
        | _functions.public(_create)
        | _functions.public(_random)
    )
    return (
        functions
        | {name: _dispatch.public(value, __name__) for name, value in functions.items() if _is_function(value)}
        | _limits.legacy()
        | _closed_types.ALL
        | _dtypes.BY_NAME
        | {name: _dtypes.BY_NAME[found] for name, found in aliases.items()}
    )


globals().update(_surface())

if _lazy.FacadeFinder not in _sys.meta_path:
    _sys.meta_path.insert(_sys.meta_path.index(_PathFinder) + 1, _lazy.FacadeFinder)

if _settings.profile:
    _import_module("pywebgpu.profiler.process").start(_settings.profile)
if _settings.nans != "0":
    _import_module("pywebgpu.autograd.anomaly").start(_settings.nans)
