"""functorch, a package that PyTorch brings: torch.func under its older name. First-class dimensions are not here."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from pywebgpu.torch_api.stand_ins import Absent


class FunctionalModule(Absent):
    """functorch.FunctionalModule is not here: call torch.func.functional_call"""


class FunctionalModuleWithBuffers(Absent):
    """functorch.FunctionalModuleWithBuffers is not here: call torch.func.functional_call"""


class FunctionalCall(Absent):
    """it is not here: call torch.func.functional_call, and torch.func.stack_module_state"""


combine_state_for_ensemble = make_functional = make_functional_with_buffers = FunctionalCall


class make_fx(Absent):
    """functorch.make_fx is not here: torch.fx.symbolic_trace, or torch.explain"""


def __getattr__(name: str) -> Any:
    if name.startswith("_") or name not in dir(import_module("pywebgpu.func")):
        raise AttributeError(f"module 'functorch' has no attribute {name!r}")
    return getattr(import_module("pywebgpu.func"), name)
