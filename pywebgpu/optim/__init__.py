"""Update rules and learning-rate schedules, with PyTorch's names and formulas, built as graphs like any model."""

from pywebgpu.lazy import names as _names
from pywebgpu.optim import lr_scheduler

_NAMES = {
    "adam": "Adam AdamW RAdam",
    "lion": "Lion",
    "muon": "Muon",
    "optimizer": "Optimizer",
    "rmsprop": "Adadelta Adagrad RMSprop",
    "sgd": "SGD",
}
__getattr__, __dir__, __all__ = _names(__name__, _NAMES)
__all__ += ["lr_scheduler"]
