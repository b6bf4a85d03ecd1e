"""Attention of few rows over many keys, cut into parts of the keys that workgroups have side by side.

A part gives the rows' values and the logarithms of what their weights sum up to, from which whoever reads the result
joins the parts, together with what it does else. Source: flash decoding (Dao, Haziza, Massa, Sizov 2023).
"""

from functools import reduce
from typing import NoReturn

from pywebgpu import dtypes
from pywebgpu.composites import arithmetic
from pywebgpu.errors import CompileError
from pywebgpu.ir.graph import Fused, Node, Spec
from pywebgpu.ops import movement, pointwise


def _specs(query: Spec, key: Spec, value: Spec, *extras: Spec, span: int, **options: object) -> tuple[Spec, ...]:
    (batches, heads, length, _), width = query.shape, value.shape[-1]
    rows = (-(-key.shape[2] // span), batches, length, heads)
    return Spec((*rows, width), dtypes.float32), Spec((*rows, 1), dtypes.float32)


def _unmade(*inputs: Node, **options: object) -> NoReturn:
    raise CompileError("attention_parts: made by a pass, where a kernel exists")


# (query, key, value, mask?; span: keys of a part; scale, window, masked) -> values (parts, batches, length, heads,
# width), and log-sums (parts, batches, length, heads, 1), of rows that a part hides 0 and HIDDEN.
attention_parts: Fused = Fused("attention_parts", infer=_specs, fallback=_unmade)


def joined(values: Node, logs: Node) -> tuple[Node, Node]:
    """Values (batches, length, heads, width) and log-sums (batches, length, heads, 1) of all parts together."""
    shares = _parts(logs)
    peak = reduce(pointwise.maximum, shares)
    weights = [pointwise.exp(pointwise.sub(share, peak)) for share in shares]
    total = reduce(pointwise.add, [arithmetic.broadcast_to(weight, values.spec.shape[1:]) for weight in weights])
    products = [arithmetic.mul(part, weight) for part, weight in zip(_parts(values), weights, strict=True)]
    log_sum = pointwise.add(peak, pointwise.log(reduce(pointwise.add, weights)))
    return pointwise.div(reduce(pointwise.add, products), total), log_sum


def _parts(x: Node) -> list[Node]:
    count, *shape = x.spec.shape
    cut = {"sizes": (1, *shape), "steps": (1,) * len(x.spec.shape)}
    starts = [(start, *(0 for _ in shape)) for start in range(count)]
    return [movement.reshape(movement.slice_(x, starts=start, **cut), shape=tuple(shape)) for start in starts]
