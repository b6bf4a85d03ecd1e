"""What type checkers see of the package: at run time its names are imported when they are asked for."""

from pywebgpu.nn.functional.activation import *
from pywebgpu.nn.functional.channel_dropout import *
from pywebgpu.nn.functional.channel_norm import *
from pywebgpu.nn.functional.fractional import *
from pywebgpu.nn.functional.linear_loss import *
from pywebgpu.nn.functional.loss import *
from pywebgpu.nn.functional.margins import *
from pywebgpu.nn.functional.rows import *
from pywebgpu.nn.functional.sampling import *
from pywebgpu.nn.functional.sequences import *
from pywebgpu.nn.functional.spatial import *
