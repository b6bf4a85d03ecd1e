"""Trains the small GPT for long and notes what memory it holds, on any host: `soak.py DEVICE STEPS RESULTS`."""

import json
import os
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from pywebgpu import devices
from tests.hosts.losses import Run

SAMPLES = 100  # moments at which memory is looked at, and
STEPS_BETWEEN = 10  # at least: Node collects its garbage for each
PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096


def memory(device: str) -> dict[str, int]:
    """Bytes on the GPU, of live tensors, of the process, or of its heaps of WebAssembly and JavaScript."""
    counters = devices.open_device(device).counters
    found = {"tensors": counters["live_bytes"]}
    if "device_bytes" in counters:
        found["GPU"] = counters["device_bytes"]
    if sys.platform == "linux":
        found["process"] = int(Path("/proc/self/statm").read_text(encoding="utf-8").split()[1]) * PAGE
    if sys.platform != "emscripten":
        return found
    import js
    import pyodide_js

    found["WebAssembly"] = pyodide_js._module.HEAPU8.length
    process, chromium = getattr(js, "process", None), getattr(js.performance, "memory", None)
    if process:
        process.getBuiltinModule("v8").setFlagsFromString("--expose-gc")
        process.getBuiltinModule("vm").runInNewContext("gc")()
        now = process.memoryUsage()
        found["process"] = now.rss
        found["JavaScript"] = now.heapUsed + now.external - found["WebAssembly"]
    elif chromium:
        found["JavaScript"] = chromium.usedJSHeapSize
    return found


def main(device: str, steps: str, results: str) -> None:
    run = Run(device)
    found = []
    start = time.monotonic()
    for step in range(int(steps)):
        loss = run.advance()
        if (step + 1) % max(int(steps) // SAMPLES, STEPS_BETWEEN) == 0:
            found.append({"step": step + 1, "loss": loss, "seconds": time.monotonic() - start, **memory(device)})
            print(f"step {step + 1} of {steps}: loss {loss:.4f}", flush=True)
    Path(results).write_text(json.dumps(found), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
