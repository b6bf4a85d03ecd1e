"""autocast: products in float16 or bfloat16, what needs range or digits in float32, as lists.py says.

What is cast are the operands, as nodes of the graph: a weight that several ops of a step read is cast once, since
equal nodes are one, and a cast that one kernel can make on its way is none of its own. So there is no cache to drop.
"""

from __future__ import annotations

import functools
import threading
import warnings
from collections.abc import Callable
from types import TracebackType
from typing import Any, NamedTuple, ParamSpec, Self, TypeVar

from pywebgpu import devices, dtypes
from pywebgpu.amp import lists
from pywebgpu.amp.lists import Rule
from pywebgpu.composites import arithmetic
from pywebgpu.dtypes import DType
from pywebgpu.ir.graph import Node, thread_state, used
from pywebgpu.ir.observer import share
from pywebgpu.support.argument_types import typed
from pywebgpu.tensor.base import TensorBase

P = ParamSpec("P")
R = TypeVar("R")

HALVES = (dtypes.bfloat16, dtypes.float16)
ELSEWHERE = ("cuda", "mps", "xpu")  # what programs for PyTorch name where they mean the device that is here
BANNED = (
    "torch.nn.functional.binary_cross_entropy and torch.nn.BCELoss are unsafe to autocast.\n"
    "Many models use a sigmoid layer right before the binary cross entropy layer.\n"
    "In this case, combine the two layers using torch.nn.functional.binary_cross_entropy_with_logits\n"
    "or torch.nn.BCEWithLogitsLoss.  binary_cross_entropy_with_logits and BCEWithLogits are\n"
    "safe to autocast."
)


class Casting(NamedTuple):
    """What is done for tensors of a device: part of what a captured step is for."""

    device: str
    dtype: DType
    table: str  # the lists, by the name that was asked for: PyTorch's are others for "cpu"


class _Settings(threading.local):
    """What functions beside the context manager set: the dtypes of devices, and whether casts are kept."""

    def __init__(self) -> None:
        self.dtypes: dict[str, DType] = {}
        self.caches = True


_settings = share("autocast", _Settings())


class autocast:
    """Inside the `with` block or the decorated function, ops run in the dtype that is safe for them.

    device_type: "webgpu", "cpu" or "null"; "cuda", "mps" and "xpu" mean the default device. dtype: float16 or bfloat16;
    None is float16, on "cpu" bfloat16. cache_enabled is accepted and changes nothing.
    Raises: RuntimeError for another device; warns and does nothing for another dtype.
    """

    def __init__(
        self, device_type: str, dtype: DType | None = None, enabled: bool = True, cache_enabled: bool | None = None
    ) -> None:
        if not isinstance(device_type, str):
            raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
        if not is_autocast_available(device_type):
            raise RuntimeError(f"User specified an unsupported autocast device_type '{device_type}'")
        self.device = device_type
        self.fast_dtype = get_autocast_dtype(device_type) if dtype is None else dtype
        if enabled and self.fast_dtype not in HALVES:
            name = device_type.upper()
            warnings.warn(
                f"In {name} autocast, but the target dtype is not supported. Disabling autocast.\n{name} Autocast only "
                f"supports dtypes of {', '.join(map(str, HALVES))} currently.",
                stacklevel=2,
            )
            enabled = False
        self._enabled = enabled
        self._caches = _settings.caches if cache_enabled is None else cache_enabled
        self._before: list[tuple[tuple[Casting, ...], DType, bool]] = []

    def __enter__(self) -> Self:
        self._before.append((thread_state.autocast, get_autocast_dtype(self.device), _settings.caches))
        _settings.dtypes[self.device], _settings.caches = self.fast_dtype, self._caches
        set_autocast_enabled(self.device, self._enabled)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        thread_state.autocast, _settings.dtypes[self.device], _settings.caches = self._before.pop()

    def __call__(self, func: Callable[P, R]) -> Callable[P, R]:
        @functools.wraps(func)
        def decorated(*args: P.args, **kwargs: P.kwargs) -> R:
            with self:
                return func(*args, **kwargs)

        return decorated


# What is set


def is_autocast_available(device_type: str) -> bool:
    """Whether there can be such a device."""
    return device_type in ("webgpu", "cpu", "null", *ELSEWHERE)


@typed
def is_autocast_enabled(device_type: str = "cuda") -> bool:
    """Whether autocast is on for a type of device."""
    name = _device(device_type)
    return any(casting.device == name for casting in thread_state.autocast)


@typed
def set_autocast_enabled(device_type: str, enabled: bool) -> None:
    """Turns autocast on or off for a device, for this thread, until it is turned off or an outer block ends."""
    name = _device(device_type)
    others = tuple([casting for casting in thread_state.autocast if casting.device != name])
    if enabled:
        used.autocast = _called
        others = (*others, Casting(name, get_autocast_dtype(device_type), "cpu" if device_type == "cpu" else "gpu"))
    thread_state.autocast = others


