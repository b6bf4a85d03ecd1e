"""Strides of results: those that PyTorch would give them where an operand does not lie row by row.

Nothing moves for it. What lies in another order than PyTorch's is told to have PyTorch's strides (see
layout.laid_out), so that stride(), is_contiguous(), view() and as_strided() say what they say there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache, partial
from importlib import import_module
from math import prod
from typing import TYPE_CHECKING

from pywebgpu.ir.graph import Composite, Custom, Generator, Leaf, Movement, Node, Pointwise, Structural
from pywebgpu.ops import movement, reduction
from pywebgpu.support.closed_types import contiguous_format, preserve_format
from pywebgpu.support.shapes import Shape, strides
from pywebgpu.tensor import layout
from pywebgpu.tensor.base import TensorBase
from pywebgpu.tensor.layout import strides_of
from pywebgpu.tensor.view import Path

if TYPE_CHECKING:
    from pywebgpu.tensor.tensor import Tensor

Operand = tuple[Shape, Shape]  # shape and strides
NUMBER: Operand = ((), ())

# Functions of nodes whose result is in channels_last where a tensor of theirs is, and the ranks of which that is true;
# it is row-major of others.
FORMATTED = dict.fromkeys(
    (
        "batch_norm", "batch_norm_fixed", "group_norm", "interpolate", "pad", "pad_constant", "max_pool",
        "max_pool_with_indices", "pixel_shuffle", "pixel_unshuffle", "channel_shuffle", "stack", "conv",
        "conv_transpose",
    ),
    (4, 5),
) | dict.fromkeys(
    ("avg_pool", "adaptive_avg_pool", "lp_pool", "adaptive_max_pool", "adaptive_max_pool_with_indices"), (4,)
)  # fmt: skip
LIKE_FIRST = frozenset(("sort", "argsort", "diff", "normalize", "local_response_norm", "glu", "index_fill"))
# Functions whose result is row-major in any case.
ROW_MAJOR = frozenset(
    ("logsigmoid", "rrelu", "linear", "cross_entropy", "embedding", "scaled_dot_product_attention")
    + ("masked_fill", "masked_scatter", "tril", "triu")
)


def kept(result: TensorBase, first: object, second: object = None, *others: object) -> Tensor:
    """A result that was computed element by element, in memory as PyTorch's would be. Operands: in the call's order."""
    if not (getattr(first, "_path", 0) or getattr(second, "_path", 0)):
        for value in others:
            if getattr(value, "_path", 0):
                break
        else:
            return result  # type: ignore[return-value]  # Tensors are of that class.
    return by_operands(result, *[described(value) for value in (first, second, *others) if value is not None])


def by_operands(result: TensorBase, *operands: Operand) -> Tensor:
    """As `kept`, by shapes and strides."""
    return laid_out(result, elementwise(tuple(result.shape), operands))


def described(value: object) -> Operand:
    """Shape and strides of a tensor; of anything else those of a number."""
    return (tuple(value.shape), strides_of(value)[0]) if isinstance(value, TensorBase) else NUMBER


def laid_out(result: TensorBase, steps: Shape | None) -> Tensor:
    """A new tensor, told to have these strides; None of row-major ones. A view is left as it is."""
    node = result._storage.node
    if layout.is_whole(result._path):
        result._path = ()
        if steps is not None and steps != strides(node.spec.shape):
            result._path, result._cached = ((layout.laid_out, {"strides": steps}),), (result._storage.version, node)
    return result  # type: ignore[return-value]  # Tensors are of that class.


def relaid(result: TensorBase, steps: Shape | None) -> Tensor:
    """As laid_out; a view that lies otherwise is copied. steps: None of row-major memory."""
    wanted = strides(tuple(result.shape)) if steps is None else steps
    if result._path and strides_of(result)[0] != wanted:
        result = result.clone(memory_format=contiguous_format)  # type: ignore[attr-defined]  # Tensors are of that class.
    return laid_out(result, steps)


def of_order(shape: Shape, order: Sequence[int]) -> Shape:
    """The strides of dense memory with the axes in an order, the one with the largest first."""
    steps, step = [0] * len(shape), 1
    for axis in reversed(order):
        steps[axis], step = step, step * max(shape[axis], 1)
    return tuple(steps)


@lru_cache(4096)
def elementwise(shape: Shape, operands: tuple[Operand, ...]) -> Shape | None:
    """The strides of a result of an elementwise op; None where it is row-major.

    Those of operands that all have one layout without gaps. Else the axes are sorted by their strides, those of the
    first operand in which they differ.
    """
    if len(shape) < 2 or 0 in shape:
        return None
    if all(own == shape for own, _ in operands):
        if all(layout.is_dense(shape, steps, range(len(shape))) for _, steps in operands):
            return None
        order = layout.FORMATS_OF_RANK.get(len(shape))
        if order and all(layout.is_dense(shape, steps, order) for _, steps in operands):
            return of_order(shape, order)
        first = operands[0][1]
        has_gaps = not layout.is_dense(shape, first, layout.by_stride(shape, first))
        if not has_gaps and all(steps == first for _, steps in operands):
            return first
    axes = _sorted(shape, [_broadcast(shape, operand) for operand in operands])
    return None if axes == [*range(len(shape))] else of_order(shape, axes)


def _broadcast(shape: Shape, operand: Operand) -> Shape:
    """Strides of an operand over all axes of the result."""
    missing = len(shape) - len(operand[0])
    steps = [0 if own == 1 != n else step for n, own, step in zip(shape[missing:], *operand, strict=True)]
    return (0,) * missing + tuple(steps)


def _sorted(shape: Shape, operands: list[Shape]) -> list[int]:
    """The axes by their strides, the largest first; axes that no operand tells apart stay as they are."""
    order = list(range(len(shape) - 1, -1, -1))  # The smallest first.
    for last in range(1, len(order)):
        moved = last
        for position in range(last - 1, -1, -1):
            is_larger = _compared(shape, operands, order[position], order[moved])
            if is_larger > 0:
                order[position], order[moved] = order[moved], order[position]
                moved = position
            elif is_larger < 0:
                break
    return order[::-1]


def _compared(shape: Shape, operands: list[Shape], first: int, other: int) -> int:
    """1 where the first axis has the larger steps, -1 where the other has, 0 where no operand says it."""
    for steps in operands:
        if not (steps[first] and steps[other]):
            continue
        if steps[first] != steps[other]:
            return 1 if steps[first] > steps[other] else -1
        if shape[first] > shape[other]:
            return 1
    return 0


def all_of(tensor: TensorBase) -> Tensor:
    """All of the storage that a tensor shows, without a history."""
    path = tensor._path[:1]
    return tensor._of(tensor._storage, path if layout.is_whole(path) else ())


def in_memory(source: TensorBase) -> Tensor:
    """All elements of a storage in the order of its memory, as a view. whole: a tensor that shows it as it is."""
    tensor: Tensor = source  # type: ignore[assignment]  # Tensors are of that class.
    if not tensor._path:
        return tensor.reshape(-1)
    return tensor.permute(layout.by_stride(tensor.shape, strides_of(tensor)[0])).reshape(-1)


def same(result: TensorBase, source: TensorBase) -> Tensor:
    """A new tensor in memory as PyTorch's preserve_format lays it out beside `source`."""
    shape, steps = described(source)
    is_kept = tuple(result.shape) == shape and layout.is_dense(shape, steps, layout.by_stride(shape, steps))
    return laid_out(result, steps) if is_kept else by_operands(result, (shape, steps))


