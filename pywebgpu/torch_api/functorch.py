"""functorch, a package that PyTorch brings: torch.func under its older name. First-class dimensions are not here."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from importlib import import_module
from typing import Any

from pywebgpu.torch_api._functorch import make_functional as _functional
from pywebgpu.torch_api._functorch.make_functional import FunctionalModule as FunctionalModule
from pywebgpu.torch_api._functorch.make_functional import FunctionalModuleWithBuffers as FunctionalModuleWithBuffers
from pywebgpu.torch_api.stand_ins import Absent

_NEWER = {
    "combine_state_for_ensemble": "torch.func.stack_module_state",
    "make_functional": "torch.func.functional_call",
    "make_functional_with_buffers": "torch.func.functional_call",
    "vmap": "torch.vmap",
}


class make_fx(Absent):
    """functorch.make_fx is not here: torch.fx.symbolic_trace, or torch.explain"""


def _deprecated(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    """A function that warns of its name."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        warnings.warn(
            f"functorch is part of PyTorch: `functorch.{name}` is deprecated since PyTorch 2.0. "
            f"Please use `{_NEWER.get(name, f'torch.func.{name}')}` instead",
            FutureWarning,
            stacklevel=2,
        )
        return function(*args, **kwargs)

    return call


def __getattr__(name: str) -> Any:
    func = import_module("pywebgpu.func")
    if name in _NEWER or (not name.startswith("_") and name in dir(func)):
        function = getattr(func if hasattr(func, name) else _functional, name)
        return globals().setdefault(name, _deprecated(function, name))
    raise AttributeError(f"module 'functorch' has no attribute {name!r}")
