"""A forked process computes on device cpu, is told at once that it cannot reach its parent's GPU, and ends in order."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import devices

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork"),
    pytest.mark.skipif(bool(devices.why_no_webgpu()), reason=devices.why_no_webgpu()),
]
USES = (
    "x.tolist()", "pending.tolist()", "(x + 1).tolist()", "x.cpu()", "on_cpu.to('webgpu')", "x.add_(1).tolist()",
    "torch.ones(3, device='webgpu')", "torch.webgpu.synchronize('webgpu')", "torch.webgpu.recover()",
    "devices.open_device('webgpu')", "x._storage.device.timings()",
)  # fmt: skip
START = """
import gc, os, signal, sys
import pywebgpu as torch
from pywebgpu import devices
from pywebgpu.errors import DeviceError

x = torch.ones(3, device="webgpu") + 1
x.tolist()
pending, on_cpu = x + 5, torch.ones(3, device="cpu") * 3
step = torch.compile(lambda a: (a * 2).sum())
"""


def outcomes(*children: str, start: str = START) -> list[str]:
    """What processes that are forked one after the other print and end with, each within 30 seconds.

    After each of them the parent goes on as before.
    """
    text = f"""{start}
for program in {children!r}:
    if (child := os.fork()) == 0:
        signal.alarm(30)
        exec(program)
        sys.exit(7)
    status = os.waitpid(child, 0)[1]
    assert x.tolist() == [2.0] * 3, x
    assert pending.tolist() == [7.0] * 3, pending
    print("ended with", os.waitstatus_to_exitcode(status), flush=True)
"""
    root = str(Path(__file__).parents[2])
    environment = os.environ | {"PYTHONPATH": root}
    done = subprocess.run(
        [sys.executable, "-c", text], capture_output=True, text=True, env=environment, check=False, timeout=120
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return done.stdout.splitlines()


def test_every_use_of_the_parents_device_raises_at_once_and_device_cpu_goes_on() -> None:
    uses = f"""
for use in {USES!r}:
    try:
        eval(use)
        print("nothing was raised by", use)
    except DeviceError as error:
        assert "forked" in str(error) and "spawn" in str(error) and "cpu" in str(error), error
print(torch.webgpu.is_available(), torch.webgpu.device_count())
"""
    on_cpu = """
print((on_cpu + torch.ones(3, device="cpu")).tolist(), [step(on_cpu).item() for _ in range(3)])
"""
    ending = "del x, pending; gc.collect(); devices.close('webgpu'); print('gone')"  # The parent's driver stays.
    printed = ["False 0", "[4.0, 4.0, 4.0] [18.0, 18.0, 18.0]", "gone"]
    assert outcomes(uses, on_cpu, ending) == [line for text in printed for line in (text, "ended with 7")]


def test_a_process_may_open_what_its_parent_did_not() -> None:
    start = START.replace('"webgpu"', '"cpu"').partition("step =")[0]
    assert outcomes("print((torch.ones(2, device='webgpu') + 1).tolist())", start=start) == [
        "[2.0, 2.0]",
        "ended with 7",
    ]
