"""Keeps a tuning, opens the device again, and writes down what it then has: `kept_tuning.py DEVICE RESULTS`."""

import json
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from pywebgpu import devices
from pywebgpu.kernels.launch import Case, Launch

TABLE = {Case("rows", (8, 64), ("float32",), "along"): Launch(threads=64, split=8)}


def main(name: str, results: str) -> None:
    device: Any = devices.open_device(name)
    before = len(device.target.tuning)
    place = device.keep_tuning({**device.target.tuning, **TABLE})
    device.reopen()
    is_there = all(device.target.tuning.get(case) == launch for case, launch in TABLE.items())
    Path(results).write_text(json.dumps([place, before, len(device.target.tuning), is_there]))


if __name__ == "__main__":
    main(*sys.argv[1:])
