"""Derivatives of whole functions, made of `grad`: products with vectors, jacobians, hessians."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import TYPE_CHECKING, Any

from pywebgpu.autodiff import grad_mode
from pywebgpu.composites import joining
from pywebgpu.ops import pointwise
from pywebgpu.tensor import gradient
from pywebgpu.tensor.apply import apply
from pywebgpu.tensor.base import TensorBase
from pywebgpu.tensor.tensor import Tensor

if TYPE_CHECKING:
    from pywebgpu.tensor.types import Tensors

Call = Callable[..., Any]


def vjp(
    func: Call, inputs: Tensors, v: Tensors | None = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """func(inputs), and v times its jacobian. v has the outputs' shape; None is 1 for one number."""
    with grad_mode.enable_grad():
        points, single = _points(inputs, create_graph)
        outputs, single_output = _called(func, points)
        seeds = _vectors("v", v, outputs)
        products = _grads(outputs, points, seeds, create_graph, strict)
    return _finished(outputs, single_output, create_graph), _finished(products, single, create_graph)


def jvp(
    func: Call, inputs: Tensors, v: Tensors | None = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """func(inputs), and its jacobian times v. v has the inputs' shape; None is 1 for one number.

    The product u -> u^T J is linear in u, so its own gradient is J v: two reverse walks.
    """
    with grad_mode.enable_grad():
        points, _ = _points(inputs, create_graph)
        outputs, single = _called(func, points)
        tangents = _vectors("v", v, points)
        doubles = [_like(output, 0).requires_grad_() for output in outputs]
        rows = _grads(outputs, points, doubles, True, strict)
        products = _grads(rows, doubles, tangents, create_graph, strict)
    return _finished(outputs, single, create_graph), _finished(products, single, create_graph)


def vhp(
    func: Call, inputs: Tensors, v: Tensors | None = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """func(inputs), one number, and v times its hessian."""
    with grad_mode.enable_grad():
        points, single = _points(inputs, create_graph)
        outputs, single_output = _called(func, points)
        first = _grads(outputs, points, None, True, strict)
        products = _grads(first, points, _vectors("v", v, points), create_graph, strict)
    return _finished(outputs, single_output, create_graph), _finished(products, single, create_graph)


hvp = vhp  # A hessian is symmetric.


def jacobian(
    func: Call,
    inputs: Tensors,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    strategy: str = "reverse-mode",
) -> Any:
    """d(output)/d(input): shape of the output, then of the input; nested tuples where there are several of either."""
    if strict and vectorize:
        raise RuntimeError("jacobian: `strict=True` and `vectorized=True` are not supported together.")
    with grad_mode.enable_grad():
        points, single = _points(inputs, create_graph)
        outputs, single_output = _called(func, points)
        table = [_rows(output, points, create_graph, strict) for output in outputs]
    rows = [_finished(row, single, create_graph) for row in table]
    return rows[0] if single_output else tuple(rows)


def hessian(
    func: Call,
    inputs: Tensors,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    outer_jacobian_strategy: str = "reverse-mode",
) -> Any:
    """Second derivatives of a function of one number: shape of the input, twice."""

    def single(*points: Any) -> object:
        value = func(*points)
        if isinstance(value, tuple):
            raise RuntimeError("The function given to hessian should return a single Tensor")
        if isinstance(value, TensorBase) and prod(value.shape) != 1:
            raise RuntimeError("The Tensor returned by the function given to hessian should contain a single element")
        return value.reshape(()) if isinstance(value, Tensor) else value

    def first(*points: Any) -> object:
        jacobians = jacobian(single, points, create_graph=True)
        return jacobians[0] if isinstance(inputs, TensorBase) else jacobians

    return jacobian(first, inputs, create_graph, strict, vectorize)


def _rows(output: Tensor, points: list[Any], create_graph: bool, strict: bool) -> list[Any]:
    """The jacobian of one output to each input, a reverse walk an element."""
    flat = output.reshape(-1)
    columns: list[list[Any]] = [[] for _ in points]
    for index in range(output.numel()):
        for column, part in zip(columns, _grads([flat[index]], points, None, create_graph, strict), strict=True):
            column.append(part)
    return [
        apply(joining.stack, column).reshape((*output.shape, *point.shape))
        if column
        else point.new_zeros((*output.shape, *point.shape))
        for column, point in zip(columns, points, strict=True)
    ]


def _points(inputs: Tensors, create_graph: bool) -> tuple[list[Tensor], bool]:
    """Inputs that a gradient flows to: part of the caller's graph when one is to be created."""
    single = isinstance(inputs, TensorBase)
    listed = [inputs] if isinstance(inputs, TensorBase) else list(inputs)
    return [x.view_as(x) if create_graph and x.requires_grad else x.detach().requires_grad_() for x in listed], single


def _called(func: Call, points: list[Any]) -> tuple[list[Any], bool]:
    outputs = func(*points)
    return ([outputs], True) if isinstance(outputs, TensorBase) else (list(outputs), False)


def _like(tensor: Tensor, value: float) -> Tensor:
    return tensor._new(pointwise.full(value, tensor._node.spec), tensor._storage.device)


def _vectors(name: str, values: Tensors | None, like: list[Any]) -> list[Any]:
    if values is None:
        if len(like) != 1 or like[0].numel() != 1:
            raise RuntimeError(f"The vector {name} can only be None if input and output contain a single element")
        return [_like(like[0], 1)]
    vectors = [values] if isinstance(values, TensorBase) else list(values)
    if len(vectors) != len(like) or any(tuple(a.shape) != tuple(b.shape) for a, b in zip(vectors, like, strict=True)):
        raise RuntimeError(f"{name} has invalid size: should be {[list(x.shape) for x in like]}")
    return vectors


def _grads(
    outputs: list[Any], inputs: list[Any], seeds: Sequence[Tensor] | None, create_graph: bool, strict: bool
) -> list[Any]:
    """Gradients; zeros where an input was not used, or an error when `strict`."""
    used = [index for index, output in enumerate(outputs) if output.requires_grad]
    if not used:
        if strict:
            raise RuntimeError("The output of the user-provided function is independent of the inputs")
        return [_like(x, 0) for x in inputs]
    grads = gradient.grad(
        [outputs[index] for index in used],
        inputs,
        None if seeds is None else [seeds[index] for index in used],
        retain_graph=True,
        create_graph=create_graph,
        allow_unused=True,
    )
    if strict and any(part is None for part in grads):
        raise RuntimeError("The output of the user-provided function is independent of an input")
    return [_like(x, 0) if part is None else part for x, part in zip(inputs, grads, strict=True)]


def _finished(tensors: list[Any], single: bool, create_graph: bool) -> Tensor | tuple[Tensor, ...]:
    done = tensors if create_graph else [tensor.detach() for tensor in tensors]
    return done[0] if single else tuple(done)
