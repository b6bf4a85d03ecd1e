"""torch._foreach_*: a function of tensors for each of a list of tensors, as optimizers of libraries call it.

Each name is made from the function of that name. Arguments that are lists have a value for each tensor, others are the
same for all. Names that end in `_` write into the first list and return it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

from pywebgpu.tensor.tensor import Tensor

# Elementwise functions, by name and in place; then those of which PyTorch has one form only.
_ELEMENTWISE = """
    abs acos add addcdiv addcmul asin atan ceil clamp_max clamp_min cos cosh div erf erfc exp expm1 floor frac lerp
    lgamma log log10 log1p log2 maximum minimum mul neg pow reciprocal round rsqrt sigmoid sign sin sinh sqrt sub tan
    tanh trunc
"""
ELEMENTWISE = _ELEMENTWISE.split()
SINGLE = ["clone", "copy_", "max", "mm", "norm", "powsum", "zero_"]
NAMES = [f"_foreach_{name}" for name in (*ELEMENTWISE, *(f"{name}_" for name in ELEMENTWISE), *SINGLE)]


def __getattr__(name: str) -> Any:
    if name not in NAMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    function = globals()[name] = _of_lists(name.removeprefix("_foreach_"))
    return function


def _of_lists(name: str) -> Callable[..., Any]:
    """The function of lists of one name."""
    is_in_place, function = name.endswith("_"), _function(name)

    def each(self: Any, *args: Any, **options: Any) -> Any:
        columns = [self, *args, *options.values()]
        lists = [value for value in columns if isinstance(value, list | tuple)]
        if not lists or not lists[0]:
            raise RuntimeError("Tensor list must have at least one tensor.")
        count = len(lists[0])
        for values in lists[1:]:
            if len(values) != count:
                _refuse(values, count)
        rows = zip(*(_repeated(value, count, name) for value in columns), strict=True)
        n_args = len(args) + 1
        results = [function(*row[:n_args], **dict(zip(options, row[n_args:], strict=True))) for row in rows]
        return self if is_in_place else tuple(results)

    each.__name__ = each.__qualname__ = f"_foreach_{name}"
    each.__doc__ = f"{name} of each tensor of a list."
    return each


def _refuse(values: Sequence[Any], count: int) -> None:
    if isinstance(values[0] if values else None, Tensor):
        raise RuntimeError(f"Tensor lists must have the same number of tensors, got {count} and {len(values)}")
    raise RuntimeError("Tensor list must have same number of elements as scalar list.")


def _repeated(value: Any, count: int, name: str) -> Sequence[Any]:
    """A value for each tensor. Where numbers scale products, a vector has one for each."""
    if isinstance(value, list | tuple):
        return value
    if isinstance(value, Tensor) and name.startswith("addc"):
        if value.dim() != 1:
            raise RuntimeError(f"Expected packed scalar Tensor to be of dimension 1. Got {value.dim()} instead.")
        if value.numel() != count:
            raise RuntimeError(
                f"Expected length of scalars to match input of length {count} but got {value.numel()} instead."
            )
        return [*value.tolist()]
    return [value] * count


def _function(name: str) -> Callable[..., Any]:
    """The function of one tensor."""
    stem = name.rstrip("_")
    own: Any = getattr(import_module("pywebgpu") if name == stem else Tensor, name, None)
    match stem:
        case "addcdiv" | "addcmul":
            return lambda self, first, second, value=1, scalars=None, **options: own(
                self, first, second, **{"value": value if scalars is None else scalars} | options
            )
        case "maximum" | "minimum":  # of numbers as well
            limit = "clamp_min" if stem == "maximum" else "clamp_max"
            return getattr(Tensor, limit + name.removeprefix(stem))  # type: ignore[no-any-return]
        case "norm":
            norm = import_module("pywebgpu.linalg").vector_norm
            return lambda self, ord=2, dtype=None: norm(self, ord, dtype=dtype)
        case "powsum":
            return lambda self, ord=2, dtype=None: (self if dtype is None else self.to(dtype)).abs().pow(ord).sum()
    assert own is not None, name
    return own  # type: ignore[no-any-return]


Indexed = tuple[list[list["Tensor | None"]], list[int]]


def _group_tensors_by_device_and_dtype(
    tensorlistlist: Sequence[Sequence[Tensor | None]], with_indices: bool = False
) -> dict[tuple[Any, Any], Indexed]:
    """Rows of lists of tensors, by device and dtype of the first list's: the lists of each, and their positions."""
    groups: dict[tuple[Any, Any], Indexed] = {}
    for position, row in enumerate(zip(*tensorlistlist, strict=True)):
        first = next(tensor for tensor in row if tensor is not None)
        lists, positions = groups.setdefault((first.device, first.dtype), ([[] for _ in row], []))
        for tensors, tensor in zip(lists, row, strict=True):
            tensors.append(tensor)
        if with_indices:
            positions.append(position)
    return groups
