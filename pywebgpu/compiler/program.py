"""A Program: the whole work of one call, as data. It can be printed, stored, sent to JavaScript and replayed."""

from dataclasses import dataclass
from math import prod
from typing import Any

from pywebgpu.dtypes import DType
from pywebgpu.ir.graph import Attrs, Op, Spec
from pywebgpu.kernels.kernel import Kernel
from pywebgpu.support.formats import Format


@dataclass(frozen=True, slots=True)
class Dispatch:
    """Run kernel number `kernel` on these slots, in the order of its bindings.

    numbers: those of the Program's host numbers that the kernel reads, in the order in which it knows them.
    """

    kernel: int
    slots: tuple[int, ...]
    numbers: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class HostCall:
    """Run an op's meaning on the host: the cpu device's only step. `slots` are the inputs, then the output."""

    op: Op
    attrs: Attrs
    slots: tuple[int, ...]


Step = Dispatch | HostCall
Written = tuple[tuple[int, int], ...]  # pairs (root, data leaf): the root may take the leaf's buffer over


@dataclass(frozen=True, slots=True)
class Slot:
    """A value in memory: what it is, and the physical buffer that holds it.

    offset: the byte where its range of the buffer starts, a multiple of 256; None where the whole buffer is bound.
    format: how it lies there, where that is not its dtype's own.
    """

    spec: Spec
    buffer: int
    offset: int | None = None
    format: Format | None = None

    @property
    def nbytes(self) -> int:
        """Whole words: what a range of it takes."""
        return (self.format or self.spec.dtype.format).nbytes(prod(self.spec.shape))


class Words(Spec):
    """Of a value whose shape is not known, as inside a Program that came from a file: how much memory it takes."""


@dataclass(frozen=True, slots=True, eq=False)
class Program:
    """inputs, outputs and steps name slots; `sizes[buffer]` is a physical buffer's bytes.

    `numbers` are the dtypes of the host numbers, in the order in which a run gives them. `written` pairs an output with
    the input whose buffer it overwrites. `scratch` are the buffers that are neither an input's nor an output's.
    Invariant: a Program depends on specs and on structure, never on values. What may change is an input or a number.
    """

    kernels: tuple[Kernel, ...]
    steps: tuple[Step, ...]
    slots: tuple[Slot, ...]
    inputs: tuple[int, ...]
    numbers: tuple[DType, ...]
    outputs: tuple[int, ...]
    written: tuple[tuple[int, int], ...]
    sizes: tuple[int, ...]
    scratch: tuple[int, ...]
    lower_bound: int = 0

    @property
    def blocks(self) -> tuple[tuple[int, ...], ...]:
        """The host numbers that steps read, each set once: what the uniform holds, block by block."""
        blocks = [step.numbers for step in self.steps if isinstance(step, Dispatch) and step.numbers]
        return tuple(dict.fromkeys(blocks))

    @property
    def scratch_bytes(self) -> int:
        return sum(self.sizes[buffer] for buffer in self.scratch)

    @property
    def peak_bytes(self) -> int:
        """What it takes in all: inputs, outputs and scratch. `lower_bound` is the least that any plan could take."""
        return sum(self.sizes)


Loaded = Any  # what a device made of a Program
