"""The DataLoader under the name of PyTorch's module."""

from pywebgpu.data.collate import default_collate as default_collate
from pywebgpu.data.loader import DataLoader as DataLoader
