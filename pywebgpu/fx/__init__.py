"""torch.fx: a module or function as a graph that Python can read and change, and as code again."""

from pywebgpu.fx import (
    _compatibility as _compatibility,
)
from pywebgpu.fx import (
    annotate as annotate,
)
from pywebgpu.fx import (
    immutable_collections as immutable_collections,
)
from pywebgpu.fx import (
    operator_schemas as operator_schemas,
)
from pywebgpu.fx import (
    passes as passes,
)
from pywebgpu.fx import (
    tensor_type as tensor_type,
)
from pywebgpu.fx import (
    traceback as traceback,
)
from pywebgpu.fx._symbolic_trace import PH, ProxyableClassMeta, Tracer, symbolic_trace, wrap
from pywebgpu.fx.graph import CodeGen, Graph
from pywebgpu.fx.graph_module import GraphModule
from pywebgpu.fx.interpreter import Interpreter, Transformer
from pywebgpu.fx.node import Node, has_side_effect, map_arg
from pywebgpu.fx.proxy import Proxy
from pywebgpu.fx.subgraph_rewriter import replace_pattern

__all__ = [
    "PH",
    "CodeGen",
    "Graph",
    "GraphModule",
    "Interpreter",
    "Node",
    "Proxy",
    "ProxyableClassMeta",
    "Tracer",
    "Transformer",
    "has_side_effect",
    "map_arg",
    "replace_pattern",
    "symbolic_trace",
    "wrap",
]
