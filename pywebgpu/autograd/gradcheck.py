"""Holds gradients against differences of values: of a function, and of its gradient."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from pywebgpu.autodiff import grad_mode
from pywebgpu.tensor import functions, gradient
from pywebgpu.tensor.base import TensorBase
from pywebgpu.tensor.create import tensor as make

if TYPE_CHECKING:
    from pywebgpu.tensor.tensor import Tensor
    from pywebgpu.tensor.types import Tensors


class GradcheckError(RuntimeError):
    """A gradient is not what differences of values say."""


def gradcheck(
    func: Callable[..., Any],
    inputs: Tensors,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    **accepted: Any,
) -> bool:
    """Whether d(func)/d(input) equals (func(x + eps) - func(x - eps)) / 2 eps, for every element of every input.

    Inputs should be float64 on device cpu. Raises GradcheckError where it does not, or returns False.
    """
    try:
        _check(func, _tuple(inputs), eps, atol, rtol)
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def gradgradcheck(
    func: Callable[..., Any],
    inputs: Tensors,
    grad_outputs: Tensors | None = None,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    **accepted: Any,
) -> bool:
    """gradcheck of the gradient of `func`, as a function of the inputs and of the outputs' gradients."""
    given = _tuple(inputs)
    outputs = _differentiable(func(*given))
    seeds = _seeds(outputs) if grad_outputs is None else _tuple(grad_outputs)
    count = len(given)
    active = [at for at, x in enumerate(given) if isinstance(x, TensorBase) and x.requires_grad]

    def first(*arguments: Any) -> tuple[Tensor, ...]:
        points = arguments[:count]
        found = _differentiable(func(*points))
        wanted = [points[at] for at in active]
        grads = gradient.grad(found, wanted, arguments[count:], create_graph=True, allow_unused=True)
        return tuple(g for g in grads if g is not None)

    return gradcheck(first, (*given, *seeds), eps=eps, atol=atol, rtol=rtol, raise_exception=raise_exception)


def _check(func: Callable[..., Any], inputs: tuple[Any, ...], eps: float, atol: float, rtol: float) -> None:
    active = [at for at, x in enumerate(inputs) if isinstance(x, TensorBase) and x.requires_grad]
    if not active:
        raise ValueError("gradcheck expects at least one input tensor to require gradient, but none of them have")
    outputs = _differentiable(func(*inputs))
    for number, output in enumerate(outputs):
        analytical = [_analytical(output, inputs[at]) for at in active]
        for at, rows in zip(active, analytical, strict=True):
            for element in range(inputs[at].numel()):
                numerical = _numerical(func, inputs, at, element, number, eps)
                for position, expected in enumerate(numerical):
                    found = rows[position][element]
                    if not abs(found - expected) <= atol + rtol * abs(expected):
                        raise GradcheckError(
                            f"Jacobian mismatch for output {number} with respect to input {at}: at output element "
                            f"{position}, input element {element}, numerical: {expected}, analytical: {found}"
                        )


def _analytical(output: Tensor, point: Tensor) -> list[list[float]]:
    """A row of the jacobian for each element of the output."""
    rows = []
    flat = output.reshape(-1)
    for position in range(output.numel()):
        (part,) = gradient.grad(flat[position], point, retain_graph=True, allow_unused=True)
        rows.append([0.0] * point.numel() if part is None else part.reshape(-1).tolist())
    return rows


def _numerical(
    func: Callable[..., Any], inputs: tuple[Any, ...], at: int, element: int, number: int, eps: float
) -> list[float]:
    """How each element of an output moves with one element of an input."""
    sides = []
    for step in (eps, -eps):
        moved = inputs[at].detach().clone()
        flat = moved.view(-1)
        flat[element] = flat[element] + step
        moved.requires_grad_()
        with grad_mode.enable_grad():
            outputs = _differentiable(func(*inputs[:at], moved, *inputs[at + 1 :]))
        sides.append(outputs[number].detach().reshape(-1).tolist())
    return [(a - b) / (2 * eps) for a, b in zip(*sides, strict=True)]


def _get_numerical_jacobian(
    fn: Callable[..., Any],
    inputs: Tensors,
    outputs: Tensors | None = None,
    target: Any = None,
    eps: float = 1e-3,
    is_forward_ad: bool = False,
) -> list[tuple[Tensor, ...]]:
    """How the outputs of fn move with each target (the inputs, or what fn reads besides): for each target that wants a
    gradient a matrix an output, (elements of the target, elements of the output). Raises ValueError for complex ones.
    """
    points = _tuple(inputs)
    outputs = _tuple(fn(*points) if outputs is None else outputs)
    if not is_forward_ad and any(out.is_complex() for out in outputs):
        raise ValueError("Expected output to be non-complex. get_numerical_jacobian supports no complex outputs.")
    return [_moved(fn, points, x, eps) for x in _iter_tensors(inputs if target is None else target, True)]


def _moved(fn: Callable[..., Any], points: tuple[Any, ...], target: Tensor, eps: float) -> tuple[Tensor, ...]:
    """Moves each element of a target in place, and puts it back."""
    flat, columns = target.detach().reshape(-1).tolist(), []
    for element, value in enumerate(flat):
        sides = []
        for moved in (value + eps, value - eps):
            values = make([*flat[:element], moved, *flat[element + 1 :]], dtype=target.dtype, device=target.device)
            target.data.copy_(values.reshape(target.shape))
            with grad_mode.no_grad():
                sides.append([out.detach().reshape(-1).clone() for out in _tuple(fn(*points))])
        columns.append([(high - low) / (2 * eps) for high, low in zip(*sides, strict=True)])
    target.data.copy_(make(flat, dtype=target.dtype, device=target.device).reshape(target.shape))
    return tuple(functions.stack(list(rows)) for rows in zip(*columns, strict=True))


def _iter_tensors(x: Any, only_requiring_grad: bool = False) -> Iterator[Tensor]:
    """The tensors of a nest."""
    if isinstance(x, TensorBase):
        if x.requires_grad or not only_requiring_grad:
            yield x  # type: ignore[misc]
    elif isinstance(x, Iterable) and not isinstance(x, str):
        for element in x:
            yield from _iter_tensors(element, only_requiring_grad)


def _tuple(value: Tensors) -> tuple[Any, ...]:
    return (value,) if isinstance(value, TensorBase) else tuple(value)


def _differentiable(outputs: Tensors) -> list[Any]:
    return [out for out in _tuple(outputs) if isinstance(out, TensorBase) and out.requires_grad]


def _seeds(outputs: list[Any]) -> tuple[Any, ...]:
    """Random gradients for the outputs, the same in every run."""
    source = random.Random(0)
    seeds = []
    for out in outputs:
        values = [source.gauss(0.0, 1.0) for _ in range(out.numel())]
        seed = make(values, dtype=out.dtype, device=out.device).reshape(out.shape)
        seeds.append(seed.detach().requires_grad_())
    return tuple(seeds)
