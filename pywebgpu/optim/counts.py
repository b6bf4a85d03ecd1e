"""Step counts as tensors: numbers of the host to a rule and to captured steps, and what PyTorch keeps to a program.

A tensor that a program asked for shows the count whenever it is read, and what is written to it counts.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from pywebgpu import devices, dtypes
from pywebgpu.ir.graph import thread_state
from pywebgpu.runtime import executor
from pywebgpu.runtime.storage import Storage
from pywebgpu.tensor import create
from pywebgpu.tensor.tensor import Tensor

if TYPE_CHECKING:
    from pywebgpu.ir.graph import Node
    from pywebgpu.optim.numbers import RuleCounts


def shown(counts: RuleCounts, name: str) -> Tensor:
    """The tensor of a count."""
    return Tensor._of(_CountStorage(counts, name), ())


def of_number(number: object) -> Tensor:
    """A tensor of its own, of a number that a captured step may read anew."""
    is_double = dtypes.default() is dtypes.float64
    return create.tensor(number, dtype=dtypes.float64 if is_double else dtypes.float32, device="cpu")


class _CountStorage(Storage):
    """The memory of such a tensor."""

    __slots__ = ("counts", "name", "number")

    def __init__(self, counts: RuleCounts, name: str) -> None:
        self.counts, self.name = counts, name
        self.number = dict.__getitem__(counts, name)
        super().__init__(of_number(self.number)._storage.node, devices.open_device("cpu"))

    @property
    def node(self) -> Node:
        self._meet()
        return super().node

    @property
    def version(self) -> int:
        self._meet()
        return super().version

    def _meet(self) -> None:
        """Takes over what was counted since."""
        if thread_state.observer is not None:
            thread_state.observer.refuse("it reads a tensor of an optimizer's counts, which each run changes")
        number = dict.get(self.counts, self.name)
        if number != self.number and type(number) in self.counts.KINDS:
            self.number = number
            self.replace(of_number(number)._storage.node)
            self.wait() if self._node.buffer is None else self.settle(self._node)

    def write(self, node: Node) -> None:
        super().write(node)
        self._count()

    def count_write(self) -> None:
        super().count_write()
        self._count()

    def _count(self) -> None:
        """The rule goes on from what a program wrote."""
        data = executor.read(self)
        (number,) = struct.unpack("d" if len(data) == 8 else "f", data)
        self.number = type(self.number)(number)
        dict.__setitem__(self.counts, self.name, self.number)
