"""torch.nn.utils.stateless: functional_call by its older name."""

import functools
import warnings
from typing import Any

from pywebgpu.func.modules import functional_call as _functional_call
from pywebgpu.func.modules import reparametrize_module as _reparametrize_module  # noqa: F401


@functools.wraps(_functional_call)
def functional_call(*args: Any, **options: Any) -> object:
    warnings.warn(
        "`torch.nn.utils.stateless.functional_call` is deprecated as of PyTorch 2.0. Please use "
        "`torch.func.functional_call`",
        FutureWarning,
        stacklevel=2,
    )
    return _functional_call(*args, **options)