def beside(grad: TensorBase, leaf: TensorBase) -> None:
    """Has a new gradient the strides of its leaf, where that has no gaps."""
    steps = strides_of(leaf)[0]
    if layout.is_dense(leaf.shape, steps, layout.by_stride(leaf.shape, steps)):
        laid_out(grad, steps)


def formatted(result: TensorBase, source: TensorBase, memory_format: object = None) -> Tensor:
    """A new tensor in the order of a memory format: of None and preserve_format, in that of `source`.

    Raises RuntimeError for a tensor of another rank than the format is of.
    """
    if memory_format is None or memory_format is preserve_format:
        return same(result, source) if source._path else result  # type: ignore[return-value]
    order = layout.order_of(memory_format, result.shape)
    return laid_out(result, None if order is None else of_order(tuple(result.shape), order))


def suggested(source: TensorBase) -> tuple[int, ...] | None:
    """The order of the axes of the format that a tensor counts as one of; None of row-major ones."""
    return suggested_of(*described(source))


def suggested_of(shape: Shape, steps: Shape) -> tuple[int, ...] | None:
    """The same by shape and strides."""
    order = layout.FORMATS_OF_RANK.get(len(shape))
    return order if order and layout.suggests(shape, steps, order) else None


def of_call(
    function: Callable[..., object],
    results: Iterable[object],
    tensors: Sequence[TensorBase],
    args: Sequence[object],
    options: Mapping[str, object],
) -> None:
    """Lays out what a function of nodes gave: as its first tensor is, or as an elementwise op's result."""
    while isinstance(function, partial):
        function = function.func
    name = getattr(function, "__name__", "")
    if name in ROW_MAJOR:
        return
    for result in results:
        if not isinstance(result, TensorBase) or result._path or result.ndim < 2:
            continue
        shape = tuple(result.shape)
        if name == "cat":
            laid_out(result, joined([described(tensor) for tensor in tensors], shape))
        elif name in FORMATTED:
            formats = import_module("pywebgpu.tensor.formats")
            laid_out(result, formats.of_call(name, shape, tensors, args, options))
        elif name in LIKE_FIRST:
            by_operands(result, *[described(tensor) for tensor in tensors[:1] if tensor.ndim == result.ndim])
        elif _by_element(result._storage.node, tensors):
            kept(result, *tensors)


