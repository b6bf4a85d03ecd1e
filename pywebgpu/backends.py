"""torch.backends: switches of libraries that are not here. They may be set, and change nothing."""

from __future__ import annotations

from typing import Any


class Backend:
    """A library that does not exist; its switches keep what they are given."""

    def __init__(self, **switches: Any) -> None:
        self.__dict__.update(switches)

    def is_available(self) -> bool:
        return False

    def is_built(self) -> bool:
        return False


cudnn = Backend(deterministic=True, benchmark=False, enabled=False, allow_tf32=False)
cuda = Backend(matmul=Backend(allow_tf32=False, allow_fp16_reduced_precision_reduction=False))
mps, mkl, mkldnn, openmp, xeon = Backend(), Backend(), Backend(), Backend(), Backend()
