"""NaN and the infinities pass through every kind of kernel."""

import math
from typing import Any

import numpy as np
import pytest

import pywebgpu as torch

nan, inf = math.nan, math.inf
ROW = [1.0, nan, inf, -inf, 0.0, -2.0]
STRANGE: dict[str, tuple[Any, Any]] = {
    "map": (lambda x: x + 1, [2.0, nan, inf, -inf, 1.0, -1.0]),
    "product by 0": (lambda x: x * 0, [0.0, nan, nan, nan, 0.0, -0.0]),
    "where": (lambda x: torch.where(x > 0, x, -x), [1.0, nan, inf, inf, 0.0, 2.0]),
    "relu": (lambda x: x.relu(), [1.0, nan, inf, 0.0, 0.0, 0.0]),
    "clamp": (lambda x: x.clamp(-1, 1), [1.0, nan, 1.0, -1.0, 0.0, -1.0]),
    "exp": (lambda x: x[1:5].exp(), [nan, inf, 0.0, 1.0]),
    "row sum": (lambda x: x.sum(), nan),
    "row sum of infinities": (lambda x: x[2:4].sum(), nan),
    "row maximum": (lambda x: x.amax(), nan),
    "row maximum of infinities": (lambda x: x[2:].amax(), inf),
    "argmax": (lambda x: x.argmax(), 1),
    "row minimum": (lambda x: x[3:].amin(), -inf),
    "softmax": (lambda x: x[3:].softmax(0), [0.0, 1 / (1 + math.exp(-2)), 1 / (1 + math.exp(2))]),
    "softmax of NaN": (lambda x: x[:2].softmax(0), [nan, nan]),
    "all of a softmax masked": (lambda x: x[3:4].expand(3).softmax(0), [nan, nan, nan]),
    "product": (lambda x: x[:3].reshape(3, 1) @ x[4:].reshape(1, 2), [[0.0, -2.0], [nan, nan], [nan, -inf]]),
    "gather": (lambda x: x[torch.tensor([3, 1, 2], device=x.device)], [-inf, nan, inf]),
    "scatter": (
        lambda x: torch.zeros(2, device=x.device).index_add(0, torch.tensor([0, 1, 1, 0, 0, 0], device=x.device), x),
        [-inf, nan],
    ),
    "scan": (lambda x: x.flip(0).cumsum(0), [-2.0, -2.0, -inf, nan, nan, nan]),
    "sort": (lambda x: x.sort()[0], [-inf, -2.0, 0.0, 1.0, inf, nan]),
    "cat": (lambda x: torch.cat([x[3:], x[:3]]), [-inf, 0.0, -2.0, 1.0, nan, inf]),
    "isnan": (lambda x: x.isnan(), [False, True, False, False, False, False]),
    "isfinite": (lambda x: x.isfinite(), [True, False, False, False, True, True]),
    "equality": (lambda x: x == x, [True, False, True, True, True, True]),
}


@pytest.mark.parametrize("name", STRANGE)
def test_nan_and_infinity_pass_through(device: str, name: str) -> None:
    function, wanted = STRANGE[name]
    found = function(torch.tensor(ROW, device=device)).numpy()
    np.testing.assert_allclose(found, np.array(wanted), rtol=1e-6)
