"""What each op means: one record an op, in the module of its kind.

Import the module, not the name (`from pywebgpu.ops import pointwise`), so a new op needs no list here.
"""

from importlib import import_module

from pywebgpu.ir.graph import Generator, Movement, Op, Pointwise, Reduction, Structural
from pywebgpu.ops import (
    clamping,
    contraction,
    indexing,
    logarithms,
    movement,
    packing,
    pointwise,
    products,
    random,
    reduction,
)

_MODULES = (
    pointwise, clamping, logarithms, movement, reduction, products, contraction, indexing, packing, random
)  # fmt: skip
ALL: tuple[Op, ...] = tuple(
    op
    for module in _MODULES
    for op in vars(module).values()
    if isinstance(op, Pointwise | Generator | Movement | Reduction | Structural)
)


def __getattr__(name: str) -> object:
    """torch.ops.aten: PyTorch's namespace of operators has the name of this folder."""
    if name != "aten":
        raise AttributeError(f"module 'pywebgpu.ops' has no attribute {name!r}")
    return import_module("pywebgpu.aten")
