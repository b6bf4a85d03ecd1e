"""Holds gradients against differences of values: of a function, and of its gradient."""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pywebgpu.autodiff import grad_mode
from pywebgpu.autograd import forward_ad
from pywebgpu.support import closed_types
from pywebgpu.tensor import create, functions, gradient
from pywebgpu.tensor.base import TensorBase
from pywebgpu.tensor.create import tensor as make
from pywebgpu.tensor.limits import finfo

if TYPE_CHECKING:
    from pywebgpu.tensor.tensor import Tensor
    from pywebgpu.tensor.types import Tensors

Function = Callable[..., Any]
Rows = list[list[complex]]  # of a jacobian: an element of the input a row, one of the output a column

NOT_SAME = (
    "Backward is not reentrant, i.e., running backward with same input and grad_output multiple times gives different "
    "values, although analytical gradient matches numerical gradient. The tolerance for nondeterminism was {}."
)
PRIVATE = "`{0}` was part of PyTorch's private API and not meant to be exposed."


class GradcheckError(RuntimeError):
    """A gradient is not what differences of values say."""


@dataclass(frozen=True)
class _Check:
    """What all parts of a check ask: steps and tolerances, and how far two gradients of one point may differ."""

    eps: float
    atol: float
    rtol: float
    nondet_tol: float

    def is_close(self, actual: complex, expected: complex) -> bool:
        return bool(abs(actual - expected) <= self.atol + self.rtol * abs(expected))


def _check_backwards(
    func: Function, points: tuple[Any, ...], active: list[int], jacobians: list[Any], check: _Check, *, dtypes: bool
) -> list[Tensor]:
    """Compares what backward gives with the numerical derivatives; the outputs, computed anew."""
    slopes = [out for out in _tuple(func(*points)) if _is_slope(out)]  # The inputs were written since.
    outputs = [out for out in slopes if out.requires_grad]
    jacobians = [[rows for rows, out in zip(each, slopes, strict=True) if out.requires_grad] for each in jacobians]
    _check_backward(points, active, outputs, jacobians, check, dtypes=dtypes)
    _check_zero(outputs, [points[index] for index in active])
    return outputs


def gradcheck(
    func: Function,
    inputs: Tensors,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_batched_forward_grad: bool = False,
    check_forward_ad: bool = False,
    check_backward_ad: bool = True,
    fast_mode: bool = False,
    masked: bool | None = None,
) -> bool:
    """Whether d(func)/d(input) equals (func(x + eps) - func(x - eps)) / 2 eps, for every element of every input.

    Inputs should be float64 or complex128 on device cpu: they are moved in place, and put back. Of complex numbers both
    parts are moved, and both parts of results differentiated. fast_mode: along one random direction first.
    Raises: GradcheckError where it does not, or returns False. ValueError where nothing can be checked.
    """
    assert check_forward_ad or check_backward_ad, "Expected at least one of check_forward_ad and check_backward_ad"
    assert not check_batched_forward_grad or check_forward_ad, "check_batched_forward_grad needs check_forward_ad"
    points = _tuple(inputs)
    check = _Check(eps, atol, rtol, nondet_tol)
    active = _checked_inputs(points)
    try:
        func, points, active = _of_values(func, points, active)
        if not _differentiable(func(*points)):
            return _check_constant(func, points, active, check)
        jacobians = [_numerical(func, points, points[index], eps) for index in active]
        if check_backward_ad:
            outputs = _check_backwards(func, points, active, jacobians, check, dtypes=check_grad_dtypes)
        if check_forward_ad:
            _check_forward(func, points, active, jacobians, check)
        if check_backward_ad and check_batched_grad:
            _check_batched(outputs, [points[index] for index in active], check)
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def gradgradcheck(
    func: Function,
    inputs: Tensors,
    grad_outputs: Tensors | None = None,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    gen_non_contig_grad_outputs: bool = False,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_fwd_over_rev: bool = False,
    check_rev_over_rev: bool = True,
    fast_mode: bool = False,
    masked: bool = False,
) -> bool:
    """gradcheck of the gradient of `func`, as a function of the inputs and of the outputs' gradients."""
    assert check_fwd_over_rev or check_rev_over_rev, "Expected at least one of check_fwd_over_rev, check_rev_over_rev"
    points = _tuple(inputs)
    outputs = _differentiable(func(*points))
    seeds = _seeds(outputs) if grad_outputs is None else _tuple(grad_outputs)
    return gradcheck(
        _gradient_of(func, points), (*points, *seeds), eps=eps, atol=atol, rtol=rtol, raise_exception=raise_exception,
        nondet_tol=nondet_tol, check_grad_dtypes=check_grad_dtypes, check_batched_grad=check_batched_grad,
        check_forward_ad=check_fwd_over_rev, check_backward_ad=check_rev_over_rev, fast_mode=fast_mode, masked=masked,
    )  # fmt: skip


