"""torch.nn.init by its names of older programs, without the underscore: each says so and fills the tensor in place."""

import functools
import warnings
from collections.abc import Callable
from typing import ParamSpec

from pywebgpu.nn import init
from pywebgpu.tensor.tensor import Tensor

P = ParamSpec("P")


def _older(function: Callable[P, Tensor]) -> Callable[P, Tensor]:
    new = function.__name__
    old = new.removesuffix("_")

    @functools.wraps(function)
    def renamed(*args: P.args, **kwargs: P.kwargs) -> Tensor:
        text = f"`nn.init.{old}` is now deprecated in favor of `nn.init.{new}`."
        warnings.warn(text, FutureWarning, stacklevel=2)
        return function(*args, **kwargs)

    renamed.__name__, renamed.__doc__ = old, f"The older name of {new}."
    return renamed


constant, dirac, eye = _older(init.constant_), _older(init.dirac_), _older(init.eye_)
kaiming_normal, kaiming_uniform = _older(init.kaiming_normal_), _older(init.kaiming_uniform_)
normal, orthogonal, sparse = _older(init.normal_), _older(init.orthogonal_), _older(init.sparse_)
uniform = _older(init.uniform_)
xavier_normal, xavier_uniform = _older(init.xavier_normal_), _older(init.xavier_uniform_)
