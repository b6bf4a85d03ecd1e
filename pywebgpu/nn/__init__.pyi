"""What type checkers see of the package: at run time its names are imported when they are asked for."""

from pywebgpu.nn import functional as functional
from pywebgpu.nn import init as init
from pywebgpu.nn import utils as utils
from pywebgpu.nn.activation import *
from pywebgpu.nn.attention import *
from pywebgpu.nn.channel_norm import *
from pywebgpu.nn.container import *
from pywebgpu.nn.conv import *
from pywebgpu.nn.dropout import *
from pywebgpu.nn.embedding import *
from pywebgpu.nn.embedding_bag import *
from pywebgpu.nn.lazy_layers import *
from pywebgpu.nn.linear import *
from pywebgpu.nn.loss import *
from pywebgpu.nn.module import *
from pywebgpu.nn.norm import *
from pywebgpu.nn.older import *
from pywebgpu.nn.output_layers import *
from pywebgpu.nn.parallel import *
from pywebgpu.nn.parameter import *
from pywebgpu.nn.pooling import *
from pywebgpu.nn.recurrent import *
from pywebgpu.nn.spatial import *
from pywebgpu.nn.transformer import *
