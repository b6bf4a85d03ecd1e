"""Runs samples inside a host and writes down what came out: `inside.py JOB RESULTS`, for elsewhere.py."""

import functools
import importlib
import sys
import warnings
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.hosts import packing, stand_in
from tests.opdb import gradients


def main(job_file: str, results_file: str) -> None:
    job = packing.unpacked(Path(job_file).read_bytes(), stand_in.Array)
    warnings.simplefilter("ignore")
    results = [outcome(sample, job["device"]) for sample in job["samples"]]
    Path(results_file).write_bytes(packing.packed(results))


def outcome(sample: dict[str, Any], device: str) -> dict[str, Any]:
    import pywebgpu

    try:
        args, options = value(sample["given"], device)
        out = named(sample["path"])(*args, **options)
        found = gradients.gradients(pywebgpu, [args, options], out)
        return {"outputs": [leaf(part) for part in gradients.leaves(out)], "gradients": [leaf(part) for part in found]}
    except Exception as error:
        return {"error": type(error).__name__, "text": str(error).strip().split("\n")[0]}


@functools.cache
def named(path: str) -> Any:
    found: Any = importlib.import_module("pywebgpu")
    for part in path.split("."):
        found = getattr(found, part)
    return found


def value(item: dict[str, Any], device: str) -> Any:
    """What `plain` of elsewhere.py wrote down."""
    from pywebgpu.tensor import create

    (kind, inner), *others = item.items()
    match kind:
        case "tensor":
            dtype = named(inner.dtype)
            made = create.frombytes(inner.tobytes(), dtype, inner.shape, device)
            return made.requires_grad_() if others[0][1] else made
        case "name":
            return named(inner)
        case "list":
            return [value(part, device) for part in inner]
        case "tuple":
            return tuple(value(part, device) for part in inner)
        case "dict":
            return {key: value(part, device) for key, part in inner.items()}
    return device if inner == "cpu" else inner


def leaf(part: Any) -> Any:
    if not gradients.is_tensor(part):
        return None
    dtype = str(part.dtype).removeprefix("torch.")
    return {"dtype": dtype, "values": stand_in.Array(dtype, tuple(part.shape), part.detach().tobytes())}


if __name__ == "__main__":
    main(*sys.argv[1:])