def _gradient_of(func: Function, points: tuple[Any, ...]) -> Function:
    """The gradient of `func` by the points that want one, as a function of the points and of the outputs' gradients."""
    count = len(points)
    active = [index for index, x in enumerate(points) if isinstance(x, TensorBase) and x.requires_grad]

    def first(*arguments: Any) -> tuple[Tensor, ...]:
        points = list(arguments[:count])
        for index in active:
            points[index] = points[index].requires_grad_() if points[index].is_leaf else points[index]
        with grad_mode.enable_grad():
            outputs = _differentiable(func(*points))
            wanted = [points[index] for index in active]
            grads = gradient.grad(outputs, wanted, arguments[count:], create_graph=True, allow_unused=True)
        return tuple(g for g in grads if g is not None)

    return first


# What is checked


def _checked_inputs(points: Sequence[Any]) -> list[int]:
    """Which inputs want a gradient. Raises ValueError where none does, RuntimeError for one that lies over itself."""
    active = [index for index, x in enumerate(points) if isinstance(x, TensorBase) and x.requires_grad]
    if not active:
        raise ValueError(
            "gradcheck expects at least one input tensor to require gradient, but none of the them have "
            "requires_grad=True."
        )
    for index in active:
        x = points[index]
        if x.dtype.itemsize < (16 if x.is_complex() else 8):
            warnings.warn(
                f"Input #{index} requires gradient and is not a double precision floating point or complex. This check "
                "will likely fail if all the inputs are not of double precision floating point or complex. ",
                stacklevel=3,
            )
        if x.layout is closed_types.strided and any(
            step == 0 and size > 1 for step, size in zip(x.stride(), x.shape, strict=True)
        ):
            raise RuntimeError(
                f"The {index}th input has a dimension with stride 0. gradcheck only supports inputs that are "
                "non-overlapping to be able to compute the numerical gradients correctly. You should call "
                ".contiguous on the input before passing it to gradcheck."
            )
    return active


def _of_values(
    func: Function, points: tuple[Any, ...], active: list[int]
) -> tuple[Function, tuple[Any, ...], list[int]]:
    """The same with the values of sparse inputs in their places, which are what moves."""
    sparse = {index: points[index] for index in active if points[index].layout is not closed_types.strided}
    if not sparse:
        return func, points, active
    values = tuple(
        x._values().detach().clone().requires_grad_() if index in sparse else x for index, x in enumerate(points)
    )

    def of_values(*arguments: Any) -> Any:
        return func(*(sparse[index]._like(x) if index in sparse else x for index, x in enumerate(arguments)))

    return of_values, values, active


def _check_constant(func: Function, points: tuple[Any, ...], active: list[int], check: _Check) -> bool:
    for index in active:
        for rows in _numerical(func, points, points[index], check.eps, every=True):
            if any(abs(value) > check.atol for row in rows for value in row):
                raise GradcheckError("Numerical gradient for function expected to be zero")
    return True


