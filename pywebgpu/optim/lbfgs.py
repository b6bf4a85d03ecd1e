"""Quasi-Newton steps from a history of gradients: L-BFGS, with or without a line search. It waits for values."""

import math
from collections.abc import Callable
from typing import Any

from pywebgpu.autodiff import grad_mode
from pywebgpu.composites import quasi_newton
from pywebgpu.ir import observer
from pywebgpu.optim import optimizer, update_rule
from pywebgpu.tensor import functions, tensor
from pywebgpu.tensor.apply import apply

Point = tuple[float, float, tensor.Tensor, float]  # along a line: position, loss, gradient, slope
Evaluate = Callable[[float], tuple[float, tensor.Tensor, float]]


class LBFGS(optimizer.Optimizer):
    """p = p + t * d, where d is -g times an estimate of the inverse Hessian from the last `history_size` changes.

    `step(closure)` takes up to `max_iter` such steps, and calls `closure` up to `max_eval` times: it drops the
    gradients, computes the loss, and calls backward. t is `lr`, or what the search "strong_wolfe" finds from there.
    State, of the first parameter: d, t, old_dirs, old_stps, ro, H_diag, prev_flat_grad, prev_loss, func_evals, n_iter.
    Source: Nocedal, Wright 2006, algorithms 7.5 and 3.5; Schmidt's minFunc.  Against torch: the same.
    """

    _takes_complex = True

    def __init__(
        self,
        params: optimizer.Params,
        lr: optimizer.Rate = 1,
        max_iter: int = 20,
        max_eval: int | None = None,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 100,
        line_search_fn: str | None = None,
    ) -> None:
        defaults = update_rule.options(locals())
        update_rule.require_not_negative(lr=lr)
        defaults["max_eval"] = max_iter * 5 // 4 if max_eval is None else max_eval
        super().__init__(params, defaults)
        if len(self.param_groups) != 1:
            raise ValueError("LBFGS doesn't support per-parameter options (parameter groups)")

    def step(self, closure: optimizer.Closure) -> optimizer.Loss:  # type: ignore[override]
        observer.leave("LBFGS.step reads losses and gradients")
        group = self.param_groups[0]
        state = self.state[group["params"][0]]
        with grad_mode.no_grad():
            return _Search(group, state, grad_mode.enable_grad()(closure)).run()


class _Search:
    """One call of `step`."""

    def __init__(self, group: optimizer.Group, state: optimizer.State, closure: optimizer.Closure) -> None:
        self.group, self.state, self.closure = group, state, closure
        self.params: list[tensor.Tensor] = group["params"]
        self.lr = float(group["lr"])
        self.n_evaluations, self.steepest = 0, 0.0
        self.loss: optimizer.Loss = None

    def run(self) -> optimizer.Loss:
        state, group = self.state, self.group
        for name in ("func_evals", "n_iter"):
            state.setdefault(name, 0)
        loss, gradient, _ = self._evaluate()
        first = self.loss
        if self.steepest <= group["tolerance_grad"]:
            return first
        n_iter = 0
        while n_iter < group["max_iter"]:
            n_iter += 1
            state["n_iter"] += 1
            direction = state["d"] = self._direction(gradient)
            state["prev_flat_grad"], before = gradient.clone(), loss
            state["prev_loss"] = loss
            is_first = state["n_iter"] == 1
            size = min(1.0, 1.0 / gradient.abs().sum().item()) * self.lr if is_first else self.lr
            state["t"] = size
            slope, reach = functions.stack([gradient.dot(direction), direction.abs().max()]).tolist()
            if slope > -group["tolerance_change"]:
                break
            is_last = n_iter == group["max_iter"]
            if group["line_search_fn"] is not None:
                loss, gradient, size = self._line_search(loss, gradient, size, direction, slope, reach)
                state["t"] = size
                self._move(direction, size)
            else:
                self._move(direction, size)
                if not is_last:
                    loss, gradient, _ = self._evaluate()
            if is_last or self.n_evaluations >= group["max_eval"]:
                break
            if self.steepest <= group["tolerance_grad"] or reach * size <= group["tolerance_change"]:
                break
            if abs(loss - before) < group["tolerance_change"]:
                break
        return first

    def _direction(self, gradient: tensor.Tensor) -> tensor.Tensor:
        """-g times the estimate of the inverse Hessian, after the last step was taken into it."""
        state = self.state
        if state["n_iter"] == 1:
            state.update(old_dirs=[], old_stps=[], ro=[], H_diag=1)
            return -gradient
        change, moved = gradient - state["prev_flat_grad"], state["d"] * state["t"]
        dirs, steps, ro = state["old_dirs"], state["old_stps"], state["ro"]
        product = change.dot(moved)
        if product.item() > 1e-10:
            if len(dirs) == self.group["history_size"]:
                for kept in (dirs, steps, ro):
                    kept.pop(0)
            dirs.append(change)
            steps.append(moved)
            ro.append(1.0 / product)
            state["H_diag"] = product / change.dot(change)
        scale = state["H_diag"]
        if not dirs:
            scaled: tensor.Tensor = -gradient * scale
            return scaled
        direction: tensor.Tensor = apply(quasi_newton.direction_of, gradient, scale, *dirs, *steps, *ro)
        return direction

    def _gradient(self) -> tensor.Tensor:
        parts = []
        for p in self.params:
            own = update_rule.as_pairs(p.detach())
            parts.append(
                own.new_zeros(own.numel()) if p.grad is None else update_rule.as_pairs(_dense(p.grad)).reshape(-1)
            )
        flat: tensor.Tensor = functions.cat(parts)
        return flat

    def _move(self, direction: tensor.Tensor, size: float) -> None:
        start = 0
        for parameter in map(update_rule.as_pairs, self.params):
            end = start + parameter.numel()
            parameter.add_(direction[start:end].view(parameter.shape), alpha=size)
            start = end

    def _evaluate(self, direction: tensor.Tensor | None = None) -> tuple[float, tensor.Tensor, float]:
        """Loss, gradient, and slope along a direction where the parameters are now, by one read of the device."""
        self.loss = self.closure()
        self.n_evaluations += 1
        self.state["func_evals"] += 1
        gradient = self._gradient()
        scalars = [gradient.abs().max(), gradient.dot(gradient if direction is None else direction)]
        if isinstance(self.loss, tensor.Tensor):
            scalars.append(self.loss.detach().to(gradient).reshape(()))
        self.steepest, slope, *loss = functions.stack(scalars).tolist()
        return loss[0] if loss else float(self.loss or 0.0), gradient, slope

    def _line_search(
        self, loss: float, gradient: tensor.Tensor, size: float, direction: tensor.Tensor, slope: float, reach: float
    ) -> tuple[float, tensor.Tensor, float]:
        """The loss, the gradient and the position of a point along `direction`, where the parameters are not yet."""
        if self.group["line_search_fn"] != "strong_wolfe":
            raise RuntimeError("only 'strong_wolfe' is supported")
        start = [parameter.clone() for parameter in self.params]

        def evaluate(length: float) -> tuple[float, tensor.Tensor, float]:
            self._move(direction, length)
            point = self._evaluate(direction)
            for parameter, old in zip(self.params, start, strict=True):
                parameter.copy_(old)
            return point

        most = self.group["max_eval"] - self.n_evaluations
        size_of_step, value, gradient_at_step, _ = strong_wolfe(
            evaluate, size, (0.0, loss, gradient, slope), reach, most
        )
        return value, gradient_at_step, size_of_step


