"""Einstein sums of tensors, and how PyTorch's lie in memory: products of matrices, or by element, a pair at a time."""

from __future__ import annotations

import string
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from pywebgpu.composites import einsum as products
from pywebgpu.support.shapes import Shape, strides
from pywebgpu.tensor import dispatch
from pywebgpu.tensor.apply import apply
from pywebgpu.tensor.base import TensorBase
from pywebgpu.tensor.memory_format import Operand, described, elementwise, laid_out, of_order
from pywebgpu.tensor.tensor import Tensor


def einsum(*args: Any) -> Tensor:
    """Sums products over the labels that the output does not name: einsum("bij,bjk->bik", x, y).

    Or by numbers: einsum(x, [0, 1, 2], y, [0, 2, 3], [0, 1, 3]).
    """
    if len(args) < 2:
        raise ValueError(
            "einsum(): must specify the equation string and at least one operand, or at least one operand and its "
            "subscripts list"
        )
    equation, *operands = args if isinstance(args[0], str) else _by_letters(args)
    if len(operands) == 1 and not isinstance(operands[0], TensorBase):
        operands = list(operands[0])
    result: Tensor = apply(products.einsum, equation, *operands)
    return laid_out(result, _layout(equation, *map(described, operands))) if result.ndim > 1 else result


def _by_letters(args: Sequence[Any]) -> list[Any]:
    """Operands, each followed by the numbers of its axes, and maybe the output's: as an equation and operands."""
    letters = string.ascii_uppercase + string.ascii_lowercase
    terms = []
    for axes in [*args[1::2], *args[len(args) - 1 :: 2][: len(args) % 2]]:
        if any(axis is not ... and not 0 <= axis < len(letters) for axis in axes):
            raise ValueError("einsum(): subscripts in sublist format must be within the range [0, 52)")
        terms.append("".join(["..." if axis is ... else letters[axis] for axis in axes]))
    output = [terms.pop()] if len(args) % 2 else []
    return ["->".join([",".join(terms), *output]), *args[: 2 * len(terms) : 2]]


@lru_cache(1024)
def _layout(equation: str, *operands: Operand) -> Shape | None:
    """The strides of the result; None of one operand, which is a sum or has moved axes.

    Every operand has all labels, those of the output first; what it lacks, or what was summed, is of one element.
    """
    terms, output = products.parse(equation, [len(shape) for shape, _ in operands])
    summed = sorted({label for term in terms for label in term} - {*output})
    result: Operand | None = None
    for position, (term, (shape, steps)) in enumerate(zip(terms, operands, strict=True)):
        axes: dict[str, tuple[int, int]] = {}
        for label, n, step in zip(term, shape, steps, strict=True):
            axes[label] = n, step + axes.get(label, (n, 0))[1]  # A label that stands twice is a diagonal.
        sizes, own = zip(*[axes.get(label, (1, 1)) for label in (*output, *summed)], strict=True)
        later = {label for other in terms[position + 1 :] for label in other}
        ended = {place for place, label in enumerate(summed, len(output)) if label not in later}
        result = (sizes, own) if result is None else _pair(result, (sizes, own), ended)
    return None if result is None or len(operands) == 1 else result[1][: len(output)]


def _pair(left: Operand, right: Operand, ended: set[int]) -> Operand:
    """The product of two operands, with the axes that have `ended` summed."""
    both = {axis for axis, (m, n) in enumerate(zip(left[0], right[0], strict=True)) if m != 1 != n}
    left, right = (_summed(operand, ended - both) for operand in (left, right))
    sizes = tuple(max(m, n) if 0 not in (m, n) else 0 for m, n in zip(left[0], right[0], strict=True))
    if not ended & both:
        return sizes, elementwise(sizes, (left, right)) or strides(sizes)
    batch = [axis for axis in sorted(both) if axis not in ended]
    rows = [axis for axis, n in enumerate(left[0]) if n != 1 and axis not in both]
    columns = [axis for axis in range(len(sizes)) if axis not in both and axis not in rows]
    if rows and columns and columns[-1] < rows[0]:  # The other order is that of the result.
        rows, columns = columns, rows
    sizes = tuple(1 if axis in ended else n for axis, n in enumerate(sizes))
    return sizes, of_order(sizes, [*batch, *rows, *sorted(ended & both), *columns])


def _summed(operand: Operand, axes: set[int]) -> Operand:
    """With axes summed, if they have more than one element: as new memory."""
    shape = operand[0]
    if all(shape[axis] == 1 for axis in axes):
        return operand
    shape = tuple(1 if axis in axes else n for axis, n in enumerate(shape))
    return shape, strides(shape)


globals().update(dispatch.all_public(globals(), __name__))
