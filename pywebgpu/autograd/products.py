"""Gradients that can be differentiated again, and what forward products are made of: the gradient of a gradient."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pywebgpu.ir import walk
from pywebgpu.ir.graph import Node, thread_state
from pywebgpu.ops import movement, pointwise
from pywebgpu.tensor import gradient, history

if TYPE_CHECKING:
    from pywebgpu.tensor.tensor import Tensor


def point(tensor: Tensor) -> Tensor:
    """The value as a tensor that a gradient goes to: part of the caller's graph where that has one."""
    if tensor.requires_grad and thread_state.grad:
        return tensor._new(movement.alias(tensor._node), tensor._storage.device)
    return tensor.detach()._require_grad()


def apart(tensor: Tensor, points: Sequence[Tensor]) -> Tensor:
    """The tensor, without its history where that leads nowhere but to points that nobody outside has."""
    own = {leaf._node for leaf in points}
    for node in walk.history([tensor._node], own):
        is_end = not any(source.requires for source in node.inputs)
        if is_end != (node in own):  # Another leaf, or a point that is part of another graph.
            return tensor
    if not tensor.requires_grad:
        return tensor
    return tensor._new(history.cut(tensor._node), tensor._storage.device)


def gradients(outputs: Sequence[Tensor], inputs: Sequence[Tensor], seeds: Sequence[Tensor] | None) -> list[Tensor]:
    """The gradients of outputs, times seeds; zeros where an input was not used."""
    used = [index for index, output in enumerate(outputs) if output.requires_grad]
    zeros = [_filled(x, 0.0) for x in inputs]
    if not used:
        return zeros
    grads = gradient.grad(
        [outputs[index] for index in used],
        list(inputs),
        None if seeds is None else [seeds[index] for index in used],
        create_graph=True,
        allow_unused=True,
    )
    return [zero if part is None else part for zero, part in zip(zeros, grads, strict=True)]


class _ForwardMode(threading.local):
    """Whether rows are computed for tangents: functions that users wrote are then asked for theirs."""

    on = False


forward_mode = _ForwardMode()


def forward(outputs: Sequence[Tensor], points: Sequence[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
    """Rows, and what they are linear in: the gradient of rows to that, times tangents, is the jacobian's product."""
    doubles = [_filled(output, 0.0)._require_grad() for output in outputs]
    outer, forward_mode.on = forward_mode.on, True
    try:
        return gradients(outputs, points, doubles), doubles
    finally:
        forward_mode.on = outer


def _filled(like: Tensor, value: float) -> Tensor:
    node: Node = like._node
    return like._new(pointwise.full(value, node.spec), like._storage.device)
