"""torch.nn._reduction: how losses are reduced, as PyTorch's kernels number it, and as its first arguments said it."""

import warnings

_NUMBERS = {"none": 0, "mean": 1, "sum": 2}


def get_enum(reduction: str) -> int:
    """The number of "none", "mean" or "sum". Raises ValueError for another name."""
    if reduction == "elementwise_mean":
        text = "reduction='elementwise_mean' is deprecated. Please use reduction='mean' instead."
        warnings.warn(text, stacklevel=2)
        reduction = "mean"
    if reduction not in _NUMBERS:
        raise ValueError(f"{reduction} is not a valid value for reduction")
    return _NUMBERS[reduction]


def legacy_get_string(size_average: bool | None, reduce: bool | None, emit_warning: bool = True) -> str:
    """The name for the two flags of PyTorch's first losses."""
    if reduce is False:
        name = "none"
    else:
        name = "sum" if size_average is False else "mean"
    if emit_warning:
        text = f"size_average and reduce args will be deprecated, please use reduction='{name}' instead."
        warnings.warn(text, stacklevel=3)
    return name


def legacy_get_enum(size_average: bool | None, reduce: bool | None, emit_warning: bool = True) -> int:
    return get_enum(legacy_get_string(size_average, reduce, emit_warning))
