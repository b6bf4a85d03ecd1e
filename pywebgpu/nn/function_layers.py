"""What layers share that compute one function of nn.functional, of their input and of options which they keep."""

from __future__ import annotations

from pywebgpu.nn import functional
from pywebgpu.nn.module import Module
from pywebgpu.tensor.tensor import Tensor


class FunctionLayer(Module):
    """Calls the function of a name with the input, then with its own attributes of other names, in their order."""

    function: str
    _arguments: tuple[str, ...] = ()

    def forward(self, input: Tensor) -> Tensor:
        values = [getattr(self, name) for name in self._arguments]
        out: Tensor = getattr(functional, self.function)(input, *values)
        return out

    def extra_repr(self) -> str:
        """The arguments by their names; whether the input is written to only where it is."""
        shown = [(name, getattr(self, name)) for name in self._arguments]
        return ", ".join([f"{name}={value!r}" for name, value in shown if name != "inplace" or value])
