"""Buffers larger than one binding: a kernel binds windows of them, as many as it may reach.

A pass over a kernel that is made. An index that provably stays in one window is moved into it. Where it may lie in
several, the kernel looks in which it is. A kernel that would bind too much is run in parts, each some of its
workgroups, which reach less; workgroups know nothing of each other, so any of them may be a part.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from pywebgpu.kernels import ir
from pywebgpu.kernels.ir import Array
from pywebgpu.kernels.kernel import Limits
from pywebgpu.support.formats import WORD

ALIGNMENT = 256  # bytes: where WebGPU lets a binding start


class Part(NamedTuple):
    """Some workgroups of a kernel: the first and how many, the body, what they bind and the functions that they call.

    bound: for each binding the number of the array, and which window of it; None where all of it is bound.
    """

    first: int
    groups: int
    body: ir.Block
    bindings: tuple[Array, ...]
    bound: tuple[tuple[int, int | None], ...]
    windowed: tuple[ir.Windowed, ...] = ()


def nbytes(limits: Limits) -> int:
    """Bytes of a window."""
    return max(limits.binding_bytes // limits.offset_alignment, 1) * limits.offset_alignment


def count(size: int, limits: Limits) -> int:
    """How many bindings `size` bytes take."""
    return 1 if size <= limits.binding_bytes else -(-size // nbytes(limits))


def long_arrays(arrays: Sequence[Array], limits: Limits) -> list[Array]:
    """Those that one binding does not hold."""
    return [array for array in arrays if array_bytes(array) > limits.binding_bytes]


def whole(body: ir.Block, arrays: Sequence[Array], groups: int) -> list[Part]:
    """All workgroups of a kernel as one part, which binds all of each array."""
    return [Part(0, groups, body, tuple(arrays), tuple([(index, None) for index in range(len(arrays))]))]


def array_bytes(array: Array) -> int:
    """Bytes of all of it."""
    return WORD * array.type.width * array.size
