"""Layers as functions: torch.nn.functional's names and signatures over pywebgpu.composites.

Its files import what they use under names with an underscore, so that only torch's names are public here.
"""

from importlib import import_module as _import_module
from typing import Any as _Any

from pywebgpu.nn.functional.activation import *  # noqa: F403 - the names are the file's functions
from pywebgpu.nn.functional.loss import *  # noqa: F403
from pywebgpu.nn.functional.rows import *  # noqa: F403
from pywebgpu.nn.functional.spatial import *  # noqa: F403

# Families that few programs use are imported when they are asked for.
_FAMILIES = {
    "sampling": "affine_grid grid_sample max_unpool1d max_unpool2d max_unpool3d",
    "sequences": "ctc_loss embedding_bag multi_head_attention_forward multilabel_margin_loss",
}
_LATER = {name: family for family, names in _FAMILIES.items() for name in names.split()}


def __getattr__(name: str) -> _Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(_import_module(f"{__name__}.{_LATER[name]}"), name)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATER})
