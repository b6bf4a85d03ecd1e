"""torch.utils.deterministic: whether memory that nothing wrote is filled where algorithms are to be deterministic."""

import sys
import types

from pywebgpu.tensor.uninitialized import settings


class _Module(types.ModuleType):
    @property
    def fill_uninitialized_memory(self) -> bool:
        """With NaN, the largest whole number or True."""
        return settings.fills

    @fill_uninitialized_memory.setter
    def fill_uninitialized_memory(self, mode: bool) -> None:
        if not isinstance(mode, bool):
            raise TypeError(f"expected a bool, but got {type(mode).__name__}")
        settings.fills = mode


sys.modules[__name__].__class__ = _Module