def joined(operands: Sequence[Operand], shape: Shape) -> Shape | None:
    """The strides of tensors joined along an axis, of this shape: of the format that all of them have."""
    orders = {suggested_of(*operand) for operand in operands}
    order = orders.pop() if len(orders) == 1 else None
    return None if order is None or len(order) != len(shape) else of_order(shape, order)


def is_permuted(path: Path) -> bool:
    """Whether a chain of views may show a value other than row by row."""
    return any(op is not movement.reshape for op, _ in path)


def _by_element(result: Node, tensors: Sequence[TensorBase]) -> bool:
    """Whether a value was made of those of tensors element by element."""
    if type(result.op) is Composite and not _is_pointwise(result.op):
        return False
    return _reaches(result, {tensor._node for tensor in tensors})


def _reaches(result: Node, inputs: set[Node]) -> bool:
    """Whether nothing but ops by element lies between a value and the inputs."""
    stack, seen = [result], {*inputs}
    count = prod(result.spec.shape)
    while stack:
        node = stack.pop()
        if node in seen:
            continue
        seen.add(node)
        match node.op:
            case Composite() as op:
                if not _is_pointwise(op):
                    return False
            case Pointwise() | Custom() | Leaf() | Generator():
                pass
            case Structural() if node.op.by_element and not node.op.gathers:
                pass
            case Movement() if node.op in _GROWING and (
                node.op is not movement.reshape or prod(node.spec.shape) < count
            ):
                pass
            case _:
                return False
        stack.extend(node.inputs)
    return True


_GROWING = frozenset((reduction.expand, movement.reshape, movement.alias))


@lru_cache(1024)
def _is_pointwise(op: Composite) -> bool:
    return _reaches(op.output, {*op.inputs})
