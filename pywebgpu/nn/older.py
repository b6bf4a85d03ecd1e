"""Modules by their names of older programs."""

import warnings
from typing import Any

from pywebgpu.nn.channel_norm import LocalResponseNorm
from pywebgpu.nn.loss import NLLLoss
from pywebgpu.nn.module import Module


class Container(Module):
    """Modules by name, as older programs made them; a subclass of Module does the same."""

    def __init__(self, **kwargs: Module) -> None:
        super().__init__()
        warnings.warn("`nn.Container` is deprecated. Subclass `nn.Module` instead.", FutureWarning, stacklevel=2)
        for name, module in kwargs.items():
            self.add_module(name, module)


class CrossMapLRN2d(LocalResponseNorm):
    """LocalResponseNorm by its name of older programs."""

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1) -> None:
        super().__init__(size, alpha, beta, k)


class NLLLoss2d(NLLLoss):
    """NLLLoss by its name of older programs."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        warnings.warn("`NLLLoss2d` has been deprecated. Please use `NLLLoss` instead.", FutureWarning, stacklevel=2)
        super().__init__(*args, **kwargs)
