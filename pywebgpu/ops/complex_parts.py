"""Complex numbers and their parts. Any other op takes complex numbers as it takes real ones: by NumPy on device cpu,
and as pairs of real values elsewhere (compiler/passes/split_complex.py).

A gradient is the derivative by the real part plus i times that by the imaginary part, as torch's (Kreutz-Delgado 2009,
arXiv 0906.4835). For a holomorphic function it is its formula between two conjugations: autodiff/backward.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from pywebgpu import dtypes
from pywebgpu.dtypes import DType
from pywebgpu.errors import ShapeError
from pywebgpu.ir.graph import Movement, Node, Pointwise, Spec, thread_state
from pywebgpu.ops import pointwise
from pywebgpu.shapes import Shape

if TYPE_CHECKING:
    from types import ModuleType

    from numpy.typing import NDArray


def part(dtype: DType) -> DType:
    """The dtype of the parts, or of a real number itself."""
    return dtype.part or dtype


def _joined(xp: ModuleType, a: NDArray[Any], b: NDArray[Any]) -> NDArray[Any]:
    out = xp.empty(xp.broadcast_shapes(a.shape, b.shape), "complex64" if a.dtype == "float32" else "complex128")
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
    """In the number's own direction, and 0 at 0."""
    safe = pointwise.where(pointwise.eq(out, _nothing(out)), pointwise.scalar(1.0, out.spec.dtype), out)
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


class Reinterpretation(Movement):
    """A view of the same memory as another dtype."""

    __slots__ = ()

    def __call__(self, x: Node, **attrs: Any) -> Node:
        spec = x.spec
        dtype = dtypes.to_complex(spec.dtype) if spec.dtype.part is None else spec.dtype.part
        return Node(self, (x,), attrs, Spec(self.infer(spec.shape), dtype), x.requires and thread_state.grad)


def _without_pairs(x: Shape) -> Shape:
    if not x or x[-1] != 2:
        raise ShapeError("Tensor must have a last dimension of size 2")
    return x[:-1]


def _unplaced(*given: object, **attrs: object) -> NoReturn:
    raise AssertionError("kernels see the parts of complex numbers, and no views of them")


def _as_pairs(xp: ModuleType, a: NDArray[Any]) -> NDArray[Any]:
    dense = a if a.flags.c_contiguous else a.copy()
    return dense.reshape((*a.shape, 1)).view(a.real.dtype)


def _of_pairs(xp: ModuleType, a: NDArray[Any]) -> NDArray[Any]:
    dense = a if a.flags.c_contiguous else a.copy()
    return dense.view("complex64" if a.dtype == "float32" else "complex128").reshape(a.shape[:-1])


# (...) complex -> (..., 2) real, and back.
as_real: Movement = Reinterpretation(
    "view_as_real", lambda x: (*x, 2), _unplaced, _as_pairs, vjp=lambda g, out, x: as_complex(g)
)
as_complex: Movement = Reinterpretation(
    "view_as_complex", _without_pairs, _unplaced, _of_pairs, vjp=lambda g, out, x: as_real(g)
)
