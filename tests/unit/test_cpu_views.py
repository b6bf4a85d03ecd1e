"""Views of views on device cpu: one view of the value that they show, whatever lies in memory."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pywebgpu as torch
from pywebgpu import devices
from pywebgpu.compiler.program import HostCall
from pywebgpu.devices import cpu_views
from pywebgpu.dtypes import float32
from pywebgpu.ir.graph import Spec
from pywebgpu.ops import movement

# name -> views of views of a value (4, 6, 5)
CHAINS: dict[str, Callable[[Any], Any]] = {
    "merged axes turned": lambda x: x.reshape(24, 5).transpose(0, 1),
    "turned and back": lambda x: x.transpose(0, 2).transpose(0, 2),
    "split and cut": lambda x: x.reshape(2, 12, 5)[:, 1:9:2].reshape(2, 2, 2, 5)[..., 1:4],
    "axes of one": lambda x: x[:, None].reshape(4, 1, 1, 30)[1:3, :, 0],
    "turned around": lambda x: x.flip(1).transpose(1, 2)[:, 1:],
    "grown": lambda x: x[:, :1].expand(4, 3, 5).transpose(0, 1)[1:],
    "windows": lambda x: x.unfold(1, 3, 2).unfold(2, 2, 1).transpose(0, 1),
    "copied between": lambda x: x.transpose(0, 1).reshape(24, 5)[2:9].transpose(0, 1),
    "one element": lambda x: x[2, 3:4, 1].reshape(1, 1).expand(3, 2),
}
# name -> what makes a value of (4, 6, 5)
VALUES: dict[str, Callable[[Any], Any]] = {
    "row-major": lambda x: x + 1,
    "turned": lambda x: x.transpose(0, 2).transpose(0, 1).contiguous().transpose(0, 1).transpose(0, 2).exp(),
}


@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize("name", CHAINS)
def test_views_of_views_show_what_each_would(name: str, value: str) -> None:
    """Held against a timed run, where each step is a call of its own."""
    device: Any = devices.open_device("cpu")
    found = []
    for is_timed in (True, False, False):
        with torch.device("cpu"):
            x = torch.tensor(np.arange(120, dtype="float32").reshape(4, 6, 5).tolist()) / 100
            base = VALUES[value](x)
            shown = CHAINS[name](base) * 2 + 0 * base.sum()
        device.time(is_timed)
        found.append(shown.numpy())
        device.time(False)
    for again in found[1:]:
        np.testing.assert_array_equal(again, found[0])


def test_one_view_is_left_of_several_and_none_of_those_that_lead_back() -> None:
    shapes = [(4, 6), (6, 4), (4, 6), (24,), (2, 12), (12, 2), (4, 6)]
    specs = [Spec(shape, float32) for shape in shapes]
    turn = {"order": (1, 0)}
    steps = [
        HostCall(movement.permute, turn, (0, 1)),
        HostCall(movement.permute, turn, (1, 2)),
        HostCall(movement.reshape, {"shape": (24,)}, (2, 3)),
        HostCall(movement.reshape, {"shape": (2, 12)}, (3, 4)),
        HostCall(movement.permute, turn, (4, 5)),
        HostCall(movement.alias, {}, (2, 6)),
    ]
    found = cpu_views.merged(steps, specs, (5, 6), ())
    assert [(step.op.name, step.slots) for step in found] == [("strided", (0, 5)), ("alias", (0, 6))]


@pytest.mark.parametrize("shape", [(100_001, 3), (4096, 7), (2049, 1, 2), (3000, 1)])
def test_sums_of_long_columns_are_as_exact_as_those_of_rows(shape: tuple[int, ...]) -> None:
    values = np.random.default_rng(0).random(shape).astype("float32")
    found = torch.tensor(values, device="cpu").sum(0).numpy()
    np.testing.assert_allclose(found, values.astype("float64").sum(0), rtol=2e-6)