def _check_backward(
    points: tuple[Any, ...], active: list[int], outputs: list[Any], jacobians: list[list[Rows]],
    check: _Check, *, dtypes: bool,
) -> None:  # fmt: skip
    wanted = [points[index] for index in active]
    for number, output in enumerate(outputs):
        if output.layout is not closed_types.strided:
            raise ValueError(
                "Sparse output is not supported at gradcheck yet. Please call to_dense(masked_grad=...) on the output "
                "of fn for gradcheck."
            )
        parts = ("imag", "real") if output.is_complex() else ("",)
        for part in parts:
            first, second = (_analytical(output, wanted, part, dtypes=dtypes) for _ in range(2))
            for place, index in enumerate(active):
                rows = jacobians[place][number]
                expected = [
                    [_part(value, part, is_complex=wanted[place].is_complex()) for value in row] for row in rows
                ]
                _compare(expected, first[place], number, index, part, wanted[place], check)
            for row, other in zip(first, second, strict=True):
                _compare_again(row, other, check, finfo(output.dtype).eps)


def _part(value: Any, part: str, *, is_complex: bool) -> complex:
    """The slope of a part of the result: of a complex input a pair, along both of its parts."""
    pair = value if is_complex else (value, 0.0)
    along = [complex(entry).imag if part == "imag" else complex(entry).real for entry in pair]
    return complex(along[0], along[1]) if is_complex else along[0]


def _compare(
    expected: Rows, actual: Rows, number: int, index: int, part: str, point: Tensor, check: _Check, mode: str = ""
) -> None:
    for element, (row, other) in enumerate(zip(expected, actual, strict=True)):
        for position, (numerical, analytical) in enumerate(zip(row, other, strict=True)):
            if not check.is_close(analytical, numerical):
                prefix = {"real": "While considering the real part of complex outputs only, ", "": ""}.get(
                    part, "While considering the imaginary part of complex outputs only, "
                )
                name = f"Jacobian {mode}mismatch" if not mode else f"Jacobian computed with {mode} mode mismatch"
                raise GradcheckError(
                    f"{prefix}{name} for output {number} with respect to input {index},\nnumerical:{numerical}\n"
                    f"analytical:{analytical}\nat output element {position}, input element {element}"
                )


def _compare_again(first: Rows, second: Rows, check: _Check, eps: float) -> None:
    """Raises GradcheckError for what rounding does not explain: a second walk may be fused in another way."""
    for row, other in zip(first, second, strict=True):
        if any(abs(a - b) > check.nondet_tol + 8 * eps * abs(a) for a, b in zip(row, other, strict=True)):
            raise GradcheckError(NOT_SAME.format(check.nondet_tol))


def _check_zero(outputs: list[Any], wanted: list[Any]) -> None:
    """Raises GradcheckError where gradients of zero do not give zeros, or gradients of another kind than the inputs."""
    zeros = [create.zeros_like(output) for output in outputs]
    grads = gradient.grad(outputs, wanted, zeros, retain_graph=True, allow_unused=True)
    for grad, x in zip(grads, wanted, strict=True):
        if grad is None:
            continue
        if grad.layout is not x.layout:
            raise GradcheckError(f"grad is incorrect layout ({grad.layout} is not {x.layout})")
        if grad.dtype is not x.dtype:
            raise GradcheckError(f"grad is incorrect type ({grad.dtype} is not {x.dtype})")
        if grad.shape != x.shape:
            raise GradcheckError("grad is incorrect size")
        if bool((grad != 0).any()):
            raise GradcheckError("backward not multiplied by grad_output")


def _check_batched(outputs: list[Any], wanted: list[Any], check: _Check) -> None:
    for output in outputs:
        seeds = functions.stack([*_seeds([output]), *_seeds([output])]).detach()
        singles = [gradient.grad(output, wanted, seed, retain_graph=True, allow_unused=True) for seed in seeds]
        try:
            batch = gradient.grad(output, wanted, seeds, retain_graph=True, allow_unused=True, is_grads_batched=True)
        except RuntimeError as error:
            raise GradcheckError(
                f"While computing batched gradients, got: {error}\n\ngradcheck or gradgradcheck failed while testing "
                "batched gradient computation."
            ) from error
        for index, rows in enumerate(batch):
            for row, single in zip(() if rows is None else rows, singles, strict=False):
                pairs = zip(_flat(row), _flat(single[index]), strict=True) if single[index] is not None else ()
                if not all(check.is_close(a, b) for a, b in pairs):
                    raise GradcheckError(
                        "For output and input, the batched gradient is not the gradient of each: gradcheck or "
                        "gradgradcheck failed while testing batched gradient computation."
                    )


