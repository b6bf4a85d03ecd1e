"""The same workloads in PyTorch on the CPU: what the numbers are held against."""

from typing import Any

from pywebgpu.bench import measure as timing
from pywebgpu.bench.workloads import Workload


def losses(workload: Workload, steps: int) -> list[float]:
    """PyTorch's loss of each step; empty where it is not installed."""
    try:
        import torch
    except ImportError:
        return []
    step = workload.build(torch, "cpu")
    return [float(step().item()) for _ in range(steps)]


def measure(workload: Workload, steps: int) -> dict[str, dict[str, Any]]:
    """{"torch-cpu": its times, losses, version and threads}; empty where PyTorch is not installed.

    The number of threads is the one that PyTorch chooses.
    """
    try:
        import torch
    except ImportError:
        return {}
    engine = timing.Engine(submit=_nothing, wait=_nothing)  # PyTorch has finished when a step returns.
    samples = timing.sample(workload.build(torch, "cpu"), engine, steps)
    facts = {"threads": torch.get_num_threads(), "version": str(torch.__version__)}
    return {"torch-cpu": timing.summary(samples) | facts}


def _nothing() -> None:
    pass
