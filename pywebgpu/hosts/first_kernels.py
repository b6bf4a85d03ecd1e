"""The kernels of the first model that the Train page offers, so that a page compiles them while Python still loads.

`python -m pywebgpu.hosts.first_kernels DEMO SIZES FAMILY` prints them: as its own process, since it trains on a device
that only compiles. DEMO: the folder of demos/chargpt.  SIZES: web/sizes.json.  FAMILY: whose adapter.
"""

import importlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from pywebgpu import devices
from pywebgpu.compiler import wire
from pywebgpu.devices import features
from pywebgpu.devices.null import NullDevice
from pywebgpu.runtime import executor

SECONDS = 120  # that it may take
# Adapters whose kernels differ; all others are like "other". Each has its limits and features as browsers tell them.
FAMILIES = ("swiftshader", "nvidia", "other")
LIMITS = {
    "max-buffer-size": 4 << 30,
    "max-compute-invocations-per-workgroup": 1024,
    "max-storage-buffers-per-shader-stage": 10,
    "max-storage-buffer-binding-size": (2 << 30) - 4,
    "max-compute-workgroup-storage-size": 32 << 10,
}
SMALL = {"max-buffer-size": 1 << 30, "max-compute-invocations-per-workgroup": 256}
FEATURES = {"swiftshader": ("subgroups", "timestamp-query")}
USUAL = ("shader-f16", "subgroups", "timestamp-query")
SUBGROUPS = {"swiftshader": (4, 4), "nvidia": (32, 32), "other": (8, 32)}


def make(demo: Path, sizes: Path, family: str) -> bytes:
    """Them as JSON, from a process of its own. Raises SubprocessError."""
    words = [sys.executable, "-m", "pywebgpu.hosts.first_kernels", str(demo), str(sizes), family]
    root = str(Path(__file__).parents[2])
    return subprocess.run(words, check=True, timeout=SECONDS, capture_output=True, cwd=root).stdout


def main(demo: str, sizes: str, family: str) -> None:
    """Two steps, a loss on unseen text and a character, as the page has them."""
    sys.path.insert(0, demo)
    data, texts, train = (importlib.import_module(name) for name in ("data", "texts", "train"))
    settings = json.loads(Path(sizes).read_text(encoding="utf-8"))["tiny" if family == "swiftshader" else "small"]
    device = _device(family)
    chosen = train.Settings(**settings)
    run = train.Run(data.Corpus(texts.verse(), context=chosen.context, seed=chosen.seed), chosen, "null")
    works = (run.queue_step, run.queue_step, lambda: run.validation_loss(0), train.Passage(run, "The ", 0.8, 40).draw)
    for work in works:
        kept = work()
        executor.submit(device)
        del kept
    print(json.dumps(_kernels(device)))


def _device(family: str) -> NullDevice:
    """One that compiles as for such an adapter."""
    is_software = family == "swiftshader"
    info: dict[str, Any] = {
        "vendor": "", "architecture": family, "name": "", "features": FEATURES.get(family, USUAL),
        "subgroupSizes": SUBGROUPS[family], "matrices": [],
    }  # fmt: skip
    device = devices.open_device("null")
    assert isinstance(device, NullDevice)
    limits = LIMITS | (SMALL if is_software else {})
    device.target = features.target(limits, features.bridged(info, is_software=is_software), "")
    return device


def _kernels(device: NullDevice) -> list[dict[str, Any]]:
    """Each text once, as the bridge takes them."""
    kernels: dict[tuple[str, str], dict[str, Any]] = {}
    for program in device.loaded:
        for kernel in wire.as_data(program)["kernels"]:
            kernels.setdefault((kernel["bindings"], kernel["wgsl"]), {n: x for n, x in kernel.items() if n != "grid"})
    return list(kernels.values())


if __name__ == "__main__":
    main(*sys.argv[1:])
