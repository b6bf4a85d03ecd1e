"""The DataLoader under the name of PyTorch's module."""

from collections.abc import Callable
from typing import Any

from pywebgpu.data.collate import default_collate as default_collate
from pywebgpu.data.collate import default_convert as default_convert
from pywebgpu.data.fetch import _BaseDataLoaderIter as _BaseDataLoaderIter
from pywebgpu.data.fetch import _DatasetKind as _DatasetKind
from pywebgpu.data.fetch import _MultiProcessingDataLoaderIter as _MultiProcessingDataLoaderIter
from pywebgpu.data.fetch import _SingleProcessDataLoaderIter as _SingleProcessDataLoaderIter
from pywebgpu.data.loader import DataLoader as DataLoader
from pywebgpu.data.loader import get_worker_info as get_worker_info
from pywebgpu.data.sampler import BatchSampler as BatchSampler
from pywebgpu.data.sampler import RandomSampler as RandomSampler
from pywebgpu.data.sampler import Sampler as Sampler
from pywebgpu.data.sampler import SequentialSampler as SequentialSampler
from pywebgpu.support.lazy import absent
from pywebgpu.utils.data import _utils as _utils
from pywebgpu.utils.data.dataset import Dataset as Dataset
from pywebgpu.utils.data.dataset import IterableDataset as IterableDataset

_collate_fn_t = Callable[[list[Any]], Any]
_worker_init_fn_t = Callable[[int], None]

__getattr__ = absent(__name__)
