"""The same workloads in PyTorch on the CPU, and on a CUDA device where there is one: what numbers are held against."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pywebgpu.bench import measure as timing
from pywebgpu.bench.workloads import Workload

if TYPE_CHECKING:
    from types import ModuleType


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

    The number of threads is the one that PyTorch chooses. With CUDA instead "torch-cuda" and "torch-cuda-compiled",
    products in float32, and the most memory that tensors took.
    """
    try:
        import torch
    except ImportError:
        return {}
    if torch.cuda.is_available():
        return {f"torch-cuda{suffix}": _on_cuda(torch, workload, steps, suffix) for suffix in ("", "-compiled")}
    engine = timing.Engine(submit=_nothing, wait=_nothing)  # PyTorch has finished when a step returns.
    samples = timing.sample(workload.build(torch, "cpu"), engine, steps)
    facts = {"threads": torch.get_num_threads(), "version": str(torch.__version__)}
    return {"torch-cpu": timing.summary(samples) | facts}


def _on_cuda(torch: ModuleType, workload: Workload, steps: int, suffix: str) -> dict[str, Any]:
    torch.cuda.reset_peak_memory_stats()
    engine = timing.Engine(_nothing, torch.cuda.synchronize, busy=timing.products(torch, "cuda"))
    step = workload.build(torch, "cuda")
    samples = timing.sample(torch.compile(step) if suffix else step, engine, steps)
    facts = {"device": torch.cuda.get_device_name(), "peak_bytes": torch.cuda.max_memory_allocated()}
    return timing.summary(samples) | facts | {"version": str(torch.__version__)}


def _nothing() -> None:
    pass
