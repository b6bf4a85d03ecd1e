"""Runs programs one after the other, each as __main__, with a line before each: `python every.py gan.py vae.py`."""

import os
import runpy
import sys
import time
import traceback

for name in sys.argv[1:]:
    print(f"## {name}", flush=True)
    begun = time.monotonic()
    argv, sys.argv = sys.argv, [name]
    try:
        runpy.run_path(os.path.join(os.path.dirname(os.path.abspath(__file__)), name), run_name="__main__")
    except Exception:
        print("failed:", traceback.format_exc(limit=-3))
    sys.argv = argv
    print(f"{name}: {time.monotonic() - begun:.1f} s", file=sys.stderr)
