"""torch._C, as far as libraries in Python read it."""

from collections.abc import Callable
from enum import Enum
from typing import Any

from pywebgpu import devices as _devices
from pywebgpu.nn import functional as _nn  # noqa: F401
from pywebgpu.sparse.invariants import check_sparse_tensor_invariants as _invariants
from pywebgpu.tensor.dispatch import disabled as _disabled_torch_function_impl  # noqa: F401
from pywebgpu.torch_api import absent as _absent
from pywebgpu.torch_api import stand_ins as _stand_ins
from pywebgpu.torch_api._ops import DispatchKey as DispatchKey
from pywebgpu.torch_api._ops import DispatchKeySet as DispatchKeySet
from pywebgpu.torch_api._ops import ExcludeDispatchKeyGuard as _ExcludeDispatchKeyGuard  # noqa: F401
from pywebgpu.torch_api._ops import below_autograd as _AutoDispatchBelowAutograd  # noqa: F401
from pywebgpu.torch_api.overrides import DisableTorchFunction as DisableTorchFunction
from pywebgpu.torch_api.overrides import DisableTorchFunctionSubclass as DisableTorchFunctionSubclass
from pywebgpu.torch_api.schema import FunctionSchema as FunctionSchema
from pywebgpu.torch_api.schema import parse_schema as parse_schema

_ConvBackend = Enum(  # What PyTorch's convolutions choose among; here the compiler chooses kernels.
    "_ConvBackend",
    "CudaDepthwise2d CudaDepthwise3d Cudnn CudnnTranspose Empty Miopen MiopenDepthwise MiopenTranspose Mkldnn "
    "MkldnnEmpty MkldnnTranspose Mps MpsTranspose NnpackSpatial Overrideable Slow2d Slow3d SlowDilated2d "
    "SlowDilated3d SlowTranspose2d SlowTranspose3d Winograd3x3Depthwise Xnnpack2d",
)
has_lapack = has_spectral = True


def _switch(value: Any) -> Callable[[Any], Any]:
    """A setting of TorchScript's executor, which is not here: set, it says what it was before."""
    values = [value]

    def set_and_get(new: Any) -> Any:
        values.append(new)
        return values.pop(0)

    return set_and_get


_jit_set_profiling_executor, _get_graph_executor_optimize = _switch(True), _switch(True)
_jit_set_profiling_mode, _jit_set_num_profiled_runs = _switch(True), _switch(1)


def _check_sparse_tensor_invariants() -> bool:
    return _invariants.is_enabled()


def _set_check_sparse_tensor_invariants(state: bool) -> None:
    (_invariants.enable if state else _invariants.disable)()


def _log_api_usage_once(event: str) -> None:
    """Nothing is counted here."""


def _get_tracing_state() -> None:
    """The trace that is being made: there is none."""


def _get_default_device() -> str:
    """Where new tensors are made."""
    return str(_devices.default_device())


def _get_privateuse1_backend_name() -> str:
    """The device that PyTorch does not bring."""
    return "webgpu"


def __getattr__(name: str) -> object:
    inner = None if name.startswith("__") else _stand_ins.module(f"_C.{name}")
    try:
        return inner or _absent.find("", name)
    except AttributeError:
        raise AttributeError(f"module 'torch._C' has no attribute {name!r}") from None
