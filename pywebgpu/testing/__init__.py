"""torch.testing's names: functions that compare values in a test, and functions that draw them."""

from pywebgpu.support.lazy import names as _names

_NAMES = {"comparison": "assert_allclose assert_close", "creation": "make_tensor"}
__getattr__, __dir__, __all__ = _names(__name__, _NAMES)
