"""Derivatives of whole functions, made of `grad`: products with vectors, jacobians, hessians."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import TYPE_CHECKING, Any

from pywebgpu.autodiff import grad_mode
from pywebgpu.tensor import create, functions, gradient
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
        points, single = _points("vjp", inputs, create_graph)
        outputs, single_output = _called("vjp", func, points, strict)
        seeds = _vectors("vjp", v, outputs, "the user-provided function returns", single_output)
        products = _grads(outputs, points, seeds, create_graph, _OUTPUT if strict else "")
        _check_dependent(products, _JACOBIAN_IN_GRAPH if strict and create_graph else "")
    return _finished(outputs, single_output, create_graph), _finished(products, single, create_graph)


def jvp(
    func: Call, inputs: Tensors, v: Tensors | None = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """func(inputs), and its jacobian times v. v has the inputs' shape; None is 1 for one number.

    The product u -> u^T J is linear in u, so its own gradient is J v: two reverse walks.
    """
    with grad_mode.enable_grad():
        points, single_input = _points("jvp", inputs, create_graph)
        tangents = _vectors("jvp", v, points, "the input to the user-provided function is", single_input)
        outputs, single = _called("jvp", func, points, strict)
        doubles = [_like(output, 0).requires_grad_() for output in outputs]
        rows = _grads(outputs, points, doubles, True, _OUTPUT if strict else "")
        products = _grads(rows, doubles, tangents, create_graph, _OUTPUT if strict else "")
        _check_dependent(products, _JACOBIAN_IN_GRAPH if strict and create_graph else "")
    return _finished(outputs, single, create_graph), _finished(products, single, create_graph)


def vhp(
    func: Call, inputs: Tensors, v: Tensors | None = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """func(inputs), one number, and v times its hessian."""
    return _hessian_product("vhp", func, inputs, v, create_graph, strict)


def hvp(
    func: Call, inputs: Tensors, v: Tensors | None = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """func(inputs), one number, and its hessian times v. A hessian is symmetric: see vhp."""
    return _hessian_product("hvp", func, inputs, v, create_graph, strict)


def _hessian_product(
    name: str, func: Call, inputs: Tensors, v: Tensors | None, create_graph: bool, strict: bool
) -> tuple[Any, Any]:
    with grad_mode.enable_grad():
        points, single = _points(name, inputs, create_graph)
        vectors = _vectors(name, v, points, "the input to the user-provided function is", single)
        outputs, single_output = _called(name, func, points, strict)
        if not single_output:
            raise RuntimeError(f"The function given to {name} should return a single Tensor")
        if outputs[0].numel() != 1:
            raise RuntimeError(f"The Tensor returned by the function given to {name} should contain a single element")
        first = _grads(outputs, points, None, True, _OUTPUT if strict else "")
        _check_dependent(first, _SECOND if strict else "")
        products = _grads(first, points, vectors, create_graph, _JACOBIAN if strict else "")
        _check_dependent(products, _HESSIAN_IN_GRAPH if strict and create_graph else "")
    return _finished(outputs, single_output, create_graph), _finished(products, single, create_graph)


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
        raise RuntimeError(
            "torch.autograd.functional.jacobian: `strict=True` and `vectorized=True` are not supported together."
        )
    with grad_mode.enable_grad():
        points, single = _points("jacobian", inputs, create_graph)
        outputs, single_output = _called("jacobian", func, points, strict)
        table = [
            _rows(output, points, create_graph, f"Output {number}" if strict else "")
            for number, output in enumerate(outputs)
        ]
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
    _points("hessian", inputs, create_graph)

    def single(*points: Any) -> object:
        value = func(*points)
        _called("hessian", lambda *_: value, list(points), strict)
        if not isinstance(value, TensorBase):
            raise RuntimeError("The function given to hessian should return a single Tensor")
        if prod(value.shape) != 1:
            raise RuntimeError("The Tensor returned by the function given to hessian should contain a single element")
        return value.reshape(())  # type: ignore[attr-defined]  # There is one class of tensors.

    def first(*points: Any) -> object:
        rows = jacobian(single, points, create_graph=True)
        _check_dependent(list(rows), _SECOND if strict else "")
        return rows[0] if isinstance(inputs, TensorBase) else rows

    return jacobian(first, inputs, create_graph, strict, vectorize)


def _rows(output: Tensor, points: list[Any], create_graph: bool, title: str) -> list[Any]:
    """The jacobian of one output to each input, a reverse walk an element. title: for errors, where that is strict."""
    flat = output.reshape(-1)
    columns: list[list[Any]] = [[] for _ in points]
    text = f"{title} of the user-provided function is independent of input {{}}. {_STRICT}" if title else ""
    for index in range(output.numel()):
        parts = _grads([flat[index]], points, None, create_graph, text)
        _check_dependent(parts, _JACOBIAN_IN_GRAPH if title and create_graph else "")
        for column, part in zip(columns, parts, strict=True):
            column.append(part)
    return [
        functions.stack(column).reshape((*output.shape, *point.shape))
        if column
        else point.new_zeros((*output.shape, *point.shape))
        for column, point in zip(columns, points, strict=True)
    ]


_STRICT = "This is not allowed in strict mode."
_OUTPUT = f"The output of the user-provided function is independent of input {{}}. {_STRICT}"
_JACOBIAN = f"The jacobian of the user-provided function is independent of input {{}}. {_STRICT}"
_JACOBIAN_IN_GRAPH = (
    "The jacobian of the user-provided function is independent of input {}. This is not allowed in strict mode when "
    "create_graph=True."
)
_HESSIAN_IN_GRAPH = _JACOBIAN_IN_GRAPH.replace("jacobian", "hessian")
_SECOND = (
    "While computing the hessian, found that the jacobian of the user-provided function with respect to input {} is "
    f"independent of the input. {_STRICT} You should ensure that your function is twice differentiable."
)


def _check_dependent(tensors: list[Any], text: str) -> None:
    """Raises RuntimeError with a text, if there is one, where a tensor depends on nothing."""
    for number, tensor in enumerate(tensors if text else ()):
        if not tensor.requires_grad:
            raise RuntimeError(text.format(number))


def _checked(what: str, name: str, values: Any) -> tuple[list[Any], bool]:
    """Tensors as a list, and whether it is one of its own. Raises TypeError for anything else."""
    single = not isinstance(values, tuple)
    tensors = [values] if single else list(values)
    for number, tensor in enumerate(tensors):
        if not isinstance(tensor, TensorBase):
            place = f"given {what} has" if single else f"value at index {number} has"
            raise TypeError(
                f"The {what} given to {name} must be either a Tensor or a tuple of Tensors but the {place} type "
                f"{type(tensor)}."
            )
    return tensors, single


def _points(name: str, inputs: Tensors, create_graph: bool) -> tuple[list[Any], bool]:
    """Inputs that a gradient flows to: part of the caller's graph when one is to be created."""
    tensors, single = _checked("inputs", name, tuple(inputs) if isinstance(inputs, list) else inputs)
    return [x.view_as(x) if create_graph and x.requires_grad else x.detach().requires_grad_() for x in tensors], single


