"""What type checkers see of the package: at run time its names are imported when they are asked for."""

from pywebgpu.optim import lr_scheduler as lr_scheduler
from pywebgpu.optim import swa_utils as swa_utils
from pywebgpu.optim.adafactor import *
from pywebgpu.optim.adam import *
from pywebgpu.optim.adam_relatives import *
from pywebgpu.optim.lbfgs import *
from pywebgpu.optim.lion import *
from pywebgpu.optim.muon import *
from pywebgpu.optim.optimizer import *
from pywebgpu.optim.rmsprop import *
from pywebgpu.optim.rprop import *
from pywebgpu.optim.sgd import *
