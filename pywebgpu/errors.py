"""All exceptions, in one tree; each is also the built-in type that PyTorch raises there.

PywebgpuError
├── ShapeError      shapes of an op's inputs do not fit (RuntimeError, raised at the call)
├── DTypeError      dtypes of an op's inputs do not fit (TypeError and RuntimeError, raised at the call)
├── IntegerOverflowError  a whole number takes more bits than there are (OverflowError and RuntimeError)
├── RangeError      an index or an axis is out of range (IndexError and RuntimeError)
├── CaptureError    a function cannot become a compiled step (RuntimeError)
├── NonFiniteError  an op made a NaN, or an infinity, while that is watched for (RuntimeError)
├── CompileError    the compiler met a graph that it cannot lower (RuntimeError)
└── DeviceError     the device refused the work (RuntimeError)
    ├── DeviceLostError  the device is gone; what it held is gone too
    └── CannotWaitError  Python cannot be suspended until the device answers; an awaitable form can
"""

import sys
from types import FrameType, TracebackType
from typing import Any

from pywebgpu.settings import settings

_short = settings.short_tracebacks and not settings.debug
_raw: Any = vars(BaseException)["__traceback__"]


def _shortened(tb: TracebackType | None) -> TracebackType | None:
    """A traceback without this package's frames."""
    found: list[TracebackType] = []
    while tb is not None:
        if not tb.tb_frame.f_code.co_filename.startswith(PACKAGE):
            found.append(tb)
        tb = tb.tb_next
    for tb_ in reversed(found):
        tb = TracebackType(tb, tb_.tb_frame, tb_.tb_lasti, tb_.tb_lineno)
    return tb


# How the names of files begin that the code of this package says it was compiled from. Installed as bytecode alone, as
# `pyodide py-compile` leaves it, that is no folder.
PACKAGE = _shortened.__code__.co_filename.removesuffix("errors.py")


class PywebgpuError(Exception):
    """Root of every error which pywebgpu raises on purpose.

    Its traceback is shown without this package's own frames, unless PYWEBGPU_TRACEBACKS=full or PYWEBGPU_DEBUG is set.
    """

    def __init__(self, *args: object) -> None:
        super().__init__(*args)
        walked = _short and not {"IPython", "_pytest"}.isdisjoint(sys.modules)
        frame: FrameType | None = sys._getframe(1) if walked else None
        while frame is not None:  # These go through the frames themselves, and know this mark.
            if frame.f_code.co_filename.startswith(PACKAGE):
                frame.f_locals["__tracebackhide__"] = True
            frame = frame.f_back

    @property
    def __traceback__(self) -> TracebackType | None:
        whole: TracebackType | None = _raw.__get__(self)
        return (_short and _shortened(whole)) or whole

    @__traceback__.setter
    def __traceback__(self, whole: TracebackType | None) -> None:
        _raw.__set__(self, whole)


class ShapeError(PywebgpuError, RuntimeError):
    """Shapes of an op's inputs do not fit."""


class DTypeError(PywebgpuError, TypeError, RuntimeError):
    """Dtypes of an op's inputs do not fit."""


class RangeError(PywebgpuError, IndexError, RuntimeError):
    """An index or an axis is out of range."""

    row: tuple[int, int] | None = (
        None  # a row number that was found wrong when it was used, and how many rows there are
    )


# What kernels refuse besides row numbers: they leave UNFIT - k as the number of a row, where k is a place here.
UNFIT = -2_000_000_000
REFUSALS = (
    "all elements of input should be between 0 and 1",
    "all elements of target should be between 0 and 1",
    "invalid multinomial distribution: a row needs finite numbers, none negative, with a positive sum",
    "Expected p_in >= 0 && p_in <= 1 to be true, but got false.",
    "invalid Poisson rate, expected rate to be non-negative",
    "normal expects all elements of std >= 0.0",
    "var has negative entry/entries",
    "offsets has to begin with 0, must not fall, and must not be greater than input's length",
    "a parameter of a distribution, or a value that it was given, does not satisfy its constraint",
)


def of_row(number: int, size: int) -> RangeError:
    """The error of a number that a kernel found to be no row of `size`."""
    if UNFIT - len(REFUSALS) < number <= UNFIT:
        return RefusedError(REFUSALS[UNFIT - number])
    found = RangeError(f"index {number} is out of bounds for dimension with size {size}")
    found.row = number, size
    return found


class RefusedError(RangeError, ValueError):
    """A value that a kernel found to be one that its function refuses: functions differ in which error that is."""


class IntegerOverflowError(PywebgpuError, OverflowError, RuntimeError):
    """A whole number takes more bits than there are."""


class CaptureError(PywebgpuError, RuntimeError):
    """A function cannot become a compiled step."""


class CaptureWarning(UserWarning):
    """A compiled function runs as an ordinary one: nothing is wrong, and nothing is gained."""


class NonFiniteError(PywebgpuError, RuntimeError):
    """An op made a NaN, or an infinity, while that is watched for."""


class CompileError(PywebgpuError, RuntimeError):
    """The compiler met a graph that it cannot lower."""


class DeviceError(PywebgpuError, RuntimeError):
    """The device refused the work."""


class HostMemoryError(DeviceError, MemoryError):
    """Device cpu has no memory for a value."""


class DeviceLostError(DeviceError):
    """The device is gone; what it held is gone too."""


class CannotWaitError(DeviceError):
    """Python cannot be suspended until the device answers; an awaitable form can."""
