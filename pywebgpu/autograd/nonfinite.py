"""Counting the NaNs of many values in one Program, and following one back to the op or the tensor that it is from."""

from __future__ import annotations

import linecache
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

from pywebgpu import dtypes
from pywebgpu.devices.base import Buffer, Device
from pywebgpu.dtypes import Kind
from pywebgpu.errors import NonFiniteError
from pywebgpu.ir import walk
from pywebgpu.ir.graph import HOST, Generator, Movement, Node, thread_state
from pywebgpu.ir.origin import Origin
from pywebgpu.ops import movement, packing, pointwise, reduction
from pywebgpu.runtime import executor
from pywebgpu.runtime.storage import Storage, whole_of
from pywebgpu.step_capture.free_number import plain

if TYPE_CHECKING:
    from pywebgpu.tensor.tensor import Tensor


@dataclass(frozen=True, slots=True)
class Candidate:
    """A value to look at. `name` and `which` are those of a gradient: of the function, and the number of its output."""

    node: Node
    origin: Origin
    name: str = ""
    which: int = 0


class Check:
    """The values of one submit: made before it, so that it computes the counts, and read after it."""

    def __init__(self, device: Device, candidates: Sequence[Candidate], *, infinity: bool) -> None:
        self.device, self.candidates, self.infinity = device, candidates, infinity
        nodes = [candidate.node for candidate in candidates]
        # The submit takes inputs from nodes that have their value then.
        self._inputs = {node: () if node.buffer is not None else node.inputs for node in walk.toposort(nodes)}
        # Nothing is overwritten: what went wrong is computed again from what was there.
        self._homes: list[Buffer] = [s.home for s in executor.pending(device) if s.home is not None]
        for home in self._homes:
            home.kept += 1
        self._counts = _Counts(device, nodes, infinity=infinity)

    def close(self) -> None:
        """After the submit, however it ended."""
        for home in self._homes:
            home.kept -= 1

    def first(self) -> Candidate | None:
        """The first value with a NaN."""
        counts = self._counts.read()
        return next((candidate for candidate, count in zip(self.candidates, counts, strict=True) if count), None)

    def error(self, candidate: Candidate) -> NonFiniteError:
        """What made the NaN of the first value that has one."""
        order = self._below(candidate)
        counts = dict(zip(order, self._computed(order, infinity=self.infinity), strict=True))
        is_nan = not self.infinity or any(self._computed([candidate.node], infinity=False))
        word = "nan" if is_nan else "inf"
        path = [candidate.node]
        while wrong := [source for source in self._inputs[path[-1]] if counts.get(source)]:
            path.append(wrong[0])
        cause = self._cause(path, counts.get(path[-1], 0), candidate, word)
        if not candidate.name:
            return NonFiniteError(cause)
        torchs = f"Function '{candidate.name}' returned {word} values in its {candidate.which}th output."
        return NonFiniteError(f"{torchs} {cause[0].upper()}{cause[1:]}")

    def _below(self, candidate: Candidate) -> list[Node]:
        """The floating values that a candidate is made of, inputs first, up to earlier candidates, which are finite."""
        finite: set[Node] = set()
        for other in self.candidates:
            if other is candidate:
                break
            finite.add(other.node)
        below: set[Node] = set()
        stack = [candidate.node]
        while stack:
            node = stack.pop()
            if node not in below and node not in finite:
                below.add(node)
                stack += self._inputs[node]
        return [node for node in self._inputs if node in below and node.spec.dtype.kind is Kind.FLOAT and _size(node)]

    def _computed(self, nodes: Sequence[Node], *, infinity: bool) -> list[int]:
        """The counts of values that are computed once more, since the submit kept only what live tensors need."""
        twins: dict[Node, Node] = {}
        for node, inputs in self._inputs.items():
            twins[node] = (
                Node(node.op, tuple([twins[source] for source in inputs]), node.attrs, node.spec) if inputs else node
            )
        counts = _Counts(self.device, [twins[node] for node in nodes], infinity=infinity)
        executor.submit(self.device)
        return counts.read()

    def _cause(self, path: list[Node], count: int, candidate: Candidate, word: str) -> str:
        """What is at the end of a path from the candidate's value down through values that have a NaN."""
        origins, node = thread_state.origins, path[-1]
        shape = f"{node.spec.dtype.name} {list(node.spec.shape)}"
        readers = [reader for reader in path[:-1] if not isinstance(reader.op, Movement)]
        reader = node if self._inputs[node] else readers[-1] if readers else candidate.node
        site = f"{reader.op.name}, in {_site(candidate.origin if reader is candidate.node else origins.find(reader))}"
        if self._inputs[node]:
            return f"the first {word} was made by {site}: {count} of {_size(node)} elements of {shape}"
        if node.op is HOST or isinstance(node.op, Generator):
            value = plain(node.buffer) if node.op is HOST else node.attrs.get("value", node.op.name)
            return f"the number {value} is given to {site}"
        name = _name(node, path[-2] if len(path) > 1 else node)
        line = origins.find(node).line
        what = name or f"input {shape}" + (f" made at {line}" if line else "")
        return f"the {what} holds {word} and is given to {site}"


class _Counts:
    """How many NaNs each of some values holds, as one value that the next submit computes."""

    def __init__(self, device: Device, nodes: Sequence[Node], *, infinity: bool) -> None:
        parts = [_count(node, infinity=infinity) for node in nodes]
        self._starts, size = packing.layout(((),) * len(parts), parts[0].spec.dtype)
        node = packing.pack(*parts, starts=self._starts, size=size, clean=False)
        self._storage = Storage(node, device)

    def read(self) -> list[int]:
        values = array("f", executor.read(self._storage))
        return [int(values[start]) for start in self._starts]


def _count(node: Node, *, infinity: bool) -> Node:
    wrong = pointwise.isnan(node)
    if infinity:
        wrong = pointwise.bitwise_or(wrong, pointwise.isinf(node))
    ones = pointwise.where(wrong, pointwise.scalar(1.0, dtypes.float32), pointwise.scalar(0.0, dtypes.float32))
    total = reduction.sum_(ones, axes=tuple(range(len(node.spec.shape)))) if node.spec.shape else ones
    return movement.reshape(total, shape=(1,))


def _size(node: Node) -> int:
    return prod(node.spec.shape)


def _site(origin: Origin) -> str:
    """As "forward of Net.fc at train.py:12 (y = x.log())"."""
    text = origin.phase + (f" of {origin.module}" if origin.module else "")
    if not origin.line:
        return text
    file, _, number = origin.line.rpartition(":")
    source = linecache.getline(file, int(number)).strip()
    return f"{text} at {origin.line}" + (f" ({source})" if source else "")


def _name(leaf: Node, reader: Node) -> str:
    """The path of a parameter or a buffer whose value this leaf is, in the models that were called."""
    reference = getattr(leaf, "storage", None)
    storage: Storage | None = reference() if reference is not None else None
    if storage is None:
        return ""
    start = reader.attrs.get("start") if reader.op is packing.piece else None
    for model in list(thread_state.origins.models):
        for kind, named in (("parameter", model.named_parameters()), ("buffer", model.named_buffers())):
            for path, tensor in named:
                if _is_part(tensor, storage, start):
                    return f"{kind} {type(model).__name__}.{path}"
    return ""


def _is_part(tensor: Tensor, storage: Storage, start: int | None) -> bool:
    own: Storage = tensor._storage
    if own is storage:
        return True
    return whole_of(own) is storage and own.whole is not None and own.location["start"] == start
