"""torch.random: the seed and the state of draws that name no generator."""

from pywebgpu.support import lazy
from pywebgpu.tensor.random import default_generator as default_generator
from pywebgpu.tensor.random import fork_rng as fork_rng
from pywebgpu.tensor.random import get_rng_state as get_rng_state
from pywebgpu.tensor.random import initial_seed as initial_seed
from pywebgpu.tensor.random import manual_seed as manual_seed
from pywebgpu.tensor.random import seed as seed
from pywebgpu.tensor.random import set_rng_state as set_rng_state

__getattr__ = lazy.absent(__name__)
