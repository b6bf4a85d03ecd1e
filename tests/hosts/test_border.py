"""How often Python and JavaScript call each other in Node, by the counters and by the calls themselves."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests import devices, sampling
from tests.hosts.test_node import ROOT, run, script

pytestmark = [
    pytest.mark.skipif(bool(devices.why_no_node()), reason=devices.why_no_node()),
    pytest.mark.skipif(bool(devices.why_no_webgpu()), reason=devices.why_no_webgpu()),
]
WORKLOADS = ("mlp", "gpt1")


@pytest.fixture(scope="module")
def measured(pytestconfig: pytest.Config) -> dict[str, dict[str, Any]]:
    """What `pywebgpu bench` says, by host and workload."""
    found, names = {}, sampling.part(pytestconfig, WORKLOADS, 2)
    for host in ("native", "node"):
        options = ["--host", host, "--device", "webgpu", "--steps", "5", "--no-peers", "--json"]
        command = [sys.executable, "-m", "pywebgpu", "bench", *names, *options]
        done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
        assert done.returncode == 0, done.stderr
        found[host] = {one["name"]: one for one in json.loads(done.stdout)}
    return found


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", WORKLOADS)
def test_a_replayed_step_crosses_twice_and_creates_nothing(name: str, measured: dict[str, dict[str, Any]]) -> None:
    """Once to run, once to read the loss."""
    there, here = measured["node"][name], measured["native"][name]
    assert list(there) == list(here)
    assert (there["host"], here["host"]) == ("node", "native")
    assert (there["ffi_calls"], there["submits"]) == (2, 1)
    assert there["buffers_created"] == there["bind_groups_created"] == there["pipelines_created"] == 0
    # Adapters differ in which products they share out, and a kernel's sums belong to whole ones alone.
    assert there["dispatches"] == pytest.approx(here["dispatches"], abs=1)
    for loss in ("loss_first", "loss_last"):
        assert there[loss] == pytest.approx(here[loss], rel=1e-4)


def test_every_call_is_counted(tmp_path: Path) -> None:
    text = """
from pyodide.code import run_js
from pyodide.ffi import run_sync
import pywebgpu as torch
from pywebgpu import devices
from pywebgpu.devices import js_modules

watch = run_js('''({ PythonBridge: { prototype } }) => {
  const seen = { calls: 0 };
  for (const name of ["attach", "flush", "write", "read", "readNow", "load", "settle", "check"]) {
    const original = prototype[name];
    prototype[name] = function (...args) {
      seen.calls++;
      return original.apply(this, args);
    };
  }
  return seen;
}''')
seen = watch(run_sync(js_modules.load("python.mjs")))
device = devices.open_device("webgpu")
x = torch.rand(60, 60)
for _ in range(3):
    x = (x @ x).softmax(-1)
    torch.webgpu.synchronize()
    x.tolist()
torch.tensor([0.5] * (1 << 19)).mean().item()  # too large to go with the commands
print(seen.calls > 10, device.counters["ffi_calls"] - seen.calls)
"""
    done = run(script(tmp_path, text), cwd=tmp_path)
    assert done.stdout == "True 0\n", done.stderr
