"""The samplers under the name of PyTorch's module."""

from pywebgpu.data.sampler import BatchSampler as BatchSampler
from pywebgpu.data.sampler import RandomSampler as RandomSampler
from pywebgpu.data.sampler import Sampler as Sampler
from pywebgpu.data.sampler import SequentialSampler as SequentialSampler
from pywebgpu.data.sampler import SubsetRandomSampler as SubsetRandomSampler
from pywebgpu.data.sampler import WeightedRandomSampler as WeightedRandomSampler
