"""Derivatives of functions as functions: gradients, products with vectors, jacobians. See torch.func.

Forward products are two reverse walks: u -> u^T J is linear in u, and its gradient is J v. A jacobian is one walk,
made for all rows or columns at once (batch.py).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from importlib import import_module
from math import prod
from typing import Any

from pywebgpu.autodiff import grad_mode
from pywebgpu.autograd import products
from pywebgpu.dtypes import Kind
from pywebgpu.func import tree
from pywebgpu.func.batch import vmap
from pywebgpu.ir.graph import thread_state, used
from pywebgpu.tensor import create, samples
from pywebgpu.tensor.tensor import Tensor

Call = Callable[..., Any]
Arguments = int | tuple[int, ...]
VJP, JVP = "vjp(f, *primals)", "jvp(f, primals, tangents)"  # as errors name them


def argument_numbers(count: int, argnums: Arguments) -> list[int]:
    """The numbers of the arguments that are meant, of some. Raises RuntimeError for none, one twice, one too many."""
    if not isinstance(argnums, int | tuple):
        raise RuntimeError(f"argnums must be int or Tuple[int, ...], got: {type(argnums)}")
    numbers = (argnums,) if isinstance(argnums, int) else argnums
    for number in numbers:
        if not isinstance(number, int):
            raise RuntimeError(f"argnum must be int, got: {type(number)}")
        if not -count <= number < count:
            raise RuntimeError(f"Got argnum={number}, but only {count} positional inputs")
    if not numbers:
        raise RuntimeError("argnums must be non-empty")
    positions = [number % count for number in numbers]
    if len(set(positions)) < len(positions):
        raise RuntimeError(f"argnums elements must be unique, got {tuple(positions)}")
    return positions


def _tensors(output: object, title: str) -> tuple[list[Any], tree.Rebuild]:
    """The leaves of a function's result. Raises RuntimeError where there are none, or others than tensors."""
    leaves, back = tree.flatten(output)
    if not leaves or (len(leaves) == 1 and leaves[0] is None):
        raise RuntimeError(f"{title}: Expected f to be a function that has non-empty output (got output = {leaves})")
    for leaf in leaves:
        if not isinstance(leaf, Tensor):
            raise RuntimeError(
                f"{title}: expected f(*primals) to return only tensors, got unsupported type {type(leaf)}"
            )
    return leaves, back


def _real_tensors(output: object) -> tuple[list[Any], tree.Rebuild]:
    """The leaves of a result of which there are gradients."""
    leaves, back = _tensors(output, VJP)
    for leaf in leaves:
        if leaf.dtype.kind is not Kind.FLOAT:
            raise RuntimeError(
                f"vjp(f, ...): All outputs of f must be floating-point or complex Tensors, got Tensor with dtype "
                f"{leaf.dtype}"
            )
    return leaves, back


def _check_real(title: str, place: str, values: object) -> None:
    """Raises RuntimeError for complex numbers, whose jacobian would be two."""
    for number, leaf in enumerate(tree.flatten(values)[0]):
        if isinstance(leaf, Tensor) and leaf.is_complex():
            raise RuntimeError(
                f"{title}: Expected all {place} to be real but received complex tensor at flattened input idx: {number}"
            )


class _Points:
    """Some arguments of a call, as tensors that gradients go to; the others are as they were."""

    def __init__(self, args: Sequence[object], argnums: Arguments) -> None:
        self.numbers = argument_numbers(len(args), argnums)
        chosen = [args[number] for number in self.numbers]
        leaves, back = tree.flatten(chosen)
        if any(not isinstance(leaf, Tensor) for leaf in leaves):
            raise RuntimeError("Expected the differentiated arguments to be Tensors, or containers of Tensors")
        self.tensors: list[Any] = [products.point(leaf) for leaf in leaves]
        self.single, self._back, self._args = isinstance(argnums, int), back, list(args)

    def called(self, func: Call, kwargs: dict[str, Any], title: str, *, has_aux: bool) -> tuple[Any, Any]:
        """The function's result and what it returns beside it. title: of the transform, for errors."""
        args, inner = list(self._args), self._back(self.tensors)
        for number, value in zip(self.numbers, inner, strict=True):  # type: ignore[call-overload]
            args[number] = value
        is_reverse = title is not JVP
        if is_reverse and used.packing is not None:
            import_module("pywebgpu.autograd.graph").refuse_transform()
        with samples.running("reverse" if is_reverse else "forward"):
            output = func(*args, **kwargs)
        if not has_aux:
            return output, None
        if not isinstance(output, tuple) or len(output) != 2:
            raise RuntimeError(f"{title}: output of function f should be a tuple: (output, aux) if has_aux is True")
        for leaf in tree.flatten(output[1])[0]:
            if not isinstance(leaf, Tensor):
                raise RuntimeError(f"{title}: aux: Expected tensors, got unsupported type {type(leaf)}")
        return output

    def like(self, leaves: Sequence[object]) -> object:
        """One value a tensor, in the containers of the arguments."""
        nested: Any = self._back(leaves)
        result: object = nested[0] if self.single else tuple(nested)
        return result

    def outside(self, result: object, others: Sequence[Tensor] = ()) -> object:
        """A result without the history that only leads to these tensors, and to others."""
        leaves, back = tree.flatten(result)
        own = [*self.tensors, *others]
        if not thread_state.grad:  # Whoever calls records nothing: what f read beside its arguments counts no more.
            return back([leaf.detach() if isinstance(leaf, Tensor) else leaf for leaf in leaves])
        return back([products.apart(leaf, own) if isinstance(leaf, Tensor) else leaf for leaf in leaves])


