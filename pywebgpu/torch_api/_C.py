"""torch._C, as far as libraries in Python read it."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from contextlib import nullcontext
from enum import Enum
from importlib import import_module
from typing import Any

from pywebgpu import devices, dtypes
from pywebgpu.autodiff import composite_gradient, grad_mode
from pywebgpu.sparse.invariants import check_sparse_tensor_invariants as _invariants
from pywebgpu.tensor import dispatch, grad_fn
from pywebgpu.tensor.dispatch import disabled as _disabled_torch_function_impl  # noqa: F401
from pywebgpu.tensor.grad_fn import GradFn
from pywebgpu.tensor.tensor import Tensor
from pywebgpu.torch_api import absent as _absent
from pywebgpu.torch_api import stand_ins as _stand_ins
from pywebgpu.torch_api._ops import DispatchKey as DispatchKey
from pywebgpu.torch_api._ops import DispatchKeySet as DispatchKeySet
from pywebgpu.torch_api._ops import ExcludeDispatchKeyGuard as _ExcludeDispatchKeyGuard  # noqa: F401
from pywebgpu.torch_api._ops import below_autograd as _AutoDispatchBelowAutograd  # noqa: F401
from pywebgpu.torch_api._ops import left_out as left_out
from pywebgpu.torch_api.overrides import DisableTorchFunction as DisableTorchFunction
from pywebgpu.torch_api.overrides import DisableTorchFunctionSubclass as DisableTorchFunctionSubclass
from pywebgpu.torch_api.overrides import _get_current_function_mode_stack
from pywebgpu.torch_api.schema import FunctionSchema as FunctionSchema
from pywebgpu.torch_api.schema import parse_schema as parse_schema

_ConvBackend = Enum(  # What PyTorch's convolutions choose among; here the compiler chooses kernels.
    "_ConvBackend",
    "CudaDepthwise2d CudaDepthwise3d Cudnn CudnnTranspose Empty Miopen MiopenDepthwise MiopenTranspose Mkldnn "
    "MkldnnEmpty MkldnnTranspose Mps MpsTranspose NnpackSpatial Overrideable Slow2d Slow3d SlowDilated2d "
    "SlowDilated3d SlowTranspose2d SlowTranspose3d Winograd3x3Depthwise Xnnpack2d",
)
_TensorMeta = type(Tensor)
_DisableFuncTorch = nullcontext  # Tensors stand for batches or tangents only while torch.func makes a graph.


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


def _get_default_device() -> str:
    """Where new tensors are made."""
    return str(devices.default_device())


is_grad_enabled, _set_grad_enabled = grad_mode.is_grad_enabled, grad_mode.set_grad_enabled
_set_fwd_grad_enabled, _is_fwd_grad_enabled = grad_mode.set_grad_enabled, grad_mode.is_grad_enabled


class _WeakTensorRef:
    """A reference that does not keep a tensor."""

    def __init__(self, tensor: Tensor) -> None:
        self._reference = weakref.ref(tensor)

    def expired(self) -> bool:
        """Whether the tensor is gone."""
        return self._reference() is None


def _current_graph_task_id() -> int:
    """The number of the backward that runs; -1 outside of one."""
    return composite_gradient.walks.number if composite_gradient.walks else -1


def _will_engine_execute_node(node: GradFn) -> bool:
    """Whether the backward that runs comes to a function."""
    if not composite_gradient.walks:
        raise RuntimeError("_will_engine_execute_node can only be called while a backward runs")
    return any(grad_fn.of(walked, node._wrap) == node for walked in composite_gradient.walks[0])


def __getattr__(name: str) -> object:
    """Its modules `_nn`, `_functorch` ...; what is not here, and why."""
    inner = None if name.startswith("__") else _stand_ins.module(f"_C.{name}")
    try:
        return inner or _absent.find("", name)
    except AttributeError:
        raise AttributeError(f"module 'torch._C' has no attribute {name!r}") from None


def _debug_only_are_vmap_fallback_warnings_enabled() -> bool:
    """Whether vmap says that it calls a function for each sample."""
    return bool(import_module("pywebgpu.func.batch").fallback.warns)


def _debug_only_display_vmap_fallback_warnings(enabled: bool) -> None:
    """Sets whether it does."""
    import_module("pywebgpu.func.batch").fallback.warns = enabled


def _dispatch_tls_local_exclude_set() -> DispatchKeySet:
    """The keys whose kernels are left out here."""
    return left_out()


_jit_emit_hooks: list[Any] = [None, None]


def _jit_set_emit_hooks(module_hook: Any, function_hook: Any) -> None:
    """What TorchScript's compiler would call with modules and functions: nothing is compiled by it."""
    _jit_emit_hooks[:] = module_hook, function_hook


def _jit_clear_class_registry() -> None:
    """Forgets the classes that TorchScript compiled: there are none."""


def _jit_get_emit_hooks() -> tuple[Any, ...]:
    return tuple(_jit_emit_hooks)


def _log_api_usage_once(event: str) -> None:
    """Nothing is counted here."""


def _get_tracing_state() -> None:
    """The trace that is being made: there is none."""


def _is_tracing() -> bool:
    return False


def _is_torch_function_enabled() -> bool:
    """Whether classes are asked what functions do."""
    return not dispatch.state.n_off


def _is_torch_function_all_disabled() -> bool:
    return bool(dispatch.state.n_all_off)


def _is_torch_function_mode_enabled() -> bool:
    """Whether a mode is on."""
    return bool(_get_current_function_mode_stack())


def _are_functorch_transforms_active() -> bool:
    """Whether tensors stand for batches or for tangents: here they never do while a function of torch.func runs."""
    return False


def is_batchedtensor(tensor: object) -> bool:
    """As _are_functorch_transforms_active, of one tensor."""
    return False


is_legacy_batchedtensor = is_functorch_wrapped_tensor = is_gradtrackingtensor = is_batchedtensor


def get_unwrapped(tensor: Tensor) -> Tensor:
    """The tensor itself."""
    return tensor


def _get_accelerator(check: bool | None = None) -> devices.device:
    """The device that is no host; cpu where there is none."""
    accelerator = import_module("pywebgpu.torch_api.accelerator")
    return accelerator.current_accelerator() if accelerator.is_available() else devices.device("cpu")


def _get_privateuse1_backend_name() -> str:
    return "webgpu"


def _is_alias_of(data: Tensor, other: Tensor) -> bool:
    """Whether both show the same memory."""
    return data._storage is other._storage


def _parse_to(*args: Any, **options: Any) -> tuple[Any, Any, bool, Any]:
    """The arguments of Tensor.to as (device, dtype, non_blocking, memory_format)."""
    memory_format, non_blocking = options.pop("memory_format", None), bool(options.pop("non_blocking", False))
    device, dtype = options.pop("device", None), options.pop("dtype", None)
    options.pop("copy", None)
    flags = [value for value in args if isinstance(value, bool)]
    non_blocking = flags[0] if flags else non_blocking
    for value in (value for value in (*args, *options.values()) if value is not None and not isinstance(value, bool)):
        if isinstance(value, dtypes.DType):
            dtype = value
        elif isinstance(value, Tensor):
            device, dtype = value.device, value.dtype
        else:
            device = value
    return None if device is None else devices.device(device), dtype, non_blocking, memory_format
