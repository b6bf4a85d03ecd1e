"""Layers as functions: torch.nn.functional's names and signatures over pywebgpu.composites.

Its files import what they use under names with an underscore, so that only torch's names are public here.
"""

from pywebgpu.nn.functional.activation import *  # noqa: F403 - the names are the file's functions
from pywebgpu.nn.functional.loss import *  # noqa: F403
from pywebgpu.nn.functional.rows import *  # noqa: F403
from pywebgpu.nn.functional.spatial import *  # noqa: F403
