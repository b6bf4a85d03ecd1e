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
    job = packing.unpacked(Path(job_file).read_bytes(), stand_in.Array)
    stand_in.install(job["draws"])
    warnings.simplefilter("ignore", UserWarning)
    import pywebgpu

    results: dict[str, dict[str, Any]] = {}
    for area, inputs in job["inputs"].items():
        start = time.monotonic()
        table = {case.name: case for case in importlib.import_module(f"tests.cases.{area}").CASES}
        results[area] = {name: outcome(pywebgpu, table[name], given, job["device"]) for name, given in inputs.items()}
        print(f"  {area}: {len(inputs)} cases in {time.monotonic() - start:.0f} s", flush=True)
    Path(results_file).write_bytes(packing.packed(results))


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
    return {"complex": [value.real, value.imag]} if isinstance(value, complex) else {"repr": repr(value)}


if __name__ == "__main__":
    main(*sys.argv[1:])
