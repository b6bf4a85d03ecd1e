"""Python numbers as values of a dtype: which ones it holds, which wrap or become infinite, which are an error.

torch has two rules. In arithmetic a number becomes one of the dtype, whatever it takes: floats overflow to an infinity,
whole numbers wrap. What is stored (full, fill_, clamp, an assigned value) must fit, or it is an error.
A device that stores int64 in 32 bits refuses a whole number that needs more: see `refuse_wide`.
"""

import struct
from math import copysign, inf, isfinite
from typing import Any

from pywebgpu import dtypes
from pywebgpu.dtypes import DType, Kind
from pywebgpu.errors import DTypeError, IntegerOverflowError
from pywebgpu.graph.ir import HOST, Node, Spec, host, recording
from pywebgpu.live import Live, plain
from pywebgpu.ops import pointwise, reduction

NEAR = 256  # nodes that are looked through for a number that was noted
WORD = -(2**31), 2**31 - 1  # what 32 bits hold
_NAMES = {"float32": "float", "float64": "double", "float16": "c10::Half", "bfloat16": "c10::BFloat16", "int32": "int"}
_FORMATS = {dtypes.float16: "e", dtypes.float32: "f"}
_COMPARISONS = (pointwise.eq, pointwise.ne, pointwise.lt, pointwise.le, pointwise.gt, pointwise.ge)


def _held(dtype: DType) -> tuple[float, float]:
    if dtype.kind is Kind.BOOL:
        return inf, -inf
    return WORD if dtype is dtypes.int64 else (dtype.low, dtype.high)


# From where to where numbers are what they are on every device, and so may change without a new Program.
HELD = {dtype: _held(dtype) for dtype in dtypes.ALL}


def may_change(value: Live, dtype: DType) -> bool:
    """Whether a number of a captured step can be another one in each run: devices bring it to its 32 bits."""
    if dtype.kind is Kind.FLOAT:
        return True
    whole = isinstance(value.value, int) and not isinstance(value.value, bool)
    return whole and dtype.itemsize >= 4 and dtype.kind is Kind.INT and HELD[dtype][0] <= value.value <= HELD[dtype][1]


def outside(value: float, dtype: DType) -> Node:
    """A number of arithmetic that not every device holds, as a constant."""
    _check_size(value)
    if dtype.kind is Kind.BOOL:
        return pointwise.scalar(bool(value), dtype)
    if dtype.kind is Kind.FLOAT:
        return pointwise.scalar(_finite(float(value), dtypes.float64 if dtype is dtypes.float64 else dtypes.float32), dtype)
    whole = _wrapped(value, dtype)
    if dtype is not dtypes.int64 or WORD[0] <= whole <= WORD[1]:
        return host(whole, dtype)
    return wide(pointwise.full(whole, Spec((), dtype)), whole)


def stored(value: Any, dtype: DType) -> Node:
    """A number that becomes an element: a node of shape ().

    Raises: DTypeError where the dtype cannot hold it.  Against torch: the same, for negative numbers in unsigned dtypes
    too, which wrap.
    """
    check(value, dtype)
    if isinstance(value, Live):
        value = value if may_change(value, dtype) else value._fixed()
        if isinstance(value, Live):
            return host(value, dtype)
    low, high = HELD[dtype]
    if low <= value <= high:
        return host(int(value) if dtype.kind is Kind.INT else value, dtype)
    return outside(value, dtype)


def rounded(value: Any, dtype: DType) -> Any:
    """As torch.full takes a number: half floats have infinities where other dtypes have an error."""
    if dtype.itemsize == 2 and dtype.kind is Kind.FLOAT and not dtype.low <= value <= dtype.high:
        _check_size(value)
        return _finite(float(value), dtype)
    return value


def check(value: Any, dtype: DType) -> None:
    """Raises DTypeError for a number that the dtype cannot hold, as torch does for what is stored."""
    _check_size(value)
    if dtype.kind is Kind.BOOL or dtype.low <= value <= dtype.high:
        return
    if dtype.kind is Kind.FLOAT:
        fits = not isfinite(value)
    else:
        fits = dtype.low == 0 and isinstance(value, int) and -dtype.high <= value < 0
    if not fits:
        name = _NAMES.get(dtype.name, f"{dtype.name}_t")
        raise DTypeError(f"value cannot be converted to type {name} without overflow: {value}")