def _check_forward(
    func: Function, points: tuple[Any, ...], active: list[int], jacobians: list[list[Rows]], check: _Check
) -> None:
    """Holds forward-mode tangents, along each element of each input, against the slopes."""
    for place, index in enumerate(active):
        point = points[index]
        directions = (1.0, 1j) if point.is_complex() else (1.0,)
        for element in range(point.numel()):
            for direction_index, direction in enumerate(directions):
                flat = [0.0 * direction] * point.numel()
                flat[element] = direction
                tangent = make(flat, dtype=point.dtype, device=point.device).reshape(point.shape)
                with forward_ad.dual_level():
                    plain = [x.detach() if isinstance(x, TensorBase) else x for x in points]
                    duals = [
                        forward_ad.make_dual(x, tangent if number == index else create.zeros_like(x))
                        if number in active
                        else x
                        for number, x in enumerate(plain)
                    ]
                    results = [out for out in _tuple(func(*duals)) if _is_slope(out)]
                    tangents = [forward_ad.unpack_dual(out).tangent for out in results]
                rows: Rows = [
                    [0.0] * out.numel() if part is None else _flat(part)
                    for out, part in zip(results, tangents, strict=True)
                ]
                for number, row in enumerate(rows):
                    expected = jacobians[place][number][element]
                    wanted = [value[direction_index] if point.is_complex() else value for value in expected]  # type: ignore[index]
                    _compare([wanted], [row], number, index, "", point, check, "forward")


# Jacobians


def _analytical(output: Tensor, wanted: list[Any], part: str, *, dtypes: bool) -> list[Rows]:
    """For each input its jacobian by the gradient: of a complex output that of one part."""
    count = output.numel()
    rows: list[Rows] = [[[0.0] * count for _ in range(x.numel())] for x in wanted]
    unit = 1j if part == "imag" else 1.0
    for position in range(count):
        flat = [0.0 * unit] * count
        flat[position] = unit
        seed = make(flat, dtype=output.dtype, device=output.device).reshape(output.shape)
        grads = gradient.grad(output, wanted, seed, retain_graph=True, allow_unused=True)
        for place, grad in enumerate(grads):
            if grad is None:
                continue
            if grad.shape != wanted[place].shape:
                raise GradcheckError("Analytical gradient has incorrect size")
            if dtypes and grad.dtype is not wanted[place].dtype:
                raise GradcheckError("Analytical gradient has incorrect dtype")
            for element, value in enumerate(_flat(grad)):
                rows[place][element][position] = value
    return rows


def _numerical(
    func: Function, points: tuple[Any, ...], target: Tensor, eps: float, *, every: bool = False
) -> list[Any]:
    """For each output a jacobian by differences; of a complex target an entry is a pair, along both of its parts."""
    flat = target.detach().reshape(-1).tolist()
    if not flat:
        return [[] for out in _tuple(func(*points)) if every or _is_slope(out)]
    steps = (eps, 1j * eps) if target.is_complex() else (eps,)
    columns: list[list[list[Any]]] = []
    for element, value in enumerate(flat):
        along = []
        for step in steps:
            sides = []
            for moved in (value + step, value - step):
                _write(target, [*flat[:element], moved, *flat[element + 1 :]])
                with grad_mode.enable_grad():  # What hangs hooks on its values needs a history.
                    sides.append([_copied(out) for out in _tuple(func(*points)) if every or _is_slope(out)])
            along.append([_slope(high, low, eps) for high, low in zip(*sides, strict=True)])
        columns.append(
            [list(zip(*pair, strict=True)) for pair in zip(*along, strict=True)] if len(along) > 1 else along[0]
        )
    _write(target, flat)
    return [list(rows) for rows in zip(*columns, strict=True)]


