"""Many tensors as one flat tensor: what is done to all of them is then done at once.

The tensors stay what they are. Their storages become parts of the flat one's: a write to the flat tensor is seen by all
of them, and a write to one of them takes it out. Nothing is copied for a value that is still to be computed, nor for
tensors that already are the parts of one flat tensor (compiler/suballocation.py).
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any

from pywebgpu.dtypes import DType
from pywebgpu.ir.graph import Attrs, Spec, thread_state
from pywebgpu.ops import packing
from pywebgpu.runtime.storage import Storage, apart
from pywebgpu.support.shapes import Shape
from pywebgpu.tensor import layout
from pywebgpu.tensor.tensor import Tensor

LARGEST = 64 << 20  # bytes of a flat tensor where no kernel binds it; a larger tensor stays alone


@lru_cache(1024)
def _locations(shapes: tuple[Shape, ...], dtype: DType) -> tuple[Attrs, ...]:
    starts = packing.layout(shapes, dtype).starts
    return tuple([{"start": start, "shape": shape} for start, shape in zip(starts, shapes, strict=True)])


def _spec(storage: Storage) -> Spec:
    """That of a storage's value. It asks no part for its node, which would be made for this alone."""
    if storage.whole is not None:
        return Spec(storage.location["shape"], storage.whole.node.spec.dtype)
    return storage.node.spec


def may_move(tensor: Tensor) -> bool:
    """Whether the tensor's storage may become a part: it is all of it, has elements, no history goes through it, no
    compiled step writes to it alone, and no class of the program computes it."""
    if tensor._path and not layout.is_whole(tensor._path):
        return False
    storage = tensor._storage
    if storage in apart or storage.is_shared or hasattr(type(tensor), "__torch_dispatch__"):
        return False
    return storage.whole is not None or not (storage.node.requires or 0 in storage.node.spec.shape)


def are_alike(first: Tensor, other: Tensor) -> bool:
    """Whether both have one shape and dtype, and may become parts."""
    return may_move(first) and may_move(other) and _spec(first._storage) == _spec(other._storage)


def are_new(tensors: Sequence[Tensor]) -> bool:
    """Whether a step that is captured made all of them; true where none is. What was there before stays where it is."""
    if thread_state.observer is None:
        return True
    return thread_state.observer.have_created([tensor._storage for tensor in tensors])


def bundles(tensors: Iterable[Tensor], keys: Iterable[Any] | None = None) -> Iterator[list[int]]:
    """The numbers of the tensors that may be one flat tensor: of one device and dtype, of one key, not too large.

    What may not, or is the only one of its kind, comes alone, and so do several of one storage: a write to one of them
    takes it out of a flat tensor.
    """
    listed = list(tensors)
    open_: dict[Any, tuple[list[int], int]] = {}
    users = Counter([id(tensor._storage) for tensor in listed])
    for index, (tensor, key) in enumerate(zip(listed, keys or [None] * len(listed), strict=True)):
        storage = tensor._storage
        if users[id(storage)] > 1 or not may_move(tensor):
            yield [index]
            continue
        spec = _spec(storage)
        nbytes = packing.layout((spec.shape,), spec.dtype).size * spec.dtype.format.itemsize
        kind = (storage.device, spec.dtype, key)
        bundle, taken = open_.get(kind, ([], 0))
        if bundle and taken + nbytes > largest(storage):
            yield bundle
            bundle, taken = [], 0
        bundle.append(index)
        open_[kind] = bundle, taken + nbytes
    for bundle, _ in open_.values():
        yield bundle


def largest(storage: Storage) -> int:
    """Bytes of a flat tensor beside a storage, at most: what a kernel binds at once."""
    target = storage.device.target
    return target.limits.binding_bytes if target.wgsl else LARGEST


def gather(tensors: Sequence[Tensor], *, clean: bool = False, move: bool = True) -> Tensor:
    """The elements of all tensors, of one device and dtype, in one dimension. Between them anything, or zeros.

    move: their storages become parts of the result's, where they may; a write to it is then a write to all of them.
    """
    if thread_state.observer is not None:
        for tensor in tensors:
            thread_state.observer.see(tensor)
            thread_state.observer.settle(tensor._storage)
    storages = [tensor._storage for tensor in tensors]
    gathered = None if clean or _has_views(tensors) else _whole(storages)
    if gathered is not None:
        return Tensor._of(gathered, ())
    nodes = [tensor._node if tensor._path else tensor._storage.node for tensor in tensors]
    shapes = tuple([node.spec.shape for node in nodes])
    starts, size = packing.layout(shapes, nodes[0].spec.dtype)
    flat: Tensor = Tensor._new(packing.pack(*nodes, starts=starts, size=size, clean=clean), storages[0].device)
    if move:
        moved: set[int] = set()
        for tensor, location in zip(tensors, _locations(shapes, nodes[0].spec.dtype), strict=True):
            if may_move(tensor) and id(tensor._storage) not in moved:
                moved.add(id(tensor._storage))
                tensor._storage.move_into(flat._storage, location)
    return flat


def are_gathered(tensors: Sequence[Tensor]) -> bool:
    """Whether these are all the parts of a flat tensor, in this order."""
    return not _has_views(tensors) and _whole([tensor._storage for tensor in tensors]) is not None


def _has_views(tensors: Sequence[Tensor]) -> bool:
    """Whether any shows its storage other than it is."""
    return any(tensor._path and not layout.is_whole(tensor._path) for tensor in tensors)


def _whole(storages: list[Storage]) -> Storage | None:
    """The storage that these are all the parts of, in this order."""
    flat = storages[0].whole
    if flat is None or [storage.whole for storage in storages].count(flat) != len(storages):
        return None
    locations = tuple([storage.location for storage in storages])
    shapes = tuple([location["shape"] for location in locations])
    dtype = flat.node.spec.dtype
    if locations != _locations(shapes, dtype):
        return None
    return flat if flat.node.spec.shape == (packing.layout(shapes, dtype).size,) else None


def spread(flat: Tensor, alike: Sequence[Tensor]) -> list[Tensor]:
    """New tensors, the parts of `flat` at the locations that `gather` gives tensors of the shapes of `alike`."""
    shapes = tuple([tuple(tensor.shape) for tensor in alike])
    parts: list[Tensor] = []
    for location in _locations(shapes, flat.dtype):
        node = packing.piece(flat._node, **location)
        parts.append(Tensor._new(node, flat._storage.device))
        parts[-1]._storage.move_into(flat._storage, location)
    return parts
