"""A kernel: WGSL text and how to launch it. Data only."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pywebgpu.ir.graph import Spec

Grid = tuple[int, int, int]


class Checks(Enum):
    """NONE: its loops end, and its indices follow from shapes alone.  BOUNDS: its loops end."""

    NONE = 0
    BOUNDS = 1
    ALL = 3


@dataclass(frozen=True, slots=True)
class Limits:
    """What a device allows; the defaults are WebGPU's own. Compilation takes this record, never a device."""

    workgroup_size: int = 256
    workgroups: int = 65535
    bindings: int = 8  # storage buffers a kernel may bind
    binding_bytes: int = 128 << 20  # of a buffer, that one binding reaches: of a larger one a kernel binds windows
    buffer_bytes: int = 256 << 20  # of the largest buffer, so of the largest value
    offset_alignment: int = 256  # bytes: where a binding may start
    shared_bytes: int = 16 << 10
    # Kernels whose loops of a known length the driver gets as they are, and writes out itself: see features.UNROLLING.
    unrolls: tuple[str, ...] = ()
    emulated: bool = False  # a CPU plays a GPU, so workgroup memory and barriers cost more than they save


@dataclass(frozen=True, slots=True)
class Kernel:
    """`wgsl` binds the buffers at @binding(0..n-1) of group 0; `writes[i]` tells which of them it writes.

    numbers: the next binding is a uniform buffer with the Program's host numbers.
    faults: the last binding is the device's own words: the fault words, where a failed check on the device leaves a
        note, and behind them what workgroups tell each other (marks.py).
    work: multiplications, of large products. Who brings a value back in the middle of a run asks what is left to do.
    problem: the name of its template and the Problem that its launch was chosen for; None where it comes from a file.
    needs: features that the device must have, by WebGPU's names. The text enables them.
    checks: what a translator that can be told has to guard against: less than all where this library wrote the text.
    """

    name: str
    wgsl: str
    grid: Grid
    writes: tuple[bool, ...]
    numbers: bool = False
    faults: bool = False
    needs: tuple[str, ...] = ()
    work: int = 0
    problem: Any = field(default=None, compare=False, repr=False)
    checks: Checks = field(default=Checks.ALL, compare=False, repr=False)


def too_large(spec: Spec, size: int, limits: Limits) -> str:
    """Why no value of a spec can be, which takes `size` bytes; "" where one can."""
    if size <= limits.buffer_bytes:
        return ""
    return (
        f"a value of {spec.dtype.name}{list(spec.shape)} takes {size} bytes, more than the {limits.buffer_bytes} of "
        "this device's largest buffer; use smaller tensors"
    )
