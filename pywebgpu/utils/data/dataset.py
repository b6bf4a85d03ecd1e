"""The datasets under the name of PyTorch's module."""

from pywebgpu.data.dataset import ChainDataset as ChainDataset
from pywebgpu.data.dataset import ConcatDataset as ConcatDataset
from pywebgpu.data.dataset import Dataset as Dataset
from pywebgpu.data.dataset import IterableDataset as IterableDataset
from pywebgpu.data.dataset import Subset as Subset
from pywebgpu.data.dataset import TensorDataset as TensorDataset
from pywebgpu.data.dataset import random_split as random_split
