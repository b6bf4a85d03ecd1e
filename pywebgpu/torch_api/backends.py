"""torch.backends: switches of libraries that are not here. They may be set, and change nothing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from pywebgpu.support.argument_types import typed
from pywebgpu.tensor.uninitialized import settings

_frozen = [False]


def disable_global_flags() -> None:
    """From now on switches change only inside a `with flags(...)` block: setting one raises RuntimeError."""
    _frozen[0] = True


def flags_frozen() -> bool:
    """Whether disable_global_flags was called."""
    return _frozen[0]


class Backend:
    """A library that does not exist; its switches keep what they are given."""

    def __init__(self, **switches: Any) -> None:
        self.__dict__.update(switches)

    def is_available(self) -> bool:
        return False

    def is_built(self) -> bool:
        return False

    def version(self) -> None:
        """There is none."""

    @contextmanager
    def flags(self, **switches: object) -> Iterator[None]:
        """Other switches inside a `with` block."""
        before = dict(self.__dict__)
        self.__dict__.update(switches)
        try:
            yield
        finally:
            self.__dict__.update(before)


class _Bracketed(Backend):
    """One whose switches disable_global_flags holds to `flags`, as PyTorch has it of these two."""

    def __setattr__(self, name: str, value: object) -> None:
        if flags_frozen() and not name.startswith("__"):  # Importing it as a module sets such.
            raise RuntimeError(f"not allowed to set {name} after disable_global_flags; please use flags() instead")
        super().__setattr__(name, value)


cudnn = _Bracketed(deterministic=True, benchmark=False, enabled=False, allow_tf32=False)
cuda = Backend(
    matmul=Backend(allow_tf32=False, allow_fp16_reduced_precision_reduction=False),
    preferred_blas_library=lambda backend=None: backend or "default",
    preferred_linalg_library=lambda backend=None: backend or "default",
)
_attention = {"cudnn": False, "flash": False, "math": True, "mem_efficient": False}
for _kind in _attention:
    setattr(cuda, f"enable_{_kind}_sdp", partial(_attention.__setitem__, _kind))
    setattr(cuda, f"{_kind}_sdp_enabled", partial(_attention.__getitem__, _kind))
cpu = Backend(get_cpu_capability=lambda: "DEFAULT")  # PyTorch's word where it has no kernels for vectors.
quantized = Backend(engine="none", supported_engines=["none"])
mps, mkl, mkldnn, openmp, xeon = Backend(), Backend(), _Bracketed(), Backend(), Backend()


# Switches of the torch namespace itself. Threads are the host's own business.

_precision = ["highest"]


def set_float32_matmul_precision(precision: str) -> None:
    """Kept and given back; products are float32 whatever it says."""
    if precision not in ("highest", "high", "medium"):
        raise RuntimeError(f"{precision} is not one of 'highest', 'high', or 'medium'")
    _precision[0] = precision


def get_float32_matmul_precision() -> str:
    """ "highest": products of float32 are computed in float32."""
    return _precision[0]


@typed
def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Two runs give the same bits always; this fills memory that nothing wrote, see utils.deterministic."""
    settings.deterministic, settings.warns = bool(mode), bool(warn_only)


def are_deterministic_algorithms_enabled() -> bool:
    """Whether use_deterministic_algorithms was called with True."""
    return settings.deterministic


def is_deterministic_algorithms_warn_only_enabled() -> bool:
    """Whether it was called with warn_only."""
    return settings.warns


def get_deterministic_debug_mode() -> int:
    """0 where they are not asked for, 1 where others would be warned of, 2 where those would be errors."""
    return (1 if settings.warns else 2) if settings.deterministic else 0


def set_deterministic_debug_mode(debug_mode: int | str) -> None:
    """The same as a number or a word: default, warn or error. Raises TypeError and RuntimeError for another."""
    if not isinstance(debug_mode, int | str):
        raise TypeError(f"debug_mode must be str or int, but got {type(debug_mode)}")
    words = ("default", "warn", "error")
    if debug_mode not in (words if isinstance(debug_mode, str) else (0, 1, 2)):
        raise RuntimeError(f"invalid value of debug_mode, expected one of {', '.join(words)}, or 0 to 2: {debug_mode}")
    level = words.index(debug_mode) if isinstance(debug_mode, str) else debug_mode
    use_deterministic_algorithms(level > 0, warn_only=level == 1)


def set_num_threads(count: int) -> None:
    """Nothing: NumPy and the GPU have their own threads. Raises RuntimeError for what is no number of threads."""
    _check_threads("set_num_threads", count)


def set_num_interop_threads(count: int) -> None:
    """As set_num_threads."""
    _check_threads("set_num_interop_threads", count)


def _check_threads(name: str, count: object) -> None:
    if not isinstance(count, int) or isinstance(count, bool):
        raise RuntimeError(f"{name} expects an int, but got {type(count).__name__}")
    if count <= 0:
        raise RuntimeError(f"{name} expects a positive integer")


def get_num_threads() -> int:
    """1: NumPy decides about threads of its own."""
    return 1


get_num_interop_threads = get_num_threads
