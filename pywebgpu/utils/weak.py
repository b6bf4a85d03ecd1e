"""torch.utils.weak: dicts whose keys are objects themselves, not what they are equal to, and which end with them."""

from __future__ import annotations

import weakref
from collections.abc import Iterator, MutableMapping
from typing import Any, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class WeakIdRef(weakref.ref[Any]):
    """A reference that keeps nothing alive, and is equal to those to the same object."""

    __slots__ = ("_id",)

    def __init__(self, key: Any, callback: Any = None) -> None:
        super().__init__(key, callback)  # type: ignore[call-arg]  # The class is C's.
        self._id = id(key)

    def __hash__(self) -> int:
        return self._id

    def __eq__(self, other: object) -> bool:
        own, their = self(), other() if isinstance(other, weakref.ref) else None
        return self is other if own is None or their is None else own is their


class TensorWeakRef(WeakIdRef):
    """That to a tensor."""

    __slots__ = ()


class WeakIdKeyDictionary(MutableMapping[K, V]):
    """A dict by objects, whose entries go when their keys do."""

    def __init__(self, dict: Any = None, ref_type: type[WeakIdRef] = WeakIdRef) -> None:
        self.ref_type = ref_type
        self.data: MutableMapping[WeakIdRef, V] = {}
        own = weakref.ref(self)
        self._drop = lambda reference: _drop(own, reference)
        self.update(dict or {})

    def __setitem__(self, key: K, value: V) -> None:
        self.data[self.ref_type(key, self._drop)] = value

    def __getitem__(self, key: K) -> V:
        return self.data[self.ref_type(key)]

    def __delitem__(self, key: K) -> None:
        del self.data[self.ref_type(key)]

    def __contains__(self, key: object) -> bool:
        try:
            return self.ref_type(key) in self.data
        except TypeError:
            return False

    def __len__(self) -> int:
        return len(self.data)

    def __iter__(self) -> Iterator[K]:
        for reference in [*self.data]:
            key = reference()
            if key is not None:
                yield key

    def keyrefs(self) -> list[WeakIdRef]:
        return [*self.data]

    def copy(self) -> WeakIdKeyDictionary[K, V]:
        return type(self)(self)

    __copy__ = copy


class WeakTensorKeyDictionary(WeakIdKeyDictionary[K, V]):
    """That by tensors."""


def _drop(owner: Any, reference: WeakIdRef) -> None:
    dictionary = owner()
    if dictionary is not None:
        dictionary.data.pop(reference, None)
