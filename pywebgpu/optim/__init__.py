"""Update rules and learning-rate schedules, with PyTorch's names and formulas, built as graphs like any model."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from pywebgpu.optim import lr_scheduler
from pywebgpu.optim.adam import Adam, AdamW, RAdam
from pywebgpu.optim.optimizer import Optimizer
from pywebgpu.optim.rmsprop import Adadelta, Adagrad, RMSprop
from pywebgpu.optim.sgd import SGD

if TYPE_CHECKING:
    from pywebgpu.optim.lion import Lion
    from pywebgpu.optim.muon import Muon

_LATER = {"Lion": "lion", "Muon": "muon"}  # Few want these: they are imported when they are asked for.


if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        if name not in _LATER:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        found = globals()[name] = getattr(import_module(f"{__name__}.{_LATER[name]}"), name)
        return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATER})


__all__ = [
    "SGD",
    "Adadelta",
    "Adagrad",
    "Adam",
    "AdamW",
    "Lion",
    "Muon",
    "Optimizer",
    "RAdam",
    "RMSprop",
    "lr_scheduler",
]