def grad(func: Call, argnums: Arguments = 0, has_aux: bool = False) -> Call:
    """The gradient of a function of one number, as a function of the same arguments."""
    both = grad_and_value(func, argnums, has_aux)

    @functools.wraps(func)
    def derivative(*args: Any, **kwargs: Any) -> object:
        derivative_value, value = both(*args, **kwargs)
        return (derivative_value, value[1]) if has_aux else derivative_value

    return derivative


def grad_and_value(func: Call, argnums: Arguments = 0, has_aux: bool = False) -> Call:
    """The gradient and the value of a function of one number; (gradient, (value, aux)) with has_aux."""

    @functools.wraps(func)
    def both(*args: Any, **kwargs: Any) -> tuple[Any, Any]:
        points = _Points(args, argnums)
        with grad_mode.enable_grad():
            output, aux = points.called(func, kwargs, "grad_and_value(f)(*args)", has_aux=has_aux)
            if not isinstance(output, Tensor):
                raise RuntimeError(
                    f"grad_and_value(f)(*args): Expected f(*args) to return a tensor, got {type(output)}"
                )
            if output.ndim or output.numel() != 1:
                raise RuntimeError(
                    f"Expected f(*args) to return a scalar tensor, got tensor with {output.ndim} dims. Maybe you "
                    "meant to use vjp or jacrev"
                )
            grads = products.gradients([output], points.tensors, None)
        result, value = points.outside(points.like(grads)), points.outside(output)
        return (result, (value, points.outside(aux))) if has_aux else (result, value)

    return both


def vjp(func: Call, *primals: Any, has_aux: bool = False) -> tuple[Any, ...]:
    """func(*primals), and the function that gives a vector times the jacobian."""
    points = _Points(primals, tuple(range(len(primals))))
    with grad_mode.enable_grad():
        output, aux = points.called(func, {}, VJP, has_aux=has_aux)
    outputs, _ = _real_tensors(output)
    structure = tree.structure(output)

    def product(*cotangents: Any, **options: Any) -> object:
        seed = cotangents[0] if len(cotangents) == 1 else cotangents
        seeds, _ = tree.flatten(seed)
        if tree.structure(seed) != structure:
            raise RuntimeError(
                "Expected pytree structure of cotangents to be the same as pytree structure of outputs to the "
                f"function. cotangents: {tree.structure(seed)}, primal output: {structure}"
            )
        with grad_mode.enable_grad():
            grads = products.gradients(outputs, points.tensors, seeds)
        return points.outside(points.like(grads))

    value = points.outside(output)
    return (value, product, points.outside(aux)) if has_aux else (value, product)


def linearize(func: Call, *primals: Any) -> tuple[Any, Call]:
    """func(*primals), and the function that gives the jacobian times vectors."""
    value, push, _ = _forward(func, _Points(primals, tuple(range(len(primals)))), {}, has_aux=False)
    return value, lambda *tangents: push(_matched(primals, tangents))


def jvp(
    func: Call, primals: Sequence[object], tangents: Sequence[object], *, strict: bool = False, has_aux: bool = False
) -> tuple[Any, ...]:
    """func(*primals), and its jacobian times the tangents."""
    if not isinstance(primals, tuple):
        raise RuntimeError(f"{JVP}: Expected primals to be a tuple. E.g. it should be valid to call f(*primals).")
    matched = _matched(primals, tangents)
    points = _Points(tuple(primals), tuple(range(len(primals))))
    value, push, aux = _forward(func, points, {}, has_aux=has_aux)
    return (value, push(matched), aux) if has_aux else (value, push(matched))


