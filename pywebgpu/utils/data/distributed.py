"""The sampler of several processes under the name of PyTorch's module."""

from pywebgpu.data.distributed import DistributedSampler as DistributedSampler