def strong_wolfe(
    evaluate: Evaluate,
    length: float,
    start: Point,
    reach: float,
    most: int = 25,
    *,
    sufficient: float = 1e-4,
    curvature: float = 0.9,
    tolerance: float = 1e-9,
) -> Point:
    """A point of a line whose loss fell enough, and whose slope is near enough to 0, from a first guess `length`.

    reach: the largest element of the direction; a smaller change of position than tolerance / reach ends the search.
    """
    _, loss, _, slope = start
    point, before, n_tries = (length, *evaluate(length)), start, 0

    def is_high(point: Point) -> bool:
        return point[1] > loss + sufficient * point[0] * slope

    def is_flat(point: Point) -> bool:
        return abs(point[3]) <= -curvature * slope

    while n_tries < most:
        if is_high(point) or (n_tries > 1 and point[1] >= before[1]):
            bracket = [before, point]
            break
        if is_flat(point):
            return point
        if point[3] >= 0:
            bracket = [before, point]
            break
        length, last = point[0], before[0]
        bounds = (length + 0.01 * (length - last), length * 10)
        length = minimum_of_cubic(before, point, bounds)
        before, point, n_tries = point, (length, *evaluate(length)), n_tries + 1
    else:
        bracket = [start, point]
    return _zoomed(evaluate, bracket, is_high, is_flat, reach, most - n_tries, tolerance)


def _zoomed(
    evaluate: Evaluate,
    bracket: list[Point],
    is_high: Callable[[Point], bool],
    is_flat: Callable[[Point], bool],
    reach: float,
    most: int,
    tolerance: float,
) -> Point:
    """Narrows a bracket around a point that is low and flat. Returns the lower of its ends."""
    is_stuck = False
    low, high = (0, 1) if bracket[0][1] <= bracket[-1][1] else (1, 0)
    while most > 0:
        left, right = sorted(point[0] for point in bracket)
        width = right - left
        if width * reach < tolerance:
            break
        length = minimum_of_cubic(bracket[0], bracket[1])
        edge = 0.1 * width
        if min(right - length, length - left) < edge:
            if is_stuck or length >= right or length <= left:
                length = right - edge if abs(length - right) < abs(length - left) else left + edge
                is_stuck = False
            else:
                is_stuck = True
        else:
            is_stuck = False
        point, most = (length, *evaluate(length)), most - 1
        if is_high(point) or point[1] >= bracket[low][1]:
            bracket[high] = point
            low, high = (0, 1) if bracket[0][1] <= bracket[1][1] else (1, 0)
            continue
        if is_flat(point):
            bracket[low] = point
            break
        if point[3] * (bracket[high][0] - bracket[low][0]) >= 0:
            bracket[high] = bracket[low]
        bracket[low] = point
    return bracket[low]


def minimum_of_cubic(first_point: Point, other: Point, bounds: tuple[float, float] | None = None) -> float:
    """Where the cubic through two points with their slopes is least; the middle of the bounds if it has no minimum."""
    low, high = bounds or tuple(sorted((first_point[0], other[0])))
    first, second = (first_point, other) if first_point[0] <= other[0] else (other, first_point)
    (x1, f1, _, g1), (x2, f2, _, g2) = first, second
    inner = g1 + g2 - 3 * (f1 - f2) / (x1 - x2) if x1 != x2 else math.nan
    square = inner * inner - g1 * g2
    if not square >= 0:
        return (low + high) / 2.0
    root = math.sqrt(square)
    divisor = g2 - g1 + 2 * root
    minimum = x2 - (x2 - x1) * ((g2 + root - inner) / divisor) if divisor else math.nan
    return min(max(minimum, low), high)


def _dense(gradient: tensor.Tensor) -> tensor.Tensor:
    dense: Any = gradient  # one that is sparse has the method
    return dense.to_dense() if getattr(gradient, "is_sparse", False) else gradient
