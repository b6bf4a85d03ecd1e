"""Complex numbers and their parts. Any other op takes complex numbers as it takes real ones: by NumPy on device cpu,
and as pairs of real values elsewhere (compiler/passes/split_complex.py).

A gradient is the derivative by the real part plus i times that by the imaginary part, as torch's (Kreutz-Delgado 2009,
arXiv 0906.4835). For a holomorphic function it is its formula between two conjugations: autodiff/backward.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from pywebgpu import dtypes
from pywebgpu.dtypes import DType, Kind
from pywebgpu.errors import ShapeError
from pywebgpu.ir.graph import Node, Pointwise, Reinterpretation, Spec
from pywebgpu.ops import clamping, pointwise
from pywebgpu.support.shapes import Shape

if TYPE_CHECKING:
    from types import ModuleType

    from numpy.typing import NDArray


# What asks which of two numbers is larger, or is known along the real line only.
_REAL = frozenset({
    pointwise.lt, pointwise.le, pointwise.gt, pointwise.ge, pointwise.maximum, pointwise.minimum,
    pointwise.floor_divide, pointwise.trunc_divide, pointwise.remainder, pointwise.fmod, pointwise.atan2,
    pointwise.hypot, pointwise.erf, pointwise.erfinv, pointwise.sign, pointwise.floor, pointwise.ceil, pointwise.trunc,
    pointwise.round_, clamping.relu,
})  # fmt: skip


def require_field(op: Pointwise, dtype: DType) -> None:
    """Raises NotImplementedError for an op that complex numbers do not have."""
    if op in _REAL:
        raise NotImplementedError(f"\"{op.name}\" not implemented for '{dtype.title}'")


def number(value: complex, dtype: DType) -> Node:
    """A complex number of Python, of which both parts are part of the program."""
    return pointwise.full(value, Spec((), dtype))  # type: ignore[arg-type]  # A constant of another kind.


def beside(value: complex, dtype: DType) -> Node:
    """The same beside a tensor of some dtype."""
    own = dtype if dtype.kind is Kind.FLOAT else dtypes.default()  # It never decides how many bits a part has.
    return number(value, dtypes.to_complex(own))


def part(dtype: DType) -> DType:
    """The dtype of the parts, or of a real number itself."""
    return dtype.part or dtype


def _joined(xp: ModuleType, a: NDArray[Any], b: NDArray[Any]) -> NDArray[Any]:
    out = xp.empty(xp.broadcast_shapes(a.shape, b.shape), "complex128" if a.dtype == "float64" else "complex64")
    out.real, out.imag = a, b
    return out


complex_: Pointwise = Pointwise(
    "complex",
    "vec2<f32>({0}, {1})",
    _joined,
    vjp=(lambda g, out, a, b: real(g), lambda g, out, a, b: imag(g)),
    result=lambda a, b: dtypes.to_complex(b),
)
real: Pointwise = Pointwise(
    "real",
    "{0}.x",
    lambda xp, a: a.real.copy(),
    vjp=(lambda g, out, a: complex_(g, _nothing(g)),),
    result=part,
)
imag: Pointwise = Pointwise(
    "imag",
    "{0}.y",
    lambda xp, a: a.imag.copy(),
    vjp=(lambda g, out, a: complex_(_nothing(g), g),),
    result=part,
)
conj: Pointwise = Pointwise(
    "conj",
    "vec2<f32>({0}.x, -{0}.y)",
    "conjugate",
    vjp=(lambda g, out, a: conj(g),),
)


def _modulus_vjp(g: Node, out: Node, a: Node) -> Node:
    """In the number's own direction, and 0 at 0. Programs may write to the result: it is computed again."""
    size = modulus(a)
    safe = pointwise.where(pointwise.eq(size, _nothing(size)), pointwise.scalar(1.0, size.spec.dtype), size)
    factor = pointwise.div(g, safe)
    return complex_(pointwise.mul(factor, real(a)), pointwise.mul(factor, imag(a)))


modulus: Pointwise = Pointwise(
    "modulus",  # the distance from 0
    "length({0})",
    "absolute",
    vjp=(_modulus_vjp,),
    result=part,
)


def _nothing(like: Node) -> Node:
    return pointwise.scalar(0.0, like.spec.dtype)


def _without_pairs(x: Shape) -> Shape:
    if not x or x[-1] != 2:
        raise ShapeError("Tensor must have a last dimension of size 2")
    return x[:-1]


def _unplaced(*arguments: object, **attrs: object) -> NoReturn:
    raise AssertionError("kernels see the parts of complex numbers, and no views of them")


def _as_pairs(xp: ModuleType, a: NDArray[Any]) -> NDArray[Any]:
    dense = a if a.flags.c_contiguous else a.copy()
    return dense.reshape((*a.shape, 1)).view(a.real.dtype)


def _of_pairs(xp: ModuleType, a: NDArray[Any]) -> NDArray[Any]:
    dense = a if a.flags.c_contiguous else a.copy()
    if a.dtype == "float16":
        dense = dense.astype("float32")
    return dense.view("complex128" if a.dtype == "float64" else "complex64").reshape(a.shape[:-1])


# (...) complex -> (..., 2) real, and back.
as_real: Reinterpretation = Reinterpretation(
    "view_as_real",
    infer=lambda x: (*x, 2),
    index=_unplaced,
    reference=_as_pairs,
    vjp=lambda g, out, x: as_complex(g),
    dtype=lambda dtype: dtype.part or dtype,
    strides=lambda steps, offset: ((*(2 * step for step in steps), 1), 2 * offset),
    back=lambda x: as_complex(x),
)
as_complex: Reinterpretation = Reinterpretation(
    "view_as_complex",
    infer=_without_pairs,
    index=_unplaced,
    reference=_of_pairs,
    vjp=lambda g, out, x: as_real(g),
    dtype=dtypes.to_complex,
    strides=lambda steps, offset: (tuple(step // 2 for step in steps[:-1]), offset // 2),
    back=lambda x: as_real(x),
)
