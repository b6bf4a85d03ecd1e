"""The Tensor class and the functions that make and take tensors: torch's names over nodes of the graph."""

from pywebgpu.support import lazy as _lazy

_lazy.modules(__name__, "subscripts")  # A step of training seldom has other subscripts than those of the first axis.
