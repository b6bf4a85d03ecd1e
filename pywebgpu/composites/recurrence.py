"""All steps of a recurrent layer as one op, for device cpu: a step's arithmetic takes less than calling NumPy for it.

Elsewhere a layer is recorded step by step (see recurrent.py), which is what the op means.

Values, for t steps of n rows: gates (t, n, count * h), weight (count * h, h), bias (count * h), a state (n, h) or two,
and where not all rows have all steps which have (t, n, 1) -> outputs (t, n, h), then what the gradients read: for LSTM
the gates after their functions and the cells (t, n, h), for GRU those gates and what the reset gate scales (t, n, h).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from pywebgpu.composites import arithmetic, joining, linear, recurrent, slicing
from pywebgpu.ir.graph import Fused, Node, Spec, thread_state
from pywebgpu.ops import contraction, movement, pointwise, reduction

if TYPE_CHECKING:
    from types import ModuleType

    from numpy.typing import NDArray

    Array = NDArray[Any]
    Factors = tuple[Array, Array, Sequence[Array]]

STATES = {"RNN_TANH": 1, "RNN_RELU": 1, "LSTM": 2, "GRU": 1}


def _specs(kind: str) -> Callable[..., tuple[Spec, ...]]:
    def infer(gates: Spec, weight: Spec, bias: Spec, *others: Spec, backwards: bool) -> tuple[Spec, ...]:
        out = Spec((*gates.shape[:2], weight.shape[1]), gates.dtype)
        return (out,) if kind.startswith("RNN") else (out, gates, out)

    return infer


def _gradient_specs(
    coming: Spec, coming_cells: Spec, out: Spec, act: Spec, extra: Spec, weight: Spec, *others: Spec, backwards: bool
) -> tuple[Spec, ...]:
    """Of gates, weight, bias, and the states. Without an `act` of their own, its place has the outputs."""
    steps, rows, _ = out.shape
    gates = Spec((steps, rows, weight.shape[0]), out.dtype)
    state = Spec((rows, weight.shape[1]), out.dtype)
    return gates, weight, Spec((weight.shape[0],), out.dtype), state, state


def _order(length: int, backwards: bool) -> Sequence[int]:
    return range(length)[::-1] if backwards else range(length)


def _split(kind: str, others: Sequence[Any]) -> tuple[Sequence[Any], Any]:
    """The states, and which rows have which steps, or None."""
    count = STATES[kind]
    return others[:count], others[count] if len(others) > count else None


# What it means


def _fallback(kind: str) -> Callable[..., tuple[Node, ...]]:
    def fallback(gates: Node, weight: Node, bias: Node, *others: Node, backwards: bool) -> tuple[Node, ...]:
        """Step by step, with what the gradients read beside."""
        state, present = _split(kind, others)
        length = gates.spec.shape[0]
        by_time: list[tuple[Node, ...]] = [()] * length
        for time in _order(length, backwards):
            now, here = _at(gates, time), None if present is None else _at(present, time)
            new = recurrent.step(kind, now, tuple(state), weight, bias)
            saved = _beside(kind, now, linear.linear(state[0], weight, bias))
            if here is not None:
                new = tuple(arithmetic.where(here, updated, old) for updated, old in zip(new, state, strict=True))
            state = new
            by_time[time] = (new[0], *saved, *new[1:]) if kind == "LSTM" else (new[0], *saved)
        return tuple([joining.stack(list(part), 0) for part in zip(*by_time, strict=True)])

    return fallback


def _beside(kind: str, gates: Node, hidden: Node) -> tuple[Node, ...]:
    """What the gradients of a step read."""
    if kind == "LSTM":
        i, f, g, o = _parts(pointwise.add(gates, hidden), 4)
        act = [pointwise.sigmoid(i), pointwise.sigmoid(f), pointwise.tanh(g), pointwise.sigmoid(o)]
        return (joining.cat(act, -1),)
    if kind == "GRU":
        (a, b, c), (x, y, z) = _parts(gates, 3), _parts(hidden, 3)
        reset, update = pointwise.sigmoid(pointwise.add(a, x)), pointwise.sigmoid(pointwise.add(b, y))
        return joining.cat([reset, update, pointwise.tanh(pointwise.add(c, pointwise.mul(reset, z)))], -1), z
    return ()


def _at(x: Node, time: int) -> Node:
    now = slicing.part(x, 0, time, time + 1)
    return movement.reshape(now, shape=now.spec.shape[1:])


def _parts(x: Node, count: int) -> list[Node]:
    size, last = x.spec.shape[-1] // count, len(x.spec.shape) - 1
    return [slicing.part(x, last, index * size, (index + 1) * size) for index in range(count)]


def _gradient_fallback(kind: str) -> Callable[..., tuple[Node, ...]]:
    def fallback(
        coming: Node, cells: Node, out: Node, act: Node, extra: Node, weight: Node, *others: Node, backwards: bool
    ) -> tuple[Node, ...]:
        state, present = _split(kind, others)
        length = out.spec.shape[0]
        order = _order(length, backwards)
        before = _before(out, state[0], backwards)
        of_gates, of_hidden, through = _factors(kind, out, act, extra, before, state, backwards)
        count = recurrent.COUNT[kind]
        back = of_cell = pointwise.full(0.0, state[0].spec)
        gates: list[Node] = [back] * length
        hidden: list[Node] = [back] * length
        for time in reversed(order):
            grad = pointwise.add(back, _at(coming, time))
            grad_of_out, given_cell = grad, of_cell = grad, pointwise.add(of_cell, _at(cells, time))
            if present is not None:
                grad_of_out, given_cell = (_masked(x, _at(present, time), keep=True) for x in (grad_of_out, given_cell))
            if kind == "LSTM":
                given_cell = pointwise.add(given_cell, pointwise.mul(grad_of_out, _at(through[0], time)))
            scales = [given_cell] * 3 + [grad_of_out] if kind == "LSTM" else [grad_of_out] * count
            scale = joining.cat(scales, -1)
            gates[time] = pointwise.mul(_at(of_gates, time), scale)
            hidden[time] = gates[time] if of_hidden is of_gates else pointwise.mul(_at(of_hidden, time), scale)
            back = contraction.matmul(hidden[time], weight)
            if kind == "GRU":
                back = pointwise.add(back, pointwise.mul(grad_of_out, _at(through[0], time)))
            passed = pointwise.mul(given_cell, _at(through[1], time)) if kind == "LSTM" else of_cell
            if present is not None:
                back = pointwise.add(back, _masked(grad, _at(present, time), keep=False))
                left = _masked(of_cell, _at(present, time), keep=False)
                passed = pointwise.add(passed, left) if kind == "LSTM" else passed
            of_cell = passed
        grad_of_gates, inner = joining.stack(gates, 0), joining.stack(hidden, 0)
        rows = movement.reshape(inner, shape=(length * out.spec.shape[1], weight.spec.shape[0]))
        earlier = movement.reshape(before, shape=(rows.spec.shape[0], weight.spec.shape[1]))
        of_bias = movement.reshape(reduction.sum_(rows, axes=(0,)), shape=(weight.spec.shape[0],))
        return grad_of_gates, contraction.matmul(contraction.transposed(rows), earlier), of_bias, back, of_cell

    return fallback


def _masked(x: Node, here: Node, *, keep: bool) -> Node:
    nothing = pointwise.full(0.0, x.spec)
    return arithmetic.where(here, *((x, nothing) if keep else (nothing, x)))


def _before(out: Node, first: Node, backwards: bool) -> Node:
    """The state before each step (t, n, h)."""
    length, lead = out.spec.shape[0], movement.reshape(first, shape=(1, *first.spec.shape))
    if length == 1:
        return lead
    rest = slicing.part(out, 0, 1, length) if backwards else slicing.part(out, 0, 0, length - 1)
    return joining.cat([rest, lead] if backwards else [lead, rest], 0)


def _factors(
    kind: str, out: Node, act: Node, extra: Node, before: Node, state: Sequence[Node], backwards: bool
) -> tuple[Node, Node, list[Node]]:
    """By what gradients are multiplied on their way to gates, to their hidden parts, and past the gates."""
    mul, sub = pointwise.mul, pointwise.sub

    def rest(x: Node) -> Node:
        return sub(pointwise.full(1.0, x.spec), x)

    if kind == "LSTM":
        i, f, g, o = _parts(act, 4)
        earlier, seen = _before(extra, state[1], backwards), pointwise.tanh(extra)
        parts = [mul(g, mul(i, rest(i))), mul(earlier, mul(f, rest(f))), mul(i, rest(mul(g, g)))]
        factors = joining.cat([*parts, mul(seen, mul(o, rest(o)))], -1)
        return factors, factors, [mul(o, rest(mul(seen, seen))), f]
    if kind == "GRU":
        r, z, n = _parts(act, 3)
        new = mul(rest(z), rest(mul(n, n)))
        reset, update = mul(new, mul(extra, mul(r, rest(r)))), mul(sub(before, n), mul(z, rest(z)))
        return joining.cat([reset, update, new], -1), joining.cat([reset, update, mul(new, r)], -1), [z]
    ones, nothing = pointwise.full(1.0, out.spec), pointwise.full(0.0, out.spec)
    factors = rest(mul(out, out)) if kind == "RNN_TANH" else pointwise.where(pointwise.gt(out, nothing), ones, nothing)
    return factors, factors, []


def _vjp(kind: str) -> Callable[..., Sequence[Node | None] | None]:
    def vjp(
        grads: Sequence[Node | None], outs: Sequence[Node], gates: Node, weight: Node, bias: Node, *others: Node,
        backwards: bool,
    ) -> Sequence[Node | None] | None:  # fmt: skip
        if thread_state.grad:
            return None
        nothing = pointwise.full(0.0, outs[0].spec)
        coming, cells = [nothing if g is None else g for g in (grads[0], grads[2] if kind == "LSTM" else None)]
        saved = outs if len(outs) == 3 else (outs[0],) * 3
        gradients = GRADIENTS[kind](coming, cells, *saved, weight, *others, backwards=backwards)
        states, present = _split(kind, others)
        return [*gradients[: 3 + len(states)], *([] if present is None else [None])]

    return vjp


# On NumPy's arrays


def _sigmoid(xp: ModuleType, x: Array) -> None:
    xp.negative(x, x)
    xp.exp(x, x)
    xp.add(x, 1, x)
    xp.reciprocal(x, x)


def _run(kind: str) -> Callable[..., tuple[Any, ...]]:
    def run(
        xp: ModuleType, gates: Array, weight: Array, bias: Array, *others: Array, backwards: bool
    ) -> tuple[Any, ...]:
        states, present = _split(kind, others)
        length, rows, _ = gates.shape
        out = xp.empty((length, rows, weight.shape[1]), gates.dtype)
        act = xp.add(gates, bias) if kind != "GRU" else gates.copy()
        extra = xp.empty_like(out) if kind in ("LSTM", "GRU") else out
        step, across, old = _STEPS[kind], weight.T, states[-1]
        hidden = states[0]
        for time in _order(length, backwards):
            step(xp, act[time], xp.matmul(hidden, across), bias, hidden, old, out[time], extra[time])
            if present is not None and not present[time].all():
                absent = ~present[time][:, 0]
                out[time][absent] = hidden[absent]
                if kind == "LSTM":
                    extra[time][absent] = old[absent]
            hidden, old = out[time], extra[time]
        return (out,) if kind.startswith("RNN") else (out, act, extra)

    return run


def _lstm(
    xp: ModuleType, act: Array, more: Array, bias: Array, hidden: Array, old: Array, out: Array, cell: Array
) -> None:
    size = out.shape[1]
    act += more
    _sigmoid(xp, act[:, : 2 * size])
    value, leave = act[:, 2 * size : 3 * size], act[:, 3 * size :]
    xp.tanh(value, value)
    _sigmoid(xp, leave)
    xp.multiply(act[:, size : 2 * size], old, cell)
    cell += act[:, :size] * value
    xp.tanh(cell, out)
    out *= leave


def _gru(
    xp: ModuleType, act: Array, more: Array, bias: Array, hidden: Array, old: Array, out: Array, extra: Array
) -> None:
    size = out.shape[1]
    more += bias
    both, new = act[:, : 2 * size], act[:, 2 * size :]
    both += more[:, : 2 * size]
    _sigmoid(xp, both)
    extra[:] = more[:, 2 * size :]
    new += both[:, :size] * extra
    xp.tanh(new, new)
    xp.subtract(hidden, new, out)
    out *= both[:, size:]
    out += new


def _tanh(
    xp: ModuleType, act: Array, more: Array, bias: Array, hidden: Array, old: Array, out: Array, extra: Array
) -> None:
    more += act
    xp.tanh(more, out)


def _relu(
    xp: ModuleType, act: Array, more: Array, bias: Array, hidden: Array, old: Array, out: Array, extra: Array
) -> None:
    more += act
    xp.maximum(more, 0, out=out)


_STEPS = {"LSTM": _lstm, "GRU": _gru, "RNN_TANH": _tanh, "RNN_RELU": _relu}


def _run_back(kind: str) -> Callable[..., tuple[Any, ...]]:
    def run(
        xp: ModuleType, coming: Array, cells: Array, out: Array, act: Array, extra: Array, weight: Array,
        *others: Array, backwards: bool,
    ) -> tuple[Any, ...]:  # fmt: skip
        states, present = _split(kind, others)
        length, rows, size = out.shape
        before = _earlier(xp, out, states[0], backwards)
        factors = _scales(xp, kind, out, act, extra, before, states, backwards)
        gates = xp.empty((length, rows, weight.shape[0]), out.dtype)
        hidden = gates if factors[1] is factors[0] else xp.empty_like(gates)
        back = of_cell = xp.zeros((rows, size), out.dtype)
        for time in reversed(_order(length, backwards)):
            grad = grad_of_out = back + coming[time]
            of_cell = given_cell = of_cell + cells[time] if kind == "LSTM" else of_cell
            if present is not None:
                grad_of_out = grad * present[time]
                given_cell = of_cell * present[time]
            passed = _step_back(xp, kind, time, grad_of_out, given_cell, factors, (gates, hidden))
            back = xp.matmul(hidden[time], weight)
            if kind == "GRU":
                back += grad_of_out * factors[2][0][time]
            if present is not None:
                absent = ~present[time]
                back += grad * absent
                passed = passed + of_cell * absent if kind == "LSTM" else passed
            of_cell = passed
        flat = hidden.reshape(-1, weight.shape[0])
        of_weight = xp.matmul(flat.T, before.reshape(-1, size))
        return gates, of_weight, flat.sum(0), back, of_cell if kind == "LSTM" else xp.zeros_like(back)

    return run


def _step_back(
    xp: ModuleType, kind: str, time: int, grad: Array, cell: Array, factors: Factors, results: tuple[Array, Array]
) -> Array:
    """Writes the gradients of a step's gates and of their hidden parts; what comes to the cell of the step before."""
    (of_gates, of_hidden, through), (gates, hidden) = factors, results
    parts = (len(grad), gates.shape[-1] // grad.shape[-1], grad.shape[-1])
    of_step, scales = gates[time].reshape(parts), of_gates[time].reshape(parts)
    if kind == "LSTM":
        cell = cell + grad * through[0][time]
        xp.multiply(scales[:, :3], cell[:, None], of_step[:, :3])
        xp.multiply(scales[:, 3], grad, of_step[:, 3])
        passed: Array = cell * through[1][time]
        return passed
    xp.multiply(scales, grad[:, None], of_step)
    if hidden is not gates:
        xp.multiply(of_hidden[time].reshape(parts), grad[:, None], hidden[time].reshape(parts))
    return cell


def _earlier(xp: ModuleType, out: Array, first: Array, backwards: bool) -> Array:
    states: Array = xp.concatenate([out[1:], first[None]] if backwards else [first[None], out[:-1]])
    return states


def _scales(
    xp: ModuleType, kind: str, out: Array, act: Array, extra: Array, before: Array, states: Sequence[Array],
    backwards: bool,
) -> Factors:  # fmt: skip
    """As `_factors`."""
    size = out.shape[-1]
    if kind == "LSTM":
        i, f, g, o = (act[..., index * size : (index + 1) * size] for index in range(4))
        seen = xp.tanh(extra)
        factors = 1 - act
        factors *= act
        factors[..., :size] *= g
        factors[..., size : 2 * size] *= _earlier(xp, extra, states[1], backwards)
        xp.multiply(i, 1 - g * g, factors[..., 2 * size : 3 * size])
        factors[..., 3 * size :] *= seen
        seen *= seen
        return factors, factors, [o - o * seen, f]
    if kind == "GRU":
        r, z, n = (act[..., index * size : (index + 1) * size] for index in range(3))
        factors = 1 - act
        factors *= act
        new = (1 - z) * (1 - n * n)
        factors[..., :size] *= new * extra
        factors[..., size : 2 * size] *= before - n
        inner = factors.copy()
        factors[..., 2 * size :] = new
        xp.multiply(new, r, inner[..., 2 * size :])
        return factors, inner, [z]
    factors = 1 - out * out if kind == "RNN_TANH" else (out > 0).astype(out.dtype)
    return factors, factors, []


LAYERS: dict[str, Fused] = {
    kind: Fused(f"{kind.lower()}_steps", _specs(kind), _fallback(kind), _vjp(kind), (0, 2), _run(kind))
    for kind in STATES
}
GRADIENTS: dict[str, Fused] = {
    kind: Fused(f"{kind.lower()}_steps_gradient", _gradient_specs, _gradient_fallback(kind), host=_run_back(kind))
    for kind in STATES
}


def layer(
    kind: str,
    gates: Node,
    state: Sequence[Node],
    weight: Node,
    bias: Node | None,
    *,
    present: Node | None = None,
    backwards: bool = False,
) -> tuple[Node, ...]:
    """(outputs, *last state) of all steps. Shapes: as above."""
    if bias is None:
        bias = pointwise.full(0.0, Spec(weight.spec.shape[:1], weight.spec.dtype))
    masks = () if present is None else (present,)
    values = LAYERS[kind](gates, weight, bias, *state, *masks, backwards=backwards)
    last = 0 if backwards else gates.spec.shape[0] - 1
    return values[0], *[_at(part, last) for part in (values[0], *values[2:3])[: STATES[kind]]]
