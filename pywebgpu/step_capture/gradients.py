"""What a step leaves in `.grad`, and how a run leaves it there as Python would: in new tensors, unless nobody can tell.

A step that makes gradients where there were none makes new tensors at each call. A run writes into those of the run
before where nothing but the parameters holds them: then it makes nothing, and nobody can see the difference.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter, is_
from sys import getrefcount
from typing import Any

from pywebgpu.graph import ir
from pywebgpu.runtime.storage import Storage, whole_of
from pywebgpu.step_capture.templates import Fresh, Made
from pywebgpu.tensor.base import TensorBase

_LISTED = next(map(getrefcount, [object()]))  # what is counted for an object that only a list holds
_grad, _storage, _whole, _node = attrgetter("_grad"), attrgetter("_storage"), attrgetter("whole"), attrgetter("node")


class NewGradients:
    """The gradients that a step makes anew: of each leaf, and what the last run made."""

    def __init__(self, ends: Sequence[tuple[TensorBase, Made]], *, are_shown: bool) -> None:
        """are_shown: the step also returns one of their storages, which no later run may write into."""
        self.ends = list(ends)
        self._are_shown = are_shown
        self._leaves = [leaf for leaf, _ in ends]
        self._forget()

    def _forget(self) -> None:
        self._grads: list[TensorBase] = []
        self._storages: list[Storage] = []
        self._wholes_of: list[Storage | None] = []
        self.wholes: dict[int, Storage] = {}  # those of the last run, by their number among the new storages

    def keep(self) -> None:
        """What is in `.grad` now is what the last run made."""
        self._grads = [leaf._grad for leaf in self._leaves]
        self._storages = [*map(_storage, self._grads)]
        self._wholes_of = [*map(_whole, self._storages)]
        self.wholes = {
            int(made.storage): whole_of(storage) for (_, made), storage in zip(self.ends, self._storages, strict=True)
        }

    def are_free(self, *, but_nodes: bool = False) -> bool:
        """Whether nobody else holds what the last run made, and it is as it was made."""
        if not self._grads or self._are_shown:
            return False
        in_place = sum(map(is_, map(_grad, self._leaves), self._grads))
        if sum(map(getrefcount, self._grads)) != _LISTED * len(self._grads) + in_place:
            return False
        if not all(map(is_, map(_storage, self._grads), self._storages)):
            return False
        if not all(map(is_, map(_whole, self._storages), self._wholes_of)):
            return False
        wholes = [*self.wholes.values()]
        n_flat = len(self._wholes_of) - self._wholes_of.count(None)
        n_own = len(self._storages) - n_flat
        # A storage is held by its gradient and here; one that is no part also among the wholes.
        if sum(map(getrefcount, self._storages)) != (_LISTED + 1) * len(self._storages) + n_own:
            return False
        # A flat one is held by its parts, twice with the list of this object; others by their gradient, and listed.
        if sum(map(getrefcount, wholes)) != (_LISTED + 1) * len(wholes) + 2 * n_flat + 2 * n_own:
            return False
        return but_nodes or sum(map(getrefcount, [*map(_node, wholes)])) == (_LISTED + 1) * len(wholes)

    def renew(self, storages: dict[int, Storage], tensors: dict[int, Any]) -> None:
        """Puts new tensors on these storages into `.grad`. tensors: by id of its template, what the run makes."""
        self._forget()
        for leaf, made in self.ends:
            whole = storages[int(made.storage)]
            own = whole if made.part is None else Storage.part_of(whole, made.part)
            leaf._grad = tensors[id(made)] = made.tensor(own, ())
        self.keep()

    def put_back(self) -> bool:
        """Puts the last tensors into `.grad`. Whether others were there."""
        changed = False
        for leaf, grad in zip(self._leaves, self._grads, strict=True):
            if leaf._grad is not grad:
                leaf._grad, changed = grad, True
        return changed

    def adopt(self) -> None:
        """An ordinary call made gradients: where nobody can tell, the last ones take their place."""
        new = NewGradients(self.ends, are_shown=self._are_shown)
        new.keep()
        if not (new.are_free(but_nodes=True) and self.are_free()) or not self._are_alike(new):
            self._forget()
            self.keep()
            return
        for number, storage in self.wholes.items():
            node = new.wholes[number].node
            storage.node.stale = True
            storage.node = ir.data(node.spec, node.buffer)
            storage.version += 1
            storage.settle()
        self.put_back()

    def _are_alike(self, other: NewGradients) -> bool:
        pairs = zip(self._storages, other._storages, strict=True)
        return all((a.whole is None) == (b.whole is None) and (a.whole is None or a.place == b.place) for a, b in pairs)


def ends_of(kept: Sequence[tuple[TensorBase, Any]]) -> tuple[list[tuple[TensorBase, Made]], list[Any]]:
    """Gradients that each run makes anew, and others: none, a tensor that was there, an argument."""
    new = [(leaf, end) for leaf, end in kept if isinstance(end, Made) and isinstance(end.storage, Fresh)]
    numbers = {id(leaf) for leaf, _ in new}
    return new, [(leaf, end) for leaf, end in kept if id(leaf) not in numbers]