def _called(name: str, func: Call, points: list[Any], strict: bool) -> tuple[list[Any], bool]:
    outputs, single = _checked("outputs of the user-provided function", name, func(*points))
    text = (
        "Output {} of the user-provided function does not require gradients. The outputs must be computed in a "
        "differentiable manner from the input when running in strict mode."
    )
    _check_dependent(outputs, text if strict else "")
    return outputs, single


def _like(tensor: Tensor, value: float) -> Tensor:
    return create.full_like(tensor, value)


def _vectors(name: str, values: Tensors | None, like: list[Any], what: str, single: bool) -> list[Any]:
    if values is None:
        if len(like) != 1 or like[0].numel() != 1:
            raise RuntimeError(f"The vector v can only be None if {what} a single Tensor with a single element.")
        return [_like(like[0], 1)]
    vectors, _ = _checked("v", name, tuple(values) if isinstance(values, list) else values)
    if len(vectors) != len(like):
        if single:
            raise RuntimeError("The given v should contain a single Tensor.")
        raise RuntimeError(f"v is a tuple of invalid length: should be {len(like)} but got {len(vectors)}.")
    for number, (vector, other) in enumerate(zip(vectors, like, strict=True)):
        if vector.shape != other.shape:
            place = "" if single else f"Entry {number} in "
            raise RuntimeError(f"{place}v has invalid size: should be {other.shape} but got {vector.shape}.")
    return vectors


def _grads(
    outputs: list[Any], inputs: list[Any], seeds: Sequence[Tensor] | None, create_graph: bool, text: str
) -> list[Any]:
    """Gradients; zeros where an input was not used, or an error with a text if there is one."""
    used = [index for index, output in enumerate(outputs) if output.requires_grad]
    grads: Sequence[Any] = [None] * len(inputs)
    if used:
        grads = gradient.grad(
            [outputs[index] for index in used],
            inputs,
            None if seeds is None else [seeds[index] for index in used],
            retain_graph=True,
            create_graph=create_graph,
            allow_unused=True,
        )
    for number, part in enumerate(grads if text else ()):
        if part is None:
            raise RuntimeError(text.format(number))
    return [_like(x, 0) if part is None else part for x, part in zip(inputs, grads, strict=True)]


def _finished(tensors: list[Any], single: bool, create_graph: bool) -> Tensor | tuple[Tensor, ...]:
    done = tensors if create_graph else [tensor.detach() for tensor in tensors]
    return done[0] if single else tuple(done)


def _construct_standard_basis_for(tensors: Sequence[Tensor], tensor_numels: Sequence[int]) -> tuple[Tensor, ...]:
    """The rows of the identity over all elements of some tensors: of each tensor its columns."""
    total, place, parts = sum(tensor_numels), 0, []
    for tensor, count in zip(tensors, tensor_numels, strict=True):
        part = create.zeros(total, count, dtype=tensor.dtype, device=tensor.device)
        part.diagonal(-place).fill_(1)
        parts.append(part)
        place += count
    return tuple(parts)
