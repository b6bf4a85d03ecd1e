"""Examples into a batch: a list of equal nests of values becomes one nest of tensors."""

import copy
from collections.abc import Callable, Mapping, MutableMapping, MutableSequence, Sequence
from typing import Any

from pywebgpu import dtypes, errors
from pywebgpu.ir.observer import share
from pywebgpu.tensor import create, dispatch, functions, tensor

FunctionMap = dict[Any, Callable[..., Any]]


def default_collate(batch: Sequence[Any]) -> Any:
    """Stacks tensors, arrays and numbers along a new first axis, inside whatever containers the examples have.

    Strings stay a list. Tuples become lists, as in torch, named tuples and mappings keep their class. What
    `default_collate_fn_map` says of further classes is done with them.
    Dtypes: ints int64; floats float64, or float32 on a device that has no float64.
    Raises: TypeError for values of another kind; RuntimeError when the examples differ in size.
    """
    return collate(batch, collate_fn_map=default_collate_fn_map)


def collate(batch: Sequence[Any], *, collate_fn_map: FunctionMap | None = None) -> Any:
    """Examples as one nest of what functions make of their values. collate_fn_map: a function for each class."""
    first, functions_of = batch[0], collate_fn_map or {}
    function = functions_of.get(type(first))
    if function is None:
        function = next((function for kind, function in functions_of.items() if isinstance(first, kind)), None)
    if function is not None:
        return function(batch, collate_fn_map=collate_fn_map)
    if functions_of and type(first).__module__ == "numpy":
        return _from_arrays(batch)
    match first:
        case Mapping():
            items = {key: collate([sample[key] for sample in batch], collate_fn_map=collate_fn_map) for key in first}
            return _mapping(first, items)
        case Sequence():
            if any(len(sample) != len(first) for sample in batch):
                raise RuntimeError("each element in list of batch should be of equal size")
            columns = zip(*batch, strict=True)
            return _sequence(first, [collate(column, collate_fn_map=collate_fn_map) for column in columns])
    raise TypeError(
        f"default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found {type(first)}"
    )


def collate_tensor_fn(batch: Sequence[Any], *, collate_fn_map: FunctionMap | None = None) -> tensor.Tensor:
    return _stack(list(batch))


_stack = dispatch.public(functions.stack)  # Classes of tensors say what becomes of them.


def collate_float_fn(batch: Sequence[float], *, collate_fn_map: FunctionMap | None = None) -> tensor.Tensor:
    return _floats(batch)


def collate_int_fn(batch: Sequence[int], *, collate_fn_map: FunctionMap | None = None) -> tensor.Tensor:
    return create.tensor(list(batch))


def collate_str_fn(batch: Any, *, collate_fn_map: FunctionMap | None = None) -> Any:
    return batch


# Libraries add classes of their own.
default_collate_fn_map: FunctionMap = share(
    "functions of collate",
    {
        tensor.Tensor: collate_tensor_fn,
        float: collate_float_fn,
        int: collate_int_fn,
        str: collate_str_fn,
        bytes: collate_str_fn,
    },
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
