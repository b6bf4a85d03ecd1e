"""The gradients of query, key and value of attention, written where the gradient of one product has them.

Where the three are slices of one value, their gradients come back as a sum of three padded ones. The kernel that
computes them can write each into its part of that, and nothing is left to add.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from pywebgpu.composites.attention import PACKED, attention_backward
from pywebgpu.ir import walk
from pywebgpu.ir.graph import WHICH, Node, is_view, thread_state
from pywebgpu.kernels import access
from pywebgpu.kernels.templates import Selection
from pywebgpu.ops import movement, pointwise
from pywebgpu.support.shapes import Shape
from pywebgpu.support.symbolic import Sym, flatten, unflatten, variable


def pack(roots: tuple[Node, ...], order: Sequence[Node], selection: Selection) -> tuple[Node, ...]:
    """The same values, without sums of parts of which each has its own place."""
    if not any(node.op is attention_backward and node.buffer is None for node in order):
        return roots
    readers = _readers(roots, order)
    moved = _moved(roots, order)
    packed = {
        moved.get(node, node): packed_node
        for node in order
        if (packed_node := _packed(node, moved.get(node, node), readers))
    }
    return _rebuilt(roots, order, packed) if packed else roots


class _Packed(NamedTuple):
    """A call of which a sum is made, and where its gradients lie in it."""

    call: Node
    places: Shape


def _readers(roots: Sequence[Node], order: Sequence[Node]) -> dict[Node, int]:
    """How often a value is read, views aside."""
    readers: dict[Node, int] = {}
    for source in [*roots, *(source for node in order if not is_view(node.op) for source in node.inputs)]:
        below = walk.base(source)
        readers[below] = readers.get(below, 0) + 1
    return readers


def _moved(roots: Sequence[Node], order: Sequence[Node]) -> dict[Node, Node]:
    """By a sum that is read with its axes in another order alone, the node that does so: it is written like that."""
    users: dict[Node, list[Node]] = {node: [node] for node in roots}
    for node in order:
        for source in node.inputs:
            if source.op is pointwise.add and node.buffer is None:
                users.setdefault(source, []).append(node)
    return {sum_: uses[0] for sum_, uses in users.items() if [use.op for use in uses] == [movement.permute]}


def _packed(node: Node, seen: Node, readers: dict[Node, int]) -> _Packed | None:
    """What a sum is packed of; None where it is none of three gradients that nobody else reads. seen: as it is read."""
    if node.op is not pointwise.add or node.buffer is not None:
        return None
    padded: list[Node] = []
    stack = [node]
    while stack:
        for source in stack.pop().inputs:
            if source.op is pointwise.add and source.buffer is None and readers[source] == 1:
                stack.append(source)
            elif source.op is movement.pad and source.buffer is None and len(padded) < 3:
                padded.append(source)
            else:
                return None
    calls = [walk.base(part) for part in padded]
    if len(calls) != 3 or any(call_node.op is not attention_backward or readers[call_node] != 1 for call_node in calls):
        return None
    call = calls[0]
    if {call_node.attrs[WHICH] for call_node in calls} != {0, 1, 2} or any(
        call_node.inputs != call.inputs for call_node in calls
    ):
        return None
    places = _places(padded, calls, seen) if all(call_node.spec == call.spec for call_node in calls) else None
    return None if places is None else _Packed(call, places)


def _places(padded: Sequence[Node], calls: Sequence[Node], seen: Node) -> Shape | None:
    """How far batches, rows and heads lie apart in the sum, and where each gradient begins, by its number."""
    batches, length, heads, width = calls[0].spec.shape
    row = 3 * heads * width
    for batch, step in ((length * row, row), (row, batches * row)):
        for head, part in ((width, heads * width), (3 * width, width)):
            starts = {
                call_node.attrs[WHICH]: _start(pad, call_node, seen, (batch, step, head, 1))
                for pad, call_node in zip(padded, calls, strict=True)
            }
            if {*starts.values()} == {0, part, 2 * part}:
                return (batch, step, head, *[starts[index] or 0 for index in range(3)])
    return None


def _start(pad: Node, call: Node, seen: Node, steps: Shape) -> int | None:
    """Where a gradient with elements so far apart begins in its padded form; None where they lie otherwise."""
    inner = pad.inputs[0]
    coords = tuple([variable(f"a{axis}", n) for axis, n in enumerate(inner.spec.shape)])
    own = access.down(inner, coords)
    if own is None or any(step != 1 for step in pad.attrs["steps"]) or pad.attrs.get("value", 0.0) != 0.0:
        return None
    moved = tuple([i + start for i, start in zip(coords, pad.attrs["starts"], strict=True)])
    wanted = flatten(tuple([moved[axis] for axis in seen.attrs.get("order", range(len(moved)))]), seen.spec.shape)
    place = Sym((), 0)
    for coordinate, step in zip(unflatten(own[1], call.spec.shape), steps, strict=True):
        place = place + coordinate * step
    rest = wanted - place
    return rest.const if rest.is_constant else None


def _rebuilt(roots: tuple[Node, ...], order: Sequence[Node], packed: dict[Node, _Packed]) -> tuple[Node, ...]:
    new: dict[Node, Node] = {}
    for node in order:
        fresh = node
        if node in packed:
            call = new[packed[node].call]
            fresh = Node(call.op, call.inputs, {**call.attrs, PACKED: packed[node].places, WHICH: 0}, node.spec)
        elif node.inputs and node.buffer is None:
            inputs = tuple([new[source] for source in node.inputs])
            if inputs != node.inputs:
                fresh = Node(node.op, inputs, node.attrs, node.spec)
        if thread_state.origins is not None:
            thread_state.origins.carry(node, fresh)
        new[node] = fresh
    return tuple([new[root] for root in roots])
