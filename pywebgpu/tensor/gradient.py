"""backward and grad for tensors: seeds, the walk of autodiff/, and where its results go."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from math import prod
from typing import TYPE_CHECKING, Any

from pywebgpu.autodiff import backward as walk
from pywebgpu.autodiff import grad_mode
from pywebgpu.composites import arithmetic
from pywebgpu.errors import ShapeError
from pywebgpu.ir.graph import Node, thread_state
from pywebgpu.ops import pointwise
from pywebgpu.runtime.storage import shared
from pywebgpu.support import interrupts
from pywebgpu.tensor import grad_accumulator
from pywebgpu.tensor.base import TensorBase

if TYPE_CHECKING:
    from pywebgpu.tensor.types import Grads, Tensors


def backward(
    tensors: TensorBase | Sequence[TensorBase],
    grad_tensors: Grads = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Tensors | None = None,
) -> None:
    """Accumulates d(tensors)/d(leaf) into the `.grad` of every leaf, or only of `inputs`.

    Raises RuntimeError when a tensor has no history, is not a scalar and no gradient is given, or was freed.
    """
    roots, seeds = _seeds(tensors, grad_tensors)
    keep = create_graph if retain_graph is None else retain_graph
    if inputs is None:
        with interrupts.held(), thread_state.span("backward", "backward"):
            walk.gradients(roots, seeds, accumulate=True, create_graph=create_graph, retain_graph=keep)
        if shared:
            import_module("pywebgpu.runtime.fixed_memory").submit_readers()
        return
    leaves = [getattr(end, "variable", tensor) for tensor, end in _places(inputs)]
    if not leaves:
        raise RuntimeError("`inputs` argument to `backward()` cannot be empty.")
    for tensor in leaves:
        if not tensor.is_leaf:
            tensor.retain_grad()
    with grad_mode.enable_grad():
        nodes = [t._node for t in leaves]
    with interrupts.held(), thread_state.span("backward", "backward"):
        grads = walk.gradients(roots, seeds, nodes, accumulate=False, create_graph=create_graph, retain_graph=keep)
        for leaf, place, node in zip(leaves, nodes, grads, strict=True):
            if node is not None and leaf._flag:
                place.accumulator.reach(leaf, node, create_graph)
    if shared:
        import_module("pywebgpu.runtime.fixed_memory").submit_readers()


def grad(
    outputs: TensorBase | Sequence[TensorBase],
    inputs: TensorBase | Sequence[TensorBase],
    grad_outputs: Grads = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> tuple[Any, ...]:
    """d(outputs)/d(input) for each input, summed over the outputs. With create_graph differentiable again.

    Raises RuntimeError when an input has no gradient or was not used (see allow_unused).
    """
    places = _places(inputs)
    wanted = [tensor for tensor, _ in places]
    if not wanted:
        raise RuntimeError("`inputs` argument to `grad()` cannot be empty.")
    if is_grads_batched:
        walked = import_module("pywebgpu.func.batch").gradients
        return walked(grad, outputs, wanted, grad_outputs, create_graph, bool(allow_unused or materialize_grads))  # type: ignore[no-any-return]
    roots, seeds = _seeds(outputs, grad_outputs)
    for tensor in wanted:
        if not tensor.requires_grad:
            raise RuntimeError("One of the differentiated Tensors does not require grad")
    keep = create_graph if retain_graph is None else retain_graph
    with grad_mode.enable_grad():  # Else a leaf shows its value alone, at which no walk ends.
        nodes = [_leaf(t)._node if end is None else end._node for t, end in places]
    with interrupts.held(), thread_state.span("backward", "backward"):
        grads = walk.gradients(roots, seeds, nodes, accumulate=False, create_graph=create_graph, retain_graph=keep)
    if None in grads:
        _check_unused(grads, [end for _, end in places], allowed=allow_unused, zeros=materialize_grads)
    results = [_result(tensor, node, zeros=materialize_grads) for tensor, node in zip(wanted, grads, strict=True)]
    if shared:
        import_module("pywebgpu.runtime.fixed_memory").submit_readers()
    return tuple(results)


def _result(tensor: Any, node: Node | None, *, zeros: bool) -> Any:
    """A gradient as a tensor. zeros: in place of None."""
    leaf = _leaf(tensor)
    if node is None and zeros:
        node = pointwise.full(0.0, leaf._node.spec)
    result = None if node is None else leaf._wrap()(node)
    return result if result is None or leaf is tensor else tensor._like(result)


def _check_unused(grads: list[Node | None], ends: list[Any], *, allowed: bool | None, zeros: bool) -> None:
    """Raises RuntimeError where an input may not be without a gradient. ends: None of a tensor."""
    if not (allowed or zeros):
        raise RuntimeError(
            f"The differentiated Tensor at index {grads.index(None)} appears to not have been used in the graph. Set "
            "allow_unused=True if this is the desired behavior."
        )
    if zeros and any(end is not None for end, gradient in zip(ends, grads, strict=True) if gradient is None):
        raise RuntimeError("materialize_grads cannot be used when the given input is a GradientEdge")


def _places(inputs: Any) -> list[tuple[Any, Any]]:
    """Tensors at which gradients are wanted; of an edge (autograd.graph.GradientEdge) one of its node, and the node."""
    listed = [inputs] if isinstance(inputs, TensorBase) or hasattr(inputs, "output_nr") else inputs
    return [(x, None) if isinstance(x, TensorBase) else (x.node._wrap(x.node._node), x.node) for x in listed]


def _leaf(tensor: TensorBase) -> TensorBase:
    """What a gradient goes to: of a sparse tensor its values."""
    return tensor._values() if hasattr(type(tensor), "_nnz") else tensor  # type: ignore[attr-defined]


def _seeds(tensors: TensorBase | Sequence[TensorBase], grads: Grads) -> tuple[list[Node], list[Node]]:
    outputs = [tensors] if isinstance(tensors, TensorBase) else list(tensors)
    if grads is None or isinstance(grads, TensorBase):
        grads = [grads] * len(outputs) if grads is None else [grads]
    roots, seeds = [], []
    for output, seed in zip(outputs, grads, strict=True):
        with grad_mode.enable_grad():
            node = output._node
        if not node.requires:
            raise RuntimeError("element 0 of tensors does not require grad and does not have a grad_fn")
        if seed is None:
            if prod(node.spec.shape) != 1:
                known = "grad can be implicitly created only for scalar outputs"
                raise RuntimeError(f"{known}: this one has the shape {node.spec.shape}; reduce it, by sum() say")
            if node.spec.dtype.part is not None:
                raise RuntimeError(
                    f"grad can be implicitly created only for real scalar outputs but got {node.spec.dtype}"
                )
            seeds.append(pointwise.full(1.0, node.spec))
        else:
            if tuple(seed.shape) != tuple(output.shape):
                raise ShapeError(
                    f"Mismatch in shape: grad_output[0] has a shape of {seed.shape} and output[0] has a shape of "
                    f"{output.shape}."
                )
            if hasattr(type(seed), "_nnz"):
                seeds.append(grad_accumulator.rows().given(seed, node.spec.dtype))
            else:
                seeds.append(arithmetic.cast(seed._node, node.spec.dtype))
        roots.append(node)
    return roots, seeds
