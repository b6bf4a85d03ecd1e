"""Where a captured step finds its inputs, where its outputs go, and what it returns: as data that each run reads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pywebgpu.devices.base import Buffer
from pywebgpu.graph.ir import Attrs
from pywebgpu.live import Live as FreeNumber
from pywebgpu.runtime.storage import Storage
from pywebgpu.step_capture import signature, surroundings
from pywebgpu.tensor.base import Path as Views
from pywebgpu.tensor.base import TensorBase


class Given(int):
    """The number of an argument."""


class Fresh(int):
    """The number of a storage that each run makes anew."""


Source = Given | Storage | Buffer  # where an input comes from; a buffer is a constant
Taker = Given | Fresh | Storage  # who takes an output


@dataclass(frozen=True, slots=True)
class Made:
    """A tensor that each run makes anew: on a storage, new or an argument's, or on a part of one, through views."""

    storage: Fresh | Given
    part: Attrs | None
    views: Views
    kind: type
    is_inference: bool

    def tensor(self, storage: Storage, path: Views) -> Any:
        made = self.kind._of(storage, (*path, *self.views))  # type: ignore[attr-defined]
        if self.is_inference:
            made._inference = True
        return made


def difference(old: Any, new: Any, title: str) -> str | None:
    """In what two templates of results differ, in words."""
    if old is new or old == new if isinstance(old, Given | Made) and type(old) is type(new) else old is new:
        return None
    if isinstance(old, FreeNumber) or isinstance(new, FreeNumber):
        return None if _number(old) == _number(new) else f"{title} was {_number(old)!r} and is {_number(new)!r}"
    if signature.is_container(old) and type(old) is type(new):
        (places, items), (others, found) = signature.items(old), signature.items(new)
        if places != others:
            return f"{title} has other items"
        inner = [difference(a, b, f"{title}[{at!r}]") for at, a, b in zip(places, items, found, strict=True)]
        return next((reason for reason in inner if reason is not None), None)
    return None if surroundings.is_same(old, new) else f"{title} is another {type(new).__name__}"


def _number(value: Any) -> Any:
    return value.value if isinstance(value, FreeNumber) else value


def tensor_class(value: TensorBase) -> type:
    kind: type = value._class()
    return kind
