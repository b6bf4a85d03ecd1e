"""Types of tensors by their shapes, for annotations."""

from __future__ import annotations

from typing import Any


class TensorType:
    """A tensor whose dimensions are numbers, or Dyn for any: TensorType((2, Dyn)), TensorType[2, Dyn]."""

    def __init__(self, dim: Any) -> None:
        self.__origin__, self.__args__ = TensorType, dim

    @property
    def dims(self) -> Any:
        """The dimensions."""
        return self.__args__

    def __repr__(self) -> str:
        return f"TensorType[{self.dims}]"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TensorType) and [*self.dims] == [*other.dims]

    def __hash__(self) -> int:
        return hash(tuple(self.dims))

    def __class_getitem__(cls, dims: Any) -> TensorType:
        return TensorType(dims if isinstance(dims, tuple) else (dims,))


class _DynType:
    """Any dimension."""

    __name__ = "_DynType"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _DynType)

    def __hash__(self) -> int:
        return hash(_DynType)

    def __str__(self) -> str:
        return "Dyn"

    __repr__ = __str__


Dyn = _DynType()


def is_consistent(t1: Any, t2: Any) -> bool:
    """Whether two types may be of one value."""
    if Dyn in (t1, t2) or t1 == t2:
        return True
    return _is_pair(t1, t2) and all(map(is_consistent, t1.dims, t2.dims))


def is_more_precise(t1: Any, t2: Any) -> bool:
    """Whether a type says what another says, or more."""
    if t1 == t2 or t2 == Dyn:
        return True
    return _is_pair(t1, t2) and all(map(is_more_precise, t1.dims, t2.dims))


def _is_pair(t1: Any, t2: Any) -> bool:
    return isinstance(t1, TensorType) and isinstance(t2, TensorType) and len(t1.dims) == len(t2.dims)
