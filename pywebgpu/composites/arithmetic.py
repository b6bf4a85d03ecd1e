"""Broadcasting and type promotion, once for all ops.

An operand is a node or a Python number. A number becomes a host leaf, so that a loop whose numbers change compiles
once; a number that never changes is written with `like`, and the compiler may use what it is.
"""

from importlib import import_module
from types import ModuleType

from pywebgpu import dtypes
from pywebgpu.composites import wide
from pywebgpu.dtypes import DType, Kind
from pywebgpu.errors import DTypeError, ShapeError
from pywebgpu.ir.graph import Node, Pointwise, Spec, host
from pywebgpu.ir.surface import Takes, shown
from pywebgpu.ops import pointwise, reduction
from pywebgpu.step_capture import free_number
from pywebgpu.step_capture.free_number import FREE, Number, fixed, plain
from pywebgpu.support import numbers
from pywebgpu.support.shapes import Shape, broadcast, broadcast_all

Operand = Node | Number
_FLOAT = Kind.FLOAT
_LARGEST = numbers.HELD[dtypes.float32][1]


def result_type(*operands: Operand) -> DType:
    """torch's rule: tensors with axes decide, then tensors without, then numbers; a higher kind always wins."""
    if len(operands) == 2:  # What nearly every call asks.
        a, b = operands
        if isinstance(a, Node):
            own = a.spec.dtype
            if own is b.spec.dtype if isinstance(b, Node) else own.kind is _FLOAT:
                return own
    best: list[DType | None] = [None, None, None]
    for operand in operands:
        if isinstance(operand, Node):
            rank, dtype = (0 if operand.spec.shape else 1), operand.spec.dtype
        else:
            rank, dtype = 2, dtypes.of_scalar(operand)
        known = best[rank]
        best[rank] = dtype if known is None else dtypes.promote(known, dtype)
    result: DType | None = None
    for dtype_ in best:
        if dtype_ is not None and (result is None or dtype_.kind > result.kind):
            if result is not None and dtype_ is best[2] and dtype_.kind is Kind.FLOAT:
                dtype_ = dtypes.to_complex(dtypes.default()) if dtype_.part is not None else dtypes.default()
            result = dtype_
    assert result is not None
    if result.part is None and any(dtype is not None and dtype.part is not None for dtype in best):
        return dtypes.to_complex(result)
    return result


def cast(x: Node, dtype: DType) -> Node:
    if x.spec.dtype is dtype:
        return x
    converted = pointwise.cast(x, dtype=dtype)
    return converted if dtype.compute is not None else wide.note(converted, 0)


def number(value: Number, dtype: DType) -> Node:
    """A Python number of arithmetic as a node of shape (), as torch takes it: too large a float is an infinity, and a
    whole number wraps. See `stored` for what is not computed with.
    """
    return _node_of(value, dtype, is_rounded=False)


def stored(value: Number, dtype: DType) -> Node:
    """A number that becomes an element: a node of shape ().

    Raises: DTypeError where the dtype cannot hold it.  Against torch: the same, for negative numbers in unsigned dtypes
    too, which wrap.
    """
    numbers.check(value, dtype)
    half = dtype.itemsize <= 2 and dtype.kind is Kind.FLOAT  # Nothing else may round it where it is only copied.
    return _node_of(value, dtype, is_rounded=half)


def _node_of(value: Number, dtype: DType, *, is_rounded: bool) -> Node:
    if dtype.part is not None:
        return parts().number(value, dtype) if type(value) is complex else cast(number(value, dtype.part), dtype)
    if type(value) in FREE:
        if free_number.is_free(value) and numbers.may_change(value, dtype):
            return host(value, dtype)
        value = fixed(value)
    low, high = numbers.HELD[dtype]
    if low <= value <= high:
        held = int(value) if dtype.kind is Kind.INT else numbers.finite(value, dtype) if is_rounded else value
        return host(held, dtype)
    return _outside(value, dtype)


def paired(x: Node) -> Node:
    """(..., 2) real numbers as (...) complex ones."""
    complex_node: Node = parts().as_complex(x)
    return complex_node


def parts() -> ModuleType:
    """ops/complex_parts.py, which few programs need."""
    return import_module("pywebgpu.ops.complex_parts")