def _check_size(value: Any) -> None:
    if isinstance(value, int) and not -(2**63) <= value < 2**64:
        raise IntegerOverflowError(f"int too big to convert: {value} takes more than 64 bits")


def _finite(value: float, dtype: DType) -> float:
    """The value, or the infinity that it is rounded to."""
    if not isfinite(value) or dtype is dtypes.float64:
        return value
    if dtype is dtypes.bfloat16:
        return copysign(inf, value) if abs(value) >= 3.3961775292304957e38 else max(min(value, dtype.high), dtype.low)
    try:
        rounded: float = struct.unpack(_FORMATS[dtype], struct.pack(_FORMATS[dtype], value))[0]
    except OverflowError:
        return copysign(inf, value)
    return rounded


def current(value: Any, dtype: DType, *, bits: int = 32) -> Any:
    """What a number of a captured step is in a later run, for a device whose whole numbers have so many bits.

    Raises: IntegerOverflowError for an int64 that takes more.
    """
    low, high = HELD[dtype]
    if low <= value <= high or dtype.kind is Kind.BOOL:
        return value
    _check_size(value)
    if dtype.kind is Kind.FLOAT:
        return _finite(float(value), dtype if dtype is dtypes.float64 else dtypes.float32)
    if dtype is dtypes.int64 and bits == 32:
        raise too_wide(value)
    return _wrapped(value, dtype)


def _wrapped(value: Any, dtype: DType) -> int:
    low = int(dtype.low)
    return (int(value) - low) % (int(dtype.high) - low + 1) + low


# Whole numbers that 32 bits do not hold


def wide(node: Node, value: int) -> Node:
    """The node; notes that it holds a number of more than 32 bits, for the device that gets it to refuse."""
    recording.wide.append((node, value))
    return node


def refuse_wide(node: Node, device: Any) -> None:
    """Raises IntegerOverflowError where a new value needs a number that was noted and the device cannot hold.

    Called for the first value that is made after one was noted. A comparison with such a number is known.
    """
    noted = {id(found): value for found, value in recording.wide}
    recording.wide.clear()
    if not device.target.wgsl:
        return
    stack, seen = [node], {id(node)}
    while stack:
        at = stack.pop()
        if id(at) in noted:
            raise too_wide(noted[id(at)])
        for source in () if at.buffer is not None or compared(at) is not None else chosen(at):
            if id(source) not in seen:
                seen.add(id(source))
                stack.append(source)
        if len(seen) > NEAR:
            return


def compared(node: Node) -> bool | None:
    """What a comparison with a number of more than 32 bits gives where whole numbers have 32; None for any other."""
    if node.op not in _COMPARISONS or node.inputs[0].spec.dtype is not dtypes.int64:
        return None
    a, b = (_constant(source) for source in node.inputs)
    turned = b is None or WORD[0] <= b <= WORD[1]
    value = a if turned else b
    if value is None or WORD[0] <= value <= WORD[1]:
        return None
    is_less = (value > 0) != turned  # the left operand is less than the right one
    if node.op in (pointwise.eq, pointwise.ne):
        return node.op is pointwise.ne
    return is_less if node.op in (pointwise.lt, pointwise.le) else not is_less


def chosen(node: Node) -> tuple[Node, ...]:
    """The inputs that a value depends on, where a choice is made by a comparison that is known."""
    known = compared(node.inputs[0]) if node.op is pointwise.where else None
    return node.inputs if known is None else (node.inputs[1 if known else 2],)


def too_wide(value: int) -> IntegerOverflowError:
    return IntegerOverflowError(
        f"the int64 number {value} is out of range: webgpu stores int64 as int32; keep such numbers on the cpu device, "
        "or as float32"
    )


def _constant(node: Node) -> int | None:
    while node.op is reduction.expand and node.buffer is None:
        node = node.inputs[0]
    if node.op is HOST:
        return int(plain(node.buffer))
    return int(node.attrs["value"]) if node.op is pointwise.const and node.buffer is None else None
