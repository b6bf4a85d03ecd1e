"""Update rules and learning-rate schedules, with PyTorch's names and formulas, built as graphs like any model."""

from importlib import import_module

from pywebgpu.optim import lr_scheduler
from pywebgpu.support.lazy import names as _names

_NAMES = {
    "adafactor": "Adafactor",
    "adam": "Adam AdamW",
    "adam_relatives": "Adamax NAdam RAdam SparseAdam",
    "lbfgs": "LBFGS",
    "lion": "Lion",
    "muon": "Muon",
    "optimizer": "Optimizer",
    "rmsprop": "Adadelta Adagrad RMSprop",
    "rprop": "ASGD Rprop",
    "sgd": "SGD",
}


def _averages(name: str) -> object:
    """torch.optim.swa_utils, which few programs name."""
    return import_module("pywebgpu.optim.swa_utils") if name == "swa_utils" else None


__getattr__, __dir__, __all__ = _names(__name__, _NAMES, _averages)
__all__ += ["lr_scheduler", "swa_utils"]
