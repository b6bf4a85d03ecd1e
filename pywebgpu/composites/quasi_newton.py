"""The direction of an L-BFGS step: two passes over what changed in the last steps, as one op."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pywebgpu.composites import arithmetic, linear
from pywebgpu.ir.graph import Fused, Node, Spec
from pywebgpu.ops import pointwise

if TYPE_CHECKING:
    from types import ModuleType

    from numpy.typing import NDArray


def _specs(gradient: Spec, *others: Spec) -> tuple[Spec, ...]:
    return (gradient,)


def _fallback(gradient: Node, scale: Node, *history: Node) -> tuple[Node, ...]:
    changes, moves, inverses = _parts(history)
    descent, shares = pointwise.neg(gradient), []
    for change, move, inverse in zip(changes[::-1], moves[::-1], inverses[::-1], strict=True):
        shares.append(arithmetic.mul(linear.dot(move, descent), inverse))
        descent = arithmetic.sub(descent, arithmetic.mul(change, shares[-1]))
    descent = arithmetic.mul(descent, scale)
    for change, move, inverse in zip(changes, moves, inverses, strict=True):
        share = arithmetic.sub(shares.pop(), arithmetic.mul(linear.dot(change, descent), inverse))
        descent = arithmetic.add(descent, arithmetic.mul(move, share))
    return (descent,)


def _on_host(xp: ModuleType, gradient: NDArray[Any], scale: NDArray[Any], *history: NDArray[Any]) -> tuple[Any]:
    changes, moves, inverses = _parts(history)
    descent, shares = -gradient, []
    for change, move, inverse in zip(changes[::-1], moves[::-1], inverses[::-1], strict=True):
        shares.append(xp.vdot(move, descent) * inverse)
        descent -= change * shares[-1]
    descent *= scale
    for change, move, inverse in zip(changes, moves, inverses, strict=True):
        descent += move * (shares.pop() - xp.vdot(change, descent) * inverse)
    return (descent,)


def _parts(history: Any) -> tuple[Any, Any, Any]:
    count = len(history) // 3
    return history[:count], history[count : 2 * count], history[2 * count :]


# gradient (n,), the first estimate of the inverse Hessian (), then of m steps, the oldest first, the change of the
# gradient and of the point (n,), and the inverse of their product () -> the direction (n,).
direction: Fused = Fused("lbfgs_direction", infer=_specs, fallback=_fallback, host=_on_host)


def direction_of(gradient: Node, scale: Node, *history: Node) -> Node:
    return direction(gradient, scale, *history)[0]
