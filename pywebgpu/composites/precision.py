"""The dtype in which a composite computes: half floats in float32, rounded once at the end, as torch does."""

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec

from pywebgpu import dtypes
from pywebgpu.composites import arithmetic
from pywebgpu.dtypes import DType, Kind
from pywebgpu.errors import DTypeError
from pywebgpu.ir.graph import Node

Options = ParamSpec("Options")
Composite = Callable[Concatenate[Node, Options], Node]


def compute_dtype(dtype: DType) -> DType:
    """float32 for half floats, any other dtype as it is."""
    return dtypes.float32 if dtype.kind is Kind.FLOAT and dtype.itemsize == 2 else dtype


def upcast(x: Node) -> Node:
    """float16 and bfloat16 as float32, any other dtype as it is."""
    return arithmetic.cast(x, compute_dtype(x.spec.dtype))


def require_floating(name: str, *inputs: Node) -> None:
    """Raises DTypeError when an input is not floating."""
    for x in inputs:
        if x.spec.dtype.kind is not Kind.FLOAT:
            raise NotImplementedError(f'"{name}" not implemented for {x.spec.dtype.name!r}: it needs a floating dtype')


def require_order(name: str, x: Node) -> None:
    """Raises NotImplementedError for complex numbers, of which none is the largest."""
    if x.spec.dtype.part is not None:
        raise NotImplementedError(f'"{name}" not implemented for {x.spec.dtype.name!r}: take x.abs() or x.real')


def refuse_bool(name: str, *inputs: Node) -> None:
    """Raises NotImplementedError when an input is bool."""
    if any(x.spec.dtype is dtypes.bool_ for x in inputs):
        raise NotImplementedError(f"\"{name}\" not implemented for 'Bool': take x.int() or x.float()")


def require_same(name: str, first: Node, *others: Node) -> DType:
    """The one dtype of all inputs. Raises DTypeError when they differ."""
    for x in others:
        if x.spec.dtype is not first.spec.dtype:
            names = f"{first.spec.dtype.title} and {x.spec.dtype.title}"
            if name in ("linear", "matmul", "mm", "addmm"):
                raise DTypeError(f"mat1 and mat2 must have the same dtype, but got {names}")
            raise DTypeError(f"{name}: expected one dtype, but got {names}")
    return first.spec.dtype


def upcasting(function: Composite[Options]) -> Composite[Options]:
    """Decorates a function of real numbers: checks that its input is floating, and computes half floats in float32."""
    name = function.__name__.rstrip("_")

    @wraps(function)
    def call(x: Node, /, *args: Options.args, **options: Options.kwargs) -> Node:
        require_floating(name, x)
        return arithmetic.cast(function(upcast(x), *args, **options), x.spec.dtype)

    return call
