"""Layers that take the size of their input from the first one they see, and are ordinary layers from then on."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn, Self, SupportsIndex

from pywebgpu.autodiff import grad_mode
from pywebgpu.nn import channel_norm, conv, linear
from pywebgpu.nn.module import Module
from pywebgpu.nn.parameter import Buffer, Parameter
from pywebgpu.tensor import create, dispatch
from pywebgpu.tensor.tensor import Tensor

if TYPE_CHECKING:
    from pywebgpu.dtypes import DType
    from pywebgpu.tensor.factory_options import DeviceLike


class UninitializedTensorMixin(Tensor):
    """A tensor without a shape."""

    __slots__ = ()
    __torch_function__ = staticmethod(dispatch.disabled)
    cls_to_become: type[Any]

    def materialize(self, shape: int | Sequence[int], device: DeviceLike = None, dtype: DType | None = None) -> None:
        """Gives it a shape, and any values."""
        sizes = (shape,) if isinstance(shape, int) else tuple(shape)
        storage = create.empty(sizes, device=device or self.device, dtype=dtype or self.dtype)
        self.__class__ = self.cls_to_become
        self.data = storage

    @property
    def shape(self) -> NoReturn:
        raise RuntimeError(
            "Can't access the shape of an uninitialized parameter or buffer. This error usually happens in "
            "`load_state_dict` when trying to load an uninitialized parameter into an initialized one. Call `forward` "
            "to initialize the parameters before accessing their attributes."
        )

    def share_memory_(self) -> NoReturn:
        raise RuntimeError(
            "Can't share memory on an uninitialized parameter or buffer. Call `forward` to initialize the parameters "
            "before calling `module.share_memory()`."
        )

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"

    def __reduce_ex__(self, protocol: SupportsIndex) -> tuple[Any, ...]:
        return type(self), (self.requires_grad,)

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        if id(self) not in memo:
            memo[id(self)] = type(self)(self.requires_grad, device=self.device, dtype=self.dtype)  # type: ignore[call-arg]
        return memo[id(self)]  # type: ignore[no-any-return]


class UninitializedParameter(UninitializedTensorMixin, Parameter):
    """A parameter whose shape is not known yet. Any use but `materialize`, `to` and its like raises."""

    __slots__ = ()
    cls_to_become = Parameter

    def __new__(cls, requires_grad: bool = True, device: DeviceLike = None, dtype: DType | None = None) -> Self:
        return super().__new__(cls, create.zeros(0, device=device, dtype=dtype), requires_grad)

    def __init__(self, requires_grad: bool = True, device: DeviceLike = None, dtype: DType | None = None) -> None: ...


class UninitializedBuffer(UninitializedTensorMixin, Buffer):
    """A buffer whose shape is not known yet."""

    __slots__ = ()
    cls_to_become = Tensor

    def __new__(cls, requires_grad: bool = False, device: DeviceLike = None, dtype: DType | None = None) -> Self:
        return super().__new__(cls, create.zeros(0, device=device, dtype=dtype)._require_grad(requires_grad))

    def __init__(self, requires_grad: bool = False, device: DeviceLike = None, dtype: DType | None = None) -> None: ...


def is_lazy(param: object) -> bool:
    """Whether it is a parameter or buffer that has no shape yet."""
    return isinstance(param, UninitializedTensorMixin)


class LazyModuleMixin(Module):
    """A module that calls `initialize_parameters` with the arguments of its first call, and then is `cls_to_become`."""

    cls_to_become: type[Any] | None = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._load_hook = self._register_load_state_dict_pre_hook(self._take_shapes)
        self._initialize_hook = self.register_forward_pre_hook(_initialize, with_kwargs=True)

    def initialize_parameters(self, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError(
            f"initialize_parameters is not implemented for {type(self).__name__}: it gives the parameters their shapes"
        )

    def has_uninitialized_params(self) -> bool:
        """Whether a parameter or buffer has no shape yet."""
        held = itertools.chain(self._parameters.values(), self._buffers.values())
        return any(isinstance(tensor, UninitializedTensorMixin) for tensor in held)

    def _save_to_state_dict(self, destination: dict[str, Any], prefix: str, keep_vars: bool) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        for name, value in self._persistent_tensors():
            if isinstance(value, UninitializedTensorMixin):
                destination[prefix + name] = value

    def _take_shapes(self, state_dict: dict[str, Any], prefix: str, *rest: object) -> None:
        for name, value in self._persistent_tensors():
            saved = state_dict.get(prefix + name)
            if (
                isinstance(value, UninitializedTensorMixin)
                and saved is not None
                and not isinstance(saved, UninitializedTensorMixin)
            ):
                with grad_mode.no_grad():
                    value.materialize(saved.shape)


def _initialize(module: LazyModuleMixin, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    module.initialize_parameters(*args, **kwargs)
    if module.has_uninitialized_params():
        raise RuntimeError(f"module {module._get_name()} has not been fully initialized")
    module._initialize_hook.remove()
    module._load_hook.remove()
    del module._initialize_hook, module._load_hook
    if module.cls_to_become is not None:
        module.__class__ = module.cls_to_become


class _Lazy(LazyModuleMixin):
    """A layer made for one input channel, whose tensors lose their shapes until the first call.

    _size: the attribute that counts inputs; _axis: that of them in the tensors which have it.
    """

    _size: str
    _axis = 0
    _is_made = False

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if self._size == "num_features":  # PyTorch's lazy norms have both unless told otherwise, also of instances.
            for index, name in enumerate(("affine", "track_running_stats"), 2):
                if len(args) <= index:
                    kwargs.setdefault(name, True)
        groups = args[5] if len(args) > 5 else kwargs.get("groups", 1)
        super().__init__(groups if self._size == "in_channels" else 1, *args, **kwargs)
        self._shapes = {}
        kinds: tuple[tuple[dict[str, Any], type[Any]], ...] = (
            (self._parameters, UninitializedParameter), (self._buffers, UninitializedBuffer)
        )  # fmt: skip
        for held, kind in kinds:
            for name, value in list(held.items()):
                if value is not None and name != "num_batches_tracked":
                    self._shapes[name] = tuple(value.shape)
                    held[name] = kind(value.requires_grad, device=value.device, dtype=value.dtype)
        setattr(self, self._size, 0)
        self._is_made = True

    def reset_parameters(self) -> None:
        if self._is_made and not self.has_uninitialized_params() and getattr(self, self._size):
            super().reset_parameters()  # type: ignore[misc]

    def initialize_parameters(self, input: Tensor, *args: Any, **kwargs: Any) -> None:
        if not self.has_uninitialized_params():
            return
        count = self._count(input)
        setattr(self, self._size, count)
        for name, shape in self._shapes.items():
            full_shape = list(shape)
            if name == "weight" or self._size == "num_features":
                full_shape[self._axis] = count // (getattr(self, "groups", 1) if self._axis else 1)
            getattr(self, name).materialize(full_shape)
        self.reset_parameters()
        del self._shapes, self._is_made

    def _count(self, input: Tensor) -> int:
        if self._size == "in_features":
            return input.shape[-1]
        rank: int | None = getattr(self, "rank", None)
        if rank is None:
            return input.shape[1]
        if input.dim() not in (rank + 1, rank + 2):
            raise RuntimeError(
                f"Expected {rank + 1}D (unbatched) or {rank + 2}D (batched) input to {self._get_name()}, but got input "
                f"of size: {input.shape}"
            )
        count: int = input.shape[-rank - 1]
        if count % self.groups:
            raise ValueError("in_channels must be divisible by groups")
        return count


def _lazy(kind: type[Module], size: str, axis: int = 0) -> type[Any]:
    text = f"{kind.__name__} that takes {size} from its first input."
    names = {"cls_to_become": kind, "_size": size, "_axis": axis, "__doc__": text, "__module__": __name__}
    return type(f"Lazy{kind.__name__}", (_Lazy, kind), names)


LazyLinear = _lazy(linear.Linear, "in_features", 1)
LazyConv1d = _lazy(conv.Conv1d, "in_channels", 1)
LazyConv2d = _lazy(conv.Conv2d, "in_channels", 1)
LazyConv3d = _lazy(conv.Conv3d, "in_channels", 1)
LazyConvTranspose1d = _lazy(conv.ConvTranspose1d, "in_channels")
LazyConvTranspose2d = _lazy(conv.ConvTranspose2d, "in_channels")
LazyConvTranspose3d = _lazy(conv.ConvTranspose3d, "in_channels")
LazyBatchNorm1d = _lazy(channel_norm.BatchNorm1d, "num_features")
LazyBatchNorm2d = _lazy(channel_norm.BatchNorm2d, "num_features")
LazyBatchNorm3d = _lazy(channel_norm.BatchNorm3d, "num_features")
LazyInstanceNorm1d = _lazy(channel_norm.InstanceNorm1d, "num_features")
LazyInstanceNorm2d = _lazy(channel_norm.InstanceNorm2d, "num_features")
LazyInstanceNorm3d = _lazy(channel_norm.InstanceNorm3d, "num_features")
