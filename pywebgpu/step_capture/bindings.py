"""Where a captured step finds its inputs, where its outputs go, and what it returns: as data that each run reads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from pywebgpu.devices.base import Buffer
from pywebgpu.ir.graph import Attrs
from pywebgpu.runtime.storage import Storage
from pywebgpu.step_capture import signature, surroundings
from pywebgpu.step_capture.free_number import FREE
from pywebgpu.step_capture.signature import Call
from pywebgpu.step_capture.surroundings import Surroundings
from pywebgpu.tensor.base import TensorBase
from pywebgpu.tensor.view import Path as Views


class Given(int):
    """The number of an argument."""


class GivenContainer(int):
    """The number of a list, a dict or a dataclass among the arguments."""


class Fresh(int):
    """The number of a storage that each run makes anew."""


class GradientOf(int):
    """The gradient that a parameter has when the step begins, or its memory, by the number of the parameter."""


Source = Given | GradientOf | Storage | Buffer  # where an input comes from; a buffer is a constant
Taker = Given | GradientOf | Fresh | Storage  # who takes an output


class Made:
    """A tensor that each run makes anew: on a storage (new, an argument's, or one that stays) or a part, through views.

    base: of what it is a view, as a template; None where it is none.
    No dataclass, which would be a container of results.
    """

    __slots__ = ("base", "is_inference", "kind", "part", "storage", "views")

    def __init__(
        self, storage: Fresh | Given | GradientOf | Storage, part: Attrs | None, views: Views, like: TensorBase
    ) -> None:
        self.storage, self.part, self.views = storage, part, views
        self.kind = type(like)
        self.is_inference = like._inference
        self.base: Any = None

    def is_like(self, other: Made) -> bool:
        mine, its = ([getattr(binding, name) for name in self.__slots__ if name != "base"] for binding in (self, other))
        is_same = mine == its and type(self.storage) is type(other.storage)
        return is_same and difference(self.base, other.base, "", ()) is None

    def tensor(self, storage: Storage, path: Views) -> TensorBase:
        tensor_made: Any = self.kind._of(storage, (*path, *self.views))
        if type(tensor_made) is not self.kind:
            tensor_made.__class__ = self.kind
        if self.is_inference:
            tensor_made._inference = True
        return tensor_made  # type: ignore[no-any-return]


@dataclass(slots=True, eq=False)
class Replays:
    """What changes from run to run of a step: the present call, and what guards have seen.

    n_calls: of all kinds, the captured one too. n_audits: of those.
    checked: the number of changes up to which all guards held. n_changes: how often there were some.
    modes: modules that were told whether they train, and what they were.
    is_changed: an audit has to look at the last of them. lines: where the program called it.
    """

    current: list[Call]
    surroundings: Surroundings
    n_calls: int = 1
    n_audits: int = 0
    checked: int = -1
    n_changes: int = 0
    is_changed: bool = False
    lines: set[tuple[int, int]] = field(default_factory=set)
    modes: list[tuple[dict[str, Any], bool]] = field(default_factory=list)

    def note_change(self) -> None:
        """What the step takes for granted changed, and it fits all the same. Many changes call for few audits."""
        self.n_changes += 1
        self.is_changed |= self.n_changes & (self.n_changes - 1) == 0


def difference(old: Any, new: object, title: str, values: Sequence[Any]) -> str | None:
    """In what two templates of results differ, in words. values: those of the first one's free numbers."""
    if old is new or (isinstance(old, Made) and isinstance(new, Made) and old.is_like(new)):
        return None
    if isinstance(old, Given | GivenContainer | GradientOf) and type(old) is type(new):
        return None if old == new else f"{title} is another tensor"
    if type(old) in FREE:
        old = values[old._index]
    if signature.is_container(old) and type(old) is type(new):
        (keys, items), (others, new_items) = signature.items_of(old), signature.items_of(new)
        if keys != others:
            return f"{title} has other items"
        inner = [
            difference(a, b, f"{title}[{key!r}]", values) for key, a, b in zip(keys, items, new_items, strict=True)
        ]
        return next((reason for reason in inner if reason is not None), None)
    if type(old) in signature.MUTABLE and type(old) is type(new):
        return None if old == new else f"{title} has other content"
    return None if surroundings.is_same(old, new) else f"{title} is another {type(new).__name__}"
