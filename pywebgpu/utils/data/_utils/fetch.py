"""Examples of a dataset by their numbers, under PyTorch's name."""

from pywebgpu.data.fetch import _BaseDatasetFetcher as _BaseDatasetFetcher
from pywebgpu.data.fetch import _IterableDatasetFetcher as _IterableDatasetFetcher
from pywebgpu.data.fetch import _MapDatasetFetcher as _MapDatasetFetcher
