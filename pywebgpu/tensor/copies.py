"""torch's names that end in _copy: what a view shows, as new memory; and tensors with strides, or of another class."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from pywebgpu.errors import RangeError, ShapeError
from pywebgpu.support import closed_types, shapes
from pywebgpu.tensor import complex_numbers, create, dispatch, layout, output_rules, outputs
from pywebgpu.tensor.apply import aten, called
from pywebgpu.tensor.memory_format import all_of, described, in_memory
from pywebgpu.tensor.methods import named_by_numpy
from pywebgpu.tensor.tensor import Tensor, of_class

_S = TypeVar("_S", bound=Tensor)


def _row_major(view: Tensor) -> Tensor:
    return view.clone(memory_format=closed_types.contiguous_format)


def _copying(name: str, method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def function(input: Tensor, *args: Any, out: output_rules.Output | None = None, **options: Any) -> object:
        result = method(input, *args, **options)
        copies: Any = tuple(map(_row_major, result)) if isinstance(result, tuple) else _row_major(result)
        return outputs.finished(f"{name}_copy", copies, out, input)

    function.__name__ = function.__qualname__ = f"{name}_copy"
    function.__module__ = __name__
    function.__doc__ = f"As {name}, with memory of its own."
    return named_by_numpy(function)


def alias(input: Tensor) -> Tensor:
    """The same elements of the same memory."""
    return input.view_as(input)


alias_copy, detach_copy = _copying("alias", alias), _copying("detach", Tensor.detach)
as_strided_copy, diagonal_copy = _copying("as_strided", Tensor.as_strided), _copying("diagonal", Tensor.diagonal)
expand_copy, narrow_copy = _copying("expand", Tensor.expand), _copying("narrow", Tensor.narrow)
permute_copy, select_copy = _copying("permute", Tensor.permute), _copying("select", Tensor.select)
split_copy, squeeze_copy = _copying("split", Tensor.split), _copying("squeeze", Tensor.squeeze)
t_copy, transpose_copy = _copying("t", Tensor.t), _copying("transpose", Tensor.transpose)
unbind_copy, unfold_copy = _copying("unbind", Tensor.unbind), _copying("unfold", Tensor.unfold)
unsqueeze_copy, view_copy = _copying("unsqueeze", Tensor.unsqueeze), _copying("view", Tensor.view)
split_with_sizes_copy = _copying("split_with_sizes", Tensor.split_with_sizes)
view_as_real_copy = _copying("view_as_real", complex_numbers.view_as_real)
view_as_complex_copy = _copying("view_as_complex", complex_numbers.view_as_complex)


def _unsafe(name: str) -> Callable[..., tuple[Tensor, ...]]:
    method: Callable[..., tuple[Tensor, ...]] = getattr(Tensor, name)

    @functools.wraps(method)
    def function(input: Tensor, *args: Any, **options: Any) -> tuple[Tensor, ...]:
        views = method(input, *args, **options)
        for view in views:
            view._of_several = None  # Its writes are recorded for its own history.
        return views

    function.__module__, function.__qualname__ = __name__, f"unsafe_{name}"
    return named_by_numpy(function)


unsafe_chunk, unsafe_split, unsafe_split_with_sizes = map(_unsafe, ("chunk", "split", "split_with_sizes"))


def made_as(cls: type[_S], data: Tensor, require_grad: bool) -> _S:
    """Tensor._make_subclass: the same memory without history, as a tensor of a subclass of Tensor."""
    tensor = as_subclass(data.detach(), cls)
    tensor._base = None
    return tensor._require_grad(require_grad)


def as_subclass(self: Tensor, cls: type[_S]) -> _S:
    """The same memory and history, as a tensor of a subclass of Tensor."""
    kind: object = cls
    if not (isinstance(kind, type) and issubclass(kind, Tensor)):
        known = "Creating a Tensor subclass from a class that does not inherit from Tensor is not possible."
        raise TypeError(f"{known} Make sure your class inherits from Tensor.")
    return of_class(called(alias(self), "aten::alias"), cls)  # type: ignore[no-any-return]


def dim_order(self: Tensor) -> tuple[int, ...]:
    """The axes, the one with the largest stride first."""
    strides = self.stride()
    return tuple(sorted(range(self.ndim), key=lambda axis: -strides[axis]))


def record_stream(self: Tensor, stream: object) -> None:
    """Nothing: a device has one queue, and uses memory again in its order. Raises RuntimeError for no stream."""
    if not hasattr(stream, "wait_stream"):
        raise RuntimeError("unknown parameter type")


@aten("as_strided")
def strided(self: Tensor, size: Sequence[int], stride: Sequence[int], storage_offset: int | None) -> Tensor:
    """as_strided: windows of windows of the flat memory."""
    size, steps = tuple(size), tuple(stride)
    if len(size) != len(steps):
        raise RuntimeError("mismatch in length of strides and shape")
    if 0 in size:
        return self.reshape(-1)[:0].view(size)
    axes = [(step, axis) for axis, step in enumerate(steps) if step and size[axis] > 1]
    span = 1 + sum((size[axis] - 1) * step for step, axis in axes)
    begin = self.storage_offset()
    offset = begin if storage_offset is None else storage_offset
    own = self.is_contiguous() and begin <= offset and offset + span <= begin + self.numel()
    base = all_of(self) if self._base is None else self._base
    flat, start = (self.reshape(-1), offset - begin) if own else (in_memory(base), offset)
    if min((offset, *steps)) < 0 or start + span > flat.numel():
        raise RangeError(
            f"setStorage: sizes {list(size)}, strides {list(steps)}, storage offset {offset} are out of bounds for "
            f"storage of {flat.numel()} elements"
        )
    strided_view: Any = flat[start : start + span]
    axes.sort(reverse=True)  # The largest steps first: windows of windows.
    for step, axis in axes:
        span -= (size[axis] - 1) * step
        strided_view = strided_view.unfold(-1, span, step)
    order = [axis for _, axis in axes]
    strided_view = strided_view.select(-1, 0).permute(sorted(range(len(order)), key=order.__getitem__))
    for axis in sorted(set(range(len(size))) - set(order)):
        strided_view = strided_view.unsqueeze(axis)
    return strided_view.expand(size)  # type: ignore[no-any-return]


def _with_gaps(input: Tensor) -> Tensor:
    """A copy with the strides of `input`, and what lies between its elements; of one that repeats some, as clone."""
    shape, steps = described(input)
    if not input.numel() or 0 in steps or layout.is_dense(shape, steps, layout.by_stride(shape, steps)):
        return input.clone()
    length = 1 + sum((n - 1) * step for n, step in zip(shape, steps, strict=True))
    return input.as_strided((length,), (1,), input.storage_offset()).clone().as_strided(shape, steps, 0)


def with_part(name: str, input: Tensor, src: Tensor, *where: Any) -> Tensor:
    """diagonal_scatter, select_scatter and slice_scatter: a copy of `input` in which that part is `src`."""
    copy = _with_gaps(input)
    if name == "slice":
        dim, *ends = where
        target = copy[(slice(None),) * shapes.axis(dim, copy.ndim) + (slice(*ends),)]
    else:
        target = getattr(copy, name)(*where)
    if tuple(target.shape) != tuple(src.shape):
        raise ShapeError(f"expected src to have a size equal to {list(target.shape)} but got {list(src.shape)}")
    target._assign(src._node if src.dtype is input.dtype else src.to(input.dtype)._node)
    return called(copy, f"aten::{name}_scatter")


@named_by_numpy
def as_strided_scatter(
    input: Tensor, src: Tensor, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None
) -> Tensor:
    """A copy of `input` in which as_strided shows `src`."""
    copy = _with_gaps(input)
    shown = copy.as_strided(size, stride, 0 if storage_offset is None else storage_offset)
    if shown.shape != src.shape:
        raise ShapeError(f"expected src to have a size equal to the slice of self: {list(shown.shape)}")
    shown.copy_(src)
    return copy


def empty_strided(size: Sequence[int], stride: Sequence[int], **options: Any) -> Tensor:
    """A tensor whose memory has these steps along its axes; it holds what `empty` does."""
    if len(size) != len(stride):
        raise RuntimeError(
            f"dimensionality of sizes ({len(size)}) must match dimensionality of strides ({len(stride)})"
        )
    count = 0 if 0 in size else 1 + sum((n - 1) * step for n, step in zip(size, stride, strict=True))
    wants = bool(options.pop("requires_grad", False))
    return create.empty(count, **options).as_strided(size, stride)._require_grad(wants)


def new_empty_strided(input: Tensor, size: Sequence[int], stride: Sequence[int], **options: Any) -> Tensor:
    """As empty_strided, with this tensor's dtype and device unless others are given."""
    options = {name: value for name, value in options.items() if value is not None}
    return empty_strided(size, stride, **({"dtype": input.dtype, "device": input.device} | options))


def empty_permuted(size: Sequence[int], physical_layout: Sequence[int], **options: Any) -> Tensor:
    """A tensor whose axes lie in memory in the order of `physical_layout`; it holds what `empty` does."""
    order = list(physical_layout)
    if sorted(order) != list(range(len(order))) or len(order) != len(size):
        raise RuntimeError(
            f"Number of dimensions in size does not match the length of the physical_layout, or it is no order of "
            f"axes: {list(size)} and {order}"
        )
    contiguous = create.empty([size[axis] for axis in order], **options)
    return contiguous.permute([order.index(axis) for axis in range(len(order))])


globals().update(dispatch.all_public(globals(), __name__))
