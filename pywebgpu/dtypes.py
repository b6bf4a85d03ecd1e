"""Element types: kind, size, how webgpu stores and computes them, names in NumPy, and PyTorch's promotion rule.

On webgpu a buffer holds torch's bytes (see formats.py), but an int64 is an int32 that was checked on the way in. A
register there is of 32 bits: float16 and bfloat16 are computed as a float32 that is rounded, bool is 0 or 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pywebgpu.step_capture.free_number import Number

from pywebgpu.support import formats
from pywebgpu.support.formats import Format


class Kind(IntEnum):
    """Promotion order between categories: a higher kind wins."""

    BOOL = 0
    INT = 1
    FLOAT = 2  # of complex numbers too


@dataclass(frozen=True, slots=True, eq=False)
class DType:
    """One element type.

    compute: what WGSL computes it as; None where webgpu has no such type.  format: how it lies in a buffer there.
    family: "half" or "complex", for what has to treat these apart.  part: of complex numbers, the dtype of both parts.
    """

    name: str
    kind: Kind
    itemsize: int
    compute: str | None
    format: Format
    code: str  # struct format character; "" where Python has none
    low: float = 0
    high: float = 0
    family: str = ""
    part: DType | None = None

    def __repr__(self) -> str:
        return f"torch.{self.name}"

    @property
    def title(self) -> str:
        """What PyTorch's messages call it: Float, Long."""
        return _TITLES.get(self.name, self.name)

    def __reduce__(self) -> str:
        return self.name

    @property
    def is_floating_point(self) -> bool:
        return self.kind is Kind.FLOAT and self.part is None

    @property
    def is_signed(self) -> bool:
        return self.kind is Kind.FLOAT or self.low < 0

    @property
    def is_complex(self) -> bool:
        return self.part is not None


# A dtype is one value: dataclasses.asdict of a program's own dataclass keeps it as it is.
delattr(DType, "__dataclass_fields__")

_TITLES = {
    "float64": "Double", "float32": "Float", "float16": "Half", "bfloat16": "BFloat16", "int64": "Long", "int32": "Int",
    "int16": "Short", "int8": "Char", "uint8": "Byte", "bool": "Bool", "complex32": "ComplexHalf",
    "complex64": "ComplexFloat", "complex128": "ComplexDouble",
}  # fmt: skip

bool_ = DType("bool", Kind.BOOL, 1, "u32", formats.U8, "?", 0, 1)
uint8 = DType("uint8", Kind.INT, 1, "u32", formats.U8, "B", 0, 255)
int8 = DType("int8", Kind.INT, 1, "i32", formats.I8, "b", -128, 127)
int16 = DType("int16", Kind.INT, 2, "i32", formats.I16, "h", -(2**15), 2**15 - 1)
int32 = DType("int32", Kind.INT, 4, "i32", formats.I32, "i", -(2**31), 2**31 - 1)
int64 = DType("int64", Kind.INT, 8, "i32", formats.I32, "q", -(2**63), 2**63 - 1)
uint32 = DType("uint32", Kind.INT, 4, "u32", formats.U32, "I", 0, 2**32 - 1)
uint64 = DType("uint64", Kind.INT, 8, None, formats.U64, "Q", 0, 2**64 - 1)
float16 = DType("float16", Kind.FLOAT, 2, "f32", formats.F16, "e", -65504.0, 65504.0, "half")
bfloat16 = DType(
    "bfloat16", Kind.FLOAT, 2, "f32", formats.BF16, "", -3.3895313892515355e38, 3.3895313892515355e38, "half"
)
float32 = DType("float32", Kind.FLOAT, 4, "f32", formats.F32, "f", -3.4028234663852886e38, 3.4028234663852886e38)
float64 = DType("float64", Kind.FLOAT, 8, None, formats.F64, "d", -1.7976931348623157e308, 1.7976931348623157e308)

complex32 = DType(
    "complex32", Kind.FLOAT, 4, "vec2<f32>", formats.C32, "", float16.low, float16.high, "complex", float16
)
complex64 = DType(
    "complex64", Kind.FLOAT, 8, "vec2<f32>", formats.C64, "", float32.low, float32.high, "complex", float32
)
complex128 = DType("complex128", Kind.FLOAT, 16, None, formats.C128, "", float64.low, float64.high, "complex", float64)

ALL: tuple[DType, ...] = (
    bool_, uint8, int8, int16, int32, int64, uint32, uint64, float16, bfloat16, float32, float64,
    complex32, complex64, complex128,
)  # fmt: skip
BY_NAME = {dtype.name: dtype for dtype in ALL}


def promote(a: DType, b: DType) -> DType:
    """The dtype of a op b for two tensors of one rank class, as torch.promote_types."""
    if a is b:
        return a
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