def _write(target: Tensor, values: list[Any]) -> None:
    target.data.copy_(make(values, dtype=target.dtype, device=target.device).reshape(target.shape))


def _copied(out: Any) -> tuple[Any, Any, list[Any]]:
    return out.shape, out.dtype, _flat(out)


def _slope(high: tuple[Any, Any, list[Any]], low: tuple[Any, Any, list[Any]], eps: float) -> list[Any]:
    for index, what in enumerate(("shape", "dtype")):
        assert high[index] == low[index], f"Expected `func` to return outputs with the same {what} when inputs are " \
            "perturbed within the numerical tolerance `eps`"  # fmt: skip
    return [(a - b) / (2 * eps) for a, b in zip(high[2], low[2], strict=True)]


def _flat(tensor: Tensor) -> list[Any]:
    dense = tensor.detach().to_dense() if tensor.layout is not closed_types.strided else tensor.detach()
    return dense.reshape(-1).tolist()  # type: ignore[no-any-return]


def _is_slope(out: Any) -> bool:
    return isinstance(out, TensorBase) and (out.is_floating_point() or out.is_complex())  # type: ignore[attr-defined]


def _get_numerical_jacobian(
    fn: Function,
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
    results = []
    for x in _iter_tensors(inputs if target is None else target, True):
        jacobians = _numerical(fn, points, x, eps)
        kinds = [out.dtype for out in outputs if _is_slope(out)]
        results.append(tuple(make(rows, dtype=kind) for rows, kind in zip(jacobians, kinds, strict=True)))
    return results


def get_numerical_jacobian(
    fn: Function, inputs: Tensors, target: Any = None, eps: float = 1e-3, grad_out: float = 1.0
) -> tuple[Tensor, ...]:
    """The jacobians of the first output of `fn(inputs)`. It is deprecated: use gradcheck."""
    warnings.warn(PRIVATE.format("get_numerical_jacobian"), FutureWarning, stacklevel=2)
    _check_seed("get_numerical_jacobian", grad_out)
    matrices_of_outputs = _get_numerical_jacobian(lambda *points: fn(points), inputs, None, target, eps)
    return tuple(matrices[0] for matrices in matrices_of_outputs)


def get_analytical_jacobian(
    inputs: Tensors, output: Tensor, nondet_tol: float = 0.0, grad_out: float = 1.0
) -> tuple[tuple[Tensor, ...], bool, bool, bool]:
    """The jacobians of an output by its gradient; whether a second walk gives the same, and whether sizes and types of
    gradients are right. It is deprecated: use gradcheck."""
    warnings.warn(PRIVATE.format("get_analytical_jacobian"), FutureWarning, stacklevel=2)
    _check_seed("get_analytical_jacobian", grad_out)
    if output.is_complex():
        raise ValueError("Expected output to be non-complex. get_analytical_jacobian supports no complex outputs.")
    wanted = list(_iter_tensors(inputs, True))
    first, second = (_analytical(output, wanted, "", dtypes=False) for _ in range(2))
    pairs = [(a, b) for row, other in zip(first, second, strict=True) for r, s in zip(row, other, strict=True)
             for a, b in zip(r, s, strict=True)]  # fmt: skip
    is_same = all(abs(a - b) <= nondet_tol for a, b in pairs)
    return tuple(make(rows, dtype=x.dtype) for rows, x in zip(first, wanted, strict=True)), is_same, True, True


def _check_seed(name: str, grad_out: float) -> None:
    if grad_out != 1.0:
        raise ValueError(f"Expected grad_out to be 1.0. {name} no longer supports values of grad_out != 1.0.")


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
        values: list[Any] = [source.gauss(0.0, 1.0) for _ in range(out.numel())]
        if out.is_complex():
            values = [complex(value, source.gauss(0.0, 1.0)) for value in values]
        seed = make(values, dtype=out.dtype, device=out.device).reshape(out.shape)
        seeds.append(seed.detach().requires_grad_())
    return tuple(seeds)
