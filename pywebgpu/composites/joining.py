"""Putting tensors together: cat, stack, and padding around one."""

from collections.abc import Sequence

from pywebgpu.composites import arithmetic, wide
from pywebgpu.errors import ShapeError
from pywebgpu.ir.graph import Node
from pywebgpu.ops import indexing, movement, pointwise
from pywebgpu.support import numbers, shapes


def cat(parts: Sequence[Node], dim: int = 0) -> Node:
    """Joins along an axis. Shapes: equal but for that axis; dtypes are promoted. Raises ShapeError "
    "where they differ."""
    if not parts:
        raise ValueError("torch.cat(): expected a non-empty list of Tensors")
    if any(not part.spec.shape for part in parts):
        raise ShapeError("zero-dimensional tensor (at position 0) cannot be concatenated")
    dtype = arithmetic.result_type(*parts)
    kept = [part for part in parts if part.spec.shape != (0,)] or list(parts[:1])
    first = kept[0].spec.shape
    axis = shapes.axis(dim, len(first))
    nothing = (*first[:axis], 0, *first[axis + 1 :])
    if len(kept) < len(parts) and len(first) > 1:  # Vectors of no element fit anywhere.
        kept = [movement.reshape(part, shape=nothing) if part.spec.shape == (0,) else part for part in parts]
    for number, part in enumerate(kept):
        shape = part.spec.shape
        if len(shape) != len(first):
            raise ShapeError(f"Tensors must have same number of dimensions: got {len(first)} and {len(shape)}")
        odd = [(m, n) for a, (m, n) in enumerate(zip(first, shape, strict=True)) if a != axis and m != n]
        if odd:
            raise ShapeError(
                f"Sizes of tensors must match except in dimension {axis}. Expected size {odd[0][0]} but got size "
                f"{odd[0][1]} for tensor number {number} in the list."
            )
    kept = [arithmetic.cast(part, dtype) for part in kept]
    return pointwise.copy(kept[0]) if len(kept) == 1 else indexing.cat(*kept, axis=axis)


def stack(parts: Sequence[Node], dim: int = 0) -> Node:
    """Joins along a new axis. Raises ShapeError where the shapes differ."""
    if not parts:
        raise RuntimeError("stack expects a non-empty TensorList")
    first = parts[0].spec.shape
    for number, part in enumerate(parts):
        if part.spec.shape != first:
            raise ShapeError(
                f"stack expects each tensor to be equal size, but got {list(first)} at entry 0 and "
                f"{list(part.spec.shape)} at entry {number}"
            )
    axis = shapes.axis(dim, len(first) + 1)
    if axis == 0 and len(parts) > 1 and _are_slices(parts):
        starts = [part.inputs[1] for part in parts]
        return indexing.stacked_slices(parts[0].inputs[0], *starts, size=first[0])[0]
    return cat([movement.reshape(part, shape=(*first[:axis], 1, *first[axis:])) for part in parts], axis)


def _are_slices(parts: Sequence[Node]) -> bool:
    """Whether all are rows of the same data, one after the other, each from a host number on: as batches are made."""
    first = parts[0]
    if first.op is not indexing.offset_slice or first.buffer is not None or first.attrs["axes"] != (0,):
        return False
    if any(step != 1 for step in first.attrs["steps"]):
        return False
    base = first.inputs[0]
    return all(
        part.op is first.op and part.buffer is None and part.inputs[0] is base and part.attrs == first.attrs
        for part in parts
    )


def check_pad(pad: Sequence[int]) -> None:
    """Raises TypeError for what is no whole number."""
    for place, n in enumerate(pad):
        if isinstance(n, float):
            text = "argument 'pad' (position 2) must be tuple of ints, but found element of type float at pos"
            raise TypeError(f"pad(): {text} {place}")


def pad_constant(x: Node, pad: Sequence[int], value: float | Node = 0.0) -> Node:
    """pad: (before, after) of the last axis, then of the one before it, and so on; negative numbers cut."""
    check_pad(pad)
    rank = len(x.spec.shape)
    if len(pad) % 2 or len(pad) > 2 * rank:
        raise ShapeError(
            f"Padding length must be divisible by 2 and at most twice the number of dimensions, got {list(pad)}"
        )
    before, after = [0] * rank, [0] * rank
    for i in range(len(pad) // 2):
        before[rank - 1 - i], after[rank - 1 - i] = pad[2 * i], pad[2 * i + 1]
    cut = tuple(max(-b, 0) for b in before)
    sizes = tuple(n - c - max(-a, 0) for n, c, a in zip(x.spec.shape, cut, after, strict=True))
    if any(n < 0 for n in sizes):
        raise ShapeError(
            f"The input size {list(x.spec.shape)}, plus negative padding {list(pad)}, resulted in a negative size"
        )
    ones = (1,) * rank
    if sizes != x.spec.shape:
        x = movement.slice_(x, starts=cut, sizes=sizes, steps=ones)
    starts = tuple(max(b, 0) for b in before)
    shape = tuple(n + s + max(a, 0) for n, s, a in zip(sizes, starts, after, strict=True))
    if shape == sizes:
        return x
    fill = value.attrs["value"] if isinstance(value, Node) else value  # A node is a complex number of Python.
    element = numbers.element(fill, x.spec.dtype)
    return wide.noted(movement.pad(x, shape=shape, starts=starts, steps=ones, value=element), element)