def _outside(value: float, dtype: DType) -> Node:
    """A number of arithmetic that not every device holds, as a constant."""
    numbers.check_size(value)
    if dtype.kind is Kind.BOOL:
        return pointwise.scalar(bool(value), dtype)
    if dtype.kind is Kind.FLOAT:
        return pointwise.scalar(
            numbers.finite(float(value), dtypes.float64 if dtype is dtypes.float64 else dtypes.float32), dtype
        )
    wrapped = numbers.wrapped(value, dtype)
    if dtype is not dtypes.int64 or numbers.WORD[0] <= wrapped <= numbers.WORD[1]:
        return host(wrapped, dtype)
    return wide.note(pointwise.full(wrapped, Spec((), dtype)), wrapped)


def node(operand: Operand, dtype: DType) -> Node:
    return cast(operand, dtype) if isinstance(operand, Node) else number(operand, dtype)


def beside(x: Node, shape: Shape) -> Node:
    """x as an operand of a pointwise op over `shape`: one of shape () stays as it is."""
    return broadcast_to(x, shape) if x.spec.shape else x


def broadcast_to(x: Node, shape: Shape) -> Node:
    """(3,) -> (4, 3): axes are added in front, then axes of size 1 grow. Raises ShapeError for any other shape."""
    have = x.spec.shape
    if have == shape:
        return x
    if broadcast(have, shape) != shape:
        raise ShapeError(f"cannot broadcast {have} with {shape}")
    if x.op is pointwise.const and x.buffer is None:
        return pointwise.full(x.attrs["value"], Spec(shape, x.spec.dtype))
    return reduction.expand(x, shape=shape)


def binary(op: Pointwise, a: Operand, b: Operand, dtype: DType | None = None) -> Node:
    """op(a, b), after both took their common shape and dtype.

    With half floats, numbers are compared as one, and computed with as float32: there may be none of the kind.
    """
    if dtype is None:
        dtype = result_type(a, b)
    if dtype.family:
        if dtype.part is not None:
            parts().require_field(op, dtype)
        elif dtype.family == "float8" and op not in (pointwise.eq, pointwise.ne):
            raise NotImplementedError(f'"{op.name}_cpu" not implemented for {dtype.title!r}: take x.float()')
        elif op in wide.COMPARISONS:
            a, b = (x if isinstance(x, Node) else numbers.number_of(x, dtype) for x in (a, b))
        elif any(not isinstance(x, Node) and not dtype.low <= plain(x) <= dtype.high for x in (a, b)):
            return cast(op(*together(a, b, dtype=dtypes.float32)), dtype)
    left = a if isinstance(a, Node) and a.spec.dtype is dtype else _operand(a, dtype)
    right = b if isinstance(b, Node) and b.spec.dtype is dtype else _operand(b, dtype)
    left_shape, other = left.spec.shape, right.spec.shape
    if left_shape == other or not left_shape or not other:
        return op(left, right)
    shape = broadcast(left_shape, other)
    return op(broadcast_to(left, shape), broadcast_to(right, shape))


def _operand(value: Operand, dtype: DType) -> Node:
    """As `node`, fast for what most loops have beside a tensor."""
    if type(value) is float and dtype is dtypes.float32 and -_LARGEST <= value <= _LARGEST:
        return host(value, dtype)
    return node(value, dtype)


def together(*operands: Operand, dtype: DType | None = None) -> tuple[Node, ...]:
    """The operands as nodes of one dtype and one shape, but for numbers, which stay of shape ()."""
    dtype = dtype or result_type(*operands)
    nodes = [node(operand, dtype) for operand in operands]
    shape = broadcast_all([n.spec.shape for n in nodes])
    return tuple(
        [broadcast_to(n, shape) if isinstance(operand, Node) else n for n, operand in zip(nodes, operands, strict=True)]
    )


def real(*operands: Operand) -> tuple[DType, tuple[Node, ...]]:
    """The floating dtype of a function of real numbers, and its operands, wide."""
    dtype = result_type(*operands)
    dtype = dtype if dtype.kind is Kind.FLOAT else dtypes.default()
    return dtype, together(*operands, dtype=dtypes.float32 if dtype.itemsize == 2 else dtype)


def floating(x: Operand) -> DType:
    """The dtype in which a function of real numbers works on x: integers become the default float."""
    dtype = result_type(x)
    return dtype if dtype.kind is Kind.FLOAT else dtypes.default()


def unary_float(op: Pointwise, x: Node) -> Node:
    dtype = floating(x)
    require_field(op, dtype)
    return op(cast(x, dtype))


def require_field(op: Pointwise, dtype: DType) -> None:
    """Raises NotImplementedError for an op that complex numbers do not have, where the dtype is theirs."""
    if dtype.part is not None:
        parts().require_field(op, dtype)


def like(x: Node, value: float) -> Node:
    """A constant operand beside x, of its dtype. It is part of the program: for numbers that never change."""
    return pointwise.scalar(value, x.spec.dtype)


