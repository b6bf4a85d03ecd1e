"""The workloads of `python -m pywebgpu bench` as loops, so that they take turns with PyTorch as well."""

from typing import Any

import pywebgpu
from pywebgpu.bench import workloads
from tests.loops.start import Loop, Step

NAMES = ("mlp", "gpt", "gpt1", "cnn", "matmul", "pointwise")


def loop(name: str, *, compiled: bool) -> Loop:
    """A workload; ours captured where `compiled`. Of a result that is no loss, one element is read."""

    def build(torch: Any) -> Step:
        plain = workloads.named(name).build(torch, "cpu")
        step = pywebgpu.compile(plain) if compiled and torch is pywebgpu else plain

        def once() -> float:
            result = step()
            return float((result if result.ndim == 0 else result.reshape(-1)[0]).item())

        return once

    build.__name__ = name
    return Loop(build)
