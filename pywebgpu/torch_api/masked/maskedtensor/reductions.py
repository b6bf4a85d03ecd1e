"""The reductions of masked tensors: those of torch.masked. A result counts where one of its elements does."""

from pywebgpu.torch_api import aten

_TEXT = "sum mean amin amax argmin argmax prod all norm var std"
REDUCE_NAMES = _TEXT.split()
NATIVE_REDUCE_FNS = [aten.find(name) for name in REDUCE_NAMES]
