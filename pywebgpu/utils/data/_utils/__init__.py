"""torch.utils.data._utils: how examples become batches, and who loads them, under PyTorch's older names."""

from pywebgpu.utils.data._utils import collate as collate
from pywebgpu.utils.data._utils import fetch as fetch
from pywebgpu.utils.data._utils import pin_memory as pin_memory
from pywebgpu.utils.data._utils import worker as worker

MP_STATUS_CHECK_INTERVAL = 5.0  # seconds: how often PyTorch's processes look whether the others live; here are none
