"""Gradients that are known by their rows: what backward makes of embeddings, and sparse gradients that it is given."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pywebgpu import sparse
from pywebgpu.autodiff import grad_mode
from pywebgpu.composites import arithmetic
from pywebgpu.ir.graph import Node, RowsNode, thread_state, used
from pywebgpu.ops import pointwise

if TYPE_CHECKING:
    from pywebgpu.devices.base import Device
    from pywebgpu.sparse import SparseTensor
    from pywebgpu.tensor.base import TensorBase


def of(grad: RowsNode, device: Device) -> SparseTensor:
    """The sparse tensor of a gradient that is known by its rows."""
    if used.observed and thread_state.observer is not None:
        thread_state.observer.refuse("a gradient is sparse, and no replay makes sparse tensors")
    return sparse.of_rows(grad, device)


def given(grad: Any, dtype: Any) -> Node:
    """A gradient that backward is given, sparse, as the node of its values; along one axis it is known by its rows."""
    dense = arithmetic.cast(grad._node, dtype)
    if grad.sparse_dim() != 1:
        return dense
    return RowsNode(dense, ((grad._indices()[0]._node, arithmetic.cast(grad._values()._node, dtype), None),))


def add(leaf: TensorBase, grad: Node, *, create_graph: bool) -> None:
    """Adds to the gradient of a leaf, where what arrives or what is there is sparse: sparse where both are."""
    device = leaf._storage.device
    with grad_mode.set_grad_enabled(create_graph):
        grad_tensor: Any = of(grad, device) if type(grad) is RowsNode else leaf._gradient(grad)
        if leaf._grad is None:
            leaf.grad = grad_tensor
        elif leaf._grad.is_sparse and grad_tensor.is_sparse and not create_graph:
            leaf._grad.add_(grad_tensor)
        elif leaf._grad.is_sparse or create_graph:
            leaf.grad = leaf._grad + grad_tensor
        else:
            leaf._grad._assign(pointwise.add(leaf._grad._node, grad))
