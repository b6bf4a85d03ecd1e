"""Tensors that a Module owns: parameters, which are trained, and buffers, which are not."""

from __future__ import annotations

from typing import Any, Self, SupportsIndex

from pywebgpu.ir.observer import share
from pywebgpu.support import lazy as _lazy
from pywebgpu.tensor import create, dispatch
from pywebgpu.tensor.tensor import Tensor


class _Conversion:
    """How converting a module changes its parameters (torch.__future__): by new ones, by exchange, or in place."""

    def __init__(self) -> None:
        self.overwrites = self.swaps = False


conversion = share("conversions of parameters", _Conversion())


class _OrMarked(type(Tensor)):  # type: ignore[misc]
    """Tensors of a program's own classes stay such when they become parameters: a mark says that they are."""

    def __instancecheck__(self, instance: object) -> bool:
        if type.__instancecheck__(self, instance):
            return True
        mark = self.__dict__.get("MARK", "")
        return bool(mark) and isinstance(instance, Tensor) and getattr(instance, mark, False)


def _marked(data: Tensor, mark: str, requires_grad: bool) -> Any:
    """A tensor of a program's own class, with its memory and a mark."""
    parameter: Any = data.detach()
    if type(parameter) is not type(data):
        raise RuntimeError(
            f"Creating a Parameter from an instance of type {type(data).__name__} requires that detach() returns an "
            f"instance of the same type, but return type {type(parameter).__name__} was found instead. To use the type "
            "as a Parameter, please correct the detach() semantics defined by its __torch_dispatch__() implementation."
        )
    parameter._require_grad(requires_grad)
    setattr(parameter, mark, True)
    return parameter


class Parameter(Tensor, metaclass=_OrMarked):
    """A tensor which a Module lists among its parameters when it becomes an attribute.

    It shares the elements of `data` and starts a history of its own.
    """

    __slots__ = ()
    MARK = "_is_param"
    __torch_function__ = staticmethod(dispatch.disabled)

    def __new__(cls, data: Tensor | None = None, requires_grad: bool = True) -> Self:
        if data is not None and type(data) not in (Tensor, cls) and not issubclass(type(data), Parameter):
            return _marked(data, cls.MARK, requires_grad)  # type: ignore[no-any-return]
        parameter: Any = (create.zeros(0) if data is None else data).detach()
        parameter.__class__ = cls
        parameter._require_grad(requires_grad)
        return parameter  # type: ignore[no-any-return]

    def __repr__(self) -> str:
        return "Parameter containing:\n" + super().__repr__()

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        if id(self) not in memo:
            memo[id(self)] = type(self)(self.detach().clone(), self.requires_grad)
        return memo[id(self)]  # type: ignore[no-any-return]

    def __reduce_ex__(self, protocol: SupportsIndex) -> tuple[Any, ...]:
        return type(self), (self.detach(), self.requires_grad)


class Buffer(Tensor):
    """A tensor which a Module lists among its buffers when it becomes an attribute.

    persistent: whether it is part of the module's state dict.
    """

    __slots__ = ()
    __torch_function__ = staticmethod(dispatch.disabled)
    persistent: bool

    def __new__(cls, data: Tensor | None = None, *, persistent: bool = True) -> Self:
        buffer: Any = (create.zeros(0) if data is None else data).detach()
        buffer.__class__ = cls
        buffer.persistent = persistent
        buffer._require_grad(data is not None and data.requires_grad)
        return buffer  # type: ignore[no-any-return]

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        if id(self) not in memo:
            memo[id(self)] = type(self)(self.detach().clone(), persistent=self.persistent)
        return memo[id(self)]  # type: ignore[no-any-return]


__getattr__ = _lazy.absent(__name__)
