"""What each op means: one record an op, in the module of its kind.

Import the module, not the name (`from pywebgpu.ops import pointwise`), so a new op needs no list here.
"""

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
