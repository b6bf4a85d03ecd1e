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
    └── DeviceLostError  the device is gone; what it held is gone too
"""


class PywebgpuError(Exception):
    """Root of every error which pywebgpu raises on purpose."""


class ShapeError(PywebgpuError, RuntimeError): ...


class DTypeError(PywebgpuError, TypeError, RuntimeError): ...


class RangeError(PywebgpuError, IndexError, RuntimeError):
    row: tuple[int, int] | None = (
        None  # a row number that was found wrong when it was used, and how many rows there are
    )


class IntegerOverflowError(PywebgpuError, OverflowError, RuntimeError): ...


class CaptureError(PywebgpuError, RuntimeError): ...


class NonFiniteError(PywebgpuError, RuntimeError): ...


class CompileError(PywebgpuError, RuntimeError): ...


class DeviceError(PywebgpuError, RuntimeError): ...


class DeviceLostError(DeviceError): ...
