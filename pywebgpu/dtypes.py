"""Element types: kind, size, how webgpu stores and computes them, names in NumPy, and PyTorch's promotion rule.

On webgpu a buffer holds torch's bytes (see formats.py), but an int64 is an int32 that was checked on the way in. A
register there is of 32 bits: float16 and bfloat16 are computed as a float32 that is rounded, bool is 0 or 1.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pywebgpu.step_capture.free_number import Number

from pywebgpu.support import formats
from pywebgpu.support.closed_types import Closed
from pywebgpu.support.formats import Format


class Kind(IntEnum):
    """Promotion order between categories: a higher kind wins."""

    BOOL = 0
    INT = 1
    FLOAT = 2  # of complex numbers too


class DType(Closed, title="torch.dtype"):
    """One element type.

    compute: what WGSL computes it as; None where webgpu has no such type.  format: how it lies in a buffer there.
    family: "half", "complex" or "float8", for what has to treat these apart.  part: of complex numbers, the dtype of
    both parts.  title: what PyTorch's messages call it: Float, Long.
    """

    __slots__ = ("code", "compute", "family", "format", "high", "itemsize", "kind", "low", "part", "title")

    kind: Kind
    itemsize: int
    compute: str | None
    format: Format
    code: str  # struct format character; "" where Python has none
    low: float
    high: float
    family: str
    part: DType | None
    title: str

    @property
    def is_floating_point(self) -> bool:
        return self.kind is Kind.FLOAT and self.part is None

    @property
    def is_signed(self) -> bool:
        return self.low < 0

    @property
    def is_complex(self) -> bool:
        return self.part is not None

    def to_complex(self) -> DType:
        """The dtype of complex numbers with parts of this one. Raises RuntimeError where there is none."""
        if self.part is None and (self.kind is not Kind.FLOAT or self.family == "float8"):
            raise RuntimeError(f"{self} has no dtype of complex numbers")
        return to_complex(self)

    def to_real(self) -> DType:
        """The dtype of the parts of complex numbers; of another dtype, itself."""
        return self.part or self


def _dtype(
    name: str,
    title: str,
    kind: Kind,
    itemsize: int,
    compute: str | None,
    format: Format,
    code: str,
    low: float,
    high: float,
    family: str = "",
    part: DType | None = None,
) -> DType:
    """A dtype that is there for good."""
    return DType._value(
        name=name, title=title, kind=kind, itemsize=itemsize, compute=compute, format=format, code=code, low=low,
        high=high, family=family, part=part,
    )  # fmt: skip


_LARGEST, _LARGEST_HALF = 3.4028234663852886e38, 3.3895313892515355e38

bool_ = _dtype("bool", "Bool", Kind.BOOL, 1, "u32", formats.U8, "?", 0, 1)
uint8 = _dtype("uint8", "Byte", Kind.INT, 1, "u32", formats.U8, "B", 0, 255)
int8 = _dtype("int8", "Char", Kind.INT, 1, "i32", formats.I8, "b", -128, 127)
int16 = _dtype("int16", "Short", Kind.INT, 2, "i32", formats.I16, "h", -(2**15), 2**15 - 1)
int32 = _dtype("int32", "Int", Kind.INT, 4, "i32", formats.I32, "i", -(2**31), 2**31 - 1)
int64 = _dtype("int64", "Long", Kind.INT, 8, "i32", formats.I32, "q", -(2**63), 2**63 - 1)
uint16 = _dtype("uint16", "UInt16", Kind.INT, 2, None, formats.U16, "H", 0, 2**16 - 1)
uint32 = _dtype("uint32", "UInt32", Kind.INT, 4, "u32", formats.U32, "I", 0, 2**32 - 1)
uint64 = _dtype("uint64", "UInt64", Kind.INT, 8, None, formats.U64, "Q", 0, 2**64 - 1)
float16 = _dtype("float16", "Half", Kind.FLOAT, 2, "f32", formats.F16, "e", -65504.0, 65504.0, "half")
bfloat16 = _dtype(
    "bfloat16",
    "BFloat16",
    Kind.FLOAT,
    2,
    "f32",
    formats.BF16,
    "",
    -3.3895313892515355e38,
    3.3895313892515355e38,
    "half",
)
float32 = _dtype(
    "float32", "Float", Kind.FLOAT, 4, "f32", formats.F32, "f", -3.4028234663852886e38, 3.4028234663852886e38
)
float64 = _dtype(
    "float64", "Double", Kind.FLOAT, 8, None, formats.F64, "d", -1.7976931348623157e308, 1.7976931348623157e308
)


def _float8(name: str, low: float, high: float) -> DType:
    """One that holds values, and has no arithmetic (see float8.py)."""
    return _dtype(name, name.capitalize(), Kind.FLOAT, 1, None, formats.F8, "", low, high, "float8")


float8_e4m3fn = _float8("float8_e4m3fn", -448.0, 448.0)
float8_e5m2 = _float8("float8_e5m2", -57344.0, 57344.0)
float8_e4m3fnuz = _float8("float8_e4m3fnuz", -240.0, 240.0)
float8_e5m2fnuz = _float8("float8_e5m2fnuz", -57344.0, 57344.0)
float8_e8m0fnu = _float8("float8_e8m0fnu", 2.0**-127, 2.0**127)


def _complex(name: str, title: str, part: DType, compute: str | None, format: Format) -> DType:
    """Of two parts."""
    low, high = part.low, part.high
    return _dtype(name, title, Kind.FLOAT, 2 * part.itemsize, compute, format, "", low, high, "complex", part)


complex32 = _complex("complex32", "ComplexHalf", float16, "vec2<f32>", formats.C32)
complex64 = _complex("complex64", "ComplexFloat", float32, "vec2<f32>", formats.C64)
complex128 = _complex("complex128", "ComplexDouble", float64, None, formats.C128)

ALL: tuple[DType, ...] = (
    bool_, uint8, int8, int16, int32, int64, uint16, uint32, uint64, float16, bfloat16, float32, float64,
    float8_e4m3fn, float8_e5m2, float8_e4m3fnuz, float8_e5m2fnuz, float8_e8m0fnu, complex32, complex64, complex128,
)  # fmt: skip
BY_NAME = {dtype.name: dtype for dtype in ALL}


_UNSIGNED = (uint16, uint32, uint64)  # which hold values, and have no rules of their own


def check_held(dtype: DType | None) -> None:
    """Raises NotImplementedError for a dtype that no tensor has."""
    if dtype is not None and dtype.family == "quantized":
        raise NotImplementedError(f"there are no tensors of {dtype} here: models are not quantised")


def promote(a: DType, b: DType) -> DType:
    """The dtype of a op b for two tensors of one rank class, as torch.promote_types."""
    if a is b:
        return a
    without = "Float8 Types" if "float8" in (a.family, b.family) else ""
    if not without and (a in _UNSIGNED or b in _UNSIGNED) and not (a.is_floating_point or b.is_floating_point):
        without = "uint16, uint32, uint64 types"
    if without:
        titles = f"{a.title} and {b.title}"
        raise RuntimeError(f"Promotion for {without} is not supported, attempted to promote {titles}")
    if a.kind is not b.kind:
        return a if a.kind > b.kind else b
    if a.part is not None or b.part is not None:
        return to_complex(promote(a.part or a, b.part or b))
    if a.kind is Kind.FLOAT:
        if a.itemsize == b.itemsize:
            return float32  # float16 with bfloat16
        return a if a.itemsize > b.itemsize else b
    if a.low <= b.low and a.high >= b.high:
        return a
    if b.low <= a.low and b.high >= a.high:
        return b
    for wider in (int16, int32, int64):
        if wider.low <= min(a.low, b.low) and wider.high >= max(a.high, b.high):
            return wider
    return int64


def to_complex(dtype: DType) -> DType:
    """The dtype of complex numbers with parts of a floating dtype; of bfloat16, which has none, complex64."""
    if dtype.part is not None:
        return dtype
    return complex128 if dtype is float64 else complex32 if dtype is float16 else complex64


def of_order(a: DType, b: DType) -> DType:
    """The dtype of a comparison by order. Raises NotImplementedError for complex numbers."""
    if a.part is not None:
        raise NotImplementedError(f"comparison by order is not implemented for {a.name}: take x.abs() or x.real")
    return bool_


def of_scalar(value: Number) -> DType:
    """The dtype that a Python number has on its own."""
    if isinstance(value, bool):
        return bool_
    if isinstance(value, int):
        return int64
    return to_complex(default()) if type(value) is complex else default()


PYTHONS: dict[object, DType] = {
    bool: bool_,
    int: int64,
    float: float64,
    complex: complex128,
}  # for a dtype PyTorch takes Python's types
_default = [float32]


def default() -> DType:
    """The dtype of new tensors of floats."""
    return _default[0]


def set_default(dtype: DType) -> None:
    _default[0] = dtype