def _matched(primals: Sequence[object], tangents: Sequence[object]) -> list[Any]:
    """The leaves of the tangents. Raises RuntimeError where they are not like those of the primals."""
    left, right = tree.flatten(primals)[0], tree.flatten(tangents)[0]
    if tree.structure(primals) != tree.structure(tangents):
        raise RuntimeError(
            f"{JVP}: Expected primals and tangents to have the same python structure. Got primals with structure "
            f"{tree.structure(primals)} and tangents with structure {tree.structure(tangents)}"
        )
    for name, leaves in (("primals", left), ("tangents", right)):
        if not leaves:
            raise RuntimeError(f"{JVP}: Expected {name} to contain at least one Tensor.")
        for leaf in leaves:
            if not isinstance(leaf, Tensor):
                raise RuntimeError(f"{JVP}: Expected {name} to only contain Tensors, got {type(leaf)}")
    for a, b in zip(left, right, strict=True):
        if isinstance(a, Tensor) and isinstance(b, Tensor) and a.shape != b.shape:
            raise RuntimeError(f"jvp: a tangent has shape {list(b.shape)}, its primal {list(a.shape)}")
    return right


def _forward(func: Call, points: _Points, kwargs: dict[str, Any], *, has_aux: bool) -> tuple[Any, Call, Any]:
    """The value, the function from tangents to the jacobian's product with them, and the aux."""
    with grad_mode.enable_grad():
        output, aux = points.called(func, kwargs, JVP, has_aux=has_aux)
        outputs, back = _tensors(output, JVP)
        rows, doubles = products.forward(outputs, points.tensors)

    def push(tangents: Sequence[Any]) -> object:
        with grad_mode.enable_grad():
            tangents_of_outputs = products.gradients(rows, doubles, tangents)
        return points.outside(back(tangents_of_outputs), doubles)

    return points.outside(output), push, points.outside(aux)


def jacrev(
    func: Call,
    argnums: Arguments = 0,
    *,
    has_aux: bool = False,
    chunk_size: int | None = None,
    _preallocate_and_copy: bool = False,
) -> Call:
    """The jacobian by reverse walks: shape of the output, then of the argument."""
    if chunk_size is not None and chunk_size <= 0:
        raise ValueError("jacrev: `chunk_size` should be greater than 0.")

    @functools.wraps(func)
    def jacobian(*args: Any, **kwargs: Any) -> object:
        points = _Points(args, argnums)
        with grad_mode.enable_grad():
            _check_real("jacrev", "inputs", args)
            output, aux = points.called(func, kwargs, VJP, has_aux=has_aux)
            outputs, back = _real_tensors(output)
            _check_real("jacrev", "outputs", output)
            table = [_rows(leaf, points.tensors, chunk_size) for leaf in outputs]
        result = points.outside(back([points.like(row) for row in table]))
        return (result, points.outside(aux)) if has_aux else result

    return jacobian


def _rows(output: Tensor, points: list[Tensor], chunk_size: int | None) -> list[Tensor]:
    basis = _basis(output)
    grads = vmap(lambda seed: tuple(products.gradients([output], points, [seed])), chunk_size=chunk_size)(basis)
    return [part.reshape((*output.shape, *point.shape)) for part, point in zip(grads, points, strict=True)]


def _basis(like: Tensor) -> Tensor:
    size = prod(like.shape)
    eye = create.eye(size, dtype=like.dtype, device=like.device)
    return eye.reshape((size, *like.shape))


def jacfwd(func: Call, argnums: Arguments = 0, has_aux: bool = False, *, randomness: str = "error") -> Call:
    """The jacobian by forward products: shape of the output, then of the argument."""

    @functools.wraps(func)
    def jacobian(*args: Any, **kwargs: Any) -> object:
        points = _Points(args, argnums)
        with grad_mode.enable_grad():
            _check_real("jacfwd", "inputs", args)
            output, aux = points.called(func, kwargs, JVP, has_aux=has_aux)
            outputs, back = _tensors(output, JVP)
            _check_real("jacfwd", "outputs", output)
            rows, doubles = products.forward(outputs, points.tensors)
            columns = [_columns(row, point, doubles) for row, point in zip(rows, points.tensors, strict=True)]
        table = [
            [
                part.movedim(0, -1).reshape((*leaf.shape, *point.shape))
                for part, point in zip(parts, points.tensors, strict=True)
            ]
            for leaf, parts in zip(outputs, zip(*columns, strict=True), strict=True)
        ]
        result = points.outside(back([points.like(row) for row in table]), doubles)
        return (result, points.outside(aux)) if has_aux else result

    return jacobian


def _columns(row: Tensor, point: Tensor, doubles: list[Tensor]) -> Sequence[Tensor]:
    columns: Sequence[Tensor] = vmap(lambda tangent: tuple(products.gradients([row], doubles, [tangent])))(
        _basis(point)
    )
    return columns


def hessian(func: Call, argnums: Arguments = 0) -> Call:
    """The second derivatives of a function of one number."""
    return jacfwd(jacrev(func, argnums), argnums)
