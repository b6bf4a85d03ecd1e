"""What type checkers see of the package: at run time its names are imported when they are asked for."""

from pywebgpu.optim.lr_scheduler.annealing import *
from pywebgpu.optim.lr_scheduler.cyclic import *
from pywebgpu.optim.lr_scheduler.schedule import *
from pywebgpu.optim.lr_scheduler.sequence import *
from pywebgpu.optim.lr_scheduler.schedule import _LRScheduler as _LRScheduler
