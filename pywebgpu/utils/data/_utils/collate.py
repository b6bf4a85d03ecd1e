"""Examples into a batch, by PyTorch's older names: libraries add classes to `default_collate_fn_map`."""

import re

from pywebgpu.data.collate import collate as collate
from pywebgpu.data.collate import collate_float_fn as collate_float_fn
from pywebgpu.data.collate import collate_int_fn as collate_int_fn
from pywebgpu.data.collate import collate_str_fn as collate_str_fn
from pywebgpu.data.collate import collate_tensor_fn as collate_tensor_fn
from pywebgpu.data.collate import default_collate as default_collate
from pywebgpu.data.collate import default_collate_fn_map as default_collate_fn_map
from pywebgpu.data.collate import default_convert as default_convert

np_str_obj_array_pattern = re.compile(r"[SaUO]")  # kinds of NumPy's arrays that hold text or objects
default_collate_err_msg_format = (
    "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found {}"
)
