"""Examples into a batch: a list of equal nests of values becomes one nest of tensors."""

import copy
from collections.abc import Mapping, MutableMapping, MutableSequence, Sequence
from typing import Any

from pywebgpu import dtypes, errors
from pywebgpu.tensor import create, functions, tensor


def default_collate(batch: Sequence[Any]) -> Any:
    """Stacks tensors, arrays and numbers along a new first axis, inside whatever containers the examples have.

    Strings stay a list. Tuples become lists, as in torch, named tuples and mappings keep their class.
    Dtypes: ints int64; floats float64, or float32 on a device that has no float64.
    Raises: TypeError for values of another kind; RuntimeError when the examples differ in size.
    """
    first = batch[0]
    if isinstance(first, tensor.Tensor):
        return functions.stack(list(batch))
    if type(first).__module__ == "numpy":
        return _from_arrays(batch)
    match first:
        case float():
            return _floats(batch)
        case int():
            return create.tensor(list(batch))
        case str() | bytes():
            return batch
        case Mapping():
            return _mapping(first, {key: default_collate([one[key] for one in batch]) for key in first})
        case Sequence():
            if any(len(one) != len(first) for one in batch):
                raise RuntimeError("each element in list of batch should be of equal size")
            return _sequence(first, [default_collate(column) for column in zip(*batch, strict=True)])
    raise TypeError(
        f"default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found {type(first)}"
    )


def default_convert(data: Any) -> Any:
    """Turns the arrays inside one example into tensors, for loaders that do not batch."""
    if isinstance(data, tensor.Tensor | str | bytes):
        return data
    if type(data).__module__ == "numpy":
        return _from_arrays(data) if data.dtype.kind in "biuf" else data
    match data:
        case Mapping():
            return _mapping(data, {key: default_convert(value) for key, value in data.items()})
        case Sequence():
            return _sequence(data, [default_convert(value) for value in data])
    return data


def _floats(batch: Sequence[float]) -> tensor.Tensor:
    try:
        return create.tensor(list(batch), dtype=dtypes.float64)
    except errors.DTypeError:
        return create.tensor(list(batch), dtype=dtypes.float32)


def _from_arrays(batch: Any) -> tensor.Tensor:
    import numpy as np

    array = np.asarray(batch)
    if array.dtype.kind not in "biuf":
        raise TypeError(f"default_collate: numpy arrays of dtype {array.dtype} do not become tensors")
    return create.from_numpy(array)


def _mapping(like: Mapping[Any, Any], items: dict[Any, Any]) -> object:
    """`items` in the class of `like`, with its other attributes, where that class can be copied."""
    try:
        if isinstance(like, MutableMapping):
            clone = copy.copy(like)
            clone.update(items)
            return clone
        return type(like)(items)  # type: ignore[call-arg]
    except TypeError:
        return items


def _sequence(like: Sequence[Any], items: list[Any]) -> object:
    if isinstance(like, tuple):
        return type(like)(*items) if hasattr(like, "_fields") else items
    try:
        if isinstance(like, MutableSequence):
            clone = copy.copy(like)
            for i, item in enumerate(items):
                clone[i] = item
            return clone
        return type(like)(items)  # type: ignore[call-arg]
    except TypeError:
        return items
