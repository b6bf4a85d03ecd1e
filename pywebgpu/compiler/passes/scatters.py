"""How rows are combined by number: by looking at all updates, by bisection among sorted ones, or in place.

In place, only the rows that occur are touched, and a sum is added to what it was to be added to: the gradient of an
embedding goes into the gradient that another use of the same weights wrote.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from pywebgpu import dtypes
from pywebgpu.compiler.passes import lower as lowering
from pywebgpu.ir import walk
from pywebgpu.ir.graph import WHICH, Node
from pywebgpu.kernels import windows
from pywebgpu.kernels.kernel import Limits
from pywebgpu.kernels.target import Target
from pywebgpu.kernels.templates import Selection
from pywebgpu.ops import indexing, movement, pointwise, scattering
from pywebgpu.support.formats import WORD

MANY = 4096  # updates from which putting them in order first costs less than comparing each with each row
WORK = 1 << 23  # comparisons of updates with elements, from which a few small kernels cost less than one with all
WIDE = 32  # columns from which a workgroup for each few updates is busy
LONGEST = 1 << 13  # updates of a row that one invocation takes one after another,
CARRIED = 1 << 22  # and those whose blocks one workgroup does: adapters may end loops after 65,535 rounds
OTHERS = 6  # bindings of a kernel beside the value: numbers, order, updates of two operands, carries, faults
COUNTED = 1024  # numbers that are put in order by counting, at once: more take a CPU longer than the passes that merge,
COUNTED_BY_GPU = 4096  # and a GPU as well
MODES = ("add", "prod", "max", "min", "set")  # Not those that check: a part of a sum may not fit where the sum does.


def lower_scatters(roots: tuple[Node, ...], nodes: Sequence[Node], selection: Selection) -> tuple[Node, ...]:
    """The same values, where scatters became what their sizes ask for."""
    if not any(node.op is indexing.scatter and node.buffer is None for node in nodes):
        return roots
    limits = selection.target.limits
    roots = _joined(roots, nodes, limits)
    nodes = walk.toposort(roots)
    taken = {id(node.inputs[1]) for node in nodes if node.op is indexing.take and not node.is_source}

    def rule(node: Node) -> Node:
        if node.op is not indexing.scatter:
            return node
        if _is_in_place(node, limits):
            return _in_place(node, selection.target, is_checked=id(node.inputs[1]) in taken)
        return _sorted(node) if node.inputs[1].spec.shape[0] >= MANY else node

    return walk.rebuild(roots, nodes, rule)


def _users(roots: tuple[Node, ...], nodes: Sequence[Node]) -> dict[int, int]:
    """By id of a node, how often it is read."""
    counts: dict[int, int] = {}
    for source in (*[source for node in nodes if not node.is_source for source in node.inputs], *roots):
        counts[id(source)] = counts.get(id(source), 0) + 1
    return counts


def _is_in_place(node: Node, limits: Limits) -> bool:
    """Where a workgroup may reach any row: all of the value is bound."""
    base, index, _ = node.inputs
    updates, columns = index.spec.shape[0], base.spec.shape[1]
    large = prod(base.spec.shape) * updates >= WORK and columns >= WIDE
    bound = OTHERS + windows.count(WORD * prod(base.spec.shape), limits)
    known = node.attrs["mode"] in MODES and node.spec.dtype.format.per_word == 1
    return large and known and bound <= limits.bindings and updates <= CARRIED


def _in_place(node: Node, target: Target, *, is_checked: bool) -> Node:
    """is_checked: rows are taken by the same numbers, which finds those that are wrong."""
    base, index, source = node.inputs
    if is_checked and index.op is pointwise.index and index.buffer is None and not index.attrs["wrap"]:
        (index,) = index.inputs  # The kernels reach no other rows, whatever the numbers are.
    mode, keys = node.attrs["mode"], pointwise.cast(index, dtype=dtypes.uint32)
    is_gpu = bool(target.features.family) and not target.is_cpu
    if is_gpu and index.spec.shape[0] <= scattering.FEW:
        return scattering.scatter_few(base, keys, source, mode=mode)
    order = lowering.order(keys, COUNTED_BY_GPU if is_gpu else COUNTED)
    inputs = base, keys, order, source
    specs = scattering.scatter_blocks.infer(*[source.spec for source in inputs], mode=mode)
    blocks, carries = [
        Node(scattering.scatter_blocks, inputs, {"mode": mode, WHICH: index}, spec) for index, spec in enumerate(specs)
    ]
    return scattering.scatter_carried(blocks, carries, keys, order, mode=mode)


def _sorted(node: Node) -> Node:
    """Updates in the order of their rows: each row then finds its own by a search and not by looking at all."""
    base, index, source = node.inputs
    keys = pointwise.cast(index, dtype=dtypes.uint32)
    order = lowering.order(keys)
    count = index.spec.shape[0]
    column = movement.reshape(keys, shape=(count, 1))
    numbers = movement.reshape(indexing.take(column, order), shape=(count,))
    mode = node.attrs["mode"]
    if count <= LONGEST:
        return indexing.scatter_sorted(base, numbers, order, source, mode=mode)
    # A row takes updates up to a block, blocks, and updates behind them: together the fewest with blocks of this size.
    size = 1 << ((count // 2 - 1).bit_length() + 1) // 2
    folds = indexing.fold_sorted(numbers, order, source, size=size, mode=mode)
    return indexing.scatter_sorted(base, numbers, order, source, folds, mode=mode, size=size)


def _joined(roots: tuple[Node, ...], nodes: Sequence[Node], limits: Limits) -> tuple[Node, ...]:
    """x + (0 with updates) -> x with updates, where nobody else wants the second."""
    users = _users(roots, nodes)

    def rule(node: Node, fresh: Node) -> Node:
        return _onto(node, fresh, users, limits) if node.op is pointwise.add else fresh

    return walk.replace(roots, nodes, rule)


def _onto(node: Node, fresh: Node, users: dict[int, int], limits: Limits) -> Node:
    """users: how many there are of a node, by its id before anything was rebuilt."""
    for old, updates, other in zip(node.inputs, fresh.inputs, fresh.inputs[::-1], strict=True):
        if updates.op is not indexing.scatter or updates.buffer is not None or users[id(old)] > 1:
            continue
        base, index, source = updates.inputs
        is_sum = updates.attrs["mode"] == "add" and base.op is pointwise.const and base.attrs["value"] == 0
        if is_sum and other.spec == updates.spec and _is_in_place(updates, limits):
            return indexing.scatter(other, index, source, mode="add")
    return fresh
