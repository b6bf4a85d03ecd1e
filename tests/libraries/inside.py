"""Runs in Pyodide: inside.py DEVICE SCRIPT FOLDER... runs a script where `import torch` is this library.

Folders go to where modules are looked for. The last line on stderr says how long the script took.
"""

import os
import sys
import time
import warnings


def main(device: str, script: str, *folders: str) -> int:
    os.environ |= {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "TQDM_DISABLE": "1", "PYWEBGPU_DEVICE": device}
    sys.path += folders
    warnings.simplefilter("ignore")
    start = time.monotonic()
    from pywebgpu.hosts import script as scripts
    from pywebgpu.torch_api import torch_import

    torch_import.install(device, script)
    status = scripts.guarded([script])
    print(f"{time.monotonic() - start:.1f} s", file=sys.stderr)
    return status


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
