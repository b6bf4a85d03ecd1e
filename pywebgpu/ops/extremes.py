"""The largest or smallest element of a row together with its position: one walk over the row finds both."""

from pywebgpu import dtypes
from pywebgpu.ir.graph import Fused, Node, Reduction, Spec
from pywebgpu.ops import pointwise, reduction
from pywebgpu.support.shapes import Shape


def _specs(x: Spec, axes: Shape) -> tuple[Spec, Spec]:
    shape = tuple([1 if axis in axes else n for axis, n in enumerate(x.shape)])
    return Spec(shape, x.dtype), Spec(shape, dtypes.int64)


def _vjp(grads: tuple[Node | None, ...], outs: tuple[Node, ...], x: Node, axes: Shape) -> tuple[Node | None, ...]:
    """The gradient goes to the element whose position was found. Of one axis."""
    g, index = grads[0], outs[1]
    if g is None:
        return (None,)
    positions = pointwise.iota(spec=Spec(x.spec.shape, index.spec.dtype), axis=axes[0])
    hit = pointwise.eq(positions, reduction.grown(index, x))
    return (pointwise.where(hit, reduction.grown(g, x), pointwise.scalar(0.0, x.spec.dtype)),)


def _extreme(name: str, value: Reduction, position: Reduction) -> Fused:
    return Fused(name, infer=_specs, fallback=lambda x, axes: (value(x, axes), position(x, axes)), vjp=_vjp)


largest: Fused = _extreme("largest", reduction.max_, reduction.argmax)  # of floats; NaN is larger than all
smallest: Fused = _extreme("smallest", reduction.min_, reduction.argmin)  # NaN is smaller than all
