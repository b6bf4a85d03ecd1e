"""Parts of a tensor along one axis, and an axis brought to the end for what works along the last one."""

from pywebgpu.ir.graph import Node
from pywebgpu.ops import movement


def swapped(x: Node, axis: int) -> Node:
    """`axis` exchanged with the last one; its own opposite."""
    last = len(x.spec.shape) - 1
    if axis == last:
        return x
    order = list(range(last + 1))
    order[axis], order[last] = last, axis
    return movement.permute(x, order=tuple(order))


def part(x: Node, axis: int, start: int, stop: int, step: int = 1) -> Node:
    """x[start:stop:step] along `axis`."""
    shape = x.spec.shape
    size = max((stop - start + step - 1) // step, 0)
    if size == shape[axis]:
        return x
    return movement.slice_(
        x,
        starts=tuple(start if a == axis else 0 for a in range(len(shape))),
        sizes=(*shape[:axis], size, *shape[axis + 1 :]),
        steps=tuple(step if a == axis else 1 for a in range(len(shape))),
    )
