"""Update rules and learning-rate schedules, with PyTorch's names and formulas, built as graphs like any model."""

from pywebgpu.optim import lr_scheduler
from pywebgpu.optim.adam import Adam, AdamW, RAdam
from pywebgpu.optim.lion import Lion
from pywebgpu.optim.muon import Muon
from pywebgpu.optim.optimizer import Optimizer
from pywebgpu.optim.rmsprop import Adadelta, Adagrad, RMSprop
from pywebgpu.optim.sgd import SGD

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
