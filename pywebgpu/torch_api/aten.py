"""torch.ops.aten: `aten.slice.Tensor(x, 0, 1, 3)` is the function of that name, in whichever overload."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from pywebgpu.dtypes import DType
from pywebgpu.ir.graph import used
from pywebgpu.support.closed_types import MemoryFormat
from pywebgpu.tensor.tensor import Tensor
from pywebgpu.torch_api._ops import IMPLICIT, OpOverload, OpOverloadPacket

_PLACES = "pywebgpu.torch_api.operators", "pywebgpu", "pywebgpu.nn.functional", "pywebgpu.special", "pywebgpu.linalg"

_OTHERS = frozenset((  # kernels of one kind of processor, and what vmap calls by itself
    "_efficient_attention_forward", "_flash_attention_forward", "_new_zeros_with_same_feature_meta",
    "_sparse_mm_reduce_impl",
))  # fmt: skip


def _refusing(name: str) -> Callable[..., Any]:
    def refuse(*args: Any, **options: Any) -> Any:
        """It is inside of PyTorch."""
        raise NotImplementedError(f"torch.ops.aten.{name} is inside of PyTorch: use the functions of torch")

    return refuse


class Overloads(OpOverloadPacket):
    """An operator whose overloads all are one function, which looks at its arguments."""

    def __init__(self, name: str, function: Callable[..., Any]) -> None:
        super().__init__("aten", name)
        self.__doc__, self._function = function.__doc__, function

    def __call__(self, *args: Any, **options: Any) -> Any:
        if used.overrides is not None:
            return used.overrides(self, self._function, args, options)
        return self._function(*args, **options)

    def __getattr__(self, overload: str) -> OpOverload:
        if overload.startswith("__") or "_function" not in self.__dict__:
            raise AttributeError(overload)
        if overload not in self._overloads:
            self._overloads[overload] = OpOverload(self, None, overload)
            self._overloads[overload].kernels[IMPLICIT] = self._function
        return self._overloads[overload]


def find(name: str) -> Overloads:
    """The operator of a name. Raises AttributeError for one that is not here."""
    own = OWN.get(name)
    if own is not None:
        return Overloads(name, own)
    for place in _PLACES:
        module = import_module(place)
        for spelled in (name, f"{name}_"):
            function = vars(module).get(spelled) or (getattr(module, spelled, None) if spelled == name else None)
            if callable(function) and not isinstance(function, type):
                return Overloads(name, function)
    method = getattr(Tensor, name, None)
    if callable(method):
        return Overloads(name, method)
    if name in _OTHERS:
        return Overloads(name, _refusing(name))
    raise AttributeError(f"torch.ops.aten has no operator {name!r} here")


def _to_copy(
    input: Tensor,
    *,
    dtype: DType | None = None,
    layout: object = None,
    device: Any = None,
    pin_memory: bool | None = None,
    non_blocking: bool = False,
    memory_format: MemoryFormat | None = None,
) -> Tensor:
    """A copy of a tensor, of another dtype or on another device."""
    result: Tensor = input.to(device=device or input.device, dtype=dtype or input.dtype, copy=True)
    return result if memory_format is None else result.contiguous(memory_format=memory_format)


def _softmax(input: Tensor, dim: int, half_to_float: bool) -> Tensor:
    result: Tensor = (input.float() if half_to_float else input).softmax(dim)
    return result


def _log_softmax(input: Tensor, dim: int, half_to_float: bool) -> Tensor:
    result: Tensor = (input.float() if half_to_float else input).log_softmax(dim)
    return result


def _index(input: Tensor, indices: Any) -> Tensor:
    """Elements by tensors of indices; None of an axis that stays whole."""
    result: Tensor = input[tuple(slice(None) if index is None else index for index in indices)]
    return result


# Operators that no function has as they are.
OWN: dict[str, Callable[..., Any]] = {
    "_to_copy": _to_copy,
    "_softmax": _softmax,
    "_log_softmax": _log_softmax,
    "_pin_memory": lambda input, device=None: input.pin_memory(),
    "index": _index,
    "_unsafe_index": _index,
    "_sparse_addmm": Tensor.addmm,
    "_unsafe_view": Tensor.reshape,
    "_reshape_alias": lambda input, size, stride: input.as_strided(size, stride),
    "_reshape_alias_copy": lambda input, size, stride: input.as_strided(size, stride).clone(),
    "alias": lambda input: input.view_as(input),
    "lift_fresh": lambda input: input,
    "lift_fresh_copy": Tensor.clone,
    "sym_size": Tensor.size,
    "sym_stride": Tensor.stride,
    "sym_numel": Tensor.numel,
    "sym_storage_offset": Tensor.storage_offset,
    "_local_scalar_dense": Tensor.item,
}


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    return find(name)
