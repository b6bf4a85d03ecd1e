"""Strides of results that few programs need: of windows and products over windows in a format, of stacks, of LAPACK."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import wraps
from math import prod
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from pywebgpu.dtypes import Kind
from pywebgpu.support.shapes import Shape, strides
from pywebgpu.tensor.base import TensorBase
from pywebgpu.tensor.memory_format import (
    FORMATTED,
    Operand,
    described,
    elementwise,
    joined,
    of_order,
    relaid,
    suggested_of,
)

if TYPE_CHECKING:
    from pywebgpu.tensor.tensor import Tensor

P = ParamSpec("P")
R = TypeVar("R")

LAST_OF_VOLUMES = (1, 2, 3, 0)  # the axes of one sample (c, d, h, w) whose channels lie last
PRODUCTS = frozenset(("conv", "conv_transpose"))
WINDOWS = PRODUCTS | {name for name in FORMATTED if "pool" in name}


def of_call(
    name: str, shape: Shape, tensors: Sequence[TensorBase], args: Sequence[Any], options: Mapping[str, Any]
) -> Shape | None:
    """The strides of what one of the functions of formats gives of tensors; None of a row-major result."""
    if name == "stack":
        return _stacked([described(tensor) for tensor in tensors], args[1] % len(shape))
    is_product, rank = name in PRODUCTS, options["rank"] if name in WINDOWS else 0
    operands = [described(tensor) for tensor in tensors[: 1 + is_product]]
    new: list[int] = []  # axes of one element, which PyTorch adds: it computes windows of one axis as of two
    if rank == 1 and name == "max_pool":
        return None
    if rank == 3 and name.startswith("max_pool") and len(shape) == 4:
        is_turned = operands[0][1] == of_order(operands[0][0], LAST_OF_VOLUMES)
        return of_order(shape, LAST_OF_VOLUMES) if is_turned else None
    if is_product and len(operands[0][0]) == rank + 1:  # One sample.
        operands[0], new = _grown(operands[0], (0,)), [0]
    if rank == 1:
        line = 2 if is_product else len(shape) - 1
        first = _grown(row_major(tensors[0]), new) if is_product else operands[0]
        operands, new = [_grown(operand, (line,)) for operand in (first, *operands[1:])], [*new, line]
    if len(operands[0][0]) not in FORMATTED[name] or (rank and len(operands[0][0]) != max(rank, 2) + 2):
        return None
    order = next(filter(None, [suggested_of(*operand) for operand in operands]), None)
    if order is None or len(order) != len(shape) + len(new) or (is_product and rank == 3 and _is_slow(operands, *args)):
        return None
    steps = list(of_order(_grown((shape, shape), new)[0], order))
    for axis in reversed(new):
        del steps[axis]
    return tuple(steps)


def _is_slow(operands: Sequence[Operand], x: object, weight: object, bias: object, *arguments: Any) -> bool:
    """Whether PyTorch computes a product over volumes itself, row by row, and not by the library that has formats."""
    steps, _, *between, last = arguments  # stride, padding, dilation, groups; or with the padding of the output
    is_transposed = len(between) == 2
    groups = between[1] if is_transposed else last
    if is_transposed:
        steps, more = ((n,) * 3 if isinstance(n, int) else tuple(n) for n in (steps, between[0]))
        if any(added >= step for added, step in zip(more, steps * 3, strict=False)):
            return True
    (shape, _), (kernel, _) = operands
    return not (groups > 1 or min(kernel[-2:]) > 3 or shape[0] > 1 or prod(shape[:4]) > 20480)


def _stacked(operands: Sequence[Operand], axis: int) -> Shape | None:
    """The strides of tensors joined along a new axis: joined along the one that is there, which is then split."""
    (shape, _), count = operands[0], len(operands)
    if axis == len(shape):
        return joined([_grown(operand, [axis]) for operand in operands], (*shape, count))
    steps = joined(operands, (*shape[:axis], shape[axis] * count, *shape[axis + 1 :]))
    return None if steps is None else (*steps[:axis], steps[axis] * shape[axis], *steps[axis:])


def combined(*operands: Operand) -> Operand:
    """Shape and strides of what is computed by element of operands of one shape."""
    shape = operands[0][0]
    return shape, elementwise(shape, operands) or strides(shape)


def _grown(operand: Operand, new: Iterable[int]) -> Operand:
    """Shape and strides with new axes of one element."""
    shape, steps = operand
    for axis in new:
        step = shape[axis] * steps[axis] if axis < len(shape) else 1
        shape, steps = (*shape[:axis], 1, *shape[axis:]), (*steps[:axis], step, *steps[axis:])
    return shape, steps


def row_major(value: object) -> Operand:
    """As `described`, of a copy that lies row by row."""
    shape = described(value)[0]
    return shape, strides(shape)


# Matrices as LAPACK writes them


def by_columns(function: Callable[P, R]) -> Callable[P, R]:
    """The matrices that a function gives lie column by column, as LAPACK writes them."""

    @wraps(function)
    def call(*args: P.args, **options: P.kwargs) -> R:
        result: Any = function(*args, **options)  # A tensor, or a tuple with some in it.
        first: Any = next(iter((*args, *options.values())))
        parts = [
            columns(part)
            if isinstance(part, TensorBase) and part.ndim >= max(first.ndim, 2) and part.dtype.kind is Kind.FLOAT
            else part
            for part in (result if isinstance(result, tuple) else (result,))
        ]
        returned: Any = parts[0]
        if isinstance(result, tuple):
            returned = result._make(parts) if hasattr(result, "_make") else tuple(parts)
        return returned  # type: ignore[no-any-return]

    return call


def columns(matrices: TensorBase, *, by_rows: bool = False) -> Tensor:
    """Matrices, column by column in memory; or by rows, as solutions of X A = B are. A vector is left as it is."""
    if matrices.ndim < 2:
        return matrices  # type: ignore[return-value]  # Tensors are of that class.
    axes = (*range(matrices.ndim - 2), matrices.ndim - 1, matrices.ndim - 2)
    return relaid(matrices, None if by_rows else of_order(tuple(matrices.shape), axes))
