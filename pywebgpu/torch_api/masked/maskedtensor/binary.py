"""The elementwise functions of two tensors, of which one is masked, or both are by one mask."""

from pywebgpu.torch_api import aten

_TEXT = """
    add atan2 arctan2 bitwise_and bitwise_or bitwise_xor bitwise_left_shift bitwise_right_shift div divide floor_divide
    fmod logaddexp logaddexp2 mul multiply nextafter remainder sub subtract true_divide eq ne le ge greater
    greater_equal gt less_equal lt less maximum minimum fmax fmin not_equal
"""
BINARY_NAMES = _TEXT.split()
_OUT_OF_PLACE = ("logaddexp", "logaddexp2", "fmin", "minimum", "maximum", "fmax")
INPLACE_BINARY_NAMES = [f"{name}_" for name in BINARY_NAMES if name not in _OUT_OF_PLACE]
NATIVE_BINARY_FNS = [aten.find(name) for name in BINARY_NAMES]
NATIVE_INPLACE_BINARY_FNS = [aten.find(name) for name in INPLACE_BINARY_NAMES]
