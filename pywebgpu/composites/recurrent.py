"""Recurrences: one step of each cell, and the loop over time that repeats it.

The product with the input does not depend on the step before, so it is made for all steps at once (`linear`) and comes
in as `gates`; only the product with the hidden state is inside the loop.
"""

from importlib import import_module
from typing import Any

from pywebgpu import dtypes
from pywebgpu.composites import arithmetic, joining, linear, slicing
from pywebgpu.errors import ShapeError
from pywebgpu.ir.graph import Node
from pywebgpu.ops import clamping, movement, pointwise

State = tuple[Node, ...]
COUNT = {"RNN_TANH": 1, "RNN_RELU": 1, "LSTM": 4, "GRU": 3}  # gates of each kind


def step(
    kind: str, gates: Node, state: State, weight: Node, bias: Node | None, projection: Node | None = None
) -> State:
    """The next state. Shapes: gates (n, count * h), state (n, h) each, weight (count * h, h or its projection)."""
    hidden = linear.linear(state[0], weight, bias)
    if kind == "RNN_TANH":
        return (pointwise.tanh(pointwise.add(gates, hidden)),)
    if kind == "RNN_RELU":
        return (clamping.relu(pointwise.add(gates, hidden)),)
    if kind == "GRU":
        return (_gru(gates, hidden, state[0]),)
    cell = state[1]
    enter, forget, value, leave = _split(pointwise.add(gates, hidden), 4)
    kept = pointwise.mul(pointwise.sigmoid(forget), cell)
    cell = pointwise.add(kept, pointwise.mul(pointwise.sigmoid(enter), pointwise.tanh(value)))
    out = pointwise.mul(pointwise.sigmoid(leave), pointwise.tanh(cell))
    return (out if projection is None else linear.linear(out, projection), cell)


def _gru(gates: Node, hidden: Node, before: Node) -> Node:
    reset_in, update_in, new_in = _split(gates, 3)
    reset_hidden, update_hidden, new_hidden = _split(hidden, 3)
    reset = pointwise.sigmoid(pointwise.add(reset_in, reset_hidden))
    update = pointwise.sigmoid(pointwise.add(update_in, update_hidden))
    new = pointwise.tanh(pointwise.add(new_in, pointwise.mul(reset, new_hidden)))
    return pointwise.add(pointwise.mul(pointwise.sub(before, new), update), new)


def cell(
    kind: str,
    x: Node,
    state: list[Node],
    weight_ih: Node,
    weight_hh: Node,
    bias_ih: Node | None = None,
    bias_hh: Node | None = None,
    *,
    is_host: bool = False,
) -> State:
    """One step from an input (n, i) and a state (n, h). is_host: for device cpu, where it is one op."""
    _check_cell(x, state, weight_ih, weight_hh)
    if is_host and _is_whole(x, weight_hh, None):
        gates = linear.linear(x, weight_ih, bias_ih)
        gates = movement.reshape(gates, shape=(1, *gates.spec.shape))
        held = tuple(arithmetic.cast(part, x.spec.dtype) for part in state)
        return _whole(kind, gates, held, weight_hh, bias_hh)[1:]
    return step(kind, linear.linear(x, weight_ih, bias_ih), tuple(state), weight_hh, bias_hh)


def layer(
    kind: str,
    x: Node,
    state: list[Node],
    weight_ih: Node,
    weight_hh: Node,
    bias_ih: Node | None = None,
    bias_hh: Node | None = None,
    projection: Node | None = None,
    *,
    backwards: bool = False,
    present: Node | None = None,
    is_host: bool = False,
) -> State:
    """All steps of one layer: (outputs, *last state). `backwards` starts at the last step.

    present: which rows have a step; where one has not, the row keeps its state.
    is_host: for device cpu, where the steps are one op.
    Shapes: x (t, n, i), state (n, h) each, weight_ih (count * h, i), weight_hh (count * h, h), present (t, n, 1)
    -> (t, n, h), (n, h)...
    """
    _check(kind, x, state, weight_ih, weight_hh)
    length = x.spec.shape[0]
    gates = linear.linear(x, weight_ih, bias_ih)
    held: State = tuple(arithmetic.cast(part, x.spec.dtype) for part in state)
    if is_host and _is_whole(x, weight_hh, projection):
        return _whole(kind, gates, held, weight_hh, bias_hh, present=present, backwards=backwards)
    out: list[Node] = []
    for time in reversed(range(length)) if backwards else range(length):
        now = slicing.part(gates, 0, time, time + 1)
        new = step(kind, movement.reshape(now, shape=now.spec.shape[1:]), held, weight_hh, bias_hh, projection)
        if present is not None:
            here = slicing.part(present, 0, time, time + 1)
            here = movement.reshape(here, shape=here.spec.shape[1:])
            new = tuple(arithmetic.where(here, updated, old) for updated, old in zip(new, held, strict=True))
        held = new
        out.append(held[0])
    return (joining.stack(out[::-1] if backwards else out, 0), *held)


def _is_whole(x: Node, weight: Node, projection: Node | None) -> bool:
    known = (dtypes.float32, dtypes.float64)
    return projection is None and x.spec.dtype in known and weight.spec.dtype is x.spec.dtype


def _whole(*args: Any, **options: Any) -> State:
    outcome: State = import_module("pywebgpu.composites.recurrence").layer(*args, **options)
    return outcome


def _split(x: Node, count: int) -> list[Node]:
    size = x.spec.shape[-1] // count
    last = len(x.spec.shape) - 1
    return [slicing.part(x, last, number * size, (number + 1) * size) for number in range(count)]


def _check_cell(x: Node, state: list[Node], weight_ih: Node, weight_hh: Node) -> None:
    """Raises ShapeError for an input or a state that does not fit, in PyTorch's words."""
    if x.spec.shape[-1] != weight_ih.spec.shape[1]:
        raise ShapeError(
            f"input has inconsistent input_size: got {x.spec.shape[-1]} expected {weight_ih.spec.shape[1]}"
        )
    for number, part in enumerate(state):
        size, expected = part.spec.shape[-1], weight_hh.spec.shape[1]
        if part.spec.shape[0] != x.spec.shape[0]:
            raise ShapeError(
                f"Input batch size {x.spec.shape[0]} doesn't match hidden{number} batch size {part.spec.shape[0]}"
            )
        if size != expected:
            raise ShapeError(f"hidden{number} has inconsistent hidden_size: got {size}, expected {expected}")


def _check(kind: str, x: Node, state: list[Node], weight_ih: Node, weight_hh: Node) -> None:
    if x.spec.shape[-1] != weight_ih.spec.shape[1]:
        raise ShapeError(
            f"input.size(-1) must be equal to input_size. Expected {weight_ih.spec.shape[1]}, got {x.spec.shape[-1]} "
            f"(input {list(x.spec.shape)})"
        )
    hidden = weight_hh.spec.shape[0] // COUNT[kind]
    wanted = [(*x.spec.shape[-2:-1], weight_hh.spec.shape[1]), (*x.spec.shape[-2:-1], hidden)]
    for part, shape in zip(state, wanted, strict=False):
        if part.spec.shape != shape:
            raise ShapeError(f"Expected hidden size {shape} for each layer, got {list(part.spec.shape)}")
    if x.spec.shape[0] == 0 and len(x.spec.shape) == 3:
        raise ShapeError("Expected sequence length to be larger than 0 in RNN")
