"""Functions from nodes to nodes, made of ops: broadcasting, promotion, activations, normalisations, losses.

The one home of what torch calls "functional": Tensor methods, nn and fallbacks of fused ops all call it.
"""

from pywebgpu.support import lazy as _lazy

# What a step of training rarely calls.
_lazy.modules(
    __name__,
    "einsum gathering index_writes indexing joining masks matrix order_statistics ordering other_losses "
    "rare_activations scan scattering searching",
)
