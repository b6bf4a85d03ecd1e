"""torch._tensor_str: how tensors are written, under its older name."""

from pywebgpu.tensor.show import get_printoptions as get_printoptions
from pywebgpu.tensor.show import printoptions as printoptions
from pywebgpu.tensor.show import set_printoptions as set_printoptions
from pywebgpu.tensor.tensor import Tensor


def _str(self: Tensor, *, tensor_contents: object = None) -> str:
    """The text of a tensor."""
    return repr(self)
