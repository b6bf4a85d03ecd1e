"""Layers as functions: torch.nn.functional's names and signatures over pywebgpu.composites.

Its files import what they use under names with an underscore, so that only torch's names are public here.
"""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

from pywebgpu.nn.functional.activation import *  # noqa: F403 - the names are the file's functions
from pywebgpu.nn.functional.loss import *  # noqa: F403
from pywebgpu.nn.functional.rows import *  # noqa: F403
from pywebgpu.nn.functional.spatial import *  # noqa: F403

if _TYPE_CHECKING:
    from pywebgpu.nn.functional.linear_loss import linear_cross_entropy as linear_cross_entropy
else:

    def __getattr__(name: str) -> _Any:
        if name != "linear_cross_entropy":
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return _import_module(f"{__name__}.linear_loss").linear_cross_entropy
