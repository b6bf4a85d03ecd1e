"""What a step leaves in `.grad`, and how a run leaves it there as Python would: in new tensors, unless nobody can tell.

A step that makes gradients where there were none makes new tensors at each call. A run writes into those of the run
before where nothing but the parameters holds them: then it makes nothing, and nobody can see the difference.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter, is_
from sys import getrefcount
from typing import Any

from pywebgpu.ir.observer import change_count
from pywebgpu.runtime.storage import Storage, whole_of
from pywebgpu.step_capture.bindings import Fresh, GradientOf, Made
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
        self.forget()

    def forget(self) -> None:
        """Holds what the last run made no longer: an ordinary call drops it before it makes its own."""
        self._grads: list[TensorBase] = []
        self._storages: list[Storage] = []
        self._wholes_of: list[Storage | None] = []
        self._are_in_place = False
        self._changes = -1  # the number of changes up to which they had these storages
        self.wholes: dict[int, Storage] = {}  # those of the last run, by their number among the new storages
        self._n_flat = 0  # storages that are a part of a whole

    def keep(self) -> None:
        """What is in `.grad` now is what the last run made."""
        self._grads = [leaf._grad for leaf in self._leaves]
        self._storages = [*map(_storage, self._grads)]
        self._wholes_of = [*map(_whole, self._storages)]
        self._n_flat = sum(storage.whole is not None for storage in self._storages)
        for storage in self._storages:
            storage.forget_piece()  # It would count as one who holds the value of the whole.
        self.wholes = {
            _number(template): whole_of(storage)
            for (_, template), storage in zip(self.ends, self._storages, strict=True)
        }

    def are_free(self) -> bool:
        """Whether nobody else holds what the last run made, and it is as it was made."""
        if not self._grads or self._are_shown:
            return False
        in_place = sum(map(is_, map(_grad, self._leaves), self._grads))
        self._are_in_place = in_place == len(self._grads)
        if sum(map(getrefcount, self._grads)) != _LISTED * len(self._grads) + in_place:
            return False
        changes = change_count()  # Whatever gives a tensor another storage, or a storage another whole, counts.
        if changes != self._changes:
            if [*map(_storage, self._grads)] != self._storages or [*map(_whole, self._storages)] != self._wholes_of:
                return False  # Storages are compared by identity.
            self._changes = changes
        wholes = [*self.wholes.values()]
        n_flat = self._n_flat
        n_own = len(self._storages) - n_flat
        # A storage is held by its gradient and here; one that is no part also among the wholes.
        if sum(map(getrefcount, self._storages)) != (_LISTED + 1) * len(self._storages) + n_own:
            return False
        # A flat one is held by its parts, twice with the list of this object; others by their gradient, and listed.
        if sum(map(getrefcount, wholes)) != (_LISTED + 1) * len(wholes) + 2 * n_flat + 2 * n_own:
            return False
        return sum(map(getrefcount, [*map(_node, wholes)])) == (_LISTED + 1) * len(wholes)

    def renew(self, storages: dict[int, Storage], tensors: dict[int, Any]) -> None:
        """Puts new tensors on these storages into `.grad`. tensors: by id of its template, what the run makes."""
        self.forget()
        for leaf, template in self.ends:
            whole_storage = storages[_number(template)]
            own = whole_storage if template.part is None else Storage.part_of(whole_storage, template.part)
            leaf._grad = tensors[id(template)] = template.tensor(own, ())
        self.keep()

    def put_back(self) -> bool:
        """Puts the last tensors into `.grad`. Whether others were there."""
        if self._are_in_place:  # As `are_free` saw when the run began.
            return False
        changed = False
        for leaf, grad in zip(self._leaves, self._grads, strict=True):
            if leaf._grad is not grad:
                leaf._grad, changed = grad, True
        return changed


class GivenGradients:
    """The gradients that a step finds when it begins, and which it knows by their parameters alone.

    Where they lie may change from run to run; which of them share a flat storage, and where in it, may not.
    """

    def __init__(self, leaves: Sequence[TensorBase]) -> None:
        self._leaves = list(leaves)
        self._layout = self._now()
        self.leaves = set(map(id, leaves))

    def _now(self) -> list[Any]:
        number: dict[int, int] = {}
        layout = []
        for leaf in self._leaves:
            storage = leaf._grad._storage
            location = None if storage.whole is None else storage.location
            layout.append((number.setdefault(id(whole_of(storage)), len(number)), location, leaf._grad._path))
        return layout

    def changed(self) -> str | None:
        for leaf in self._leaves:
            if leaf._grad is None:
                return (
                    f"a parameter of shape {list(leaf.shape)} had a gradient and has no gradient when the step begins"
                )
        return None if self._now() == self._layout else "gradients lie in memory in another way when the step begins"

    def wholes(self) -> dict[int, GradientOf]:
        """By id of a storage, the first parameter whose gradient it has."""
        gradients: dict[int, GradientOf] = {}
        for number in range(len(self._leaves)):
            gradients.setdefault(id(self.whole(number)), GradientOf(number))
        return gradients

    def gradient(self, number: int) -> TensorBase:
        tensor: TensorBase = self._leaves[number]._grad
        return tensor

    def whole(self, number: int) -> Storage:
        return whole_of(self.gradient(number)._storage)

    def are_apart(self, others: frozenset[int] | set[int]) -> bool:
        """Whether none of them lies in these storages."""
        return others.isdisjoint(map(id, [self.whole(number) for number in range(len(self._leaves))]))


UNCHANGED = object()  # the end of a gradient: what was there when the step began


def _number(template: Made) -> int:
    assert isinstance(template.storage, Fresh)
    return int(template.storage)


def ends_of(kept: Sequence[tuple[TensorBase, Any]]) -> tuple[list[tuple[TensorBase, Made]], list[Any]]:
    """Gradients that each run makes anew, and others: none, a tensor that was there, an argument."""
    new = [
        (leaf, end)
        for leaf, end in kept
        if isinstance(end, Made) and isinstance(end.storage, Fresh) and end.base is None
    ]
    numbers = {id(leaf) for leaf, _ in new}
    return new, [(leaf, end) for leaf, end in kept if id(leaf) not in numbers]
