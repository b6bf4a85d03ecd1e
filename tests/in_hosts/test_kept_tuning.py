"""A tuning is kept on every host: in the cache folder, or in the storage of a page's origin."""

from typing import Any

from pywebgpu import devices
from pywebgpu.kernels.launch import Case, Launch

CASE, LAUNCH = Case("rows", (8, 64), ("float32",), "along"), Launch(threads=64, split=8)


def test_a_device_that_is_opened_again_has_what_was_kept(pywebgpu_host: str) -> None:
    device: Any = devices.open_device("webgpu")
    before = device.target.tuning
    place = device.keep_tuning({**before, CASE: LAUNCH})
    device.reopen()
    assert device.target.tuning == {**before, CASE: LAUNCH}
    assert ("this origin's" if pywebgpu_host == "chromium" else "/tuning/") in place
    device.keep_tuning(before)