def is_autocast_cpu_enabled() -> bool:
    """Whether autocast is on for device cpu."""
    return is_autocast_enabled("cpu")


@typed
def set_autocast_cpu_enabled(enabled: bool) -> None:
    """Switches autocast for device cpu."""
    set_autocast_enabled("cpu", enabled)


def get_autocast_gpu_dtype() -> DType:
    """The dtype that autocast takes on device webgpu."""
    return get_autocast_dtype("cuda")


def get_autocast_cpu_dtype() -> DType:
    """The dtype that autocast takes on device cpu."""
    return get_autocast_dtype("cpu")


@typed
def set_autocast_gpu_dtype(dtype: DType) -> None:
    """Sets the dtype that autocast takes on device webgpu."""
    set_autocast_dtype("cuda", dtype)


@typed
def set_autocast_cpu_dtype(dtype: DType) -> None:
    """Sets the dtype that autocast takes on device cpu."""
    set_autocast_dtype("cpu", dtype)


@typed
def get_autocast_dtype(device_type: str) -> DType:
    """What autocast of a device casts to."""
    return _settings.dtypes.get(device_type, dtypes.bfloat16 if device_type == "cpu" else dtypes.float16)


@typed
def set_autocast_dtype(device_type: str, dtype: DType) -> None:
    """Sets the dtype that autocast takes on a type of device."""
    _settings.dtypes[device_type] = dtype
    if is_autocast_enabled(device_type):
        set_autocast_enabled(device_type, True)


def is_autocast_cache_enabled() -> bool:
    """Whether autocast was asked to keep casts of weights; a step makes each once in any case."""
    return _settings.caches


@typed
def set_autocast_cache_enabled(enabled: bool) -> None:
    """Remembered only: see the file's head."""
    _settings.caches = enabled


def clear_autocast_cache() -> None:
    """Nothing: there is no cache."""


def _device(device_type: str) -> str:
    if device_type in ELSEWHERE and device_type not in devices.adopted:
        return devices.named(devices.default_device()).type
    return device_type


# What is cast


def _called(apply: Callable[..., Any], function: Callable[..., Any], args: tuple[Any, ...], kwargs: Any) -> Any:
    """apply(function, ...) in the dtype that is safe for it. What the function calls in turn is not asked again."""
    outside = thread_state.autocast
    casting = _casting(outside, (*args, *kwargs.values()))
    rule = None if casting is None else lists.rule(lists.CPU if casting.table == "cpu" else lists.GPU, function)
    thread_state.autocast = ()
    try:
        if casting is None or rule is None or (rule is Rule.FLOAT32_RESULT and kwargs.get("dtype") is not None):
            return apply(function, *args, **kwargs)
        if rule is Rule.BANNED:
            raise RuntimeError(BANNED)
        return apply(functools.partial(_cast_operands, rule, casting.dtype, function), *args, **kwargs)
    finally:
        thread_state.autocast = outside


def _casting(castings: tuple[Casting, ...], values: tuple[Any, ...]) -> Casting | None:
    """That of the device of the first tensor."""
    for value in values:
        if isinstance(value, TensorBase):
            name = devices.named(value._storage.device.name).type
            return next((casting for casting in castings if casting.device == name), None)
        if isinstance(value, list | tuple) and any(isinstance(item, TensorBase) for item in value):
            return _casting(castings, tuple(value))
    return None


def _cast_operands(rule: Rule, lower: DType, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    dtype = lower if rule is Rule.LOWER else dtypes.float32
    if rule is Rule.WIDEST:
        operand_dtypes: list[DType] = []
        _note_dtypes((*args, *kwargs.values()), operand_dtypes)
        dtype = functools.reduce(dtypes.promote, operand_dtypes, operand_dtypes[0]) if operand_dtypes else dtype
    cast_args = [_cast(value, dtype) for value in args]
    return function(*cast_args, **{name: _cast(value, dtype) for name, value in kwargs.items()})


def _is_cast(value: object) -> bool:
    """Whether autocast touches it."""
    return isinstance(value, Node) and value.spec.dtype.is_floating_point and value.spec.dtype is not dtypes.float64


def _cast(value: Any, dtype: DType) -> Any:
    if _is_cast(value):
        return arithmetic.cast(value, dtype)
    if isinstance(value, list | tuple) and any(isinstance(item, Node) for item in value):
        return [_cast(item, dtype) for item in value]
    return value


def _note_dtypes(values: Any, operand_dtypes: list[DType]) -> None:
    for value in values:
        if _is_cast(value):
            operand_dtypes.append(value.spec.dtype)
        elif isinstance(value, list | tuple):
            _note_dtypes(value, operand_dtypes)
