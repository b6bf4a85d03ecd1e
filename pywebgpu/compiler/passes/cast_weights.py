"""Halves of weights that lie in one flat vector: one kernel casts all of it, and each product reads a range of that.

A kernel for each weight takes longer than what it moves, and there is one for each layer of a model.
"""

from collections.abc import Sequence
from math import prod

from pywebgpu.compiler.inlining import LARGE, REREAD
from pywebgpu.compiler.suballocation import source_of
from pywebgpu.ir import walk
from pywebgpu.ir.graph import Node
from pywebgpu.kernels.templates import Selection
from pywebgpu.ops import contraction, packing, pointwise
from pywebgpu.support.formats import BF16, F16

FEWEST = 2  # casts that one takes the place of

Found = dict[tuple[Node, str], list[tuple[Node, int]]]  # by flat vector and dtype: casts, and where their weights start


def cast_weights(roots: tuple[Node, ...], order: Sequence[Node], selection: Selection) -> tuple[Node, ...]:
    """The same values."""
    new: dict[int, Node] = {}
    for (flat, _), casts in _casts(order).items():
        size = prod(flat.spec.shape)
        most = sum(prod(node.spec.shape) for node, _ in casts)
        if (
            len(casts) < FEWEST
            or 2 * most < size
            or flat.spec.dtype.format.nbytes(size) > selection.target.limits.binding_bytes
        ):
            continue
        copy = pointwise.cast(flat, dtype=casts[0][0].spec.dtype)
        new |= {id(node): packing.part(copy, start=start, shape=node.spec.shape) for node, start in casts}
    return walk.replace(roots, order, lambda node, fresh: new.get(id(node), fresh)) if new else roots


def _casts(order: Sequence[Node]) -> Found:
    """Of weights that are stored as halves: see inlining.py."""
    times: dict[Node, int] = {}  # multiplications, by the cast that products read
    for node in order:
        if node.op in (contraction.matmul, contraction.partial_matmul) and not node.is_source:
            for operand in node.inputs:
                cast = walk.base(operand)
                if cast.op is pointwise.cast and not cast.is_source and cast.spec.dtype.format in (F16, BF16):
                    times[cast] = times.get(cast, 0) + prod(node.spec.shape) * node.inputs[0].spec.shape[-1]
    casts: Found = {}
    for cast, count in times.items():
        size = prod(cast.spec.shape)
        flat, start = source_of(cast.inputs[0])
        if flat is None or size < LARGE or count < REREAD * size or start % packing.alignment(cast.spec.dtype):
            continue
        casts.setdefault((flat, cast.spec.dtype.name), []).append((cast, start))
    return casts
