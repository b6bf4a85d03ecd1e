"""Runs cases inside a host and writes down what came out: `inside.py JOB RESULTS`, for tests/hosts/conformance.py."""

import importlib
import sys
import time
import warnings
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.hosts import packing, stand_in


def main(job_file: str, results_file: str) -> None:
    job = packing.read(Path(job_file), stand_in.Array)
    stand_in.install(job["draws"])
    warnings.simplefilter("ignore", UserWarning)
    import pywebgpu

    results = {}
    for area, names in job["areas"].items():
        start = time.monotonic()
        table = {case.name: case for case in importlib.import_module(f"tests.cases.{area}").CASES}
        results[area] = {}
        for name in names:
            results[area][name] = outcome(pywebgpu, table[name], job["inputs"][area][name], job["device"])
            print(".", end="", flush=True)
        print(f" {area}: {len(names)} cases in {time.monotonic() - start:.0f} s", flush=True)
    results["counters"] = dict(importlib.import_module("pywebgpu.devices").open_device(job["device"]).counters)
    packing.write(Path(results_file), results)


def outcome(library: Any, case: Any, inputs: list[Any], device: str) -> dict[str, Any]:
    """What a case gives, or what it raises: the names of all classes of the exception, and its text."""
    from tests.cases import run

    run.arrays, run.fetch = lambda case: inputs, fetch
    try:
        found = run.run(case, library, device)
    except Exception as error:
        return {"error": [kind.__name__ for kind in type(error).__mro__], "text": str(error)}
    return {
        "outputs": [leaf(value) for value in found.outputs],
        "gradients": [leaf(value) for value in found.gradients],
    }


def fetch(library: Any, tensor: Any) -> Any:
    """As tests/cases/run.py does it, with no other device and no NumPy on the way."""
    from tests.cases import run

    dtype = run.dtype_name(tensor.dtype)
    plain = tensor.detach()
    host, name = (plain.to(library.float32), "float32") if dtype == "bfloat16" else (plain, dtype)
    return run.Value(dtype, stand_in.Array(name, tuple(tensor.shape), host.tobytes()), bool(tensor.requires_grad))


def leaf(value: Any) -> Any:
    """A tensor's value as a dictionary; other leaves as they are, exact in type."""
    if hasattr(value, "array"):
        return {"dtype": value.dtype, "values": value.array, "requires_grad": value.requires_grad}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return {"repr": repr(value)}


if __name__ == "__main__":
    main(*sys.argv[1:])
