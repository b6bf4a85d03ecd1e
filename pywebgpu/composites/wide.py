"""Whole numbers of more than 32 bits, and float64: a device that cannot hold them refuses them at the call.

Functions of nodes know no device. So they note such a number or dtype, and what makes a tensor of the node that they
return asks whether its device can hold it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from pywebgpu import dtypes
from pywebgpu.ir.graph import Node, thread_state, used
from pywebgpu.ops import pointwise, reduction
from pywebgpu.support.numbers import WORD, too_wide, unsupported

if TYPE_CHECKING:

    class _Target(Protocol):
        @property
        def wgsl(self) -> bool: ...

    class _Device(Protocol):
        """What is asked of a device, which lies layers above."""

        @property
        def name(self) -> str: ...
        @property
        def target(self) -> _Target: ...


NEAR = 256  # nodes that are looked through for a number that was noted
COMPARISONS = (pointwise.eq, pointwise.ne, pointwise.lt, pointwise.le, pointwise.gt, pointwise.ge)


def note(node: Node, value: int) -> Node:
    """The node; notes that it holds a number of more than 32 bits, for the device that gets it to refuse."""
    used.wide = True
    thread_state.wide.append((node, value))
    return node


def noted(node: Node, *values: Any) -> Node:
    """The node, whose elements are known to reach these numbers; see `note`."""
    for value in values:
        if node.spec.dtype is dtypes.int64 and not WORD[0] <= value <= WORD[1]:
            return note(node, int(value))
    return node


def refuse(node: Node, device: _Device) -> None:
    """Raises IntegerOverflowError where a new value needs a number that was noted and the device cannot hold, and
    DTypeError where it has no such dtype.

    Called for the first value that is made after one was noted. A comparison with such a number is known.
    """
    noted = {id(noted_node): value for noted_node, value in thread_state.wide}
    thread_state.wide.clear()
    if not device.target.wgsl:
        return
    if node.spec.dtype.compute is None:
        raise unsupported(node.spec.dtype, device.name)
    stack, seen = [node], {id(node)}
    while stack:
        current = stack.pop()
        value = noted.get(
            id(current),
            current.attrs["value"] if current.op is pointwise.const and current.spec.dtype is dtypes.int64 else 0,
        )
        if not WORD[0] <= value <= WORD[1]:
            raise too_wide(value)
        for source in () if current.buffer is not None or compared(current) is not None else chosen(current):
            if id(source) not in seen:
                seen.add(id(source))
                stack.append(source)
        if len(seen) > NEAR:
            return


def compared(node: Node) -> bool | None:
    """What a comparison with a number of more than 32 bits gives where whole numbers have 32; None for any other."""
    if node.op not in COMPARISONS or node.inputs[0].spec.dtype is not dtypes.int64:
        return None
    a, b = (_constant(source) for source in node.inputs)
    turned = b is None or WORD[0] <= b <= WORD[1]
    value = a if turned else b
    if value is None or WORD[0] <= value <= WORD[1]:
        return None
    is_less = (value > 0) != turned  # the left operand is less than the right one
    if node.op in (pointwise.eq, pointwise.ne):
        return node.op is pointwise.ne
    return is_less if node.op in (pointwise.lt, pointwise.le) else not is_less


def chosen(node: Node) -> tuple[Node, ...]:
    """The inputs that a value depends on, where a choice is made by a comparison that is known."""
    known = compared(node.inputs[0]) if node.op is pointwise.where else None
    return node.inputs if known is None else (node.inputs[1 if known else 2],)


def _constant(node: Node) -> int | None:
    while node.op is reduction.expand and node.buffer is None:
        node = node.inputs[0]
    return int(node.attrs["value"]) if node.op is pointwise.const and node.buffer is None else None
