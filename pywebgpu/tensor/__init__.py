"""The Tensor class and the functions that make and take tensors: torch's names over nodes of the graph."""

from pywebgpu.support import lazy as _lazy

# A step of training seldom has other subscripts than those of the first axis, and no `out=`.
_lazy.modules(__name__, "output_rules subscripts")