def chosen(x: Node, value: Number) -> Node:
    """As `like`, of a number that the user chose. Raises: DTypeError where x's dtype cannot hold it."""
    dtype = x.spec.dtype
    numbers.check(value, dtype)
    return like(x, value) if dtype.kind is Kind.FLOAT else stored(value, dtype)


def factor(value: Number, dtype: DType, name: str = "alpha") -> Number:
    """A number that scales an operand. Raises DTypeError where the dtype cannot hold it, RuntimeError for a fraction of
    whole numbers and for True."""
    if dtype.kind is not Kind.FLOAT and isinstance(plain(value), float):
        raise RuntimeError(f"For integral input tensors, argument {name} must not be a floating point number.")
    if isinstance(value, bool) and dtype.kind is not Kind.BOOL:
        raise RuntimeError(f"Boolean {name} only supported for Boolean results.")
    numbers.check(value, dtype)
    return value


def weight(value: Number | Node, dtype: DType) -> Number | Node:
    """As `factor`; of whole numbers a fraction is cut off, and half floats are computed with in float32."""
    if isinstance(value, Node):  # a complex number of Python
        if dtype.part is None:
            raise DTypeError(f"value cannot be converted to type {dtype} without overflow")
        return value
    numbers.check(value, dtypes.float32 if dtype.itemsize == 2 and dtype.kind is _FLOAT else dtype)
    return int(value) if dtype.kind is Kind.INT and isinstance(plain(value), float) else value


# Arithmetic with torch's dtypes


def add(a: Operand, b: Operand, alpha: Number = 1) -> Node:
    dtype = result_type(a, b)
    if alpha is True or alpha != 1 or type(alpha) is float:
        factor(alpha, dtype)
    if alpha is True or alpha != 1:
        alpha = bool(alpha) if dtype is dtypes.bool_ else alpha
        b = mul(b, alpha) if isinstance(b, Node) else b * alpha
    return binary(pointwise.bitwise_or if dtype is dtypes.bool_ else pointwise.add, a, b, dtype)


def sub(a: Operand, b: Operand, alpha: Number = 1) -> Node:
    dtype = result_type(a, b)
    if _is_bool(a) and _is_bool(b):
        raise RuntimeError(
            "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or `logical_xor()` "
            "operator instead."
        )
    if _is_bool(a) or _is_bool(b):
        raise RuntimeError(
            "Subtraction, the `-` operator, with a bool tensor is not supported. If you are trying to invert a mask, "
            "use the `~` or `logical_not()` operator instead."
        )
    if alpha is True or alpha != 1 or type(alpha) is float:
        factor(alpha, dtype)
    if alpha is True or alpha != 1:
        b = mul(b, alpha) if isinstance(b, Node) else b * alpha
    return binary(pointwise.sub, a, b, dtype)


def _is_bool(x: Operand) -> bool:
    return x.spec.dtype is dtypes.bool_ if isinstance(x, Node) else isinstance(x, bool)


@shown("mul multiply", Takes.BINARY)
def mul(a: Operand, b: Operand) -> Node:
    dtype = result_type(a, b)
    return binary(pointwise.bitwise_and if dtype is dtypes.bool_ else pointwise.mul, a, b, dtype)


def div(a: Operand, b: Operand, rounding_mode: str | None = None) -> Node:
    dtype = result_type(a, b)
    if rounding_mode is None:
        return binary(pointwise.div, a, b, dtype if dtype.kind is Kind.FLOAT else dtypes.default())
    if rounding_mode == "floor":
        return binary(pointwise.floor_divide, a, b, dtype)
    if rounding_mode != "trunc":
        raise RuntimeError(
            f"div expected rounding_mode to be one of None, 'trunc', or 'floor' but found {rounding_mode!r}"
        )
    if dtype.kind is Kind.FLOAT:
        return binary(pointwise.trunc_divide, a, b, dtype)
    rest = binary(pointwise.fmod, a, b, dtype)
    return binary(pointwise.floor_divide, binary(pointwise.sub, a, rest, dtype), b, dtype)


def where(condition: Node, a: Operand, b: Operand) -> Node:
    dtype = result_type(a, b)
    left, right = (cast(x, dtype) if isinstance(x, Node) else stored(numbers.rounded(x, dtype), dtype) for x in (a, b))
    shape = broadcast(condition.spec.shape, broadcast(left.spec.shape, right.spec.shape))
    chosen = cast(condition, dtypes.bool_)
    return pointwise.where(beside(chosen, shape), beside(left, shape), beside(right, shape))
