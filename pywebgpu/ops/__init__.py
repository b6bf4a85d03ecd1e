"""The definition of each op: one record per op, in the module of its kind.

Import the module, not the name (`from pywebgpu.ops import pointwise`): nothing lists the ops, and tests discover them.
"""

from importlib import import_module
from importlib.machinery import PathFinder

from pywebgpu.support import lazy

lazy.modules(__name__, "special")  # Only NumPy's meanings call it.


def __getattr__(name: str) -> object:
    """torch.ops: PyTorch's operators have the name of this folder. What is no module of it is a namespace of theirs."""
    if name.startswith("__") or PathFinder.find_spec(name, __path__) is not None:
        raise AttributeError(f"module 'pywebgpu.ops' has no attribute {name!r}")
    operators = import_module("pywebgpu.torch_api._ops")
    if name in ("load_library", "loaded_libraries"):
        return getattr(operators, name)
    return operators.namespace(name)
