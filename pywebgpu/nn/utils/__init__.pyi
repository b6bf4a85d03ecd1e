"""What type checkers see of the package: at run time its names are imported when they are asked for."""

from pywebgpu.nn.utils import parametrizations as parametrizations
from pywebgpu.nn.utils import parametrize as parametrize
from pywebgpu.nn.utils import prune as prune
from pywebgpu.nn.utils import rnn as rnn
from pywebgpu.nn.utils import stateless as stateless
from pywebgpu.nn.utils.clip_grad import *
from pywebgpu.nn.utils.convert_parameters import *
from pywebgpu.nn.utils.fusion import *
from pywebgpu.nn.utils.reparametrized import *
from pywebgpu.nn.utils.skipping import *
