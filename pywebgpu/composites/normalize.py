"""Normalisations of rows: subtract a mean, divide by a spread, scale and shift.

Each is row folds and pointwise work over one set of axes, in two passes (mean, then variance), so that the compiler
makes one kernel of it; no axis is moved, and no shape changes which the formula does not need.
"""

from collections.abc import Sequence

from pywebgpu.composites import arithmetic, precision, reduce
from pywebgpu.composites.composite_op import composite
from pywebgpu.dtypes import DType
from pywebgpu.errors import ShapeError
from pywebgpu.ir.graph import Fused, Node, Spec
from pywebgpu.ops import pointwise
from pywebgpu.support.shapes import Shape
from pywebgpu.support.shapes import axes as axes_of

EPSILON = {"float16": 2.0**-10, "bfloat16": 2.0**-7, "float32": 2.0**-23, "float64": 2.0**-52}


@composite
def layer_norm(
    x: Node,
    normalized_shape: Sequence[int],
    weight: Node | None = None,
    bias: Node | None = None,
    eps: float = 1e-5,
) -> Node:
    """Scales each row of `x` to mean 0 and variance 1, then by `weight` and `bias`.

    Shapes: x (..., *normalized_shape), weight and bias normalized_shape -> that of x.
    Dtypes: floating; the statistics are float32 for half floats.
    Raises: ShapeError when the shapes do not end so; DTypeError when the dtype is not floating.
    Source: Ba, Kiros, Hinton 2016 (arXiv 1607.06450).  Against torch: the same.
    """
    axes = _trailing("layer_norm", x, normalized_shape, weight, bias)
    return _affine(centred(x, axes, eps), weight, bias, x.spec.dtype)


@composite
def rms_norm(x: Node, normalized_shape: Sequence[int], weight: Node | None = None, eps: float | None = None) -> Node:
    """Divides each row of `x` by the root of its mean square, then scales by `weight`.

    Shapes: x (..., *normalized_shape), weight normalized_shape -> that of x.
    Dtypes: floating; the statistics are float32 for half floats. eps=None is the dtype's machine epsilon.
    Source: Zhang, Sennrich 2019 (arXiv 1910.07467).  Against torch: the same.
    """
    axes = _trailing("rms_norm", x, normalized_shape, weight, None)
    wide = precision.upcast(x)
    if eps is None:
        eps = EPSILON[wide.spec.dtype.name]
    square = reduce.row_mean(pointwise.mul(wide, wide), axes)
    out = arithmetic.mul(wide, pointwise.rsqrt(pointwise.add(square, arithmetic.like(square, eps))))
    return _affine(out, weight, None, x.spec.dtype)


def normalize(x: Node, p: float = 2.0, dim: int | Sequence[int] = 1, eps: float = 1e-12) -> Node:
    """x over its p-norm along `dim`, which counts as `eps` at least."""
    axes, wide = axes_of(dim, len(x.spec.shape)), precision.upcast(x)
    size = reduce.norm(wide, p, axes, keepdim=True)
    return arithmetic.cast(arithmetic.div(wide, at_least(size, eps)), x.spec.dtype)


def at_least(x: Node, low: float) -> Node:
    """x where x >= low, else low; the gradient goes through x where it is chosen."""
    bound = arithmetic.like(x, low)
    return pointwise.where(pointwise.lt(x, bound), bound, x)


# Parts


def _standardized(x: Node, *, axes: Shape, eps: float) -> tuple[Node, Node, Node]:
    variance, centre, centred = reduce.moments("standardized", x, axes)
    scale = pointwise.rsqrt(pointwise.add(variance, arithmetic.like(variance, eps)))
    return arithmetic.mul(centred, scale), centre, variance


def _standardized_specs(x: Spec, *, axes: Shape, eps: float) -> tuple[Spec, Spec, Spec]:
    folded = Spec(tuple([1 if axis in axes else n for axis, n in enumerate(x.shape)]), x.dtype)
    return x, folded, folded


def _standardized_vjp(
    grads: tuple[Node | None, ...], outs: tuple[Node, ...], x: Node, *, axes: Shape, eps: float
) -> tuple[Node | None]:
    """Both sums over a row are of one walk, and the rest is by element: the gradient through mean and variance apart
    would walk twice, and wait once more."""
    g, (_, centre, variance) = grads[0], outs
    if g is None:
        return (None,)
    scale = pointwise.rsqrt(pointwise.add(variance, arithmetic.like(variance, eps)))
    centred = arithmetic.sub(x, centre)
    slope = pointwise.mul(reduce.row_mean(pointwise.mul(g, centred), axes), pointwise.mul(scale, scale))
    along = arithmetic.mul(centred, slope)
    return (arithmetic.mul(arithmetic.sub(arithmetic.sub(g, reduce.row_mean(g, axes)), along), scale),)


standardized: Fused = Fused(
    "standardized",  # x -> (x - mean) / sqrt(variance + eps) over axes, and both, of size 1 there
    infer=_standardized_specs,
    fallback=_standardized,
    vjp=_standardized_vjp,
)


def centred(x: Node, axes: Shape, eps: float) -> Node:
    """(x - mean) / sqrt(variance + eps) over `axes`; float32 for half floats."""
    return standardized(precision.upcast(x), axes=axes, eps=eps)[0]


def _affine(out: Node, weight: Node | None, bias: Node | None, dtype: DType) -> Node:
    if weight is not None:
        out = arithmetic.mul(out, precision.upcast(weight))
    if bias is not None:
        out = arithmetic.add(out, precision.upcast(bias))
    return arithmetic.cast(out, dtype)


def _trailing(name: str, x: Node, normalized_shape: Sequence[int], weight: Node | None, bias: Node | None) -> Shape:
    """The axes of `normalized_shape` in x."""
    precision.require_floating(name, x)
    sizes, have = tuple(normalized_shape), x.spec.shape
    if not sizes:
        raise ShapeError(f"{name}: expected normalized_shape to be at least 1-dimensional, got {list(sizes)}")
    if len(have) < len(sizes) or have[len(have) - len(sizes) :] != sizes:
        raise ShapeError(
            f"Given normalized_shape={list(sizes)}, expected input with shape [*, {', '.join(map(str, sizes))}], but "
            f"got input of size {list(have)}"
        )
    for what, part in (("weight", weight), ("bias", bias)):
        if part is not None and part.spec.shape != sizes:
            raise ShapeError(
                f"{name}: expected {what} to be of same shape as normalized_shape, but got {what} of shape "
                f"{list(part.spec.shape)} and normalized_shape = {list(sizes)}"
            )
    return tuple(range(len(have) - len(sizes), len(have)))
