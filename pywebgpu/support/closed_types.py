"""Types with a fixed set of values, which programs compare by identity: torch.dtype, torch.layout and their like.

A value is one object for good: copies and pickles of it are that object, and programs can make no other.
"""

from __future__ import annotations

from typing import Any, ClassVar, Self


class Closed:
    """The base of such types. `name`: what a value is called in the namespace."""

    __slots__ = ("name",)
    name: str
    _title: ClassVar[str]  # what messages call the type

    def __new__(cls, *args: object, **options: object) -> Self:
        raise TypeError(f"cannot create '{cls._title}' instances")

    def __init_subclass__(cls, title: str = "") -> None:
        """title: of one of this library's own types."""
        if not title:
            raise TypeError(f"type '{cls._title}' is not an acceptable base type")
        cls._title, cls.__module__ = title, "pywebgpu"
        cls.__qualname__ = cls.__name__ = title.rpartition(".")[2]

    @classmethod
    def _value(cls, **fields: Any) -> Self:
        value = object.__new__(cls)
        for name, field in fields.items():
            object.__setattr__(value, name, field)
        return value

    def __setattr__(self, name: str, value: object) -> None:
        what = "is not writable" if hasattr(type(self), name) else "does not exist"
        raise AttributeError(f"attribute '{name}' of '{self._title}' objects {what}")

    __delattr__ = __setattr__  # type: ignore[assignment]  # It refuses, whatever the arguments.

    def __repr__(self) -> str:
        return f"torch.{self.name}"

    def __reduce__(self) -> str:
        return self.name


class Layout(Closed, title="torch.layout"):
    """Whether a tensor's elements lie at steps, or are known by coordinates."""

    __slots__ = ()


class MemoryFormat(Closed, title="torch.memory_format"):
    """The order of a tensor's axes in memory."""

    __slots__ = ()


_LAYOUTS = ["strided", "sparse_coo", "sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc", "jagged", "_mkldnn"]
strided, sparse_coo, sparse_csr, sparse_csc, sparse_bsr, sparse_bsc, *_ = _KINDS = [
    Layout._value(name=name) for name in _LAYOUTS
]
_FORMATS = ["contiguous_format", "preserve_format", "channels_last", "channels_last_3d"]
_ORDERS = contiguous_format, preserve_format, channels_last, channels_last_3d = [
    MemoryFormat._value(name=name) for name in _FORMATS
]
ALL: dict[str, Closed] = {value.name: value for value in (*_KINDS, *_ORDERS)}
