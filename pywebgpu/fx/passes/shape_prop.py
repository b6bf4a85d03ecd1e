"""The shapes of a graph's values, noted in its nodes by a run."""

from __future__ import annotations

import traceback
from typing import Any, NamedTuple

from pywebgpu.fx import names
from pywebgpu.fx.interpreter import Interpreter
from pywebgpu.fx.node import Node, map_aggregate
from pywebgpu.tensor.tensor import Tensor


class TensorMetadata(NamedTuple):
    """What is known of a tensor without its values."""

    shape: Any
    dtype: Any
    requires_grad: bool
    stride: tuple[int, ...]
    memory_format: Any
    is_quantized: bool
    qparams: dict[str, Any]


def _extract_tensor_metadata(result: Tensor, include_contiguity: bool = True) -> TensorMetadata:
    torch = names.torch()
    layout = None
    if include_contiguity:
        layouts = (torch.contiguous_format, torch.channels_last, torch.channels_last_3d)
        layout = next((kind for kind in layouts if result.is_contiguous(memory_format=kind)), None)
    return TensorMetadata(result.shape, result.dtype, result.requires_grad, result.stride(), layout, False, {})


class ShapeProp(Interpreter):
    """Runs a graph, and notes what its values are: meta["tensor_meta"] of tensors, meta["type"] of all."""

    def __init__(self, gm: Any, fake_mode: Any = None) -> None:
        super().__init__(gm)
        self.fake_mode = fake_mode

    def run_node(self, n: Node) -> Any:
        """The value of a node. Raises RuntimeError where the node fails."""
        try:
            result = super().run_node(n)
        except Exception as error:
            traceback.print_exc()
            raise RuntimeError(f"ShapeProp error for: node={n.format_node()} with meta={n.meta}") from error
        tensors = []

        def described(leaf: Any) -> Any:
            if not isinstance(leaf, Tensor):
                return leaf
            tensors.append(leaf)
            return _extract_tensor_metadata(leaf)

        meta = map_aggregate(result, described)
        if tensors:
            n.meta["tensor_meta"] = meta
        n.meta["type"] = type(result)
        return result

    def propagate(self, *args: Any) -> Any:
        """The result for these arguments."""
        return super().run(*args)
