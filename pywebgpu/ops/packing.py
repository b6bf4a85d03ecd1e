"""Many values in one: each has an aligned range of a flat vector, and is a piece of it.

A piece starts where a device may bind a buffer, so it is read and written there without the rest: see
compiler/suballocation.py, which makes both ops free wherever it can.
"""

from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

from pywebgpu.dtypes import DType
from pywebgpu.ir.graph import Movement, Node, Spec, Structural
from pywebgpu.ops import movement
from pywebgpu.support.shapes import Shape
from pywebgpu.support.symbolic import flatten

if TYPE_CHECKING:
    from types import ModuleType

    from numpy.typing import NDArray

ALIGNMENT = 256  # bytes: WebGPU's own minStorageBufferOffsetAlignment


class Layout(NamedTuple):
    """Where each of some values starts in a flat vector, and how long that is."""

    starts: tuple[int, ...]
    size: int


def alignment(dtype: DType) -> int:
    """The same in elements."""
    return ALIGNMENT // dtype.format.itemsize


@lru_cache(1024)
def layout(shapes: tuple[Shape, ...], dtype: DType) -> Layout:
    """The ranges of values of these shapes, one after the other."""
    starts, end, step = [], 0, alignment(dtype)
    for shape in shapes:
        starts.append(end)
        end += -(-prod(shape) // step) * step
    return Layout(tuple(starts), end)


def _pack(xp: ModuleType, *parts: Any, starts: Shape, size: int, clean: bool) -> NDArray[Any]:
    out = xp.zeros(size, parts[0].dtype)
    for part, start in zip(parts, starts, strict=True):
        out[start : start + part.size] = xp.ravel(part)
    return out


def _pack_vjp(input_index: int, g: Node, out: Node, *parts: Node, starts: Shape, size: int, clean: bool) -> Node:
    return piece(g, start=starts[input_index], shape=parts[input_index].spec.shape)


pack: Structural = Structural(
    "pack",  # out[starts[k] + i] = parts[k].flat[i]; between them zeros, or anything where not `clean`
    infer=lambda *parts, starts, size, clean: Spec((size,), parts[0].dtype),
    reference=_pack,
    vjp=_pack_vjp,
)


def gaps(node: Node) -> list[tuple[int, int]]:
    """(start, length), in words of memory, of what lies between the parts of a pack.

    Who writes a part fills the rest of its last word with zeros.
    """
    spans, end, words = [], 0, node.spec.dtype.format.words
    ranges = zip(node.attrs["starts"], (prod(part.spec.shape) for part in node.inputs), strict=True)
    for start, length in (*sorted(ranges), (node.attrs["size"], 0)):
        if words(start) > words(end):
            spans.append((words(end), words(start) - words(end)))
        end = start + length
    return spans


def _piece_vjp(g: Node, out: Node, x: Node, start: int, shape: Shape) -> Node:
    flat = movement.reshape(g, shape=(prod(shape),))
    return movement.pad(flat, shape=x.spec.shape, starts=(start,), steps=(1,))


piece: Movement = Movement(
    "piece",  # the elements of a vector from `start` on, in a shape
    infer=lambda x, start, shape: shape,
    index=lambda coords, x, start, shape: ((flatten(coords, shape) + start,), movement.NO_BOUNDS),
    reference=lambda xp, a, start, shape: xp.reshape(a[start : start + prod(shape)], shape),
    vjp=_piece_vjp,
)


part: Structural = Structural(
    "part",  # a piece that starts where a device may bind it: it lies where the vector has it, and nothing is copied
    infer=lambda x, start, shape: Spec(shape, x.dtype),
    reference=lambda xp, a, start, shape: xp.reshape(a[start : start + prod(shape)], shape),
    vjp=(_piece_vjp,),
)
