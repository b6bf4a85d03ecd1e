"""torch._tensor_str: how tensors are written, under its older name."""

from typing import Any

from pywebgpu.tensor import show
from pywebgpu.tensor.show import get_printoptions as get_printoptions
from pywebgpu.tensor.show import printoptions as printoptions
from pywebgpu.tensor.show import set_printoptions as set_printoptions
from pywebgpu.tensor.tensor import Tensor


class _Options:
    """The options as attributes."""

    def __getattr__(self, name: str) -> Any:
        options = show.get_printoptions()
        if name not in options:
            raise AttributeError(f"the options of printing have no {name!r}")
        return options[name]


PRINT_OPTS = _Options()


def _str(self: Tensor, *, tensor_contents: object = None) -> str:
    """The text of a tensor."""
    return repr(self)


def _tensor_str(self: Tensor, indent: int) -> str:
    """The text of its values alone."""
    return show.contents(self, indent) if self.numel() else "[]"


def _add_suffixes(tensor_str: str, suffixes: list[str], indent: int, force_newline: bool) -> str:
    """A text of values with what else is told of a tensor."""
    return show.with_suffixes(tensor_str, suffixes, newline=force_newline)
