"""Modules that hold parameters: by number, by name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, KeysView
from operator import index
from typing import TYPE_CHECKING, Any, Self

from pywebgpu.nn.module import Module
from pywebgpu.nn.parameter import Parameter
from pywebgpu.tensor.tensor import Tensor

if TYPE_CHECKING:
    from pywebgpu.nn.types import Parameters


class ParameterList(Module):
    """A list of parameters; tensors become parameters."""

    def __init__(self, values: Iterable[Any] | None = None) -> None:
        super().__init__()
        self._size = 0
        if values is not None:
            self.extend(values)

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[Any]:
        return iter(getattr(self, str(position)) for position in range(self._size))

    def __getitem__(self, position: int | slice) -> Any:
        if isinstance(position, slice):
            return type(self)(list(self)[position])
        return getattr(self, self._key(position))

    def __setitem__(self, position: int, value: object) -> None:
        setattr(self, self._key(position), _as_parameter(value))

    def _key(self, position: int) -> str:
        position = index(position)
        if not -self._size <= position < self._size:
            raise IndexError(f"index {position} is out of range")
        return str(position % self._size)

    def append(self, value: object) -> Self:
        """Adds a value at the end."""
        setattr(self, str(self._size), _as_parameter(value))
        self._size += 1
        return self

    def extend(self, values: Iterable[Any]) -> Self:
        """Adds values at the end."""
        if not isinstance(values, Iterable) or isinstance(values, Tensor):
            raise TypeError(f"ParameterList.extend should be called with an iterable, but got {type(values).__name__}")
        for value in list(values):
            self.append(value)
        return self

    def __iadd__(self, values: Iterable[Any]) -> Self:
        return self.extend(values)

    def pop(self) -> Any:
        """Takes the last value away and returns it."""
        value = self[-1]
        delattr(self, str(self._size - 1))
        self._size -= 1
        return value

    def extra_repr(self) -> str:
        return _described(((str(position), value) for position, value in enumerate(self)), lambda x: str(x.dtype))


class ParameterDict(Module):
    """Parameters by name; tensors become parameters."""

    def __init__(self, parameters: Parameters | None = None) -> None:
        super().__init__()
        self._keys: dict[str, None] = {}
        if parameters is not None:
            self.update(parameters)

    def __getitem__(self, key: str) -> Any:
        if key not in self._keys:
            raise KeyError(key)
        return getattr(self, key)

    def __setitem__(self, key: str, value: object) -> None:
        self._keys[key] = None
        setattr(self, key, _as_parameter(value))

    def __delitem__(self, key: str) -> None:
        del self._keys[key]
        delattr(self, key)

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys)

    def __contains__(self, key: str) -> bool:
        return key in self._keys

    def keys(self) -> KeysView[str]:
        return self._keys.keys()

    def values(self) -> Iterator[Any]:
        return (self[key] for key in self._keys)

    def items(self) -> Iterator[tuple[str, Any]]:
        return ((key, self[key]) for key in self._keys)

    def get(self, key: str, default: object = None) -> Any:
        return getattr(self, key) if key in self._keys else default

    def pop(self, key: str) -> Any:
        """Takes a value away and returns it."""
        value = self[key]
        del self[key]
        return value

    def clear(self) -> None:
        for key in list(self._keys):
            del self[key]

    def update(self, parameters: Parameters) -> None:
        """Adds values, replacing those of the same names."""
        for key, value in parameters.items() if hasattr(parameters, "items") else parameters:
            self[key] = value

    def extra_repr(self) -> str:
        return _described(self.items(), lambda x: str(x.type()))


def _as_parameter(value: object) -> object:
    return Parameter(value) if isinstance(value, Tensor) and not isinstance(value, Parameter) else value


def _described(items: Iterable[tuple[str, Any]], kind: Callable[[Any], str]) -> str:
    lines = []
    for key, value in items:
        if isinstance(value, Tensor):
            size = "x".join(str(n) for n in value.shape)
            lines.append(f"  ({key}): Parameter containing: [{kind(value)} of size {size}]")
        else:
            lines.append(f"  ({key}): Object of type: {type(value).__name__}")
    return "\n".join(lines)
